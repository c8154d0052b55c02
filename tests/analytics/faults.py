"""One fault for each check, put into a healthy story, and the row that has to tell of it.

A fault is a function that adds events to a story in which r1 has come and gone; it returns the columns of the one
row that its check must give, and no other check may give any.
"""

from collections.abc import Callable

from radixledger.journal.accounts import PENDING
from radixledger.journal.causes import Operation, cause
from radixledger.journal.events import (
    Allocated,
    Closed,
    Evicted,
    Freed,
    GroupOpened,
    Locked,
    Phase,
    Reclaimed,
    Refused,
    Remapped,
    Removed,
    StateCopied,
    StateTaken,
    Stepped,
    Tombstoned,
    Unlocked,
    Violated,
)
from radixledger.journal.units import BoundaryId, NodeId, RequestId, Seq, TokenCount

from . import host_faults
from .faults_of_turn import FAULTS_OF_TURN
from .story import (
    COMPOSITE,
    EVICT,
    FULL_LEAF,
    RECLAIM,
    SWA_LOCKED_LEAF,
    Row,
    Story,
    admit,
    extend,
    ids,
    insert,
    pages,
    request,
)

TWO, TWENTY, THIRTY = RequestId(2), RequestId(20), RequestId(30)
"""Request 2 is admitted; 20 and 30 are callers without a row."""
ALLOC = cause(Operation.ALLOC)


def double_free(story: Story) -> Row:
    """Page 5 was r1's tail; it is given back once more, and then goes to request 20."""
    again = story.tell(Freed(request(1), pages(5), pages(), pages(), request=RequestId(1), cause=COMPOSITE))
    following = story.tell(Allocated(TWENTY, pages(5), pages(), ALLOC))
    return {
        "pool": "full", "page": 5, "alloc_seq": 4, "alloc_request": 1,
        "first_seq": 13, "first_event": "Freed", "first_cause": "finish/tail",
        "second_seq": again, "second_event": "Freed", "second_cause": "free/composite",
        "giver_kind": "request", "giver": 1,
        "next_seq": following, "next_owner_kind": "request", "next_owner": 20,
    }  # fmt: skip


def foreign_free(story: Story) -> Row:
    taken = story.tell(Allocated(TWENTY, pages(5), pages(), ALLOC))
    seq = story.tell(Freed(request(1), pages(5), pages(), pages(), cause=COMPOSITE))
    return {"page": 5, "seq": seq, "giver": 1, "owner_kind": "request", "owner": 20, "owner_since": taken}


def two_owners(story: Story) -> Row:
    """Page 3 is node 1's; it is handed out as if it were free."""
    seq = story.tell(Allocated(TWENTY, pages(3), pages(), ALLOC))
    return {"page": 3, "seq": seq, "new_owner": 20, "owner_kind": "tree", "owner": 1, "owner_since": 7}


def pending_page_allocated(story: Story) -> Row:
    story.tell(Allocated(TWENTY, pages(5), pages(), ALLOC))
    story.tell(GroupOpened())
    pending = story.tell(Freed(request(20), pages(5), pages(), pages(), PENDING, cause=COMPOSITE))
    seq = story.tell(Allocated(THIRTY, pages(5), pages(), ALLOC))
    return {"page": 5, "seq": seq, "new_owner": 30, "pending_since": pending}


def reserved_page_freed(story: Story) -> Row:
    seq = story.tell(Freed(request(20), pages(), pages(), pages(0), cause=COMPOSITE))
    return {"pool": "swa", "page": 0, "seq": seq, "giver": 20}


def state_copied_from_elsewhere(story: Story) -> Row:
    """Slot 1 is another request's; it is copied as if it were node 1's."""
    taken = story.tell(StateTaken(TWENTY, pages(1), ALLOC))
    seq = story.tell(StateCopied(THIRTY, NodeId(1), pages(1), pages(2), ALLOC))
    return {
        "seq": seq, "request": 30, "node": 1, "source": 1, "moved_seq": taken, "owner_kind": "request", "owner": 20,
    }  # fmt: skip


def leak_at_end(story: Story) -> Row:
    seq = story.tell(Allocated(TWENTY, pages(5), pages(), ALLOC))
    story.tell(Closed(b""))
    return {
        "page": 5,
        "held_since": seq,
        "holder_kind": "request",
        "holder": 20,
        "event": "Allocated",
        "cause": "alloc",
    }


def stale_mapping(story: Story) -> Row:
    """The SWA page goes, and the FULL page keeps leading to it."""
    taken = story.tell(Allocated(TWENTY, pages(5), pages(6), ALLOC))
    seq = story.tell(Freed(request(20), pages(), pages(), pages(6), cause=COMPOSITE))
    return {"pool": "swa", "full_page": 5, "swa_page": 6, "set_seq": taken, "released_seq": seq}


def duplicate_mapping(story: Story) -> Row:
    """A mapping is moved on, and stays behind as well."""
    first = story.tell(Allocated(TWENTY, pages(5, 6), pages(7), ALLOC))
    seq = story.tell(Remapped(request(20), request(20), pages(), pages(5), pages(7), ALLOC))
    return {"seq": seq, "swa_page": 7, "full_page": 5, "other_full_page": 6, "other_set_seq": first}


def credit_differs_from_delta(story: Story) -> Row:
    story.tell(Tombstoned(NodeId(1), pages(1, 2, 3, 4), pages(1, 2, 3, 4), cause=SWA_LOCKED_LEAF))
    seq = story.tell(Evicted(0, 5, 0, 5, 1, EVICT))
    return {"seq": seq, "gained_full": 0, "gained_swa": 5, "freed_full": 0, "freed_swa": 4}


def unbalanced_lock(story: Story) -> Row:
    seq = story.tell(Unlocked(NodeId(1), BoundaryId(1), RequestId(1)))
    return {"fault": "unlocked without a lock", "node": 1, "boundary": 1, "seq": seq, "request": 1}


def locked_node_removed(story: Story) -> Row:
    locked = story.tell(Locked(NodeId(1), BoundaryId(1), request=TWENTY))
    seq = story.tell(Removed(NodeId(1), NodeId(0), pages(1, 2, 3, 4), pages(1, 2, 3, 4), cause=FULL_LEAF))
    return {"node": 1, "seq": seq, "held": 1, "locked_seq": locked}


def cursor_moved_backward(story: Story) -> Row:
    first = story.tell(Reclaimed(TWENTY, TokenCount(0), TokenCount(8), pages(), pages(), cause=RECLAIM))
    seq = story.tell(Reclaimed(TWENTY, TokenCount(4), TokenCount(12), pages(), pages(), cause=RECLAIM))
    return {"request": 20, "seq": seq, "start": 4, "stop": 12, "previous_seq": first, "previous_stop": 8}


def path_shorter_than_window(story: Story) -> Row:
    """Behind a part without a window, one page of four tokens is live; a match needs eight."""
    admit(story, 2, "r2", 12)
    extend(story, 2, 12, [6, 7, 8], [6, 7, 8])
    story.tell(Reclaimed(TWO, TokenCount(0), TokenCount(8), pages(6, 7), pages(6, 7), cause=RECLAIM))
    seq = story.tell(insert(story, 2, 2, 0, [6, 7], []), insert(story, 2, 3, 2, [8], [8]))
    return {"node": 3, "seq": seq, "event": "Transferred", "request": 2, "live_tokens": 4, "window_need": 8}


def cross_rank_touch(story: Story) -> Row:
    seq = story.tell(Allocated(TWENTY, pages(25), pages(), ALLOC))
    return {"rank": 0, "seq": seq, "event": "Allocated", "touched": "full page 25 of 24"}


def freed_under_a_step(story: Story) -> Row:
    """Step 50 writes token 20 of request 2 and reads from token 5 on; the first reclaim keeps that, the second does not."""
    admit(story, 2, "r2", 12)
    extend(story, 2, 12, [6, 7, 8], [6, 7, 8])
    began = story.tell(Stepped(50, Phase.BEGAN, ids(2), pages(20), pages(21)))
    story.tell(Reclaimed(TWO, TokenCount(0), TokenCount(4), pages(6), pages(6), cause=RECLAIM))
    seq = story.tell(Reclaimed(TWO, TokenCount(4), TokenCount(8), pages(7), pages(7), cause=RECLAIM))
    story.tell(Stepped(50, Phase.ENDED))
    story.tell(Reclaimed(TWO, TokenCount(8), TokenCount(12), pages(8), pages(8), cause=RECLAIM))
    return {
        "seq": seq, "event": "Reclaimed", "cause": "reclaim", "running_step": 50, "began_seq": began, "request": 2,
        "pool": "swa", "pages": 1,
    }  # fmt: skip


def missing_events(story: Story) -> Row:
    lost = story.tell(GroupOpened())
    story.frames.pop()
    story.frames.append(story.frames[-1]._replace(seq_first=Seq(lost + 2), events=[Refused("busy", "")]))
    return {"previous_seq": lost - 1, "seq": lost + 2, "lost": 2, "reason": "nobody says why"}


def recorded_violations(story: Story) -> Row:
    seq = story.tell(
        Violated("double_free", "page 5 is free", pool=1, pages=pages(5, 6), expected=request(1))
    )
    return {
        "seq": seq,
        "law": "double_free",
        "pool": "swa",
        "pages": [5, 6],
        "expected": "request(1)",
        "found": "free",
    }


def kept_without_a_tree(story: Story) -> Row:
    """The rank is opened again without a tree, and a request gives its first page to one."""
    story.route = "swa_chunk"
    story.open()
    admit(story, 2, "r2", 12)
    extend(story, 2, 8, [6, 7], [6, 7])
    seq = story.tell(insert(story, 2, 3, 0, [6], [6]))
    return {
        "seq": seq,
        "event": "Transferred",
        "request": 2,
        "node": 3,
        "route": "swa_chunk",
        "full_pages": 1,
        "swa_pages": 1,
    }


def opening_out_of_bounds(story: Story) -> Row:
    """The rank is opened again in an order of victims that nobody knows."""
    story.open(eviction="fifo")
    return {"seq": story.last, "field": "eviction", "value": "fifo"}


def missing_ranks(story: Story) -> Row:
    """Of three ranks that the last `Opened` speaks of, one is not here."""
    story.open(ranks=3)
    return {"missing_rank": 2, "ranks": 3, "rank": 0, "seq": story.last}


def ledger_identity(story: Story) -> Row:
    """A residual that nobody owns."""
    seq = story.ledger("idle", full_tree_evictable=12)
    return {"seq": seq, "pool": "full", "capacity": 96, "accounted": 92, "tree_evictable": 12}


def ledger_diagnostics(story: Story) -> Row:
    return {
        "seq": story.ledger("idle", swa_request_tree_overlap_count=4),
        "swa_request_tree_overlap_count": 4,
    }


def ledger_capacity_drift(story: Story) -> Row:
    story.ledger("idle")
    seq = story.ledger("idle", swa_capacity=100, swa_available=84)
    return {"seq": seq, "pool": "swa", "capacity": 100, "first_capacity": 96, "built_with": 96}


def ledger_after_flush(story: Story) -> Row:
    """It says that it was flushed, and the tree still has node 1."""
    return {
        "seq": story.ledger("post_flush"),
        "full_available": 80,
        "full_tree": 16,
        "mapping_nonzero_count": 16,
    }


def ledger_mapping_count(story: Story) -> Row:
    seq = story.ledger("idle", mapping_nonzero_count=20)
    return {"seq": seq, "mapping_nonzero_count": 20, "swa_owned": 16}


def ledger_total_decreased(story: Story) -> Row:
    story.ledger("idle", full_evicted_total=8)
    seq = story.ledger("idle", full_evicted_total=4)
    return {"seq": seq, "full_evicted_total": 4, "full_evicted_before": 8}


def ledger_differs_from_events(story: Story) -> Row:
    """The ledger is whole in itself, and tells of another state."""
    seq = story.ledger("idle", full_available=84, full_tree_evictable=12)
    return {"seq": seq, "pool": "full", "available": 84, "available_by_events": 80}


FAULTS: dict[str, Callable[[Story], Row]] = {
    fault.__name__: fault
    for fault in (
        double_free, foreign_free, two_owners, state_copied_from_elsewhere, pending_page_allocated, reserved_page_freed, leak_at_end,
        stale_mapping, duplicate_mapping, credit_differs_from_delta, unbalanced_lock, locked_node_removed,
        cursor_moved_backward, path_shorter_than_window, cross_rank_touch, kept_without_a_tree, opening_out_of_bounds, freed_under_a_step, missing_events, missing_ranks, recorded_violations,
        ledger_identity, ledger_diagnostics, ledger_capacity_drift, ledger_after_flush, ledger_mapping_count,
        ledger_total_decreased, ledger_differs_from_events, *host_faults.FAULTS,
    )
} | FAULTS_OF_TURN  # fmt: skip
