"""SIGKILL at every kind of moment: what a parent was told is there, and the journal goes on (J8, J13)."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from radixledger.journal.doctor import examine
from radixledger.journal.events import Opened
from radixledger.journal.folder import listing, rank_folder
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.journal.writer import Policy, Sealing

from .crash_driver import Order, Outcome, image_of, script
from .written import RANK, append, new_writer, some_commands

ROOT = Path(__file__).parents[2]
INLINE, BACKGROUND = Sealing.INLINE, Sealing.BACKGROUND
OPERATION, STEP, SYNC = Policy.OPERATION, Policy.STEP, Policy.SYNC


def orders(
    phase: str, kills: list[tuple[int, str, Policy, Sealing]]
) -> list[tuple[str, int, str, Policy, Sealing]]:
    return [(phase, *kill) for kill in kills]


ROTATION = orders(
    "rotation",
    [
        *(
            (nth, when, OPERATION, INLINE)
            for nth, when in ((1, "before"), (1, "after"), (2, "half"), (2, "after"))
        ),
        *(
            (nth, when, OPERATION, INLINE)
            for nth, when in ((3, "before"), (4, "half"), (7, "after"), (8, "half"))
        ),
        (5, "before", STEP, INLINE),
        (6, "half", STEP, BACKGROUND),
        (3, "after", SYNC, INLINE),
        (6, "half", SYNC, BACKGROUND),
        (9, "before", SYNC, INLINE),
    ],
)
SEAL = orders(
    "seal",
    [
        *((nth, "half", OPERATION, INLINE) for nth in (2, 3, 4)),
        *((nth, "before", OPERATION, INLINE) for nth in (1, 5, 6, 7, 8)),
        *((nth, "after", OPERATION, INLINE) for nth in (5, 6, 7)),
        (12, "half", STEP, BACKGROUND),
        (13, "before", STEP, BACKGROUND),
        (22, "after", SYNC, BACKGROUND),
    ],
)
SNAPSHOT = orders(
    "snapshot",
    [
        *((nth, "half", OPERATION, INLINE) for nth in (2, 3, 4)),
        *((nth, "before", OPERATION, INLINE) for nth in (1, 5, 6, 7)),
        *((nth, "after", OPERATION, INLINE) for nth in (5, 6, 7)),
        (11, "half", STEP, BACKGROUND),
        (16, "after", SYNC, INLINE),
    ],
)
RETENTION = orders(
    "retention",
    [
        *((nth, "before", OPERATION, INLINE) for nth in (1, 2, 3, 4, 5, 6)),
        *((nth, "after", OPERATION, INLINE) for nth in (1, 3, 5)),
        (7, "before", STEP, BACKGROUND),
        (8, "after", STEP, BACKGROUND),
        (9, "before", SYNC, BACKGROUND),
    ],
)
WRITE = orders(
    "write",
    [
        *((nth, "half", OPERATION, INLINE) for nth in (1, 2, 3, 20, 41)),
        *((nth, "after", OPERATION, INLINE) for nth in (1, 33)),
        (17, "before", OPERATION, BACKGROUND),
        (25, "half", STEP, INLINE),
        (30, "half", SYNC, BACKGROUND),
    ],
)


@pytest.fixture(scope="module")
def driver() -> Iterator["subprocess.Popen[str]"]:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.journal.crash_driver"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def kill(driver: "subprocess.Popen[str]", order: Order) -> Outcome:
    assert driver.stdin is not None
    assert driver.stdout is not None
    driver.stdin.write(msgspec.json.encode(order).decode() + "\n")
    driver.stdin.flush()
    return msgspec.json.decode(driver.stdout.readline(), type=Outcome)


def test_there_are_sixty_kills_and_ten_of_each_kind() -> None:
    assert all(len(kills) >= 10 for kills in (ROTATION, SEAL, SNAPSHOT, RETENTION, WRITE))
    assert len(ROTATION + SEAL + SNAPSHOT + RETENTION + WRITE) >= 60


@pytest.mark.parametrize(
    ("phase", "nth", "when", "policy", "sealing"), ROTATION + SEAL + SNAPSHOT + RETENTION + WRITE
)
def test_what_was_acknowledged_survives_a_kill(
    driver: "subprocess.Popen[str]",
    tmp_path: Path,
    phase: str,
    nth: int,
    when: str,
    policy: Policy,
    sealing: Sealing,
) -> None:
    run = tmp_path / "run"
    outcome = kill(driver, Order(str(run), phase, nth, when, policy, sealing))
    assert outcome.killed, "the order names a call that is never made"
    if not listing(rank_folder(run, RANK)).segments:
        assert outcome.acknowledged == 0
        return
    last = check(run, outcome.acknowledged)
    continue_and_check(run, last)


def check(run: Path, acknowledged: int) -> int:
    """The journal is an exact piece of the script that ends at or behind what was acknowledged; its last number."""
    reader = JournalReader(run, RANK)
    told = [event for frame in reader.frames() for event in frame.events]
    expected = [event for command in script() for event in command]
    if reader.first_seq == 1 and told:
        assert isinstance(told.pop(0), Opened)
        assert told == expected[: len(told)]
    else:
        assert told == expected[reader.first_seq - 2 :][: len(told)]
    assert reader.last_seq >= acknowledged
    baseline = reader.baseline()
    assert (baseline is None) == (reader.first_seq == 1)
    for ref in reader.snapshots():
        assert reader.read_snapshot(ref) == (image_of(ref.seq), b"digest")
        assert ref.seq <= reader.last_seq
    report = examine(run, RANK)
    assert not report.has_findings, report
    return reader.last_seq


def continue_and_check(run: Path, last: int) -> None:
    """A new epoch goes on where the old one ended, and clears away what it left half done."""
    more = some_commands(5, seed=99)
    with new_writer(run, resume=True) as writer:
        assert writer.opened.epoch == (2 if last else 1)
        for command in more:
            append(writer, command)
    reader = JournalReader(run, RANK)
    start = Seq(max(last + 1, reader.first_seq))
    told = [frame.events for frame in reader.frames(start)]
    assert isinstance(told[0][0], Opened)
    assert told[1:] == more
    assert not examine(run, RANK).has_findings
    assert {path.suffix for path in rank_folder(run, RANK).iterdir()} <= {".sealed", ".snap", ""}
