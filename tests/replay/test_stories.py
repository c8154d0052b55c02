"""Stories of nodes and requests: they end where the folded state stands, say what broke, and crash on no journal (J16)."""

from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from radixledger.journal.accounts import Pool, request_account
from radixledger.journal.events import Aborted, Allocated, Freed, Gap, Healed, Split, Tombstoned, Transferred
from radixledger.journal.moves import pages_of
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import NO_PAGES, Pages, RequestId, Seq, TokenCount
from radixledger.replay.fold import Unfoldable, fold
from radixledger.replay.seek import state_at
from radixledger.replay.story.blame import story
from radixledger.replay.story.node_story import NodeStep, node_story
from radixledger.replay.story.request_story import request_story
from radixledger.replay.walk import walk

from ..cache.driven import SHAPES, STATE_SHAPES, Driven, opened
from ..cache.hosted import all_of_it
from .runs import RANK, audited, events_of, framed, with_inserted, written
from .test_blame import pages
from .test_fold import spoiled

RUN = Driven(3).run(300)


def test_a_walk_sees_every_event_and_ends_in_the_folded_state() -> None:
    frames = RUN.journal.frames
    walked = [(each.seq, each.event, each.broken) for each in walk(frames)]
    assert [event for _, event, _ in walked] == events_of(frames)
    assert [seq for seq, _, _ in walked] == list(range(1, len(walked) + 1))
    assert not any(broken for _, _, broken in walked)


def test_a_walk_says_what_an_event_broke_as_verify_does() -> None:
    """J14: the double free, at its number; behind a gap nothing is judged until a digest agrees."""
    held = RUN.cache.state.full.account.tolist().index(0, 1)
    again = Freed(request_account(RequestId(7)), pages(held), NO_PAGES, NO_PAGES)
    frames, seq = with_inserted(RUN.journal.frames, 40, again)
    broken = [(each.seq, found.law) for each in walk(frames) for found in each.broken]
    told = [(found.seq, found.law) for found in audited(frames).findings if found.lawful_at is None]
    assert broken[0][0] == told[0][0] == seq
    lost, _ = with_inserted(frames, seq, Gap(1, "of no importance"))
    assert not any(each.broken for each in walk(lost) if each.seq == seq + 1)


@settings(max_examples=15)
@given(seed=st.integers(0, 1 << 32), shape=st.sampled_from((*SHAPES, *STATE_SHAPES)))
def test_a_node_ends_its_story_as_it_stands_in_the_state(seed: int, shape: tuple[int, ...]) -> None:
    frames = Driven(seed, shape).run(80).journal.frames
    state = fold(frames)
    for number in range(1, state.next_node):
        steps = list(node_story(frames, number))
        node = state.nodes.get(number)
        last = steps[-1]
        assert [step.life for step in steps] == [1] * len(steps), "a number is used once"
        assert not any(step.wrong for step in steps)
        assert (last.what == "gone") == (node is None)
        if node is not None:
            assert (last.full, last.swa) == (pages_of(node.full).tolist(), pages_of(node.swa).tolist())
            assert (last.receipts, last.full_locks, last.swa_locks) == (
                node.anchors,
                node.holds,
                node.swa_locks,
            )
            assert (last.start, last.stop) == (
                (node.end - node.pages) * state.page_size,
                node.end * state.page_size,
            )


def test_a_node_is_told_how_it_came_was_cut_lost_its_window_and_got_it_back() -> None:
    frames = RUN.journal.frames
    told: Counter[str] = Counter()
    for number in range(1, RUN.cache.state.next_node):
        for step in node_story(frames, number):
            told.update((step.event, what.split(":")[0].split(" from")[0]) for what in step.what.split(", "))  # type: ignore[misc]
    events = Counter(type(event) for event in events_of(frames))
    assert told["Transferred", "new"] == events[Transferred]  # type: ignore[index]
    assert told["Split", "cut"] == 2 * events[Split]  # type: ignore[index]
    assert told["Tombstoned", "SWA went"] == events[Tombstoned]  # type: ignore[index]
    assert told["Healed", "SWA came"] == events[Healed]  # type: ignore[index]
    assert min(events[kind] for kind in (Transferred, Split, Tombstoned, Healed)) > 0


def test_copies_on_the_host_belong_to_the_story_of_their_node() -> None:
    frames = all_of_it().journal.frames
    said = {
        what
        for number in range(1, fold(frames).next_node)
        for step in node_story(frames, number)
        for what in step.what.split(", ")
    }
    assert said >= {"HOST copy came", "HOST copy landed", "FULL went", "FULL came", "HOST copy went"}


@settings(max_examples=15)
@given(seed=st.integers(0, 1 << 32), shape=st.sampled_from((*SHAPES, *STATE_SHAPES)))
def test_a_request_ends_its_story_as_it_stands_in_the_state(seed: int, shape: tuple[int, ...]) -> None:
    frames = Driven(seed, shape).run(80).journal.frames
    state = fold(frames)
    for request in state.requests.values():
        steps = list(request_story(frames, str(request.id)))
        last, account = steps[-1], request_account(request.id)
        assert not any(step.wrong for step in steps)
        assert last.full == (state.full.account == account).sum()
        assert last.swa == (state.swa.account == account).sum()
        assert last.length == state.rows.length[request.row]
        assert next(step.event for step in steps if step.attempt) == "Admitted"
        assert steps == [step for step in request_story(frames, request.rid) if step.request == request.id]


def test_a_request_that_gave_what_it_had_not_holds_what_the_books_say() -> None:
    """J16: a page of the tree is given up by a request, and one of the request by another: neither makes less than none."""
    state = RUN.cache.state
    mine = next(
        each for each in state.requests.values() if (state.full.account == request_account(each.id)).any()
    )
    account = request_account(mine.id)
    of_the_tree = next(node.full[:4] for node in state.nodes.values() if node.full)
    own = pages(int((state.full.account == account).argmax()))
    wrong = [
        Freed(account, Pages(of_the_tree), NO_PAGES, NO_PAGES),
        Freed(request_account(RequestId(7)), own, NO_PAGES, NO_PAGES),
    ]
    last = RUN.journal.frames[-1]
    frames = [
        *RUN.journal.frames,
        last._replace(seq_first=Seq(state.seq + 1), events=[*wrong, Aborted(mine.id, TokenCount(0))]),
    ]
    books = {int(each.seq): int((each.state.full.account == account).sum()) for each in walk(frames)}
    steps = list(request_story(frames, str(mine.id)))
    assert (steps[-2].event, steps[-2].gave) == ("Freed", {"FULL": pages_of(of_the_tree).tolist()})
    assert steps[-2].wrong
    assert [step.full for step in steps] == [books[step.seq] for step in steps]
    assert steps[-1].full == steps[-2].full - 1, "its own page is gone by another's hand"


def test_a_story_that_goes_on_from_a_snapshot_is_the_end_of_the_whole_story(tmp_path: Path) -> None:
    written(tmp_path / "run", 120, snapshots=(60,))
    reader = JournalReader(tmp_path / "run", RANK)
    seq = reader.snapshots()[0].seq

    def base() -> object:
        return state_at(reader, seq)

    for number in list(state_at(reader, seq).nodes)[1:]:
        part = list(node_story(reader.frames(Seq(seq + 1)), number, state_at(reader, seq)))
        whole = [step for step in node_story(reader.frames(), number) if step.seq > seq]
        assert list(map(_without_life, part)) == list(map(_without_life, whole))
    live = state_at(reader, seq).requests.values()
    assert live
    for request in live:
        tail = list(request_story(reader.frames(Seq(seq + 1)), request.rid, state_at(reader, seq)))
        told = [step for step in request_story(reader.frames(), request.rid) if step.seq > seq]
        assert [(step.seq, step.full, step.swa, step.length) for step in tail] == [
            (step.seq, step.full, step.swa, step.length) for step in told
        ]


def _without_life(step: NodeStep) -> tuple[object, ...]:
    return step.seq, step.event, step.what, step.full, step.swa, step.full_locks, step.swa_locks


def test_a_page_that_is_mapped_to_what_is_no_page_has_a_story() -> None:
    """A stranger's numbers: below zero, and columns that are no pairs."""
    frames = framed(
        [
            opened(),
            Allocated(RequestId(7), pages(3), Pages(b"\xff\xff\xff\xff")),
            Allocated(RequestId(8), Pages(pages(3) + pages(4)), pages(5)),
            Freed(request_account(RequestId(7)), Pages(b"\3\0\0\0\0"), NO_PAGES, NO_PAGES),
        ]
    )
    steps = list(story(frames, Pool.FULL, 3))
    assert [(step.seq, step.partner) for step in steps] == [(2, -1), (3, -1)]
    assert "did not have it" in steps[1].wrong


@given(seed=st.integers(0, 1000), chance=st.data())
def test_whatever_was_written_down_has_a_story(seed: int, chance: st.DataObject) -> None:
    frames = framed(spoiled(Driven(seed).run(25).journal.events, chance))
    for number in range(1, 4):
        try:
            nodes = list(node_story(frames, number))
            requests = list(request_story(frames, str(8 * number + number - 1)))
            lives = [*story(frames, Pool.FULL, number), *story(frames, Pool.SWA, number)]
        except Unfoldable:
            return
        assert all(step.what for step in nodes)
        assert all(step.event for step in requests)
        assert all(step.event for step in lives)
