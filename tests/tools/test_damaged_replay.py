"""Damaged journals: every question of replay is answered, or refused with a reason, and never with a traceback (J3)."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from radixledger.journal.events import Admitted, Gap, Refused
from radixledger.journal.frame import MAGIC
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import NodeId, RequestId, TokenCount
from radixledger.journal.writer import JournalWriter, Sealing
from radixledger.tools.cli import run as radixledger

from ..cache.driven import Driven, opened
from ..replay.runs import RANK, Clock, written

Capture = pytest.CaptureFixture[str]
QUESTIONS = (
    "state RUN",
    "state RUN --at 40 --json",
    "blame RUN --node 2",
    "blame RUN --request 16",
    "blame RUN --pool full --page 3",
    "bisect RUN --law every_page_has_one_owner",
    "bisect RUN --law a_page_is_freed_once",
    "bisect RUN --predicate full.free<20 --first",
    "diff RUN WHOLE",
    "diff WHOLE RUN",
    "diff RUN@10 RUN",
)


def flipped(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]


def swapped(data: bytes) -> bytes:
    half = len(data) // 2
    return data[:64] + data[half:] + data[64:half]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "torn": lambda data: data[: 2 * len(data) // 3],
    "flipped": flipped,
    "swapped": swapped,
    "empty": lambda _: b"",
    "noise": lambda data: bytes(range(256)) * (len(data) // 256 + 1),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in several live segments, with snapshots."""
    run = tmp_path_factory.mktemp("damaged") / "whole"
    writer = JournalWriter.open(
        run, opened(redaction="plain"), clock=Clock(), sealing=Sealing.NEVER, rotate_bytes=3_000
    )
    driven = Driven(7, recorder=writer, seq=writer.last_seq)
    for number in range(160):
        if number % 50 == 49:
            driven.cache.snapshot()
        driven.step()
    writer.close()
    return run


def asked(question: str, run: Path, whole: Path, capfd: Capture) -> int:
    """The exit code of a question; what it said is no traceback."""
    words = question.replace("RUN", str(run)).replace("WHOLE", str(whole)).split()
    code = radixledger(["replay", *words])
    out, err = capfd.readouterr()
    assert code in (0, 1, 2, 3), out + err
    assert "Traceback" not in err
    assert code != 2 or "it does not hold event" in err, err
    assert code in (0, 1) or err.startswith("Error: ") or "\nError: " in err
    return code


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_damaged_segment_is_told_or_read_around(
    whole: Path, tmp_path: Path, capfd: Capture, damage: str, which: int
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    segment = sorted((tmp_path / "run" / "rank-0000").glob("*.seg"))[which]
    segment.write_bytes(DAMAGES[damage](segment.read_bytes()))
    codes = [asked(question, tmp_path / "run", whole, capfd) for question in QUESTIONS]
    around = [asked(f"{question} --salvage", tmp_path / "run", whole, capfd) for question in QUESTIONS]
    assert any(code in (0, 1) for code in around) or which == 0
    assert codes.count(3) >= around.count(3) or damage == "empty"


def test_a_segment_of_another_run_is_told(whole: Path, tmp_path: Path, capfd: Capture) -> None:
    shutil.copytree(whole, tmp_path / "run")
    written(tmp_path / "other", 160, seed=9, rotate_bytes=3_000)
    mine = sorted((tmp_path / "run" / "rank-0000").glob("*.seg"))[1]
    theirs = sorted((tmp_path / "other" / "rank-0000").glob("*.se*"))[1]
    shutil.copy(theirs, mine.with_name(mine.stem + theirs.suffix))
    for question in QUESTIONS:
        asked(question, tmp_path / "run", whole, capfd)
        asked(f"{question} --salvage", tmp_path / "run", whole, capfd)


def test_an_empty_folder_is_no_run(tmp_path: Path, whole: Path, capfd: Capture) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rank-0000").mkdir(exist_ok=True)
    assert {asked(question, tmp_path / "run", whole, capfd) for question in QUESTIONS} == {3}


def test_a_state_that_no_image_can_tell_is_bisected_all_the_same(tmp_path: Path, capfd: Capture) -> None:
    """Nine requests in eight rows: a lawless state cannot be copied, so it is folded on."""
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    for number in range(9):
        request = RequestId(8 + 8 * number)
        writer.append(Admitted(request, f"r{number}", TokenCount(4), TokenCount(0), NodeId(0)))
        writer.end_command()
    for _ in range(700):
        writer.append(Refused("pool_short", "again"))
        writer.end_command()
    writer.close()
    assert radixledger(["replay", "bisect", str(tmp_path / "run"), "--predicate", "seq >= 600"]) == 1
    assert "first behind event 600," in capfd.readouterr().out


FOLDING = (
    "replay state RUN --salvage",
    "replay blame RUN --node 2 --salvage",
    "replay blame RUN --request 16 --salvage",
    "replay bisect RUN --law every_page_has_one_owner --salvage",
    "replay bisect RUN --predicate full.free<20 --first --salvage",
    "replay bisect RUN --law a_page_is_freed_once --salvage",
    "replay locks RUN --salvage",
    "replay lost-reuse RUN --salvage",
    "replay diff RUN WHOLE --salvage",
    "whatif RUN --salvage",
    "report RUN -o PAGE --force",
    "triage RUN --no-report",
)
"""Commands that fold a journal from its first event on."""


def test_a_journal_whose_first_event_alone_is_lost_is_folded_as_its_heading_says(
    whole: Path, tmp_path: Path, capfd: Capture
) -> None:
    """The heading of its file has what the rank was opened with; a gap stands in for the event, and its place is 1."""
    shutil.copytree(whole, tmp_path / "run", ignore=shutil.ignore_patterns("*.snap*"))
    segment = min((tmp_path / "run" / "rank-0000").glob("*.seg"))
    data = bytearray(segment.read_bytes())
    data[data.index(MAGIC, data.index(MAGIC) + 1) - 3] ^= 255
    segment.write_bytes(data)
    lost = next(iter(JournalReader(tmp_path / "run", RANK, salvage=True).frames()))
    assert (lost.seq_first, [type(event) for event in lost.events]) == (1, [Gap])
    for command in FOLDING:
        places = {"RUN": tmp_path / "run", "WHOLE": whole, "PAGE": tmp_path / "page.html"}
        code = radixledger([str(places.get(word, word)) for word in command.split()])
        out, err = capfd.readouterr()
        assert code in (0, 1), f"{command}: {out}{err}"
