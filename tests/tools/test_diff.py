"""`radixledger replay diff`: two journals, two moments, two routes; what it prints and its exit codes."""

import json
import shutil
from pathlib import Path

import pytest

from radixledger.journal.reader import JournalReader
from radixledger.journal.writer import JournalWriter, Sealing
from radixledger.replay.seek import state_at
from radixledger.tools.cli import run as radixledger
from radixledger.tools.drill import DoubleFree, plant_double_free

from ..cache.driven import Driven, opened
from ..replay.runs import RANK, Clock, written

Capture = pytest.CaptureFixture[str]
TRACE = [(2000, [1, 2, 3, 4]), (1500, [1, 2, 5]), (2500, [1, 2, 3, 6, 7]), (2900, [1, 2, 3, 6, 7, 8])]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("diff") / "run"
    written(run, 300, snapshots=(100,))
    return run


@pytest.fixture(scope="module")
def planted(run: Path) -> tuple[Path, DoubleFree]:
    """The same with a page that is freed twice."""
    return run.parent / "incident", plant_double_free(run, run.parent / "incident", RANK)


def told(capfd: Capture, *arguments: object, code: int) -> str:
    """What `diff` prints, leaving with `code`."""
    found = radixledger(["replay", "diff", *map(str, arguments)])
    out, err = capfd.readouterr()
    assert found == code, out + err
    return out or err


def driven(place: Path, name: str, pages: int, *options: str) -> Path:
    """A run of the trace on some route."""
    lines = [
        {"timestamp": at, "input_length": length, "output_length": 30, "hash_ids": ids}
        for at, (length, ids) in enumerate(TRACE)
    ]
    (place / "trace.jsonl").write_text("\n".join(map(json.dumps, lines)))
    sizes = ("--page-size", "64", "--window", "256", "--full-pages", str(pages), "--swa-pages", str(pages))
    arguments = ["drive", str(place / "trace.jsonl"), "--journal", str(place / name), *sizes, *options]
    assert radixledger(arguments) == 0
    return place / name


def test_a_run_does_not_differ_from_its_copy(run: Path, tmp_path: Path, capfd: Capture) -> None:
    shutil.copytree(run, tmp_path / "copy")
    out = told(capfd, run, tmp_path / "copy", code=0)
    assert "what requests got: the same" in out
    assert "what the cache did: the same" in out
    as_json = json.loads(told(capfd, run, tmp_path / "copy", "--json", code=0))
    assert (as_json["differ"], as_json["openings"], as_json["keys"]) == (False, {}, True)


def test_the_first_event_that_one_run_has_more_is_shown(
    run: Path, planted: tuple[Path, DoubleFree], capfd: Capture
) -> None:
    """J24: the second free of a page, with what stands in its place on the other side."""
    incident, double = planted
    out = told(capfd, run, incident, code=1)
    assert "what requests got: the same" in out
    assert f"  B {double.second}  step" in out
    assert f"Freed  giver request({double.again.request})  full {double.page}" in out
    as_json = json.loads(told(capfd, run, incident, "--json", code=1))
    assert as_json["requests"]["same"]
    assert as_json["events"]["b"]["seq"] == as_json["events"]["a"]["seq"] == double.second
    assert told(capfd, run, incident, "--level", "requests", code=0)


def test_two_routes_are_compared_by_what_requests_got(tmp_path: Path, capfd: Capture) -> None:
    """N17: with room enough both routes serve alike, though the trees differ; where one is short, it shows."""
    unified = driven(tmp_path, "unified", 400, "--enable-unified-radix-tree")
    legacy = driven(tmp_path, "legacy", 400)
    capfd.readouterr()
    out = told(capfd, legacy, unified, code=0)
    assert "not opened alike" in out
    assert "what requests got: the same" in out
    assert "what the cache did: they part" in out
    assert told(capfd, legacy, unified, "--level", "events", code=1)
    short = driven(tmp_path, "short", 60, "--enable-unified-radix-tree")
    capfd.readouterr()
    out = told(capfd, unified, short, "--level", "requests", code=1)
    assert "full_pages" in out
    assert "what requests got: they part" in out
    assert "numbers just before they part" in out


def test_two_moments_of_a_run_are_compared_by_number(run: Path, capfd: Capture) -> None:
    reader = JournalReader(run, RANK)
    a, b = 200, int(reader.last_seq)
    out = told(capfd, f"{run}@{a}", run, code=1)
    assert f"A: {run}@{a}, behind event {a}\nB: {run}, behind event {b}" in out
    as_json = json.loads(told(capfd, f"{run}@{a}", f"{run}@{b}", "--json", code=1))
    assert as_json["seqs"] == [a, b]
    moved = {page for each in as_json["diff"]["pages"] if each["pool"] == "FULL" for page in each["pages"]}
    accounts = [state_at(reader, seq).full.account for seq in (a, b)]
    assert moved == set((accounts[0] != accounts[1]).nonzero()[0].tolist())
    assert "no difference" in told(capfd, f"{run}@{a}", f"{run}@{a}", code=0)
    assert "no difference" in told(capfd, f"{run}@+50ms", f"{run}@+50ms", code=0)


def test_a_folder_with_an_at_in_its_name_is_a_folder(run: Path, tmp_path: Path, capfd: Capture) -> None:
    shutil.copytree(run, tmp_path / "run@7")
    assert "the same" in told(capfd, run, tmp_path / "run@7", code=0)
    assert "no difference" in told(capfd, f"{tmp_path}/run@7@100", f"{run}@100", code=0)


@pytest.mark.parametrize(
    ("a", "b", "code", "why"),
    [
        ("RUN@99999", "RUN", 2, "it does not hold event 99999"),
        ("RUN@noon", "RUN", 2, "no event number and no time"),
        ("RUN", "nowhere", 3, "there is no such folder"),
        ("", "RUN", 2, "names no place"),
    ],
)
def test_what_cannot_be_compared_is_told(
    run: Path, capfd: Capture, a: str, b: str, code: int, why: str
) -> None:
    assert why in told(capfd, a.replace("RUN", str(run)), b.replace("RUN", str(run)), code=code)


def live(run: Path) -> Path:
    """The one segment of a journal that nobody sealed."""
    writer = JournalWriter.open(run, opened(redaction="plain"), clock=Clock(), sealing=Sealing.NEVER)
    Driven(7, recorder=writer, seq=writer.last_seq).run(100)
    writer.close()
    (segment,) = (run / "rank-0000").glob("*.seg")
    return segment


def test_a_torn_copy_ends_and_a_damaged_one_is_unreadable(tmp_path: Path, capfd: Capture) -> None:
    data = live(tmp_path / "live").read_bytes()
    shutil.copytree(tmp_path / "live", tmp_path / "torn")
    (torn,) = (tmp_path / "torn" / "rank-0000").glob("*.seg")
    torn.write_bytes(data[: len(data) // 2])
    assert ": B ends, behind" in told(capfd, tmp_path / "live", tmp_path / "torn", code=1)
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 255
    torn.write_bytes(flipped)
    assert torn.name in told(capfd, tmp_path / "live", tmp_path / "torn", code=3)
    out = told(capfd, tmp_path / "live", tmp_path / "torn", "--salvage", code=1)
    assert "events are missing, and nothing is compared from there on" in out


def test_that_keys_cannot_be_compared_is_said_once(tmp_path: Path, capfd: Capture) -> None:
    """Two runs of a key each, and one beside its redacted copy: what they did is the same, and nothing else is said."""
    one, two, plain = (
        driven(tmp_path, name, 60, "--enable-unified-radix-tree", "--tokens", tokens)
        for name, tokens in (("one", "hashed"), ("two", "hashed"), ("plain", "plain"))
    )
    assert radixledger(["journal", "redact", str(plain), "--to", str(tmp_path / "copy")]) == 0
    capfd.readouterr()
    for a, b in ((one, two), (plain, tmp_path / "copy"), (one, plain)):
        out = told(capfd, a, b, code=0)
        assert out.count("keys cannot be compared") == 1
        assert "not opened alike" not in out
        assert "what the cache did: the same" in out
    out = told(capfd, f"{one}@60", f"{two}@60", code=0)
    assert out.count("cannot be compared") == 1
    assert "no difference" in out
