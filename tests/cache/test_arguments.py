"""Arguments that are none, or that come in another form: nobody's mistake stops a rank or spoils its journal."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Refusal
from radixledger.cache.slices import Slice
from radixledger.cache.state import Receipt
from radixledger.journal.causes import Operation
from radixledger.journal.errors import Damaged
from radixledger.journal.events import Closed, Matched, Snapshotted, Stepped
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Pages, Rank
from radixledger.journal.writer import JournalWriter
from radixledger.replay.verify import verify_rank

from ..machine import opened
from ..model_tree import Shape
from ..witnesses import image

SHAPE = Shape(page=4, window=6, full=20, swa=16)
KEY = b"k" * 40
LENGTHS = np.array([2, 3], np.int32)


class House:
    """A rank with a journal on disk and two live requests of 13 tokens."""

    def __init__(self, run: Path, snapshot_every: int | None = None) -> None:
        self.run = run
        self.writer = JournalWriter.open(run, opened(SHAPE))
        self.rank = RankCache(
            self.writer.opened, self.writer, seq=self.writer.last_seq, snapshot_every=snapshot_every
        )
        self.requests = np.array(
            [self.rank.admit(rid, rid.encode() * 52, 13).request for rid in "ab"], np.int64
        )
        self.rank.extend(self.requests, np.array([13, 13], np.int32))

    def end(self) -> None:
        """The journal that was written says what happened, and is clean."""
        for request in self.requests.tolist():
            self.rank.abort(request)
        self.rank.close("done")
        report = verify_rank(self.run, Rank(0))
        assert (report.findings, report.unreadable) == ([], "")


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "run")


NO_ARGUMENTS: dict[str, Callable[[RankCache, np.ndarray], object]] = {
    "a request id that is a number": lambda rank, _: rank.admit(7, KEY, 10),  # type: ignore[arg-type]
    "a request id of half a character": lambda rank, _: rank.admit("\ud800", KEY, 10),
    "a request id as large as a frame": lambda rank, _: rank.admit("x" * (1 << 17), KEY, 10),
    "a namespace as large as a frame": lambda rank, _: rank.match(KEY, b"x" * (1 << 17)),
    "a prompt of one and a half tokens": lambda rank, _: rank.admit("z", KEY, 1.5),  # type: ignore[arg-type]
    "a key that can still change": lambda rank, _: rank.match(bytearray(KEY)),  # type: ignore[arg-type]
    "a key of text": lambda rank, _: rank.finish(1, "key"),  # type: ignore[arg-type]
    "a step beyond int64": lambda rank, ids: rank.step_began(1 << 70, ids, LENGTHS, LENGTHS),
    "a request beyond int64": lambda rank, _: rank.abort(1 << 70),
    "an eviction beyond int64": lambda rank, _: rank.evict(1 << 70, 0),
    "requests as fractions": lambda rank, ids: rank.decode(ids.astype(float)),
    "requests in a square": lambda rank, ids: rank.decode(ids.reshape(1, 2)),
    "requests one by one": lambda rank, ids: rank.decode(iter(ids)),  # type: ignore[arg-type]
    "lengths as fractions": lambda rank, ids: rank.extend(ids, np.array([1.5, 1])),
    "lengths beyond int32": lambda rank, ids: rank.extend(ids, np.array([1, (1 << 63) - 1])),
    "half a page number": lambda rank, _: rank.free(Pages(b"abc")),
    "a receipt that is a number": lambda rank, _: rank.unlock(5),  # type: ignore[arg-type]
    "a receipt of nowhere": lambda rank, _: rank.unlock(Receipt(None, None)),  # type: ignore[arg-type]
    "a receipt below int64": lambda rank, _: rank.unlock(Receipt(-(1 << 64), 0)),  # type: ignore[arg-type]
    "a mark below int64": lambda rank, _: rank.unlock(Receipt(1, -(1 << 64))),  # type: ignore[arg-type]
    "a slice of text": lambda rank, _: rank.insert(KEY, b"", Slice("abcd", 0, 0, 1, 0, Operation.FINISH)),  # type: ignore[arg-type]
    "a remark of half a character": lambda rank, _: rank.record_ledger("\ud800"),
    "a reason that is a number": lambda rank, _: rank.close(5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", NO_ARGUMENTS)
def test_what_is_no_argument_is_turned_away_and_the_rank_goes_on(house: House, name: str) -> None:
    """An event that nobody can write would stop the rank; one that nobody can read would spoil the journal."""
    before = image(house.rank.state)
    with pytest.raises((TypeError, ValueError)):
        NO_ARGUMENTS[name](house.rank, house.requests)
    assert image(house.rank.state) == before
    house.end()


def test_whole_numbers_are_taken_in_any_form(house: House) -> None:
    """Lists, narrow and wide arrays, numpy's integers: one meaning, one journal."""
    rank, requests = house.rank, house.requests
    rank.extend(requests.astype(np.int32), np.array([1, 2]))
    rank.decode(requests.tolist())
    rank.decode(requests.astype(">i8"))
    rank.reclaim_batch(requests.astype(np.int32), np.int64(1))  # type: ignore[arg-type]
    rank.evict(np.int32(0), np.int64(0))  # type: ignore[arg-type]
    assert rank.state.rows.length[requests & rank.state.rows.mask].tolist() == [16, 17]
    house.end()


def test_where_a_step_writes_does_not_depend_on_the_width_of_the_array(house: House) -> None:
    """R151: starts of int64, as numpy makes them, are those of every request and not of every second one."""
    house.rank.step_began(np.int64(1), house.requests, np.array([3, 9]), np.array([13, 13]))  # type: ignore[arg-type]
    assert tuple(house.rank.state.running[1].starts) == (3, 9)
    house.rank.step_ended(1)
    frames = list(JournalReader(house.run, Rank(0)).frames())
    told = next(event for frame in frames for event in frame.events if isinstance(event, Stepped))
    assert told.starts == np.array([3, 9], "<i4").tobytes()
    house.end()


@pytest.mark.parametrize(("start", "stop"), [(-1, 4), (9, 8), (7, 13)])
def test_a_step_that_writes_backwards_or_over_the_trees_pages_is_refused(
    house: House, start: int, stop: int
) -> None:
    """R151: from there no window was kept, and what the tree has may be somebody else's prefix by now."""
    house.rank.cache_unfinished(int(house.requests[1]), b"b" * 52)
    with pytest.raises(Refusal, match="not forwards"):
        house.rank.step_began(1, house.requests, np.array([0, start]), np.array([4, stop]))
    house.end()


def test_a_snapshot_makes_no_other_snapshot_due(tmp_path: Path) -> None:
    """J12: with one after every event, there is one for each command and no end of them for none."""
    house = House(tmp_path / "run", snapshot_every=1)
    house.rank.evict(0, 0)
    told = [type(event) for frame in JournalReader(house.run, Rank(0)).frames() for event in frame.events]
    assert told[-1] is Snapshotted
    assert Snapshotted not in told[-2:-1]
    house.end()


def test_a_segment_of_what_are_no_events_stays_as_it_is_and_upkeep_goes_on(tmp_path: Path) -> None:
    """J7: a foreign writer put down a request id that is a number: the thread that seals says so and lives."""
    run = tmp_path / "run"
    with JournalWriter.open(run, opened(SHAPE)) as writer:
        writer.append(Matched(rid=5, full_hit=0, hit=0, node=0, stop=0, asked=0, request=0))  # type: ignore[arg-type]
        writer.end_command()
        writer.rotate()
        writer.append(Closed(b"", "done"))
    assert any("does not hold what it says" in notice for notice in writer.notices)
    assert [path.suffix for path in sorted(writer.folder.glob("0*"))] == [".seg", ".sealed"]
    with pytest.raises(Damaged, match="does not hold what it says"):
        list(JournalReader(run, Rank(0)).frames())
