"""What may happen between the two ends of a device step, by the journal alone: who reads a page keeps it (R151)."""

from collections.abc import Callable

import pytest

from radixledger.journal.accounts import PENDING
from radixledger.journal.events import (
    Aborted,
    AnyEvent,
    Finished,
    Freed,
    Healed,
    HealMode,
    Phase,
    Reclaimed,
    Removed,
    Retracted,
    Split,
    Stepped,
    Tombstoned,
)
from radixledger.journal.units import BoundaryId, NodeId, RequestId, TokenCount

from .asked import answered, loaded, only
from .story import (
    COMPOSITE,
    EVICT,
    FINISH,
    FULL_LEAF,
    HEAL,
    RECLAIM,
    SWA_INTERNAL,
    Story,
    admit,
    extend,
    first_request,
    ids,
    insert,
    pages,
    request,
)

TWO = RequestId(2)


def began(step: int, start: int, *requests: int) -> Stepped:
    """A step in which each request writes the token at `start`."""
    count = len(requests)
    return Stepped(step, Phase.BEGAN, ids(*requests), pages(*[start] * count), pages(*[start + 1] * count))


def ended(step: int) -> Stepped:
    return Stepped(step, Phase.ENDED)


def running(*, start: int = 24) -> Story:
    """Request 2 stands on the 16 tokens of node 1, which are nodes 2 and 1 by now, with three pages of its own; it runs."""
    story = Story()
    first_request(story)
    admit(story, 2, "r2", 20, hit=16, node=1)
    extend(story, 2, 8, [6, 7, 8], [6, 7, 8])
    story.tell(began(90, start, 2))
    return story


def freed_under(story: Story) -> list[tuple[object, ...]]:
    return only(
        answered(loaded(story), "freed_under_a_step"), "event", "running_step", "request", "pool", "pages"
    )


OWN: dict[str, tuple[AnyEvent, list[tuple[object, ...]]]] = {
    "both pools": (
        Freed(request(2), pages(8), pages(8), pages(8), request=TWO, cause=COMPOSITE),
        [("Freed", 90, 2, "full", 1), ("Freed", 90, 2, "swa", 1)],
    ),
    "into a group": (
        Freed(request(2), pages(8), pages(), pages(), PENDING, request=TWO, cause=COMPOSITE),
        [("Freed", 90, 2, "full", 1)],
    ),
    "below the window": (Reclaimed(TWO, TokenCount(16), TokenCount(16), pages(), pages(), cause=RECLAIM), []),
    "in the window": (
        Reclaimed(TWO, TokenCount(16), TokenCount(20), pages(6), pages(6), cause=RECLAIM),
        [("Reclaimed", 90, 2, "swa", 1)],
    ),
    "finished": (Finished(TWO, TokenCount(25), TokenCount(16), NodeId(1), FINISH), [("Finished", 90, 2, None, 0)]),
    "aborted": (Aborted(TWO, TokenCount(25), FINISH), [("Aborted", 90, 2, None, 0)]),
    "retracted": (Retracted(TWO, TokenCount(25), FINISH), [("Retracted", 90, 2, None, 0)]),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_what_a_running_request_holds_stays_until_the_step_has_ended(name: str) -> None:
    """R151, B135: pages of both pools, the window, and the request itself."""
    event, rows = OWN[name]
    story = running()
    story.tell(event)
    assert freed_under(story) == rows
    story = running()
    story.tell(ended(90), event)
    assert freed_under(story) == []


TREE: dict[str, tuple[AnyEvent, int, list[tuple[object, ...]]]] = {
    "the window on the path": (
        Tombstoned(NodeId(1), pages(1, 2, 3, 4), pages(1, 2, 3, 4), cause=SWA_INTERNAL),
        16,
        [("Tombstoned", 90, 2, "swa", 4)],
    ),
    "a window that nobody reads": (
        Tombstoned(NodeId(1), pages(1, 2, 3, 4), pages(1, 2, 3, 4), cause=SWA_INTERNAL),
        32,
        [],
    ),
    "the path itself": (
        Removed(NodeId(1), NodeId(0), pages(1, 2, 3, 4), pages(), cause=FULL_LEAF),
        24,
        [("Removed", 90, 2, "full", 4)],
    ),
    "another path": (Removed(NodeId(9), NodeId(0), pages(9), pages(9), cause=FULL_LEAF), 24, []),
    "the path, by a heal": (
        Healed(NodeId(1), HealMode.REPLACE, request(7), pages(9), pages(1), pages(9), request=RequestId(7), cause=HEAL),
        24,
        [("Healed", 90, 2, "full", 1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TREE)
def test_what_a_running_request_reads_of_the_tree_stays_until_the_step_has_ended(name: str) -> None:
    """R151: FULL to the root, SWA as far as the window before the first token that is written reaches."""
    event, start, rows = TREE[name]
    story = running(start=start)
    story.tell(event)
    assert freed_under(story) == rows


def test_the_path_is_followed_to_the_root_through_a_cut() -> None:
    """R151: the upper part of a node that was cut is read as the whole was."""
    story = running(start=16)
    story.tell(Split(NodeId(1), NodeId(2), NodeId(0), pages(1, 2, 3), pages(1, 2, 3), BoundaryId(1)))
    story.tell(Tombstoned(NodeId(2), pages(1, 2, 3), pages(1, 2, 3), cause=SWA_INTERNAL))
    assert freed_under(story) == [("Tombstoned", 90, 2, "swa", 3)]
    story.tell(
        insert(story, 2, 3, 1, [6], [6]), Removed(NodeId(2), NodeId(0), pages(1, 2, 3), pages(), cause=EVICT)
    )
    assert freed_under(story)[1:] == [("Removed", 90, 2, "full", 3)]


def overlapped(story: Story, event: AnyEvent) -> None:
    story.tell(began(91, 25, 2), ended(90), event)


def never_ended(story: Story, event: AnyEvent) -> None:
    story.tell(event)


@pytest.mark.parametrize("lead_in", [overlapped, never_ended])
def test_a_step_runs_until_its_own_end_is_told(lead_in: Callable[[Story, AnyEvent], None]) -> None:
    """R151, A28: the end of the step before is not the end of this one, and no end is none."""
    story = running()
    lead_in(story, Freed(request(2), pages(8), pages(), pages(), request=TWO, cause=COMPOSITE))
    rows = freed_under(story)
    assert [row[0] for row in rows] == ["Freed"]
    assert rows[0][1] == (91 if lead_in is overlapped else 90)


def test_a_restart_ends_what_was_running() -> None:
    story = running()
    story.open()
    first_request(story)
    assert freed_under(story) == []
