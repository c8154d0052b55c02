"""What is exported or attributed behind missing events is true of the whole journal too, or is said not to be known (J11)."""

import json
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from radixledger.journal.events import Gap, Opened
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.alarms import Alarms
from radixledger.replay.export.kv_events import KvEvents, batches
from radixledger.replay.export.kv_wire import AllBlocksCleared
from radixledger.replay.export.perfetto import Trace
from radixledger.replay.export.trace_pen import SOME_ROW, UNKNOWN
from radixledger.replay.fold import fold
from radixledger.replay.reuse.misses import Miss
from radixledger.replay.reuse.reuse import Reading, Reuse
from radixledger.replay.seek import beginning_of
from radixledger.replay.verify import verify_rank
from radixledger.tools.cli import run as radixledger

from ..cache.driven import SHAPES, Driven
from ..cache.hosted import Hosted, all_of_it
from .runs import RANK, Clock, damage, framed, written
from .subscriber import Subscriber
from .test_kv_events import prefixes

encode = msgspec.msgpack.Encoder().encode


def without(frames: Sequence[Frame], first: int, last: int) -> list[Frame]:
    """The frames with one gap in place of those between two places."""
    missing = frames[first:last]
    gap = Gap(sum(len(frame.events) for frame in missing), "planted")
    return [*frames[:first], *framed([gap], missing[-1].seq_last), *frames[last:]]


def heard_only_what_is_true(opened: Opened, frames: Sequence[Frame], first: int, last: int) -> int:
    """A router that hears of a journal with a gap never holds what the tree does not; how many prefixes it held behind it."""
    events, router, state, most = KvEvents(opened), Subscriber(), None, 0
    place = {frame.seq_last: frame for frame in without(frames, first, last)}
    for frame in frames:
        state = fold([frame], state)
        told = place.get(frame.seq_last)
        batch = events.batch(told) if told is not None else None
        if batch is not None:
            router.take(encode(batch))
        if told is not None:
            assert router.seen("GPU") <= prefixes(state)
            assert router.seen("CPU") <= prefixes(state, host=True)
            if frame.seq_last > frames[last].seq_first:
                most = max(most, len(router.seen("GPU")))
    return most


@pytest.mark.parametrize("route", ["unified", "legacy"])
def test_a_router_is_told_of_no_block_that_may_be_gone_where_events_are_missing(route: str) -> None:
    """J11: what stood there before is cleared, and a block behind an unknown one is not told as one of the beginning."""
    driven = Driven(11, SHAPES[1], route=route)
    for _ in driven.steps(250):
        pass
    frames = driven.journal.frames
    held = [
        heard_only_what_is_true(driven.journal.opened, frames, first, first + many)
        for first in range(60, len(frames) - 80, 61)
        for many in (1, 12, 60)
    ]
    assert min(held) > 0


def test_a_router_is_told_of_no_copy_that_may_be_gone_where_events_are_missing() -> None:
    rank: Hosted = all_of_it()
    frames = rank.journal.frames
    for first in range(2, len(frames) - 3):
        heard_only_what_is_true(rank.journal.opened, frames, first, first + 2)


def test_a_router_is_told_of_all_again_from_a_snapshot_on(tmp_path: Path) -> None:
    """J12: a snapshot stands in for what is missing before it."""
    written(tmp_path / "run", steps=400, snapshots=(300,), rotate_bytes=4096)
    whole = list(batches(JournalReader(tmp_path / "run", RANK)))
    sorted((tmp_path / "run" / "rank-0000").glob("*.sealed"))[3].unlink()
    reader = JournalReader(tmp_path / "run", RANK, salvage=True)
    told = list(batches(reader))
    clear = [at for at, batch in enumerate(told) if AllBlocksCleared() in batch.events]
    assert len(clear) == 3, "where it began, at the gap, and where the snapshot stands"
    assert told[clear[2] + 1 :] == whole[clear[2] + 1 - len(told) :]


def read(run: Path) -> tuple[dict[int, Miss], Reuse]:
    reading = Reading(JournalReader(run, RANK, salvage=True))
    return {miss.admitted_seq: miss for miss in reading}, reading.account


@pytest.mark.parametrize("snapshots", [(), (170,)])
@pytest.mark.parametrize("place", [2, 5])
def test_no_miss_is_put_down_to_what_may_not_have_been_so(
    tmp_path: Path, place: int, snapshots: tuple[int, ...]
) -> None:
    """N14: behind missing events a miss is not judged, its hit is told; what is said of others is said of the whole journal too."""
    written(tmp_path / "run", 250, snapshots=snapshots, rotate_bytes=3_000)
    whole, _ = read(tmp_path / "run")
    sorted((tmp_path / "run" / "rank-0000").glob("*.sealed"))[place].unlink()
    left, account = read(tmp_path / "run")
    (lost_at,) = account.not_known_from
    blind = [miss for miss in left.values() if miss.kinds["not_known"]]
    assert account.kinds["not_known"] == sum(miss.kinds["not_known"] for miss in blind) > 0
    for seq, miss in left.items():
        assert sum(miss.kinds.values()) == miss.prompt
        assert (miss.kinds["hit"], miss.prompt) == (whole[seq].kinds["hit"], whole[seq].prompt)
        if seq < lost_at or miss.kinds["not_known"]:
            assert [each for each in miss.lost if each not in whole[seq].lost] == []
            assert all(miss.kinds[kind] <= whole[seq].kinds[kind] for kind in ("concurrent", "not_usable"))
    behind = [miss for seq, miss in left.items() if seq > lost_at]
    judged = [miss for miss in behind if not miss.kinds["not_known"] and miss.kinds["hit"] < miss.asked]
    assert bool(judged) == bool(snapshots), "only a snapshot, a digest or an epoch makes it known again"


def test_what_a_restart_behind_missing_events_cost_is_not_put_down_to_the_restart(tmp_path: Path) -> None:
    """N14: whether the restart took it, or something that is missing, nobody knows."""
    written(tmp_path / "run", 150, rotate_bytes=3_000)
    written(tmp_path / "run", 100, resume=True, rotate_bytes=3_000)
    sorted((tmp_path / "run" / "rank-0000").glob("*.sealed"))[3].unlink()
    left, account = read(tmp_path / "run")
    (lost_at,) = account.not_known_from
    epoch = max(miss.epoch for miss in left.values())
    again = [each for miss in left.values() if miss.epoch == epoch for each in miss.lost]
    before = [each for each in again if each.cached_seq < lost_at]
    assert before
    assert {(each.event, each.seq) for each in before if each.event in ("Gap", "Opened")} == {
        ("Gap", lost_at)
    }


def test_a_trace_shows_no_row_and_no_pool_that_is_not_known(tmp_path: Path) -> None:
    """J11: requests end where events are missing, pages are in no account, and a track says for how long."""
    written(tmp_path / "run", 250, snapshots=(170,), rotate_bytes=3_000)
    sorted((tmp_path / "run" / "rank-0000").glob("*.sealed"))[2].unlink()
    reader = JournalReader(tmp_path / "run", RANK, salvage=True)
    trace = Trace(reader, 0)
    entries = list(trace.entries())
    (stretch,) = trace.known.stretches
    (told,) = [each for each in entries if each["ph"] == "X" and each["tid"] == UNKNOWN]
    begun, ended = told["ts"], told["ts"] + told["dur"]
    assert (told["name"], told["args"]["missing from"]) == (
        f"not known behind the gap of event {stretch.lost_at}", stretch.since,
    )  # fmt: skip
    slices = [each for each in entries if each["ph"] == "X" and each["cat"] == "request"]
    within = [each for each in slices if begun < each["ts"] < ended]
    assert within
    assert {each["tid"] >= SOME_ROW for each in within} == {True}
    assert all(each["ts"] + each["dur"] <= begun for each in slices if each["ts"] < begun)
    rows: dict[int, list[dict[str, Any]]] = {}
    for each in slices:
        rows.setdefault(each["tid"], []).append(each)
    for row in rows.values():
        row.sort(key=lambda each: (each["ts"], each["dur"]))
        assert all(one["ts"] + one["dur"] <= two["ts"] + 1e-6 for one, two in pairwise(row)), "one at a time"
    pools = [each for each in entries if each["ph"] == "C" and each["name"] == "FULL pages"]
    capacity = reader.opened.config.full_pages
    for each in pools:
        inside = begun <= each["ts"] < ended
        assert sum(each["args"].values()) == capacity
        assert each["args"].get("not known", 0) == capacity * inside


def test_a_broken_chain_is_heard_of_by_who_exports_and_who_watches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J7: what is told behind it need not follow what was told before, until a digest agrees."""
    written(tmp_path / "mine" / "driven", 120, rotate_bytes=3_000)
    monkeypatch.setattr(Clock, "__init__", lambda clock: setattr(clock, "now", 5))
    written(tmp_path / "other" / "driven", 120, rotate_bytes=3_000)
    mine, others = (
        sorted((tmp_path / name / "driven" / "rank-0000").glob("*.sealed")) for name in ("mine", "other")
    )
    assert mine[1].name == others[1].name
    shutil.copy(others[0], mine[0])
    reader = JournalReader(tmp_path / "mine" / "driven", RANK, salvage=True)
    trace, events = Trace(reader, 0), KvEvents(reader.opened)
    assert list(trace.entries())
    report = verify_rank(tmp_path / "mine" / "driven", RANK, salvage=True)
    assert (trace.report.broken, trace.report.unjudged) == (report.broken, report.unjudged)
    assert [each.lost_at for each in trace.known.stretches] == [int(mine[1].stem)] == reader.breaks
    assert trace.known.lost_at == 0
    told = list(batches(reader, known=events.known))
    assert [each.lost_at for each in events.known.stretches] == [int(mine[1].stem)]
    assert sum(AllBlocksCleared() in batch.events for batch in told) == 2
    watch = Alarms(reader, beginning_of(reader))
    assert [alarm for frame in reader.frames() for alarm in watch.take(frame)] == []
    assert watch.known.stretches == trace.known.stretches


@pytest.mark.parametrize(
    "words", ["replay lost-reuse", "export kv-events", "export perfetto -o {}", "replay tail --laws --once"]
)
def test_the_commands_say_where_nothing_is_known(
    tmp_path: Path, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "run", 250, rotate_bytes=3_000)
    damage(tmp_path / "run")
    (lost_at,) = read(tmp_path / "run")[1].not_known_from
    asked = words.format(tmp_path / "trace.json").split()
    assert radixledger([*asked, str(tmp_path / "run"), "--salvage"]) == 1
    out, err = capfd.readouterr()
    assert f"events are missing at event {lost_at}: behind it the state is not known" in " ".join(err.split())
    if words == "replay lost-reuse":
        assert "not_known" in out
    elif words == "export kv-events":
        events = [event[0] for line in out.splitlines() for event in json.loads(line)["events"]]
        assert events.count("AllBlocksCleared") == 2


@pytest.mark.parametrize("harm", ["segment gone", "block flipped", "beginning gone"])
def test_what_is_missing_is_told_once_and_alike_from_wherever_reading_begins(
    tmp_path: Path, harm: str
) -> None:
    """J11: a search that reads from the middle of what is missing says nothing that the whole reading does not."""
    written(tmp_path / "run", 120, rotate_bytes=3_000)
    segments = sorted((tmp_path / "run" / "rank-0000").glob("*.sealed"))
    if harm == "block flipped":
        damage(tmp_path / "run")
    else:
        segments[0 if harm == "beginning gone" else 2].unlink()
    whole = JournalReader(tmp_path / "run", RANK, salvage=True)
    last = list(whole.frames())[-1].seq_last
    anywhere = JournalReader(tmp_path / "run", RANK, salvage=True)
    for seq in range(1, last + 1, 3):
        next(anywhere.frames(Seq(seq)))
    assert set(anywhere.notices) <= set(whole.notices)
    assert len(whole.notices) == 1
