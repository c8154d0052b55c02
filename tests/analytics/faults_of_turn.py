"""Faults of what happens when: one for each check of lives and turns, as in `faults`.

A node, a request or a free group meets an event that cannot happen to what it is.
"""

from collections.abc import Callable

from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import (
    Allocated,
    Evicted,
    Finished,
    Flushed,
    Freed,
    GroupOpened,
    Healed,
    HealMode,
    Locked,
    Matched,
    Phase,
    Reclaimed,
    Removed,
    Repointed,
    Split,
    Stepped,
    Tombstoned,
)
from radixledger.journal.units import BoundaryId, KeyLen, NodeId, RequestId, TokenCount

from .story import (
    COMPOSITE,
    EVICT,
    FULL_LEAF,
    HEAL,
    RECLAIM,
    SWA_INTERNAL,
    SWA_LOCKED_LEAF,
    UNFINISHED,
    Row,
    Story,
    admit,
    extend,
    ids,
    insert,
    pages,
    request,
)

TWO, TWENTY = RequestId(2), RequestId(20)
ALLOC = cause(Operation.ALLOC)
ONE_TO_FOUR = pages(1, 2, 3, 4)


def one_sided_allocation(story: Story) -> Row:
    return {
        "seq": story.tell(Allocated(RequestId(0), pages(5, 6), pages(6), ALLOC)),
        "full_taken": 2,
        "swa_taken": 1,
    }


def group_not_kept(story: Story) -> Row:
    story.tell(Allocated(TWENTY, pages(5), pages(), ALLOC))
    story.tell(GroupOpened())
    seq = story.tell(Freed(request(20), pages(5), pages(), pages(), cause=COMPOSITE))
    return {"seq": seq, "fault": "passed the open group", "pages": 1}


def row_page_freed(story: Story) -> Row:
    admit(story, 2, "r2", 12)
    extend(story, 2, 12, [6, 7, 8], [6, 7, 8])
    seq = story.tell(Freed(request(2), pages(), pages(8), pages(8), request=TWO, cause=COMPOSITE))
    return {"seq": seq, "pool": "swa", "page": 8, "request": 2}


def request_ended_with_pages(story: Story) -> Row:
    """Its window went, its FULL page did not."""
    admit(story, 2, "r2", 6)
    extend(story, 2, 4, [6], [6])
    story.tell(Freed(request(2), pages(), pages(6), pages(6), request=TWO, cause=RECLAIM))
    seq = story.tell(Finished(TWO, TokenCount(4), TokenCount(0), NodeId(0)))
    return {"seq": seq, "request": 2, "pool": "full", "pages": 1}


def admission_out_of_line(story: Story) -> Row:
    admit(story, 2, "r2", 8)
    admit(story, 3, "r2", 8)
    return {"seq": story.last, "request": 3, "rid": "r2", "fault": "live already"}


def path_length_differs(story: Story) -> Row:
    seq = story.tell(Matched("", RequestId(0), TokenCount(16), TokenCount(16), TokenCount(12), NodeId(1), 0))
    return {"seq": seq, "event": "Matched", "node": 1, "tokens": 12, "path_tokens": 16}


def pages_differ_from_growth(story: Story) -> Row:
    admit(story, 2, "r2", 8)
    extend(story, 2, 4, [6, 7], [6, 7])
    return {"seq": story.last - 2, "request": 2, "grown": 4, "pages": 2}


def reclaim_out_of_line(story: Story) -> Row:
    """The last page boundary at or below token 27 is 24; from there 12 tokens are left of a window of 16."""
    admit(story, 2, "r2", 40)
    extend(story, 2, 28, [6, 7, 8, 9, 10, 11, 12], [6, 7, 8, 9, 10, 11, 12])
    three = pages(6, 7, 8)
    seq = story.tell(
        Reclaimed(TWO, TokenCount(0), TokenCount(12), three, three, cause=RECLAIM, pre=KeyLen(27))
    )
    return {"seq": seq, "request": 2, "window_left": 12, "pages_passed": 3, "pages": 3}


def repointed_to_too_few(story: Story) -> Row:
    admit(story, 2, "r2", 20)
    extend(story, 2, 16, [6, 7, 8, 9], [6, 7, 8, 9])
    four = pages(6, 7, 8, 9)
    story.tell(
        Freed(request(2), four, four, four, request=TWO, cause=cause(Operation.UNFINISHED, Site.DUPLICATE))
    )
    seq = story.tell(Repointed(TWO, TokenCount(0), pages(), TokenCount(16), NodeId(1), UNFINISHED))
    return {"seq": seq, "request": 2, "pages": 0, "freed": 4}


def namespace_crossed(story: Story) -> Row:
    tokens = TokenCount(16)
    seq = story.tell(Matched("", RequestId(0), tokens, tokens, tokens, NodeId(1), 0, namespace=b"tenant"))
    return {"seq": seq, "node": 1, "giver": 1, "namespace": b"tenant", "giver_namespace": b""}


def heal_against_its_locks(story: Story) -> Row:
    """Somebody reads the FULL pages of the tombstone."""
    fresh = pages(9, 10, 11, 12)
    story.tell(Tombstoned(NodeId(1), ONE_TO_FOUR, ONE_TO_FOUR, cause=SWA_LOCKED_LEAF))
    locked = story.tell(Locked(NodeId(1), BoundaryId(1), skipped=ids(1), request=TWENTY))
    story.tell(Allocated(TWENTY, fresh, fresh, ALLOC))
    seq = story.tell(
        Healed(
            NodeId(1), HealMode.REPLACE, request(20), fresh, ONE_TO_FOUR, fresh, request=TWENTY, cause=HEAL
        )
    )
    return {"seq": seq, "node": 1, "locked_seq": locked}


def node_out_of_turn(story: Story) -> Row:
    seq = story.tell(Tombstoned(NodeId(1), ONE_TO_FOUR, ONE_TO_FOUR, cause=SWA_INTERNAL))
    return {"seq": seq, "node": 1, "event": "Tombstoned", "fault": "it has no children"}


def leaf_out_of_shape(story: Story) -> Row:
    admit(story, 2, "r2", 24)
    extend(story, 2, 20, [6, 7, 8, 9, 10], [6, 7, 8, 9, 10])
    seq = story.tell(insert(story, 2, 2, 0, [6, 7, 8, 9, 10], [6, 7, 8, 9, 10]))
    return {"seq": seq, "node": 2, "pages": 5, "live": True}


def mark_lost_in_a_split(story: Story) -> Row:
    marked = story.tell(Locked(NodeId(1), BoundaryId(7), marked=NodeId(1), request=TWENTY))
    seq = story.tell(Split(NodeId(1), NodeId(2), NodeId(0), pages(1, 2), pages(1, 2)))
    return {"seq": seq, "node": 1, "mark": 7, "marked_seq": marked, "moved": 0}


def locked_window_taken(story: Story) -> Row:
    locked = story.tell(Locked(NodeId(1), BoundaryId(1), request=TWENTY))
    seq = story.tell(Tombstoned(NodeId(1), ONE_TO_FOUR, ONE_TO_FOUR, cause=SWA_LOCKED_LEAF))
    return {"seq": seq, "node": 1, "anchor": 1, "request": 20, "locked_seq": locked}


def flush_of_a_busy_rank(story: Story) -> Row:
    seq = story.tell(Flushed(0, cause(Operation.FLUSH)))
    return {"seq": seq, "event": "Flushed", "live_requests": 0, "nodes_left": 1}


def lock_differs_from_window(story: Story) -> Row:
    """The window is full in node 1, and the lock runs on to the root."""
    seq = story.tell(Locked(NodeId(1), BoundaryId(0), request=TWENTY))
    return {"seq": seq, "node": 1, "boundary": 0, "window_ends_in": 1}


def younger_victim(story: Story) -> Row:
    admit(story, 2, "r2", 6)
    extend(story, 2, 4, [6], [6])
    made = story.tell(insert(story, 2, 2, 0, [6], [6]))
    seq = story.tell(Removed(NodeId(2), NodeId(0), pages(6), pages(6), cause=FULL_LEAF))
    story.tell(Evicted(1, 0, 1, 1, 1, EVICT))
    return {"seq": seq, "node": 2, "used_seq": made, "older_node": 1}


def step_over_the_tree(story: Story) -> Row:
    admit(story, 2, "r2", 20, hit=16, node=1)
    seq = story.tell(Stepped(50, Phase.BEGAN, ids(2), pages(12), pages(16)))
    story.tell(Stepped(50, Phase.ENDED))
    return {"seq": seq, "running_step": 50, "request": 2, "start": 12, "protected": 16}


FAULTS_OF_TURN: dict[str, Callable[[Story], Row]] = {
    fault.__name__: fault
    for fault in (
        one_sided_allocation, group_not_kept, row_page_freed, request_ended_with_pages, admission_out_of_line,
        path_length_differs, pages_differ_from_growth, reclaim_out_of_line, repointed_to_too_few, namespace_crossed,
        heal_against_its_locks, node_out_of_turn, leaf_out_of_shape, mark_lost_in_a_split, locked_window_taken,
        flush_of_a_busy_rank, lock_differs_from_window, younger_victim, step_over_the_tree,
    )
}  # fmt: skip
