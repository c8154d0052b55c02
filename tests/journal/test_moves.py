"""What events move: every page leaves one account and enters another, and the account it leaves held it (J4, J6)."""

from collections import Counter

import pytest
from hypothesis import given

from radixledger.journal.accounts import FREE, PENDING, Kind, Pool, kind_of, request_account, tree_account
from radixledger.journal.events import (
    Allocated,
    AnyEvent,
    Bound,
    Extended,
    Freed,
    GroupFlushed,
    Healed,
    HealMode,
    Matched,
    Reclaimed,
    Remapped,
    Removed,
    Split,
    Stepped,
    Tombstoned,
    Transferred,
)
from radixledger.journal.moves import Mapping, Move, ids_of, mappings, moves, pages_of, takings
from radixledger.journal.units import NO_PAGES, ROOT, UNBOUND, NodeId, Pages, RequestId, TokenCount

from .events_sample import events, packed, packed_ids
from .every_event import any_event

R7, N3, N4 = RequestId(7), NodeId(3), NodeId(4)
REQUEST, NODE = request_account(R7), tree_account(N3)
A, B, C = packed([1, 2]), packed([5, 6]), packed([8, 9])
ONE = packed([2])
TOKENS = TokenCount(0)


def both(full: Pages, swa: Pages, giver: int, taker: int) -> list[Move]:
    return [Move(Pool.FULL, full, giver, taker), Move(Pool.SWA, swa, giver, taker)]


TABLE: list[tuple[AnyEvent, list[Move], list[Mapping]]] = [
    (Allocated(R7, A, B), both(A, B, FREE, REQUEST), [Mapping(A, B)]),
    (
        Allocated(R7, A, ONE),
        both(A, ONE, FREE, REQUEST),
        [Mapping(ONE, ONE)],
    ),
    (Bound(R7, A, B), both(A, B, request_account(UNBOUND), REQUEST), []),
    (Transferred(N3, ROOT, REQUEST, b"", A, B), both(A, B, REQUEST, NODE), []),
    (Transferred(N3, ROOT, REQUEST, b"", A, NO_PAGES), [Move(Pool.FULL, A, REQUEST, NODE)], []),
    (Split(N3, N4, ROOT, A, B), both(A, B, NODE, tree_account(N4)), []),
    (Tombstoned(N3, A, B, PENDING), [Move(Pool.SWA, B, NODE, PENDING)], [Mapping(A, NO_PAGES)]),
    (
        Healed(N3, HealMode.REPLACE, REQUEST, A, C, B),
        [Move(Pool.SWA, B, REQUEST, NODE), Move(Pool.FULL, C, NODE, FREE), Move(Pool.FULL, A, REQUEST, NODE)],
        [],
    ),
    (
        Healed(N3, HealMode.TRANSFER, REQUEST, A, C, B),
        [Move(Pool.SWA, B, REQUEST, NODE), Move(Pool.FULL, A, REQUEST, FREE)],
        [Mapping(A, NO_PAGES), Mapping(C, B)],
    ),
    (Reclaimed(R7, TOKENS, TOKENS, A, B), [Move(Pool.SWA, B, REQUEST, FREE)], [Mapping(A, NO_PAGES)]),
    (Reclaimed(R7, TOKENS, TOKENS, NO_PAGES, NO_PAGES), [], []),
    (Freed(REQUEST, A, A, B, PENDING), both(A, B, REQUEST, PENDING), [Mapping(A, NO_PAGES)]),
    (Freed(NODE, A, NO_PAGES, NO_PAGES), [Move(Pool.FULL, A, NODE, FREE)], []),
    (Freed(REQUEST, NO_PAGES, A, B), [Move(Pool.SWA, B, REQUEST, FREE)], [Mapping(A, NO_PAGES)]),
    (GroupFlushed(A, B), both(A, B, PENDING, FREE), []),
    (Removed(N3, ROOT, A, B), both(A, B, NODE, FREE), [Mapping(A, NO_PAGES)]),
    (Removed(N3, ROOT, A, NO_PAGES), [Move(Pool.FULL, A, NODE, FREE)], []),
    (
        Remapped(REQUEST, NODE, A, C, B),
        [Move(Pool.SWA, B, REQUEST, NODE)],
        [Mapping(A, NO_PAGES), Mapping(C, B)],
    ),
    (Stepped(1, 0), [], []),
    (Matched("r", R7, TOKENS, TOKENS, TOKENS, N3, 0), [], []),
]


@pytest.mark.parametrize(("event", "moved", "mapped"), TABLE, ids=lambda each: type(each).__name__)
def test_an_event_moves_what_its_docstring_says(
    event: AnyEvent, moved: list[Move], mapped: list[Mapping]
) -> None:
    """J3, J4."""
    assert moves(event) == moved
    assert mappings(event) == mapped


def test_an_extension_gives_each_taker_its_own_pages() -> None:
    event = Extended(
        requests=packed_ids([5, 7, 9]),
        grown=packed([1, 1, 300]),
        takers=packed_ids([7, 9]),
        counts=packed([1, 2]),
        full=packed([11, 12, 13]),
        swa=packed([21, 22, 23]),
    )
    seven, nine = request_account(R7), request_account(RequestId(9))
    assert list(takings(event)) == [
        (7, packed([11]), packed([21])),
        (9, packed([12, 13]), packed([22, 23])),
    ]
    assert moves(event) == [
        *both(packed([11]), packed([21]), FREE, seven),
        *both(packed([12, 13]), packed([22, 23]), FREE, nine),
    ]
    assert mappings(event) == [Mapping(event.full, event.swa)]
    assert moves(Extended(packed_ids([5]), packed([1]))) == []


@given(any_event)
def test_the_deltas_of_every_event_sum_to_zero_in_each_pool(event: AnyEvent) -> None:
    """J6: over {free, pending, reserved, request, tree}, whatever the event holds."""
    try:
        moved = moves(event)
    except ValueError:
        assert isinstance(event, Extended), "only columns that contradict each other cannot be read"
        return
    for pool in Pool:
        deltas: Counter[int] = Counter()
        for move in moved:
            if move.pool is pool:
                deltas[move.giver] -= len(move.pages) // 4
                deltas[move.taker] += len(move.pages) // 4
        assert sum(deltas.values()) == 0


def test_in_a_legal_stream_whoever_gives_a_page_up_held_it() -> None:
    """J4, J6: the books kept from moves alone never disagree with an event, and no page appears or vanishes."""
    books: dict[Pool, dict[int, int]] = {pool: {} for pool in Pool}
    for event in events(seed=3, count=30_000):
        for move in moves(event):
            for page in pages_of(move.pages).tolist():
                assert books[move.pool].get(page, FREE) == move.giver, event
                books[move.pool][page] = move.taker
    kinds = Counter(kind_of(account) for held in books.values() for account in held.values())
    assert {Kind.FREE, Kind.REQUEST, Kind.TREE} <= kinds.keys()
    assert (max(books[Pool.FULL]), max(books[Pool.SWA])) <= (2048, 768)


def test_in_a_legal_stream_every_live_window_page_is_mapped_from_one_page() -> None:
    """J3: a mapping is cleared when its window page is given back, and not before."""
    mapping: dict[int, int] = {}
    holders: dict[int, int] = {}
    for event in events(seed=8, count=20_000):
        for change in mappings(event):
            full = pages_of(change.full).tolist()
            if change.swa:
                mapping |= dict(zip(full, pages_of(change.swa).tolist(), strict=True))
            else:
                for page in full:
                    mapping.pop(page, None)
        for move in moves(event):
            if move.pool is Pool.SWA:
                holders |= dict.fromkeys(pages_of(move.pages).tolist(), move.taker)
        assert len(set(mapping.values())) == len(mapping), event
    live = {page for page, account in holders.items() if account not in (FREE, PENDING)}
    assert live == set(mapping.values())


def test_packed_columns_are_views_that_nobody_can_write() -> None:
    assert pages_of(A).tolist() == [1, 2]
    assert ids_of(packed_ids([2**40, -1])).tolist() == [2**40, -1]
    with pytest.raises(ValueError, match="read-only"):
        pages_of(A)[0] = 3
