"""Lock forensics: who holds what since when, what that blocks, and what leaked; beside SQL, which has the same faults."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from radixledger.analytics.load import load
from radixledger.analytics.queries import ask, find
from radixledger.analytics.store import Database
from radixledger.cache.evolve import evolve
from radixledger.cache.refusals import PoolShort
from radixledger.journal.events import Locked, Unlocked
from radixledger.journal.reader import JournalReader
from radixledger.journal.retention import Retention
from radixledger.journal.units import Seq
from radixledger.journal.writer import JournalWriter
from radixledger.replay.fold import fold, moments
from radixledger.replay.locks.lock_report import LockReport, holding_of, locks_at
from radixledger.replay.locks.locks import Locks
from radixledger.replay.seek import state_at

from ..cache.driven import SHAPES, Driven, opened
from ..mutants.caught import spoiled, write
from ..mutants.table import MUTANTS
from .letters_served import PAGE, Letters
from .runs import RANK, Clock, written

LEAKY = [name for name, mutant in MUTANTS.items() if mutant.check == "unbalanced_lock"]


def followed(server: Letters) -> Locks:
    """The locks of a schedule, as of its last event."""
    locks = Locks()
    for moment in moments(server.journal.frames):
        locks.see(moment)
    return locks


def last_report(run: Path) -> LockReport:
    reader = JournalReader(run, RANK)
    return locks_at(reader, reader.last_seq)


def test_a_lock_is_told_with_its_request_its_window_and_its_age(tmp_path: Path) -> None:
    """N15, R111: a running request, and a receipt that was handed out to nobody in particular."""
    writer = JournalWriter.open(tmp_path / "run", opened(SHAPES[2], redaction="plain"), clock=Clock())
    driven = Driven(1, SHAPES[2], recorder=writer)
    cache, key = driven.cache, bytes(range(64))
    request = cache.admit("r", key, 17).request
    cache.extend(np.array([request], np.int64), np.array([17], np.int32))
    cache.cache_unfinished(request, key)
    node = cache.state.requests[request].node
    cache.lock(node)
    locked = int(cache.state.seq)
    cache.close()
    first, second = last_report(tmp_path / "run").holds
    assert (first.rid, first.request, first.node, first.path, first.window_start) == (
        "r",
        request,
        node,
        16,
        12,
    )
    assert (second.rid, second.request, second.since_seq, second.cause) == ("", 0, locked, "lock")
    assert (first.full_pages, first.swa_pages) == (4, 1) == (second.full_pages, second.swa_pages)
    assert (first.full_alone, first.swa_alone) == (0, 0), "two locks hold each page"
    at_the_time = locks_at(JournalReader(tmp_path / "run", RANK), locked - 1).holds
    assert [(hold.rid, hold.full_alone, hold.swa_alone) for hold in at_the_time] == [("r", 4, 1)]


def test_what_went_short_while_a_lock_was_held_is_told() -> None:
    """Pages that an eviction did not get, a command that was refused, and pages that went although they were used later."""
    server = Letters(full=16, swa=12)
    held = server.admit("held", "abcdef")
    server.compute(held, "abcdef")
    server.serve("later", "xyz")
    server.rank.evict(100, 0)
    with pytest.raises(PoolShort):
        server.rank.extend(np.array([held], np.int64), np.array([16 * PAGE], np.int32))
    (hold,) = followed(server).holds
    pressed = followed(server).pressed.since(hold.pressed)
    assert hold.rid == "held"
    assert (pressed.evictions, pressed.short, pressed.full_lacking, pressed.refusals) == (1, 1, 97, 1)
    assert (hold.passed_full, hold.passed_swa) == (3, 3)


def test_every_lock_that_is_out_is_told_and_no_other(tmp_path: Path) -> None:
    """The receipts of a run at many moments are those that the folded state counts, node by node."""
    written(tmp_path / "run", 200, close=False)
    reader = JournalReader(tmp_path / "run", RANK)
    for seq in range(5, int(reader.last_seq), 23):
        report, state = locks_at(reader, seq), state_at(reader, seq)
        anchors = {node.id: node.anchors for node in state.nodes.values() if node.anchors}
        assert Counter(hold.node for hold in report.holds) == anchors
        assert report.full_protected == state.full_protected
        for hold in report.holds:
            assert hold.since_seq <= seq
            assert hold.full_alone <= hold.full_pages
            assert (hold.request in state.requests) == bool(hold.request)
        assert (report.faults, report.clean) == ([], True)


def test_pages_that_one_lock_alone_keeps_are_evictable_without_it() -> None:
    server = Letters()
    for rid, text in (("one", "abcd"), ("two", "abcdef"), ("three", "xyz")):
        server.compute(server.admit(rid, text), text)
    locks, state = followed(server), fold(server.journal.frames)
    before = (state.full_evictable, state.swa_evictable)
    for hold in locks.holds:
        told = holding_of(state, hold, locks, 0)
        request = server.rank.state.requests[hold.request]
        assert request.receipt is not None
        alone = fold(server.journal.frames)
        evolve(alone, Unlocked(request.receipt.node, request.receipt.boundary, request.id))
        gained = (alone.full_evictable - before[0], alone.swa_evictable - before[1])
        assert gained == (told.full_alone, told.swa_alone)


def test_a_snapshot_tells_who_holds_and_not_since_when(tmp_path: Path) -> None:
    written(tmp_path / "run", 200, snapshots=(150,), rotate_bytes=4096, close=False)
    writer = JournalWriter.open(tmp_path / "run", opened(), clock=Clock(), resume=True)
    writer.retain(Retention(keep_bytes=1))
    writer.close()
    reader = JournalReader(tmp_path / "run", RANK)
    begin = reader.snapshots()[0].seq
    state = state_at(reader, begin)
    report = locks_at(reader, begin)
    assert report.begins_at == begin
    assert Counter(hold.node for hold in report.holds) == {
        node.id: node.anchors for node in state.nodes.values() if node.anchors
    }
    assert {hold.since_seq for hold in report.holds} == {0}
    locked = [
        event for frame in reader.frames(Seq(begin + 1)) for event in frame.events if type(event) is Locked
    ]
    assert locked, "locks go on behind the snapshot"
    assert report.clean


@pytest.mark.parametrize("name", LEAKY)
def test_a_leaked_lock_is_found_as_sql_finds_it(name: str, tmp_path: Path) -> None:
    """N15, R113: the same fault, event, path and request from two witnesses; what is still out is marked."""
    mutant = MUTANTS[name]
    with spoiled(mutant):
        write(tmp_path / name, mutant)
    report = last_report(tmp_path / name)
    database = Database()
    load(database, tmp_path / name)
    answer = ask(database.questioned(), find("unbalanced_lock"), {})
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    database.close()
    assert rows
    columns = ("fault", "seq", "node", "boundary", "request", "cause")
    assert sorted(tuple(getattr(each, column) for column in columns) for each in report.faults) == sorted(
        tuple(row[column] for column in columns) for row in rows
    )
    assert not report.clean
    live = fold(JournalReader(tmp_path / name, RANK).frames()).requests
    for hold in report.holds:
        assert hold.request in live or hold.fault
        assert not hold.fault or hold.fault_seq in {each.seq for each in report.faults}


def test_a_restart_gives_every_lock_back(tmp_path: Path) -> None:
    written(tmp_path / "run", 80, close=False)
    assert last_report(tmp_path / "run").holds
    written(tmp_path / "run", 0, resume=True, close=False)
    report = last_report(tmp_path / "run")
    assert (report.holds, report.faults) == ([], [])
