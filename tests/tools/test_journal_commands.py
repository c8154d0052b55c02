"""`radixledger journal`: what a person on call sees, and what a script can rely on."""

import json
import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from radixledger.journal.accounts import FREE, Pool, request_account
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.doctor import examine
from radixledger.journal.events import (
    AnyEvent,
    Closed,
    Freed,
    GroupOpened,
    Locked,
    Matched,
    Refused,
    Stepped,
    Stop,
)
from radixledger.journal.folder import listing, rank_folder
from radixledger.journal.units import (
    NO_PAGES,
    ROOT,
    TO_ROOT,
    UNBOUND,
    BoundaryId,
    NodeId,
    Rank,
    RequestId,
    Seq,
    TokenCount,
)
from radixledger.journal.writer import JournalWriter, Policy, Sealing
from radixledger.tools import cli, event_lines
from radixledger.tools.event_text import as_json, line, ranges, time_text
from tests.journal.events_sample import commands, opened, packed, packed_ids

Told = Callable[..., tuple[int, str, str]]
SECOND_NS = 10**9
R7 = RequestId(7)
ZEROS, ONES = ("0," * 12 + "… (40)", "1," * 12 + "… (40)")


@pytest.fixture
def told(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Told:
    """Run `radixledger journal` with some words: its exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "240")

    def run(*words: object) -> tuple[int, str, str]:
        code = cli.run(["journal", *map(str, words)])
        out, err = capfd.readouterr()
        return code, out, err

    return run


def write_rank(run: Path, rank: int, stream: list[list[AnyEvent]], sealing: Sealing = Sealing.INLINE) -> None:
    """One frame a second of virtual time; the n-th command belongs to step n."""
    ticks = iter(range(0, 10**6 * SECOND_NS, SECOND_NS))
    options = {"clock": lambda: next(ticks), "sealing": sealing, "policy": Policy.STEP}
    with JournalWriter.open(run, opened("", rank), **options) as writer:  # type: ignore[arg-type]
        for step, command in enumerate(stream, 1):
            for event in command:
                writer.append(event)
            writer.end_command()
            writer.end_step(step)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "run-5"
    stream = list(islice(filter(None, commands(3)), 60))
    write_rank(run, 0, stream)
    write_rank(run, 1, [*stream[:10], [Closed(b"digest", "done")]])
    return run


def flip(path: Path, offset: int) -> None:
    with path.open("r+b", buffering=0) as file:
        old = os.pread(file.fileno(), 1, offset)[0]
        os.pwrite(file.fileno(), bytes([old ^ 1]), offset)


def damage(run: Path) -> Path:
    path = listing(rank_folder(run, Rank(1))).segments[0].path
    flip(path, path.stat().st_size - 300)
    return path


def test_cat_prints_one_line_per_event_with_its_number_time_step_and_fields(told: Told, run: Path) -> None:
    code, out, err = told("cat", run, "--rank", 1)
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].split()[:4] == ["1", "+1.000000s", "step", "0"]
    assert "Opened" in lines[0]
    assert "redaction plain" in lines[0]
    assert lines[-1].split() == [
        str(len(lines)),
        "+12.000000s",
        "step",
        "11",
        "Closed",
        "digest",
        "646967657374",
        "reason",
        "done",
    ]
    assert [int(each.split()[0]) for each in lines] == list(range(1, len(lines) + 1))


def test_cat_of_several_ranks_says_which(told: Told, run: Path) -> None:
    _, out, _ = told("cat", run)
    assert {each.split("  ")[0] for each in out.splitlines()} == {"rank 0", "rank 1"}


def test_cat_prints_the_events_that_were_asked_for(told: Told, run: Path) -> None:
    _, everything, _ = told("cat", run, "--rank", 0)
    _, some, _ = told("cat", run, "--rank", 0, "--from", 5, "--to", 9)
    assert some.splitlines() == everything.splitlines()[4:9]
    _, matched, _ = told("cat", run, "--rank", 0, "--type", "matched", "--type", "Locked")
    assert matched.splitlines() == [
        each for each in everything.splitlines() if each.split()[4] in ("Matched", "Locked")
    ]
    for since in ("30.5s", "+30.5s", "+30500ms", "+30500"):
        _, late, _ = told("cat", run, "--rank", 0, "--since", since)
        assert late.splitlines() == [
            each for each in everything.splitlines() if float(each.split()[1][:-1]) > 30.5
        ]
    assert told("cat", run, "--rank", 0, "--since", "2030-01-01")[:2] == (0, "")


def test_cat_as_json_is_one_object_a_line_with_every_field(told: Told, run: Path) -> None:
    _, out, _ = told("cat", run, "--rank", 0, "--json")
    rows = [json.loads(each) for each in out.splitlines()]
    assert [each["seq"] for each in rows] == list(range(1, len(rows) + 1))
    assert {(each["run"], each["rank"], each["epoch"]) for each in rows} == {("run-5", 0, 1)}
    allocated = next(each for each in rows if each["type"] == "Allocated")
    assert allocated["full"] == list(range(1, 17))
    assert (allocated["cause"], allocated["cause_text"]) == (
        cause(Operation.ALLOC, Site.PREFILL),
        "alloc/prefill",
    )


def test_cat_follows_a_writer_until_it_closes(told: Told, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []

    def write_more(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            writer.append(Closed(b"", "really done"))
            writer.close()
        else:
            writer.append(GroupOpened())
            writer.end_command()

    monkeypatch.setattr(event_lines, "sleep", write_more)
    writer = JournalWriter.open(run, opened("", 1), resume=True)
    code, out, _ = told("cat", run, "--rank", 1, "--follow", "--from", writer.last_seq)
    assert code == 0
    assert [each.split()[4] for each in out.splitlines()] == [
        "Opened",
        "GroupOpened",
        "GroupOpened",
        "Closed",
    ]
    assert len(naps) == 3
    assert told("cat", run, "--follow")[0] == 2


def test_cat_stops_at_damage_and_goes_on_in_salvage(told: Told, run: Path) -> None:
    """B104."""
    path = damage(run)
    code, out, err = told("cat", run, "--rank", 1)
    assert code == 3
    assert str(path) in err
    assert "Closed" not in out
    code, out, err = told("cat", run, "--rank", 1, "--salvage")
    assert code == 1
    assert "Gap" in out
    assert "checksum" in err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("cat", "RUN", "--rank", "9"), 3, "this run has ranks 0, 1"),
        (("cat", "RUN", "--rank", "1", "--from", "9000"), 2, "it does not hold event 9000"),
        (("cat", "RUN", "--from", "2", "--since", "1s"), 2, "give one"),
        (("cat", "RUN", "--from", "30", "--to", "20"), 2, "--from 30 is behind --to 20"),
        (("cat", "RUN", "--since", "yesterday"), 2, "'yesterday' is no time"),
        (("cat", "RUN", "--type", "Freeed"), 2, "did you mean Freed"),
        (("cat", "RUN", "--type", "xyz"), 2, "events are: Aborted, Admitted"),
        (("stats", "EMPTY"), 3, "holds no rank-NNNN folder"),
        (("doctor", "EMPTY"), 3, "holds no rank-NNNN folder"),
        (("recover", "EMPTY", "--to", "copy"), 3, "holds no rank-NNNN folder"),
        (("recover", "RUN"), 2, "--to"),
        (("recover", "RUN", "--to", "/"), 2, "no place for a copy"),
        (("cat", "RUN", "--since", "1e400s"), 2, "is no time"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_message(
    told: Told, run: Path, tmp_path: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    found, out, err = told(*({"RUN": run, "EMPTY": empty}.get(word, word) for word in words))
    assert found == code
    assert says in err.replace("\n", " ")
    assert "Traceback" not in err
    assert out == ""


def test_a_copy_does_not_lie_in_the_run_which_is_evidence(told: Told, run: Path) -> None:
    before = sorted(run.rglob("*"))
    for place in (run, run / "copy", run / "rank-0000" / ".." / "copy"):
        code, _, err = told("recover", run, "--to", place)
        assert (code, "no place for a copy" in err.replace("\n", " ")) == (2, True)
    assert sorted(run.rglob("*")) == before


def test_stats_count_types_epochs_and_bytes(told: Told, run: Path) -> None:
    code, out, _ = told("stats", run)
    assert code == 0
    assert "run run-5, rank 0" in out
    assert "run run-5, rank 1" in out
    assert "Allocated" in out
    _, out, _ = told("stats", run, "--json")
    zero, one = json.loads(out)
    _, everything, _ = told("cat", run, "--rank", 0)
    lines = everything.splitlines()
    assert zero["events"] == zero["last_seq"] == len(lines)
    assert {name: each["events"] for name, each in zero["types"].items()} == {
        name: sum(each.split()[4] == name for each in lines) for name in {each.split()[4] for each in lines}
    }
    disk = sum(path.stat().st_size for path in rank_folder(run, Rank(0)).glob("*.sealed"))
    assert (zero["disk_bytes"], zero["bytes_per_event"]) == (disk, disk / zero["events"])
    (epoch,) = one["epochs"]
    assert (epoch["policy"], epoch["route"], epoch["step_last"]) == ("step", "unified", 11)
    assert (epoch["time_first_ns"], epoch["time_last_ns"]) == (SECOND_NS, 12 * SECOND_NS)


def test_doctor_finds_a_sound_run_sound(told: Told, run: Path) -> None:
    code, out, _ = told("doctor", run)
    assert code == 0
    assert "rank 0 is sound" in out
    assert "rank 1 is sound" in out
    code, out, _ = told("doctor", run, "--json")
    assert [each["findings"] for each in json.loads(out)] == [False, False]


def test_doctor_says_which_file_is_damaged_where_and_how(told: Told, run: Path) -> None:
    path = damage(run)
    code, out, _ = told("doctor", run)
    assert code == 1
    assert "rank 0 is sound" in out
    assert "rank 1 has findings" in out
    assert f"! {path.name}: offset " in out
    code, out, _ = told("doctor", run, "--json", "--rank", 1)
    assert code == 1
    assert json.loads(out)[0]["segments"][0]["verdict"] == "damaged"


def test_doctor_of_files_that_cannot_be_read_at_all_leaves_with_3(told: Told, run: Path) -> None:
    flip(listing(rank_folder(run, Rank(1))).segments[0].path, 3)
    assert told("doctor", run, "--rank", 1)[0] == 3


def test_recover_makes_a_copy_and_says_what_it_cost(told: Told, run: Path, tmp_path: Path) -> None:
    damage(run)
    code, out, _ = told("recover", run, "--to", tmp_path / "copy", "--json")
    assert code == 1
    zero, one = json.loads(out)
    assert zero["lost"] == 0 < one["lost"]
    assert told("cat", tmp_path / "copy")[0] == 0
    assert examine(tmp_path / "copy", Rank(1)).has_findings, "a gap remains a finding"
    code, _, err = told("recover", run, "--to", tmp_path / "copy")
    assert code == 2
    assert "a copy is never written over; name another folder" in err.replace("\n", " ")
    code, out, _ = told("recover", run, "--rank", 0, "--to", tmp_path / "second")
    assert code == 0
    assert str(rank_folder(tmp_path / "second", Rank(0))) in out


def test_every_command_has_help_with_examples(told: Told) -> None:
    for words in ((), ("cat",), ("stats",), ("doctor",), ("recover",)):
        code, out, _ = told(*words, "--help")
        assert code == 0
        assert "Examples:" in out
        assert f"$ radixledger journal {' '.join(words)}" in out


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (GroupOpened(), ""),
        (
            Freed(
                request_account(R7), packed([3, 4, 5, 9]), NO_PAGES, NO_PAGES, 1, R7, cause(Operation.ABORT)
            ),
            "giver request(7)  full 3-5,9  to pending  request 7  abort",
        ),
        (
            Matched("r", R7, TokenCount(9), TokenCount(0), TokenCount(0), ROOT, Stop.WINDOW_DEAD),
            "rid r  request 7  asked 9  full_hit 0  hit 0  node 0  stop window_dead",
        ),
        (
            Matched("r", R7, TokenCount(9), TokenCount(0), TokenCount(0), ROOT, 99),
            "rid r  request 7  asked 9  full_hit 0  hit 0  node 0  stop unknown(99)",
        ),
        (Refused("busy", "a step is under way"), "reason busy  detail a step is under way"),
        (
            Refused(
                "foreign_free",
                "",
                R7,
                Pool.SWA,
                packed([4]),
                request_account(R7),
                FREE,
                Seq(12),
                cause(Operation.FREE),
            ),
            "reason foreign_free  request 7  pool swa  pages 4  expected request(7)  found free  since 12  free",
        ),
        (
            Locked(NodeId(4), BoundaryId(2), packed_ids([7, 8])),
            "node 4  boundary 2  skipped 7,8",
        ),
        (Locked(NodeId(4), TO_ROOT, b"odd"), "node 4  boundary 0  skipped 6f6464"),
        (
            Stepped(3, 0, packed_ids(list(range(40))), packed([0] * 40), packed([1] * 40)),
            f"step 3  phase began  requests 0,1,2,3,4,5,6,7,8,9,10,11,… (40)  starts {ZEROS}  stops {ONES}",
        ),
        (Closed(bytes(range(40))), "digest 0001020304050607… (40 bytes)"),
    ],
)
def test_a_line_tells_the_fields_that_say_something(event: AnyEvent, text: str) -> None:
    assert line(event) == text


def test_json_unpacks_columns_and_keeps_bytes_in_hex() -> None:
    told = as_json(Stepped(3, 1, packed_ids([2**40]), packed([5]), packed([6])))
    assert told == {
        "step": 3,
        "phase": 1,
        "phase_text": "ended",
        "requests": [2**40],
        "starts": [5],
        "stops": [6],
    }
    assert as_json(Closed(b"\x01\xff"))["digest"] == "01ff"
    assert as_json(Freed(3, packed([1]), b"odd", NO_PAGES))["unmapped"] == "6f6464"  # type: ignore[arg-type]
    assert as_json(Refused("x", "y", UNBOUND))["found_text"] == "free"


def test_pages_are_told_as_runs() -> None:
    assert ranges([]) == ""
    assert ranges([1, 2, 3, 7, 9, 10, 10]) == "1-3,7,9-10,10"
    assert ranges([1, 3, 5, 7], 2) == "1,3,… (4 pages)"


def test_times_are_utc_or_seconds_of_a_virtual_run() -> None:
    assert time_text(1_500_000_000) == "+1.500000s"
    assert time_text(1_790_000_000_123_456_789) == "2026-09-21T14:13:20.123456Z"


def test_redact_makes_a_copy_without_tokens_and_a_key_beside_it(
    told: Told, run: Path, tmp_path: Path
) -> None:
    """The key stays with who made the copy: beside it, mode 0600, and not in it."""
    code, out, _ = told("redact", run, "--to", tmp_path / "copy", "--json")
    assert (code, json.loads(out)[0]["lost"]) == (0, 0)
    key = tmp_path / "copy.redaction.key"
    assert key.stat().st_mode & 0o777 == 0o600
    code, _, err = told("redact", tmp_path / "copy", "--to", tmp_path / "again")
    assert code == 3
    assert "hashes already" in err
    assert not (tmp_path / "again.redaction.key").exists(), "there was nothing to redact"
    code, _, err = told("redact", run, "--to", tmp_path / "copy", "--key-file", tmp_path / "team.key")
    assert (code, "name another folder" in err.replace("\n", " ")) == (2, True)
    assert not (tmp_path / "team.key").exists()
    code, _, err = told("redact", run, "--to", run / "copy")
    assert code == 2
    assert "no place for a copy" in err
