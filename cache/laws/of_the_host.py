"""The laws of the host tier: copies, transfers, FULL tombstones.

What a node or a transfer names is compared with the books; what is on the device is a whole beginning of every path.
"""

from collections.abc import Iterator

import numpy as np

from radixledger.cache.fold.host import parts_of
from radixledger.cache.laws.law import Breach, law, packed, pages_are, shown
from radixledger.cache.laws.of_pages import books
from radixledger.cache.laws.of_the_tree import below_the_root
from radixledger.cache.state import State
from radixledger.cache.tree import bare_pages
from radixledger.journal.accounts import Kind, Pool, transfer_account
from radixledger.journal.moves import pages_of


@law
def what_is_on_the_device_begins_at_the_root(state: State) -> Iterator[Breach]:
    """No node has FULL pages behind one that has none, and children without are counted."""
    for node in state.nodes.values():
        children = (node.children or {}).values()
        if node.parent is not None and not node.full and any(child.full for child in children):
            yield Breach(f"node {node.id} has no FULL pages, and a child that has some")
        bare = sum(1 for child in children if not child.full)
        if node.demoted != bare:
            text = f"node {node.id} counts {node.demoted} children without FULL pages, there are {bare}"
            yield Breach(text, expected=bare, found=node.demoted)


@law
def every_copy_lands_by_a_transfer(state: State) -> Iterator[Breach]:
    """A node whose copy has not landed is written by a backup that names just these pages for it."""
    written = {
        node.id: (number, pages)
        for number, transfer in state.transfers.items()
        if not transfer.loads
        for node, pages in parts_of(state, transfer)
    }
    for node in below_the_root(state):
        if node.backup and written.get(node.id) != (node.backup, node.host):
            text = f"node {node.id} waits for transfer {node.backup} to write HOST page {shown(pages_of(node.host))}"
            yield Breach(text, Pool.HOST, node.host)


@law
def nothing_holds_a_copy_that_has_not_landed(state: State) -> Iterator[Breach]:
    """A lock shields what is there: FULL pages, or a copy that could be read (B19)."""
    for node in below_the_root(state):
        if node.holds > 0 and node.backup and not node.full:
            yield Breach(
                f"node {node.id} is held {node.holds} times, its copy is in flight", Pool.HOST, node.host
            )


@law
def every_page_in_flight_is_written_by_its_transfer(state: State) -> Iterator[Breach]:
    """A transfer owns the pages of one pool that it has still to write, and nothing else is in flight (B19)."""
    for book in books(state):
        for account in np.unique(book.account[book.account & 7 == Kind.IN_FLIGHT]).tolist():
            pages = np.flatnonzero(book.account == account)
            transfer = state.transfers.get(account >> 3)
            pool = Pool.FULL if transfer is not None and transfer.loads else Pool.HOST
            named = pages_of(transfer.pages) if transfer is not None else np.zeros(0, np.int32)
            if pool is not book.pool or not np.isin(pages, named).all():
                text = f"{book.pool.name} {pages_are(pages, 'is', 'are')} in flight, transfer {account >> 3} does not write it"
                yield Breach(text, book.pool, packed(pages), found=account)


@law
def a_transfer_has_the_pages_that_are_left(state: State) -> Iterator[Breach]:
    """As many pages of a transfer are in flight as have not come to their end; the next transfer is above all."""
    for number, transfer in state.transfers.items():
        book = state.full if transfer.loads else state.host
        count = int(np.count_nonzero(book.account == transfer_account(transfer.id)))
        if transfer.id != number or number >= state.next_transfer or not count == transfer.left > 0:
            text = f"transfer {number} has {transfer.left} pages left, {count} are in flight"
            yield Breach(text, book.pool, transfer.pages, transfer.left, count)


@law
def a_load_ends_where_it_began(state: State) -> Iterator[Breach]:
    """What a load reads stays: its nodes have copies that landed, and its receipt holds their path."""
    for number, transfer in state.transfers.items():
        if transfer.receipt is not None:
            parts = list(parts_of(state, transfer))
            if sum(len(pages) for _, pages in parts) != len(transfer.pages):
                yield Breach(f"load {number} ends at node {transfer.node}, which has left", Pool.FULL)
            for node, _ in parts:
                if node.holds <= 0 or node.backup or not node.host:
                    yield Breach(
                        f"load {number} reads node {node.id}: {node.holds} holds, copy {node.backup}"
                    )


@law
def copies_that_stand_alone_equal_a_recount(state: State) -> Iterator[Breach]:
    """What host pressure can take, and what of it locks hold, are counted as there are."""
    bare = sum(bare_pages(node) for node in below_the_root(state))
    held = sum(bare_pages(node) for node in below_the_root(state) if node.holds > 0)
    if (state.host_bare, state.host_protected) != (bare, held):
        text = f"{state.host_bare} HOST pages stand alone, {state.host_protected} of them held: there are {bare}, {held}"
        yield Breach(text, Pool.HOST, expected=bare, found=state.host_bare)


@law
def uses_are_counted_up_to_the_threshold(state: State) -> Iterator[Breach]:
    """A node was used at least as often as each of its children, as far as uses are counted."""
    for node in below_the_root(state):
        parent = node.parent
        above = parent.hits if parent is not None and parent.parent is not None else state.hits_counted
        if not 0 <= node.hits <= above:
            yield Breach(f"node {node.id} was used {node.hits} times, what is above it {above}")


LAWS = (
    what_is_on_the_device_begins_at_the_root,
    every_copy_lands_by_a_transfer,
    nothing_holds_a_copy_that_has_not_landed,
    every_page_in_flight_is_written_by_its_transfer,
    a_transfer_has_the_pages_that_are_left,
    a_load_ends_where_it_began,
    copies_that_stand_alone_equal_a_recount,
    uses_are_counted_up_to_the_threshold,
)
