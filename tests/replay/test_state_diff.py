"""Two states: of one run by number, of two runs by request id and path; every difference and no other."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from radixledger.cache.state import State
from radixledger.journal.accounts import describe
from radixledger.journal.events import Opened
from radixledger.journal.frame import Frame
from radixledger.replay.diff.pairing import paired
from radixledger.replay.diff.state_diff import StateDiff, state_diff
from radixledger.replay.fold import Unfoldable, fold

from ..cache.driven import SHAPES, STATE_SHAPES, Driven
from ..cache.hosted import all_of_it
from .runs import framed
from .test_diverge import changed
from .test_fold import spoiled

FRAMES = Driven(3).run(200).journal.frames


def called(frames: list[Frame], run: str, **changes: object) -> list[Frame]:
    """The same events of a run of another name."""
    return changed(
        frames, lambda event: replace(event, run=run, **changes) if isinstance(event, Opened) else event
    )


def of_two_runs(a: State, b: State) -> StateDiff:
    found = state_diff(a, b)
    assert not found.same_run
    assert found.pages == []
    return found


@settings(max_examples=10)
@given(seed=st.integers(0, 1 << 32), shape=st.sampled_from((*SHAPES, *STATE_SHAPES)))
def test_a_state_does_not_differ_from_itself(seed: int, shape: tuple[int, ...]) -> None:
    frames = Driven(seed, shape).run(60).journal.frames
    assert not state_diff(fold(frames), fold(frames)).differs
    assert not of_two_runs(fold(frames), fold(called(frames, "other"))).differs
    hashed = of_two_runs(fold(frames), fold(called(frames, "other", key_id="another")))
    assert not hashed.keys
    assert not hashed.differs


def test_two_moments_of_a_run_differ_by_what_happened_between_them() -> None:
    a, b = fold(FRAMES[:120]), fold(FRAMES)
    found = state_diff(a, b)
    assert found.same_run
    for book, other in ((a.full, b.full), (a.swa, b.swa)):
        moved = [each for each in found.pages if each.pool == book.pool.name]
        pages = sorted(page for each in moved for page in each.pages)
        assert pages == np.flatnonzero(book.account != other.account).tolist()
        for each in moved:
            assert {describe(int(book.account[page])) for page in each.pages} == {each.a}
            assert {describe(int(other.account[page])) for page in each.pages} == {each.b}
    gone = [row.what for row in found.nodes if row.b == "" and row.field == ""]
    assert gone == [f"node {number}" for number in a.nodes if number not in b.nodes]
    came = [row.what for row in found.nodes if row.a == "" and row.field == ""]
    assert came == [f"node {number}" for number in b.nodes if number not in a.nodes]
    rids = {row.what.split()[1] for row in found.requests if row.field == ""}
    assert rids == {
        request.rid
        for request in (*a.requests.values(), *b.requests.values())
        if (request.id in a.requests) != (request.id in b.requests)
    }


def test_two_runs_are_compared_by_request_id_and_path() -> None:
    """Numbers mean nothing: the same prefix cached under another number is the same, a cut elsewhere is told as one."""
    a = fold(FRAMES)
    b = fold(called(FRAMES, "other"))
    request = next(iter(b.requests.values()))
    b.rows.length[request.row] += 5
    leaf = next(
        node for node in b.nodes.values() if node.parent is not None and not node.children and node.swa
    )
    leaf.swa = type(leaf.swa)(b"")
    found = of_two_runs(a, b)
    assert found.keys
    assert [(row.what, row.field) for row in found.requests] == [(f"request {request.rid}", "length")]
    assert [(row.field, row.b) for row in found.nodes] == [("SWA", "none")]
    assert f"({leaf.id})" in found.nodes[0].what
    assert [row.field for row in found.numbers] == ["tombstones"]


def test_a_node_is_found_by_its_path_whatever_its_number() -> None:
    frames = all_of_it().journal.frames
    assert not of_two_runs(fold(frames), fold(called(frames, "other"))).differs
    a, b = fold(FRAMES), fold(called(FRAMES, "other"))
    for node in b.nodes.values():
        node.id += 500  # type: ignore[assignment]
    assert of_two_runs(a, b).nodes == []


@given(seed=st.integers(0, 1000), chance=st.data())
def test_whatever_was_folded_can_be_compared(seed: int, chance: st.DataObject) -> None:
    events = Driven(seed).run(25).journal.events
    try:
        strange = fold(framed(spoiled(events, chance)))
    except Unfoldable:
        return
    lawful = fold(called(framed(events), "other"))
    assert not state_diff(strange, strange).differs
    assert isinstance(state_diff(lawful, strange).differs, bool)
    assert isinstance(state_diff(fold(framed(events)), strange).differs, bool)


def other_way(state: State) -> State:
    """The same state whose keys were hashed with another key, its children in another order."""
    for node in state.nodes.values():
        node.key = bytes(255 - each for each in node.key)
        if node.children:
            node.children = dict(reversed([(child.key, child) for child in node.children.values()]))
    return state


def came_or_went(found: StateDiff) -> list[str]:
    return [row.what for row in found.nodes if row.field == ""]


def test_states_whose_keys_cannot_be_compared_differ_by_structure_and_not_everywhere() -> None:
    """Two moments of two runs: what came and went in between is told, as it is where keys can be compared."""
    early, late = FRAMES[:160], FRAMES
    by_key = of_two_runs(fold(early), fold(called(late, "other")))
    found = of_two_runs(fold(early), other_way(fold(called(late, "other", key_id="another"))))
    assert (by_key.keys, found.keys) == (True, False)
    assert by_key.nodes
    assert (found.numbers, found.requests) == (by_key.numbers, by_key.requests)
    assert 0 < len(came_or_went(found)) <= len(came_or_went(by_key)) < len(early)
    same = of_two_runs(fold(late), other_way(fold(called(late, "other", key_id="another"))))
    assert not same.differs


def test_each_node_has_one_other_and_what_is_cut_elsewhere_keeps_what_is_below_it() -> None:
    a, b = fold(FRAMES), other_way(fold(called(FRAMES, "other", key_id="another")))
    cut = next(node for node in b.nodes.values() if node.pages > 1 and node.children)
    cut.end -= 1
    mine, theirs = paired(a, b)
    shared = set(mine.values()) & set(theirs.values())
    assert [number for number, name in theirs.items() if name not in shared] == [cut.id]
    for names, state in ((mine, a), (theirs, b)):
        assert len(set(names.values())) == len(names) == len(state.nodes)
