"""One rank, many callers: nothing comes in between the events of a command, and nothing comes behind the end."""

from collections.abc import Callable
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from radixledger.cache.faces.kept_events import KeptEvents
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import RankClosed, RankPoisoned, Reentered
from radixledger.journal.errors import JournalPoisoned, WriterError
from radixledger.journal.events import Admitted, AnyEvent, Closed, LedgerTaken, Snapshotted, Stepped
from radixledger.journal.reader import JournalReader
from radixledger.journal.retention import Retention
from radixledger.journal.units import Rank
from radixledger.journal.writer import JournalWriter, Policy
from radixledger.replay.verify import verify_rank

from ..journal.written import BrokenDisk
from ..machine import opened
from ..model_tree import Shape
from .server import Server

SHAPE = Shape(page=4, window=6, full=20, swa=16)
KEY = b"k" * 40
NOBODY, NOTHING = np.zeros(0, np.int64), np.zeros(0, np.int32)

CALLS: dict[str, Callable[[RankCache], object]] = {
    "digest": lambda rank: rank.digest(),
    "ledger": lambda rank: rank.ledger(),
    "peek": lambda rank: rank.peek(KEY),
    "record_ledger": lambda rank: rank.record_ledger("asked"),
    "snapshot": lambda rank: rank.snapshot(),
    "step_began": lambda rank: rank.step_began(1, NOBODY, NOTHING, NOTHING),
    "alloc": lambda rank: rank.alloc(1),
}
TOLD: dict[str, type[AnyEvent]] = {
    "record_ledger": LedgerTaken,
    "snapshot": Snapshotted,
    "step_began": Stepped,
}


def rank_on_disk(run: Path, policy: Policy = Policy.OPERATION, **options: object) -> RankCache:
    writer = JournalWriter.open(run, opened(SHAPE), policy=policy, **options)  # type: ignore[arg-type]
    return RankCache(writer.opened, writer, seq=writer.last_seq)


def told_in(run: Path) -> list[AnyEvent]:
    return [event for frame in JournalReader(run, Rank(0)).frames() for event in frame.events]


def from_within(rank: RankCache, act: Callable[[], object]) -> None:
    """Let `act` happen behind the first event of the next command, before its second."""
    append, left = rank._append, [act]
    assert append is not None

    def interrupted(event: AnyEvent) -> None:
        append(event)
        if left:
            left.pop()()

    rank._append = interrupted


@pytest.mark.parametrize("policy", [Policy.OPERATION, Policy.STEP])
@pytest.mark.parametrize("call", CALLS)
def test_another_thread_waits_until_the_command_is_over(tmp_path: Path, call: str, policy: Policy) -> None:
    """B137: what is asked in the middle of an admission is answered, and written, behind its last event."""
    rank = rank_on_disk(tmp_path / "run", policy)
    thread = Thread(target=CALLS[call], args=(rank,))

    def start() -> None:
        thread.start()
        thread.join(0.01)  # all the time that it needs, if nobody holds it up

    from_within(rank, start)
    request = rank.admit("a", KEY, 10).request
    thread.join()
    rank.abort(request)
    rank.close()
    report = verify_rank(tmp_path / "run", Rank(0))
    assert (report.findings, report.unreadable) == ([], "")
    kinds = [type(event) for event in told_in(tmp_path / "run")]
    if call in TOLD:
        assert kinds.index(TOLD[call]) > kinds.index(Admitted)


@pytest.mark.parametrize("call", ["record_ledger", "snapshot", "step_began", "alloc", "close"])
def test_a_call_from_within_a_command_is_turned_away_and_the_command_goes_on(
    tmp_path: Path, call: str
) -> None:
    rank = rank_on_disk(tmp_path / "run")
    acts = CALLS | {"close": lambda rank: rank.close()}
    turned_away = []

    def act() -> None:
        with pytest.raises(
            Reentered, match="rank 0 is in the middle of a command, and was called from within"
        ):
            acts[call](rank)
        turned_away.append(call)

    from_within(rank, act)
    request = rank.admit("a", KEY, 10).request
    assert turned_away == [call]
    rank.abort(request)
    rank.close("done")
    report = verify_rank(tmp_path / "run", Rank(0))
    assert (report.findings, report.unreadable) == ([], "")
    assert TOLD.get(call) not in [type(event) for event in told_in(tmp_path / "run")]


@pytest.mark.parametrize("policy", Policy)
def test_nothing_comes_behind_the_end(tmp_path: Path, policy: Policy) -> None:
    """A command of a closed rank would change a state that no journal tells of any more."""
    rank = rank_on_disk(tmp_path / "run", policy)
    rank.close("done")
    seq, digest = rank.state.seq, rank.digest()
    for name in ("record_ledger", "snapshot", "step_began", "alloc"):
        with pytest.raises(RankClosed, match="rank 0 is closed"):
            CALLS[name](rank)
    rank.close("again")
    assert (rank.state.seq, rank.digest(), rank.peek(KEY).tokens) == (seq, digest, 0)
    if policy is not Policy.OFF:
        assert [type(event) for event in told_in(tmp_path / "run")].count(Closed) == 1


def test_a_rank_without_a_journal_has_an_end_too() -> None:
    rank = RankCache(opened(SHAPE))
    rank.close()
    with pytest.raises(RankClosed):
        rank.alloc(1)


def test_a_closed_writer_touches_its_folder_no_more(tmp_path: Path) -> None:
    """The next writer may be at work there."""
    writer = JournalWriter.open(tmp_path / "run", opened(SHAPE))
    append = writer.append
    writer.close()
    append(writer.opened)
    for late in (
        writer.end_command,
        writer.rotate,
        lambda: writer.retain(Retention(keep_bytes=0)),
        lambda: writer.write_snapshot(b"", b""),
    ):
        with pytest.raises(WriterError, match="is closed"):
            late()
    assert len(told_in(tmp_path / "run")) == 1


@pytest.mark.parametrize("end", [CALLS["step_began"], CALLS["snapshot"]])
def test_a_journal_that_fails_behind_a_command_stops_the_rank(
    tmp_path: Path, end: Callable[[RankCache], object]
) -> None:
    """J11: under policy `step` the write comes with the step, and memory goes no further than that."""
    disk = BrokenDisk("write")
    rank = rank_on_disk(tmp_path / "run", Policy.STEP, disk=disk)
    rank.alloc(1)
    disk.broken = True
    with pytest.raises(JournalPoisoned):
        end(rank)
    with pytest.raises(RankPoisoned, match=r"rank 0 stopped: .* takes no more events"):
        rank.alloc(1)
    rank.close()
    assert len(told_in(tmp_path / "run")) == 1


def test_who_is_interrupted_in_a_write_does_not_write_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write was done when the signal came: its events are in the journal once, and the journal ends there."""
    rank = rank_on_disk(tmp_path / "run", Policy.STEP)
    rank.alloc(1)
    assert isinstance(rank.journal, JournalWriter)
    assert rank.journal._pen is not None
    write = rank.journal._pen.write

    def interrupted(body: bytes, count: int, time_ns: int, step: int) -> None:
        write(body, count, time_ns, step)
        raise KeyboardInterrupt

    monkeypatch.setattr(rank.journal._pen, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        CALLS["step_began"](rank)
    monkeypatch.setattr(rank.journal._pen, "write", write)
    rank.close()
    report = verify_rank(tmp_path / "run", Rank(0))
    assert (report.findings, report.unreadable) == ([], "")
    assert [type(event).__name__ for event in told_in(tmp_path / "run")] == ["Opened", "Allocated", "Stepped"]


def test_a_follower_in_another_thread_gets_every_event_once() -> None:
    server = Server(events=True)
    kept = server.cache.token_to_kv_pool_allocator._kept[0]
    rank, taken = server.rank(), server.cache.take_events()

    def follow() -> None:
        while not rank.state.requests:
            taken.extend(server.cache.take_events())

    thread = Thread(target=follow)
    thread.start()
    for _ in range(300):
        rank.free(rank.alloc(1)[0])
    rank.admit("last", KEY, 10)
    thread.join()
    taken += server.cache.take_events()
    assert [each.seq for each in taken] == list(range(1, rank.state.seq + 1))
    assert kept.last_seq == rank.state.seq


def test_a_rank_whose_events_are_kept_puts_its_state_down_as_others_do(tmp_path: Path) -> None:
    """J12."""
    writer = JournalWriter.open(tmp_path / "run", opened(SHAPE))
    rank = RankCache(writer.opened, KeptEvents(writer.opened, writer), seq=writer.last_seq)
    rank.alloc(1)
    assert rank.snapshot() == 2
    rank.close()
    report = verify_rank(tmp_path / "run", Rank(0))
    assert (report.findings, report.unreadable) == ([], "")
    alone = RankCache(opened(SHAPE), KeptEvents(opened(SHAPE), None))
    with pytest.raises(WriterError, match="without a journal on disk"):
        alone.snapshot()
    assert alone.alloc(1)
