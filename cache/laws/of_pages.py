"""The laws of pages: every page has one owner, the books add up, a mapping joins pages of one owner.

What a node or a row names is compared with the books, never derived from them (R154, R179).
"""

from collections.abc import Callable, Iterator
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.laws.law import Breach, law, packed, pages_are, shown
from radixledger.cache.ledger import PoolBook
from radixledger.cache.state import Node, State
from radixledger.cache.window import pages_for
from radixledger.journal.accounts import (
    FREE,
    PENDING,
    RESERVED,
    Kind,
    Pool,
    describe,
    request_account,
    tree_account,
)
from radixledger.journal.moves import pages_of
from radixledger.journal.units import ROOT, UNBOUND, NodeId, Pages, RequestId

Claims = tuple[NDArray[np.int32], NDArray[np.int64]]
"""Pages, and beside each the account that names it."""


def tree_claims(state: State, pool: Pool) -> Claims:
    """The pages that nodes name, int32 [n], each with its node's account, int64 [n]; without copies still being written."""
    named = _NAMED_BY[pool]
    nodes = [node for node in state.nodes.values() if named(node)]
    if pool is Pool.HOST:
        nodes = [node for node in nodes if not node.backup]
    parts = list(map(named, nodes))
    counts = [len(part) >> 2 for part in parts]
    accounts = np.array([tree_account(node.id) for node in nodes], np.int64)
    return pages_of(b"".join(parts)), np.repeat(accounts, counts)


_NAMED_BY: dict[Pool, Callable[[Node], Pages]] = {
    Pool.FULL: attrgetter("full"),
    Pool.SWA: attrgetter("swa"),
    Pool.HOST: attrgetter("host"),
    Pool.RECURRENT: attrgetter("recurrent"),
}
"""What a node names of each pool."""


def row_claims(state: State, pool: Pool) -> Claims:
    """The pages that live rows name as their requests' own, [protected, held), int32 [n], with accounts int64 [n].

    SWA: the pages that those FULL pages are mapped to. RECURRENT: the slots that they run on and track with.
    """
    rows = state.rows
    parts, accounts, counts = [np.zeros(0, np.int32)], [], []
    for request in state.requests.values() if pool is not Pool.HOST else ():
        held = pages_for(int(rows.length[request.row]), state.page_size)
        pages = rows.full_table[request.row, int(rows.protected[request.row]) // state.page_size : held]
        pages = state.mapping.swa_of[pages] if pool is Pool.SWA else pages
        pages = rows.states[request.row] if pool is Pool.RECURRENT else pages
        pages = pages[pages != 0]
        parts.append(pages)
        accounts.append(request_account(request.id))
        counts.append(pages.size)
    return np.concatenate(parts), np.repeat(np.array(accounts, np.int64), counts)


def books(state: State) -> tuple[PoolBook, ...]:
    """All pools."""
    return state.full, state.swa, state.recurrent, state.host


@law
def every_account_names_a_holder_that_exists(state: State) -> Iterator[Breach]:
    """A page is free, pending, reserved, or held by a node of the tree, a transfer, a live request or nobody named yet."""
    requests = np.array([UNBOUND, *state.requests], np.int64)
    nodes = np.array([node for node in state.nodes if node != ROOT], np.int64)
    transfers = np.array([*state.transfers], np.int64)
    for book in books(state):
        kinds, holders = book.account & 7, book.account >> 3
        known = (kinds <= Kind.RESERVED) & (holders == 0)
        known |= (kinds == Kind.REQUEST) & np.isin(holders, requests)
        known |= (kinds == Kind.TREE) & np.isin(holders, nodes)
        known |= (kinds == Kind.IN_FLIGHT) & np.isin(holders, transfers)
        for account in np.unique(book.account[~known]).tolist():
            pages = np.flatnonzero(book.account == account)
            text = f"{book.pool.name} page {shown(pages)}: {describe(account)} does not exist"
            yield Breach(text, book.pool, packed(pages), found=account)


@law
def page_0_alone_is_reserved(state: State) -> Iterator[Breach]:
    """The padding sink is never handed out (R51)."""
    for book in books(state):
        reserved = np.flatnonzero(book.account == RESERVED)
        if reserved.tolist() != [0]:
            yield Breach(
                f"{book.pool.name} {pages_are(reserved, 'is', 'are')} reserved", book.pool, packed(reserved)
            )


@law
def every_page_has_one_owner(state: State) -> Iterator[Breach]:
    """No page is named twice by nodes, by rows, or by a node and a row (R28)."""
    for book in books(state):
        tree, rows = tree_claims(state, book.pool)[0], row_claims(state, book.pool)[0]
        ids, counts = np.unique(np.concatenate([tree, rows]), return_counts=True)
        if (counts > 1).any():
            twice = ids[counts > 1]
            yield Breach(
                f"{book.pool.name} {pages_are(twice, 'has', 'have')} two owners", book.pool, packed(twice)
            )


@law
def every_tree_page_stands_in_its_node(state: State) -> Iterator[Breach]:
    """What a node names is the tree's by its account, and nothing else is."""
    for book in books(state):
        yield from _claims_agree(book, tree_claims(state, book.pool), book.account & 7 == Kind.TREE)


@law
def every_request_page_stands_in_its_row(state: State) -> Iterator[Breach]:
    """A request owns what its row names behind its protected length, and nothing else is a request's (R154)."""
    unbound = request_account(RequestId(UNBOUND))
    for book in books(state):
        owned = (book.account & 7 == Kind.REQUEST) & (book.account != unbound)
        yield from _claims_agree(book, row_claims(state, book.pool), owned)


def _claims_agree(book: PoolBook, claims: Claims, owned: NDArray[np.bool_]) -> Iterator[Breach]:
    pages, accounts = claims
    found = book.account[pages]
    for page, expected, holder in zip(
        *(each[found != accounts].tolist() for each in (pages, accounts, found)), strict=True
    ):
        text = f"{book.pool.name} page {page}: {describe(expected)} names it, {describe(holder)} has it"
        yield Breach(text, book.pool, packed(np.array([page])), expected, holder)
    named = np.zeros(owned.size, np.bool_)
    named[pages] = True
    lost = np.flatnonzero(owned & ~named)
    for account in np.unique(book.account[lost]).tolist():
        mine = lost[book.account[lost] == account]
        text = f"{book.pool.name} page {shown(mine)}: {describe(account)} has it and does not name it"
        yield Breach(text, book.pool, packed(mine), account, account)


@law
def every_free_page_waits_once_in_the_queue(state: State) -> Iterator[Breach]:
    """The queue of free pages is the set of pages in the account `free`."""
    for book in books(state):
        yield from _queue_is_account(book, bytes(book.free), FREE)


@law
def every_pending_page_waits_once_in_the_group(state: State) -> Iterator[Breach]:
    """What an open free group took in is the set of pages in the account `pending` (R29)."""
    for book in books(state):
        yield from _queue_is_account(book, bytes(book.pending), PENDING)


def _queue_is_account(book: PoolBook, queue: bytes, account: int) -> Iterator[Breach]:
    waiting, owned = np.sort(pages_of(queue)), np.flatnonzero(book.account == account)
    if not np.array_equal(waiting, owned):
        wrong = np.setxor1d(waiting, owned)
        if not wrong.size:
            wrong = np.unique(waiting[1:][waiting[1:] == waiting[:-1]])
        text = (
            f"{book.pool.name} page {shown(wrong)}: {owned.size} are {describe(account)}, {waiting.size} wait"
        )
        yield Breach(text, book.pool, packed(wrong), int(owned.size), int(waiting.size))


@law
def nothing_is_pending_outside_a_group(state: State) -> Iterator[Breach]:
    """A flushed group leaves nothing behind (R44)."""
    if not state.group_open:
        for book in books(state):
            pages = np.flatnonzero(book.account == PENDING)
            if pages.size:
                text = f"{book.pool.name} {pages_are(pages, 'is', 'are')} pending, no group is open"
                yield Breach(text, book.pool, packed(pages))


@law
def counts_of_pages_equal_a_recount(state: State) -> Iterator[Breach]:
    """The pages held by each kind of account are as many as the books count."""
    for book in books(state):
        counts = np.bincount(book.account & 7, minlength=8).tolist()
        counts[Kind.RESERVED] -= 1  # page 0, which no count includes
        if counts[: len(Kind)] != book.held:
            text = f"{book.pool.name}: counted {book.held} by kind, there are {counts[: len(Kind)]}"
            yield Breach(text, book.pool)


@law
def no_two_full_pages_share_an_swa_page(state: State) -> Iterator[Breach]:
    """A mapping is one to one (R155)."""
    targets, counts = np.unique(state.mapping.swa_of[state.mapping.swa_of != 0], return_counts=True)
    if (counts > 1).any():
        shared = targets[counts > 1]
        full = np.flatnonzero(np.isin(state.mapping.swa_of, shared))
        yield Breach(
            f"SWA {pages_are(shared, 'is', 'are')} mapped from FULL page {shown(full)}",
            Pool.SWA,
            packed(shared),
        )


@law
def a_mapping_joins_pages_of_one_owner(state: State) -> Iterator[Breach]:
    """A mapped FULL page and its SWA page are in one account; FULL alone may have been given up before (A4)."""
    full = np.flatnonzero(state.mapping.swa_of)
    swa = state.mapping.swa_of[full]
    holders, partners = state.full.account[full], state.swa.account[swa]
    apart = (holders != partners) & ((holders & 7) > Kind.PENDING)
    apart |= (partners & 7) <= Kind.RESERVED
    for page, partner, holder, found in zip(
        *(each[apart].tolist() for each in (full, swa, holders, partners)), strict=True
    ):
        text = f"FULL page {page} of {describe(holder)} is mapped to SWA page {partner} of {describe(found)}"
        yield Breach(text, Pool.FULL, packed(np.array([page])), holder, found)


@law
def every_held_swa_page_is_mapped(state: State) -> Iterator[Breach]:
    """An SWA page that somebody holds can be reached from a FULL page (R169)."""
    reached = np.zeros(state.swa.account.size, np.bool_)
    reached[state.mapping.swa_of] = True
    lost = np.flatnonzero((state.swa.account & 7 > Kind.RESERVED) & ~reached)
    if lost.size:
        yield Breach(
            f"SWA {pages_are(lost, 'is', 'are')} held and mapped from nowhere", Pool.SWA, packed(lost)
        )


@law
def only_a_dangling_page_is_mapped_and_nobodys(state: State) -> Iterator[Breach]:
    """A FULL page that was given up has no mapping, but between `free_full` and `free_swa` (R54, A4)."""
    full = np.flatnonzero(state.mapping.swa_of)
    nobodys = full[(state.full.account[full] & 7) <= Kind.RESERVED]
    if nobodys.size != state.dangling:
        text = f"FULL page {shown(nobodys)}: {nobodys.size} are mapped and nobody's, {state.dangling} dangle"
        yield Breach(text, Pool.FULL, packed(nobodys), state.dangling, int(nobodys.size))


@law
def the_count_of_mappings_equals_a_recount(state: State) -> Iterator[Breach]:
    """Nonzero entries of the mapping are as many as the book counts."""
    count = int(np.count_nonzero(state.mapping.swa_of))
    if count != state.mapping.nonzero:
        yield Breach(f"counted {state.mapping.nonzero}, there are {count}", 0, expected=count,
                     found=state.mapping.nonzero)  # fmt: skip


@law
def a_node_shows_the_mapping_of_its_pages(state: State) -> Iterator[Breach]:
    """A live node names the SWA pages that its FULL pages are mapped to; a tombstone's are mapped to none (R88, R89)."""
    nodes = list(state.nodes.values())
    shown_by_all = b"".join([node.swa or bytes(len(node.full)) for node in nodes])
    if state.mapping.swa_pages(Pages(b"".join([node.full for node in nodes]))) == shown_by_all:
        return  # one look at all of them; who is wrong is found one by one
    for node in nodes:
        mapped = state.mapping.swa_pages(node.full)
        if mapped != (node.swa or bytes(len(node.full))):
            text = f"{describe(tree_account(NodeId(node.id)))} names SWA page {shown(pages_of(node.swa))}, "
            yield Breach(text + f"its pages are mapped to {shown(pages_of(mapped))}", Pool.FULL, node.full)


LAWS = (
    every_account_names_a_holder_that_exists,
    page_0_alone_is_reserved,
    every_page_has_one_owner,
    every_tree_page_stands_in_its_node,
    every_request_page_stands_in_its_row,
    every_free_page_waits_once_in_the_queue,
    every_pending_page_waits_once_in_the_group,
    nothing_is_pending_outside_a_group,
    counts_of_pages_equal_a_recount,
    no_two_full_pages_share_an_swa_page,
    a_mapping_joins_pages_of_one_owner,
    every_held_swa_page_is_mapped,
    only_a_dangling_page_is_mapped_and_nobodys,
    the_count_of_mappings_equals_a_recount,
    a_node_shows_the_mapping_of_its_pages,
)
