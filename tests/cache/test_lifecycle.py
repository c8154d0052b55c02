"""A request's life as its server drives it: receipts, rows, ends, and what the journal says of each."""

import pytest

from radixledger.cache.prefix_cache import DecLockRefParams, Ended
from radixledger.cache.refusals import Busy, Refusal
from radixledger.journal.events import (
    Aborted,
    Admitted,
    Bound,
    Event,
    Finished,
    Freed,
    Locked,
    Repointed,
    Retracted,
    Unlocked,
)

from .server import FULL, EventList, Request, Server, text

pytestmark = pytest.mark.usefixtures("both_trees")

paged = pytest.mark.parametrize("page_size", [1, 16, 128, 256])


def roomy(page_size: int, window: int | None = None, **changes: object) -> Server:
    return Server(page_size, window or page_size, full_pages=40, swa_pages=40, **changes)  # type: ignore[arg-type]


def since(journal: EventList, start: int, *kinds: type[Event]) -> list[type[Event]]:
    """The kinds of events after `start`, of those that are asked for."""
    return [type(event) for event in journal.events[start:] if isinstance(event, kinds)]


def no_receipt(req: Request) -> bool:
    """Whether nothing of a lock is left with the server's object."""
    return req.cache_lock_params is None and req.swa_uuid_for_lock is None


def freed_pages(journal: EventList, start: int) -> list[int]:
    pages: list[int] = []
    for event in journal.events[start:]:
        if isinstance(event, Freed):
            pages += memoryview(event.full).cast("i").tolist()
    return pages


@paged
@pytest.mark.parametrize("dp_size", [1, 2])
def test_a_life_is_told_from_admission_to_end_under_one_number(page_size: int, dp_size: int) -> None:
    """R28, R137, R144: the pages that a server was given become the request's when its row is written."""
    server = roomy(page_size, dp_size=dp_size)
    dp_rank = dp_size - 1 if dp_size > 1 else None
    journal = server.journals[dp_size - 1]
    req = server.start(text("a", 0, 2 * page_size + 1), "alpha", dp_rank=dp_rank)
    admitted = journal.of(Admitted)[0]
    assert (admitted.rid, admitted.prompt, admitted.prefix) == ("alpha", 2 * page_size + 1, 0)
    bound = journal.of(Bound)[0]
    assert bound.request == admitted.request == server.rank(dp_size - 1).number_of(req)
    assert bound.length == 2 * page_size + 1
    server.decode(req)
    server.end(req)
    finished = journal.of(Finished)[0]
    assert finished.request == admitted.request
    assert (finished.tokens, finished.cached) == (
        2 * page_size + 2,
        (2 * page_size + 2) // page_size * page_size,
    )
    again = server.start(text("a", 0, 2 * page_size + 1), "alpha", dp_rank=dp_rank)
    assert journal.of(Admitted)[1].request != admitted.request
    server.end(again, insert=False, ended=Ended.RETRACTED)
    last = server.start(text("b", 0, page_size + 1), dp_rank=dp_rank)
    server.end(last, insert=False)
    kinds = (Admitted, Finished, Retracted, Aborted)
    assert since(journal, 0, *kinds) == [Admitted, Finished, Admitted, Retracted, Admitted, Aborted]
    server.check()


@paged
def test_a_request_carries_all_that_its_release_needs(page_size: int) -> None:
    """R137, R144: boundary and skipped nodes, from admission on, mirrored; a temporary lock has its own receipt."""
    server = roomy(page_size, 3 * page_size)
    server.insert(text("a", 0, page_size))
    server.insert(text("a", 0, 5 * page_size), released=2 * page_size)
    prompt = text("a", 0, 5 * page_size) + text("x", 0, 1)
    temporary = server.match(text("a", 0, page_size)).last_device_node
    receipt = server.cache.inc_lock_ref(temporary).to_dec_params()
    req = server.admit(prompt)
    assert req.cache_lock_params is not None
    assert req.cache_lock_params.swa_uuid_for_lock == req.swa_uuid_for_lock is not None
    server.cache.dec_lock_ref(temporary, receipt)
    server.prefill(req)
    assert isinstance(req.cache_lock_params, DecLockRefParams)
    assert req.cache_lock_params.swa_uuid_for_lock == req.swa_uuid_for_lock
    live = next(iter(server.rank().state.requests.values()))
    assert live.receipt is not None
    assert live.receipt.boundary == req.swa_uuid_for_lock
    kinds = since(server.journal, 0, Admitted, Locked, Unlocked)
    assert kinds == [Locked, Locked, Unlocked, Admitted, Locked, Unlocked]
    assert server.journal.of(Locked)[-1].request == live.id
    server.check()


@paged
def test_a_request_without_the_lock_of_its_prefix_is_not_seated(page_size: int) -> None:
    """R137, R144: its prefix could be evicted under it; nor is one seated whose numbers contradict the tree (R136)."""
    server = roomy(page_size)
    server.insert(text("a", 0, 2 * page_size))
    prompt = text("a", 0, 2 * page_size) + text("x", 0, page_size)
    req = server.admit(prompt)
    assert req.last_node is not None
    server.cache.dec_lock_ref(req.last_node, req.cache_lock_params)
    with pytest.raises(Refusal, match="is not held"):
        server.prefill(req)
    receipt = server.cache.inc_lock_ref(req.last_node).to_dec_params()
    req.cache_lock_params = DecLockRefParams(99)
    with pytest.raises(Refusal, match="boundary 99, is not held"):
        server.prefill(req)
    req.cache_lock_params, req.swa_uuid_for_lock = receipt, receipt.swa_uuid_for_lock
    req.cache_protected_len -= 1
    with pytest.raises(Refusal, match="protects"):
        server.prefill(req)
    req.cache_protected_len += 1
    row = server.slots(page_size)
    server.pool.write((req.row, slice(0, req.prefix_indices.size)), req.prefix_indices)
    server.pool.write((req.row, slice(2 * page_size, 3 * page_size)), row)
    server.check()


@paged
def test_a_finished_request_gives_its_receipt_back(page_size: int) -> None:
    """R138: and has none afterwards, in neither place."""
    server = roomy(page_size)
    server.insert(text("a", 0, 2 * page_size))
    req = server.start(text("a", 0, 2 * page_size) + text("x", 0, 1))
    start = len(server.journal.events)
    server.end(req)
    assert since(server.journal, start, Freed, Unlocked, Finished)[-2:] == [Unlocked, Finished]
    assert no_receipt(req)
    assert server.sizes()["full_protected"] == server.sizes()["swa_protected"] == 0
    server.check()


@paged
def test_a_request_that_goes_on_changes_its_lock_without_a_moment_in_between(page_size: int) -> None:
    """R139: the new path is locked, then the old one released; the new receipt stands on the request."""
    server = roomy(page_size)
    req = server.admit(text("a", 0, 4 * page_size))
    server.prefill(req, 2 * page_size)
    server.cache_so_far(req)
    old, old_node = req.cache_lock_params, req.last_node
    server.prefill(req)
    start = len(server.journal.events)
    server.cache_so_far(req)
    assert since(server.journal, start, Repointed, Locked, Unlocked) == [Repointed, Locked, Unlocked]
    assert req.cache_lock_params != old
    assert req.last_node != old_node
    assert req.swa_uuid_for_lock == req.cache_lock_params.swa_uuid_for_lock  # type: ignore[union-attr]
    assert req.last_node is not None
    assert req.last_node.component_data[FULL].lock_ref == 1
    again = len(server.journal.events)
    server.cache_so_far(req)
    assert len(server.journal.events) == again
    server.end(req)
    server.check()


@paged
def test_a_retracted_request_gives_everything_back_and_may_come_again(page_size: int) -> None:
    """R140, R147: lock first, then the end; [protected, held) once, the protected prefix never (A45)."""
    server = roomy(page_size)
    server.insert(text("a", 0, 2 * page_size))
    req = server.start(text("a", 0, 4 * page_size) + text("x", 0, page_size // 2 or 1))
    protected = req.cache_protected_len
    own = server.pool.read(req.row, req.kv_allocated_len)[protected:]
    start = len(server.journal.events)
    server.end(req, insert=False, ended=Ended.RETRACTED)
    assert since(server.journal, start, Freed, Unlocked, Retracted) == [Freed, Unlocked, Retracted]
    assert freed_pages(server.journal, start) == list(dict.fromkeys((own // page_size).tolist()))
    assert server.hit(text("a", 0, 2 * page_size)) == 2 * page_size
    assert server.sizes()["full_free"] == 38 * page_size
    assert no_receipt(req)
    assert req.req_pool_idx is None
    server.readmit(req)
    server.prefill(req)
    server.end(req)
    server.check()


@paged
def test_an_aborted_request_leaves_the_tree_what_it_had_given_it(page_size: int) -> None:
    """R141: between two chunks too; nothing is inserted, lock and row come back (A46, B24)."""
    server = roomy(page_size)
    req = server.admit(text("a", 0, 4 * page_size))
    server.prefill(req, 2 * page_size)
    server.cache_so_far(req)
    server.prefill(req, 3 * page_size)
    start = len(server.journal.events)
    server.end(req, insert=False, ended=Ended.ABORTED)
    assert since(server.journal, start, Freed, Unlocked, Aborted) == [Freed, Unlocked, Aborted]
    assert server.hit(text("a", 0, 4 * page_size)) == 2 * page_size
    assert server.sizes()["full_free"] == 38 * page_size
    assert server.pool.available_size() == 8
    assert no_receipt(req)
    server.check()


@paged
def test_a_retracted_request_may_be_cached_on_its_way_out(page_size: int) -> None:
    """R140: what it computed is the tree's, and it is still told as retracted."""
    server = roomy(page_size)
    req = server.start(text("a", 0, 3 * page_size))
    server.end(req, ended=Ended.RETRACTED)
    assert server.hit(text("a", 0, 3 * page_size)) == 3 * page_size
    assert len(server.journal.of(Retracted)) == 1
    assert server.journal.of(Finished) == []
    server.check()


@paged
def test_a_request_that_ends_before_anything_was_written_gives_its_lock_back(page_size: int) -> None:
    """R141: it was admitted and never seated (B25)."""
    server = roomy(page_size)
    server.insert(text("a", 0, 2 * page_size))
    req = server.admit(text("a", 0, 2 * page_size) + text("x", 0, 1))
    assert server.sizes()["full_protected"] == 2 * page_size
    server.end(req, insert=False)
    assert server.sizes()["full_protected"] == 0
    assert no_receipt(req)
    assert server.journal.of(Admitted) == []
    server.check()


@paged
def test_a_reset_waits_for_the_last_request_and_leaves_no_receipt(page_size: int) -> None:
    """R142: while one is live it is refused and nothing is cleared; afterwards nobody holds a receipt."""
    server = roomy(page_size)
    req = server.start(text("a", 0, 2 * page_size))
    server.cache_so_far(req)
    with pytest.raises(Busy, match=req.rid):
        server.cache.reset()
    assert req.cache_lock_params is not None
    server.end(req)
    server.cache.reset()
    assert no_receipt(req)
    assert server.sizes()["full_free"] == server.sizes()["swa_free"] == 40 * page_size
    assert server.hit(text("a", 0, 2 * page_size)) == 0
    assert req.last_node is not None
    with pytest.raises(LookupError, match="left the tree"):
        _ = req.last_node.parent
    server.check()


@paged
def test_a_disabled_cache_still_keeps_receipts_and_rows_straight(page_size: int) -> None:
    """R143: refreshed when a request goes on, cleared when it ends; nothing is cached, everything comes back."""
    server = roomy(page_size, disable=True)
    req = server.admit(text("a", 0, 3 * page_size))
    server.prefill(req, 2 * page_size)
    server.cache_so_far(req)
    assert req.cache_lock_params == DecLockRefParams()
    assert req.prefix_indices.tolist() == server.pool.read(req.row, 2 * page_size).tolist()
    assert req.cache_protected_len == 0
    server.prefill(req)
    server.decode(req)
    server.reclaim(req)
    assert server.insert(text("b", 0, page_size), server.slots(page_size)).prefix_len == 0
    assert server.evict(page_size, page_size) == (0, 0)
    assert server.match(text("a", 0, 2 * page_size)).device_indices.size == 0
    server.end(req)
    assert no_receipt(req)
    assert server.cache.total_size() == (0, 0)
    assert server.sizes()["full_free"] == 39 * page_size
    server.check()
