"""What another server tells a recorder becomes a journal that is folded, judged and asked like our own."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from radixledger.analytics.load import load
from radixledger.analytics.queries import ask_checks
from radixledger.analytics.store import Database
from radixledger.cache.digest import recount
from radixledger.cache.rank import RankCache
from radixledger.journal.accounts import holder_of
from radixledger.journal.events import (
    Allocated,
    Closed,
    Config,
    Freed,
    Removed,
    Transferred,
)
from radixledger.journal.reader import JournalReader
from radixledger.journal.recorder import ROOT, Recorder, pages_of_slots
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import Rank
from radixledger.replay.seek import state_at
from radixledger.replay.verify import verify_rank

from ..cache.driven import CHUNK_SHAPES, FULL_SHAPES, SHAPES, Driven, opened
from .foreign import retold

RANK = Rank(0)
SMALL = Config(page_size=4, full_pages=60, swa_pages=40, window_tokens=5, rows=8, context_pages=64)


def owners(state: Any) -> dict[str, Any]:
    """Who owns what, without the numbers that a recorder gives by itself."""
    return {
        "full": np.asarray(state.full.account) & 7,
        "swa": np.asarray(state.swa.account) & 7,
        "mapped": np.asarray(state.mapping.swa_of),
        "live": sorted(state.rids),
        "shapes": sorted(
            (node.end, bytes(node.key), bytes(node.full), bytes(node.swa)) for node in state.nodes.values()
        ),
        "locks": sorted((node.end, node.holds, node.swa_locks) for node in state.nodes.values()),
    }


@pytest.mark.parametrize(("route", "shape"), [
    *(("unified", shape) for shape in SHAPES), ("legacy", SHAPES[1]), *(("radix", shape) for shape in FULL_SHAPES),
    *CHUNK_SHAPES.items(),
])  # fmt: skip
def test_a_server_that_tells_what_it_does_has_the_journal_that_our_cache_would_write(
    tmp_path: Path, route: str, shape: tuple[int, ...]
) -> None:
    """The same owners, mapping, tree and locks, and nothing to blame."""
    driven = Driven(3, shape, route=route).run(300).drain()
    retold(driven, tmp_path / "run")
    report = verify_rank(tmp_path / "run", RANK)
    assert [(each.seq, each.law, each.detail) for each in report.findings] == []
    assert report.clean
    reader = JournalReader(tmp_path / "run", RANK)
    state = state_at(reader, reader.last_seq)
    recount(state)
    for what, mine in owners(driven.cache.state).items():
        np.testing.assert_equal(owners(state)[what], mine, err_msg=what)


def test_sql_has_nothing_to_say_of_a_recorded_run_either(tmp_path: Path) -> None:
    retold(Driven(5).run(200).drain(), tmp_path / "run")
    database = Database()
    load(database, tmp_path / "run")
    answers = ask_checks(database.connection)
    assert {name: answer.rows[:1] for name, answer in answers.items() if answer.rows} == {}


def small(run: Path, **how: Any) -> Recorder:
    return Recorder.open(run, SMALL, **how)


def served(recorder: Recorder, rid: str, page: int) -> None:
    """One request of two pages, which the tree keeps under a name of its own: a leaf below the root."""
    recorder.admitted(rid, 8)
    recorder.extended([rid], [8], takers=[rid], counts=[2], full=[page, page + 1], swa=[page, page + 1])
    with recorder.command():
        key = page.to_bytes(16, "big") + bytes(16)
        recorder.transferred(rid, ROOT, key, [page, page + 1], [page, page + 1], rid=rid)
        recorder.finished(rid, 8, cached=8, node=rid)


def first_finding(run: Path) -> tuple[int, str]:
    report = verify_rank(run, RANK)
    assert not report.unreadable
    return report.findings[0].seq, report.findings[0].law


def test_a_server_may_choose_its_victims_and_locks_by_its_own_rules(tmp_path: Path) -> None:
    """The youngest leaf goes first here, and a lock holds more than a window: neither is anybody's fault."""
    with small(tmp_path / "run") as recorder:
        for at, rid in enumerate("abc"):
            served(recorder, rid, 1 + 2 * at)
        held = recorder.locked("a")
        recorder.removed("c", [5, 6], [5, 6])
        recorder.tombstoned("b", [3, 4], [3, 4])
        recorder.unlocked(held)
    assert verify_rank(tmp_path / "run", RANK).clean


def test_a_second_free_is_written_down_and_found(tmp_path: Path) -> None:
    with small(tmp_path / "run") as recorder:
        recorder.allocated(None, [1, 2], [1, 2])
        recorder.freed([1, 2], [1, 2], unmapped=[1, 2])
        recorder.allocated("early", [3])  # who was never admitted
        recorder.freed([1])
        second = recorder.last_seq
    assert first_finding(tmp_path / "run") == (second, "a_page_is_freed_once")


def test_who_is_gone_keeps_the_number_by_which_the_past_knows_it(tmp_path: Path) -> None:
    """A free of a page that the tree gave up and got back in the name of a removed node is told of that node."""
    with small(tmp_path / "run") as recorder:
        served(recorder, "a", 1)
        recorder.removed("a", [1, 2], [1, 2])
        removed = recorder.last_seq
        recorder.freed([1], node="a")
        freed = recorder.last_seq
        recorder.locked("nobody ever heard of it")
    events = {frame.seq_first: frame.events[0] for frame in JournalReader(tmp_path / "run", RANK).frames()}
    leaf, free = events[removed], events[freed]
    assert isinstance(leaf, Removed)
    assert isinstance(free, Freed)
    assert holder_of(free.giver) == leaf.node
    report = verify_rank(tmp_path / "run", RANK)
    assert [(each.seq, each.law) for each in report.findings[:1]] == [(freed, "a_page_is_freed_once")]
    assert "an_event_names_what_exists" in report.broken


def test_the_name_of_a_node_that_is_gone_may_be_given_to_a_new_one(tmp_path: Path) -> None:
    with small(tmp_path / "run") as recorder:
        for page in (1, 3, 5):
            served(recorder, "again", page)
            recorder.removed("again", [page, page + 1], [page, page + 1])
    assert verify_rank(tmp_path / "run", RANK).clean


def test_a_free_group_holds_pages_back_until_it_is_flushed(tmp_path: Path) -> None:
    with small(tmp_path / "run") as recorder:
        recorder.allocated(None, [1], [1])
        recorder.group_opened()
        recorder.freed([1], [1], unmapped=[1])
        recorder.group_flushed([1], [1])
        recorder.allocated(None, [1], [1])
        recorder.freed([1], [1], unmapped=[1])
    assert verify_rank(tmp_path / "run", RANK).clean


def test_what_was_told_is_written_when_the_server_falls_over(tmp_path: Path) -> None:
    """A server's facts are facts, whatever became of it: the journal ends with the reason."""
    with pytest.raises(ZeroDivisionError), small(tmp_path / "run") as recorder, recorder.command():
        recorder.allocated(None, [1, 2], [1, 2])
        raise ZeroDivisionError("the server")
    last = list(JournalReader(tmp_path / "run", RANK).frames())[-2:]
    (allocated,), (closed,) = (frame.events for frame in last)
    assert isinstance(allocated, Allocated)
    assert isinstance(closed, Closed)
    assert closed.reason == "ZeroDivisionError: the server"


def test_more_live_requests_than_rows_are_told_to_the_caller(tmp_path: Path) -> None:
    with small(tmp_path / "run") as recorder:
        for number in range(8):
            recorder.admitted(f"r{number}", 4)
        with pytest.raises(ValueError, match=r"'r8' is one more than 8 live requests: .* `rows`"):
            recorder.admitted("r8", 4)
        recorder.aborted("r3", 0)
        recorder.admitted("r8", 4)
    report = verify_rank(tmp_path / "run", RANK)
    assert report.clean


@pytest.mark.parametrize(
    ("tell", "said"),
    [
        (lambda it: it.extended(["a", "b"], [1]), "1 grown, 2 rids"),
        (lambda it: it.step_began(1, ["a"], [0], []), "1 starts, 0 stops, 1 rids"),
        (lambda it: it.allocated(None, [1 << 31]), "int32"),
        (lambda it: it.allocated(None, [-1]), "int32"),
        (lambda it: it.allocated(None, [1.5]), "whole numbers"),
        (lambda it: it.allocated(None, [[1, 2]]), "one row"),
    ],
)
def test_columns_that_do_not_fit_are_refused_and_nothing_is_told(
    tmp_path: Path, tell: Callable[[Recorder], None], said: str
) -> None:
    with small(tmp_path / "run") as recorder:
        before = recorder.last_seq
        with pytest.raises(ValueError, match=said):
            tell(recorder)
        assert recorder.last_seq == before


def test_keys_are_hashed_page_by_page_unless_they_are_asked_for(tmp_path: Path) -> None:
    """J10, for servers whose keys are no tokens of four bytes too."""
    with Recorder.open(tmp_path / "run", SMALL, key_bytes=16) as recorder:
        served(recorder, "a", 1)
    (leaf,) = (
        event
        for frame in JournalReader(tmp_path / "run", RANK).frames()
        for event in frame.events
        if isinstance(event, Transferred)
    )
    assert len(leaf.key) == 2 * 8


def test_a_recorded_run_goes_on_in_a_new_epoch(tmp_path: Path) -> None:
    with small(tmp_path / "run") as recorder:
        served(recorder, "a", 1)
    with small(tmp_path / "run", resume=True) as recorder:
        served(recorder, "a", 1)
    report = verify_rank(tmp_path / "run", RANK)
    assert report.clean
    assert report.epochs == 2


@pytest.mark.parametrize("route", ["recorded", "recorded_full"])
def test_no_cache_is_built_on_a_route_that_others_record(route: str) -> None:
    with pytest.raises(BadConfig, match="what other servers record; take one of unified"):
        RankCache(opened(route=route))


def test_slots_name_the_pages_that_they_lie_in() -> None:
    assert pages_of_slots(np.array([9, 10, 11, 4, 5, 8, 0, 1]), 4).tolist() == [2, 1]
    assert pages_of_slots([], 4).tolist() == []


def test_threads_take_turns_command_by_command(tmp_path: Path) -> None:
    """No event of theirs is lost or told twice, and two that belong together stand in one frame."""
    recorder = Recorder.open(tmp_path / "run", replace(SMALL, rows=64))

    def serve(thread: int) -> None:
        for number in range(60):
            rid = f"{thread}-{number}"
            with recorder.command():
                recorder.admitted(rid, 8)
                recorder.matched(rid, 8)
            recorder.aborted(rid, 0)

    with ThreadPoolExecutor(8) as threads:
        for each in [threads.submit(serve, thread) for thread in range(8)]:
            each.result()
    recorder.close()
    frames = list(JournalReader(tmp_path / "run", RANK).frames())
    told = [[type(event).__name__ for event in frame.events] for frame in frames]
    assert told.count(["Admitted", "Matched"]) == told.count(["Aborted"]) == 480
    assert verify_rank(tmp_path / "run", RANK).clean


FORKED = """
import os, sys
from pathlib import Path
from radixledger.journal.errors import WriterError
from radixledger.journal.events import Config
from radixledger.journal.recorder import Recorder
recorder = Recorder.open(Path(sys.argv[1]), Config(4, 60, 40, 5, 8))
recorder.admitted("parent", 8)
child = os.fork()
if not child:
    try:
        recorder.admitted("child", 8)
    except WriterError as error:
        print(error, flush=True)
    recorder.close()
    os._exit(0)
os.waitpid(child, 0)
recorder.aborted("parent", 0)
recorder.close()
"""


def test_a_forked_child_writes_nothing_into_its_parent_s_journal(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = subprocess.run([sys.executable, "-c", FORKED, run], capture_output=True, text=True, check=True)
    assert "belongs to the process that this one was forked from; Admitted came too late" in done.stdout
    report = verify_rank(run, RANK)
    assert report.clean
    assert report.seq_last == 4


def test_a_name_that_stands_for_nothing_is_told_in_words(tmp_path: Path) -> None:
    """What ends at a node that was never made, or is gone, is blamed for that, and not by the name of an exception."""
    with small(tmp_path / "run") as recorder:
        recorder.admitted("a", 8)
        recorder.finished("a", 0, node="never made")
        ended = recorder.last_seq
    report = verify_rank(tmp_path / "run", RANK)
    assert report.findings[0].seq == ended
    assert "is named, and is not there" in report.findings[0].detail
    assert not [each for each in report.findings if "Error" in each.detail]
