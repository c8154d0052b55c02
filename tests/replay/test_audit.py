"""The fold that compares: each recorded value, each event against those before it, and what is told behind a gap."""

import numpy as np
import pytest
from msgspec.structs import replace

from radixledger.cache.keys import raw_key
from radixledger.cache.rank import RankCache
from radixledger.cache.state import Finding
from radixledger.journal.accounts import Pool
from radixledger.journal.causes import Operation
from radixledger.journal.events import (
    Aborted,
    AnyEvent,
    Closed,
    Digested,
    Evicted,
    Finished,
    Gap,
    LedgerTaken,
    Reclaimed,
    Refused,
    Removed,
    Repointed,
    Retracted,
    Snapshotted,
    Tombstoned,
    Transferred,
    Violated,
)
from radixledger.journal.frame import Frame
from radixledger.journal.units import NodeId, Pages, RequestId, Seq, TokenCount
from radixledger.replay.audit import Audit
from radixledger.replay.fold import fold
from radixledger.replay.verdict import KEPT, TEXT_KEPT, RankReport

from ..cache.driven import Driven, FrameList, opened
from .runs import audited, framed, with_changed, with_inserted


def closed_run() -> Driven:
    """A run in memory that records everything there is to record."""
    driven = Driven(6)
    for _ in driven.steps(150):
        pass
    cache = driven.cache
    cache.record_ledger("end")
    driven.journal.append(Snapshotted(cache.digest()))
    cache.state.seq += 1  # type: ignore[assignment]
    driven.journal.end_command()
    cache.close()
    return driven


@pytest.mark.parametrize("kind", [Digested, LedgerTaken, Snapshotted, Closed], ids=lambda kind: kind.__name__)
def test_every_recorded_digest_is_compared(kind: type) -> None:
    """J12: one byte of one recorded digest is one finding, which names the last event at which all agreed."""
    run = closed_run()
    assert audited(run.journal.frames).clean

    def other(event: AnyEvent) -> AnyEvent:
        assert isinstance(event, Digested | LedgerTaken | Snapshotted | Closed)
        return replace(event, digest=bytes([event.digest[0] ^ 1]) + event.digest[1:])

    frames, seq = with_changed(run.journal.frames, kind, other)
    report = audited(frames)
    assert report.broken == {"a_recorded_digest_is_the_states": 1}
    assert report.findings[0].seq == seq
    agreed = report.findings[0].lawful_at
    assert agreed is not None
    assert agreed < seq


@pytest.mark.parametrize(
    "name", [name for name in LedgerTaken.__struct_fields__ if name not in ("phase", "digest")]
)
def test_every_number_of_a_recorded_ledger_is_compared(name: str) -> None:
    """R156 and J27 rest on it: the folded row is the recorded one, field by field."""
    run = closed_run()
    frames, seq = with_changed(
        run.journal.frames, LedgerTaken, lambda event: replace(event, **{name: getattr(event, name) + 1})
    )
    report = audited(frames)
    assert report.broken == {"a_recorded_ledger_is_the_states": 1}
    assert report.findings[0].seq == seq
    assert report.findings[0].detail.startswith(f"{name}: recorded")


def test_a_snapshot_is_compared_with_the_fold() -> None:
    """J12: an image of another state is told, even where the digest recorded in the journal is right."""
    run, other = closed_run(), Driven(5).run(40).cache.state
    for kept, broken in ((fold(run.journal.frames), {}), (other, {"a_snapshot_holds_the_state": 1})):
        audit = Audit(RankReport(run="", rank=0), snapshot_at=lambda _, kept=kept: kept)  # type: ignore[misc]
        for frame in run.journal.frames:
            audit.take(frame)
        audit.finish()
        assert (audit.report.snapshots, audit.report.broken) == (1, broken)


@pytest.mark.parametrize("field", ["gained_full", "gained_swa", "events"])
def test_an_eviction_that_claims_more_than_it_freed_is_told(field: str) -> None:
    """R105, R108, B11: the credit is what the pools gained."""
    run = Driven(6).run(80)
    frames, seq = with_changed(
        run.journal.frames, Evicted, lambda event: replace(event, **{field: getattr(event, field) + 1})
    )
    report = audited(frames)
    assert report.broken == {"an_eviction_is_credited_what_it_freed": 1}
    assert report.findings[0].seq == seq


def test_a_leaf_under_no_parent_is_told_and_the_audit_goes_on() -> None:
    """J14: what an insert of a running request ends with may not be in the tree at all."""
    events = Driven(6).run(80).journal.events
    at, leaf = next(
        (at, event)
        for at, event in enumerate(events)
        if isinstance(event, Transferred) and event.cause >> 5 == Operation.UNFINISHED and event.swa
    )
    report = audited(framed([*events[:at], replace(leaf, parent=NodeId(1 << 40))]))
    assert report.broken["an_event_names_what_exists"] == 1
    assert report.findings[0].seq == at + 1


def stepping(*after: AnyEvent) -> list[Frame]:
    """A request of 22 tokens, 5 in each window, under a running step that writes tokens 21 and on; what comes then."""
    cache = RankCache(opened(), journal := FrameList(opened()))
    request = cache.admit("r", raw_key([1] * 22), 22).request
    ids = np.array([request], np.int64)
    cache.extend(ids, np.array([22], np.int32))
    cache.step_began(1, ids, np.array([21], np.int32), np.array([22], np.int32))
    assert request == FIRST_REQUEST
    return [*journal.frames, *framed(after, journal.count + 1)]


FIRST_REQUEST = RequestId(8)


def test_a_running_step_keeps_the_window_that_it_reads() -> None:
    """R151: token 21 is written, so tokens from 17 on are read; a reclaim up to 16 is lawful, one up to 20 is not."""
    lawful = Reclaimed(FIRST_REQUEST, TokenCount(0), TokenCount(16), ids_to(4), ids_to(4))
    assert audited(stepping(lawful)).clean
    early = Reclaimed(FIRST_REQUEST, TokenCount(0), TokenCount(20), ids_to(5), ids_to(5))
    assert audited(stepping(early)).broken["a_running_step_keeps_its_window"] == 1


def ids_to(count: int) -> Pages:
    return Pages(np.arange(1, count + 1, dtype="<i4").tobytes())


@pytest.mark.parametrize("kind", [Finished, Retracted, Aborted], ids=lambda kind: kind.__name__)
def test_a_request_outlives_the_steps_that_read_it(kind: type) -> None:
    fields = {"request": FIRST_REQUEST, "tokens": 22} | ({"cached": 0, "node": 0} if kind is Finished else {})
    assert audited(stepping(kind(**fields))).broken["a_request_outlives_the_steps_that_read_it"] == 1


def test_a_cached_path_that_ends_in_no_live_window_is_told() -> None:
    """R259: the row goes on from a tombstone, which no match would accept (R263 begins so)."""
    seen = 0
    for frame in (frames := Driven(6).run(150).journal.frames):
        for place, event in enumerate(frame.events):
            if isinstance(event, Repointed) and event.node:
                state = fold(frames, until=frame.seq_first + place - 1)
                node = state.nodes[event.node]
                if node.swa and not node.swa_locks:
                    dead = Tombstoned(node.id, node.full, node.swa)
                    spoiled = [
                        *framed_until(frames, frame.seq_first + place),
                        *framed([dead, event], state.seq + 1),
                    ]
                    assert audited(spoiled).broken["a_cached_path_ends_in_a_live_window"] == 1
                    seen += 1
    assert seen


def framed_until(frames: list[Frame], seq: int) -> list[Frame]:
    """The events before `seq`, a frame for each."""
    return framed([event for frame in frames for event in frame.events][: seq - 1])


def test_what_the_writer_saw_broken_is_told() -> None:
    event = Violated("foreign_free", "page 3", RequestId(8), 0, Pages(b"\3\0\0\0"))
    report = audited(framed([opened(), event]))
    assert report.broken == {"the_writer_saw_no_law_broken": 1}
    assert report.findings[0].pages == [3]
    assert not report.clean


def test_a_journal_with_a_gap_is_never_clean() -> None:
    """J11: even where everything that is there agrees."""
    run = Driven(6).run(20)
    end = run.journal.count
    report = audited([*run.journal.frames, *framed([Gap(5, "disk full")], end + 5)])
    assert not report.clean
    assert (report.gaps, report.lost) == (1, 5)
    assert report.broken == {"no_event_is_missing": 1}


@pytest.mark.parametrize(
    "changes",
    [{"epoch": 0}, {"run": "another"}, {"rank": 1, "ranks": 2}],
    ids=lambda changes: next(iter(changes)),
)
def test_an_epoch_follows_its_own_run(changes: dict[str, object]) -> None:
    later = replace(opened(epoch=1), **changes)
    assert audited(framed([opened(), later])).broken == {"an_epoch_follows_the_one_before": 1}


def test_refusals_are_counted_and_are_no_findings() -> None:
    report = audited(Driven(6).run(200).journal.frames)
    assert report.clean
    assert set(report.refusals) >= {"pool_short", "refused"}


def test_a_report_is_bounded_whatever_the_journal_holds() -> None:
    """A hostile journal makes neither a long list nor a long line."""
    wrong: list[AnyEvent] = [Violated("law" * 1000, "detail" * 1000)] * 5000
    report = audited(framed([opened(), *wrong]))
    assert report.broken == {"the_writer_saw_no_law_broken": 5000}
    assert len(report.findings) == KEPT
    assert max(len(each.detail) for each in report.findings) == TEXT_KEPT


def test_the_finding_that_an_event_is_told_by_is_kept_however_late_it_is_found() -> None:
    """What an event broke first leads, FULL pages before others, in a report that is full of the others."""
    report, frame = RankReport(run="", rank=0), Frame(Seq(1), 0, 0, 0, [Violated("", "")] * 3)
    page, law = Pages((7).to_bytes(4, "little")), "a_page_is_given_by_its_owner"
    for _ in range(KEPT):
        report.tell(Finding(Seq(2), law, "late", Pool.SWA, page), frame)
    report.tell(Finding(Seq(2), "another", "", Pool.FULL, page), frame)
    report.tell(Finding(Seq(2), law, "later", Pool.FULL, page), frame)
    report.tell(Finding(Seq(1), "earlier", "", Pool.SWA, page), frame)
    told = [(each.seq, each.law, each.pool) for each in report.findings]
    assert told == [(1, "earlier", "SWA"), (2, law, "FULL"), *[(2, law, "SWA")] * (KEPT - 2)]


def test_behind_a_gap_a_digest_that_agrees_ends_the_doubt() -> None:
    """Lost events that changed nothing leave nothing to doubt."""
    frames = Driven(6).run(100).journal.frames
    place = next(place for place, frame in enumerate(frames) if isinstance(frame.events[0], Refused))
    gap = Gap(1, "planted")
    report = audited([*frames[:place], frames[place]._replace(events=[gap]), *frames[place + 1 :]])
    assert report.broken == {"no_event_is_missing": 1}
    assert report.digests == audited(frames).digests


def test_the_first_finding_is_the_first_wrong_events() -> None:
    frames = Driven(6).run(60).journal.frames
    event = next(event for frame in frames for event in frame.events if isinstance(event, Removed))
    behind = next(frame.seq_first for frame in frames if event in frame.events) + 1
    spoiled, seq = with_inserted(frames, behind, event)
    report = audited(spoiled)
    assert report.findings[0].seq == seq
    assert [each.seq for each in report.findings] == sorted(each.seq for each in report.findings)
