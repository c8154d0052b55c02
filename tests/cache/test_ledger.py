"""The accounts of a rank as the gates read them, and that events alone add up to them."""

from collections import Counter

import numpy as np
import pytest

from radixledger.cache.opening import opened_ranks
from radixledger.journal.accounts import FREE, Kind, Pool, kind_of
from radixledger.journal.events import Freed, Healed, LedgerTaken, Reclaimed, Removed, Tombstoned, Transferred
from radixledger.journal.moves import moves

from .driven import FULL_SHAPES, SHAPES, STATE_SHAPES, Driven
from .server import Server, path, text

paged = pytest.mark.parametrize("page_size", [1, 16, 128, 256])
Row = dict[str, int]


def adds_up(row: Row) -> bool:
    """The identity of both pools: nothing is missing and nothing is there twice (R156, A1, A3)."""
    terms = (
        "available",
        "tree_evictable",
        "tree_protected",
        "request_owned",
        "reserved_page_slack",
        "pending_free",
    )
    return all(
        sum(row[f"{pool}_{term}"] for term in terms) == row[f"{pool}_capacity"] for pool in ("full", "swa")
    )


def test_slots_that_make_no_whole_page_are_no_capacity() -> None:
    """R170: 320 slots a rank are two pages of 128, and what is left over is nobody's."""
    opened = opened_ranks(640, 540, 128, 2, sliding_window_size=4)
    assert [(each.config.full_pages, each.config.swa_pages) for each in opened] == [(2, 2), (2, 2)]


@paged
@pytest.mark.parametrize("dp_size", [1, 2])
def test_the_pools_add_up_at_every_step_and_every_rank_has_its_row(page_size: int, dp_size: int) -> None:
    """R153, R156, R167, R169, R170: capacity is whole pages per rank, mapped slots are the SWA slots that are held."""
    server = Server(page_size, page_size, dp_size=dp_size, full_pages=24, swa_pages=20)
    dp_rank, rows = dp_size - 1 if dp_size > 1 else None, server.cache.ledger()
    req = server.start(text("a", 0, 6 * page_size + page_size // 2), dp_rank=dp_rank)
    for act in (
        lambda: server.reclaim(req),
        lambda: server.cache_so_far(req),
        lambda: server.decode(req),
        lambda: server.evict(swa=page_size),
        lambda: server.end(req),
    ):
        act()
        rows = server.cache.ledger()
        assert [row["dp_rank"] for row in rows] == list(range(dp_size))
        for row in rows:
            assert adds_up(row)
            assert (row["full_capacity"], row["swa_capacity"]) == (24 * page_size, 20 * page_size)
            owned = row["swa_request_owned"] + row["swa_reserved_page_slack"]
            held = row["swa_tree_evictable"] + row["swa_tree_protected"] + owned
            assert row["mapping_nonzero_count"] == held
    assert rows[-1]["idle"]
    with pytest.raises(ValueError, match="dp_rank"):
        server.cache.ledger(dp_size)


@paged
def test_the_rest_of_a_page_that_a_request_has_begun_is_slack(page_size: int) -> None:
    """R171: one live token holds a page."""
    server = Server(page_size, page_size)
    server.start(text("a", 0, page_size + 1))
    (row,) = server.cache.ledger()
    assert row["full_request_owned"] == row["swa_request_owned"] == page_size + 1
    assert row["full_reserved_page_slack"] == row["swa_reserved_page_slack"] == page_size - 1
    assert not row["idle"]


@paged
def test_what_no_row_names_is_missing_from_the_sum(page_size: int) -> None:
    """R154: a leak makes the identity fail, it is not absorbed."""
    server = Server(page_size, page_size)
    leaked = server.slots(2 * page_size)
    (row,) = server.cache.ledger()
    assert not adds_up(row)
    assert row["full_request_owned"] == 0
    server.allocator.free(leaked)
    assert adds_up(server.cache.ledger()[0])


@paged
def test_a_node_that_lost_its_value_is_missing_though_its_slots_are_still_mapped(page_size: int) -> None:
    """R179: what the tree owns comes from the tree, never from the mapping."""
    server = Server(page_size, page_size)
    path(server, "L")
    before = server.cache.ledger()[0]
    state = server.rank().state
    page = state.full.account == next(
        iter(acc for acc in state.full.account.tolist() if acc & 7 == Kind.TREE)
    )
    state.full.account[page] = FREE
    state.full.held[Kind.TREE] -= 1
    row = server.cache.ledger()[0]
    assert not adds_up(row)
    assert row["mapping_nonzero_count"] == before["mapping_nonzero_count"]


FAULTS = (
    "mapping_invalid_count",
    "mapping_duplicate_count",
    "full_duplicate_request_owner_count",
    "swa_duplicate_request_owner_count",
    "full_request_tree_overlap_count",
    "swa_request_tree_overlap_count",
)


@pytest.mark.parametrize("fault", FAULTS)
@paged
def test_each_planted_fault_shows_in_its_own_number(page_size: int, fault: str) -> None:
    """R155: and all of them are zero in a lawful state."""
    server = Server(page_size, page_size)
    path(server, "L", "t")
    first, second = (server.start(text(letter, 0, page_size)) for letter in "ab")
    state = server.rank().state
    assert all(server.cache.ledger()[0][each] == 0 for each in FAULTS)
    rows, mapping = state.rows, state.mapping.swa_of
    tree = next(node for node in state.nodes.values() if node.parent)
    mine, other = rows.full_table[first.row, 0], rows.full_table[second.row, 0]
    match fault:
        case "mapping_invalid_count":
            mapping[mine] = 999
        case "mapping_duplicate_count" | "swa_duplicate_request_owner_count":
            mapping[mine] = mapping[other]
        case "full_duplicate_request_owner_count":
            rows.full_table[first.row, 0] = other
        case "full_request_tree_overlap_count":
            rows.full_table[first.row, 0] = int.from_bytes(tree.full, "little")
        case _:
            mapping[mine] = int.from_bytes(tree.swa, "little")
    assert server.cache.ledger()[0][fault] == page_size


@paged
def test_a_ledger_is_read_and_writes_nothing(page_size: int) -> None:
    """R157, R173: neither state nor journal nor row changes, on a cold cache or a warm one."""
    server = Server(page_size, page_size)
    for _ in range(2):
        before = server.rank().digest(), len(server.journal.events), server.pool.req_to_token.sum()
        assert server.cache.ledger() == server.cache.ledger()
        assert (server.rank().digest(), len(server.journal.events), server.pool.req_to_token.sum()) == before
        server.start(text("a", 0, 3 * page_size))
    digest = server.rank().digest()
    server.rank().record_ledger("here")
    taken = server.journal.of(LedgerTaken)[0]
    assert (taken.phase, taken.idle, taken.digest) == ("here", False, digest)


@paged
def test_totals_of_a_run_survive_a_reset_and_capacities_are_constant(page_size: int) -> None:
    """R163, R165, R166, R172: after a flush all is available, nothing is owned or mapped, and the totals stand."""
    server = Server(page_size, page_size)
    cold = server.cache.ledger()[0]
    path(server, "L L L")
    server.evict(swa=page_size)
    path(server, "LLL")
    warm = server.cache.ledger()[0]
    server.cache.reset()
    after = server.cache.ledger()[0]
    totals = ("tombstone_created_total", "tombstone_healed_total")
    assert [warm[each] for each in totals] == [after[each] for each in totals] == [1, 1]
    assert after["swa_evicted_total"] >= warm["swa_evicted_total"] == page_size
    for name, value in cold.items():
        if not name.endswith("_total"):
            assert after[name] == value


@pytest.mark.parametrize("shape", [*SHAPES, *FULL_SHAPES, *STATE_SHAPES])
def test_events_alone_say_who_has_each_page_and_why(shape: tuple[int, ...]) -> None:
    """J4, J6: every move names giver, taker and cause; what leaves one account enters another, page by page."""
    driven = Driven(11, shape).run(400)
    state = driven.cache.state
    for pool, book in ((Pool.FULL, state.full), (Pool.SWA, state.swa)):
        held = dict.fromkeys(range(1, book.capacity + 1), int(FREE))
        for event in driven.journal.events:
            for move in moves(event):
                if move.pool is pool:
                    for page in np.frombuffer(move.pages, "<i4").tolist():
                        assert held[page] == move.giver
                        held[page] = move.taker
        assert list(held.values()) == book.account[1:].tolist()
        kinds = Counter(kind_of(account) for account in held.values())
        assert [kinds[kind] for kind in Kind] == book.held
    caused = (Freed, Healed, Reclaimed, Removed, Tombstoned, Transferred)
    told = [event for event in driven.journal.events if isinstance(event, caused)]
    of_windows = {Healed, Reclaimed, Tombstoned} if state.windowed else set()
    assert {type(event) for event in told} == {Freed, Removed, Transferred} | of_windows
    assert all(event.cause for event in told)
