"""How events change the host tier: transfers, copies, FULL tombstones and their end.

Part of `evolve`, with its rule: total, and what does not add up is noted. A transfer owns what it writes until its end
is told; so a node that leaves meanwhile leaves nothing behind that somebody could take too early (B19).
"""

from collections.abc import Iterator

from radixledger.cache.fold.pages import move, note
from radixledger.cache.state import Node, Receipt, State, Transfer
from radixledger.cache.tree import bare_pages, inherit, is_unread, offer_leaf, touch
from radixledger.cache.tree_sum import place_sum
from radixledger.cache.weights import BACKUP, HOST
from radixledger.journal.accounts import FREE, Pool, transfer_account, tree_account
from radixledger.journal.events import (
    Adopted,
    BackupBegun,
    BackupEnded,
    Demoted,
    Gathered,
    HostDropped,
    LoadBegun,
    LoadEnded,
)
from radixledger.journal.units import NO_PAGES, NO_TRANSFER, Pages, TransferId


def parts_of(state: State, transfer: Transfer) -> Iterator[tuple[Node, Pages]]:
    """The nodes that a transfer writes to, from its last one upwards, each with its pages; it may have been cut.

    Nodes of a backup that have left the tree are left out.
    """
    node, end = state.nodes.get(transfer.node), len(transfer.pages)
    while node is not None and node.parent is not None and end > 0:
        if not transfer.loads and node.backup != transfer.id:
            return
        yield node, Pages(transfer.pages[max(0, end - 4 * node.pages) : end])
        node, end = node.parent, end - 4 * node.pages


def backup_begun(state: State, event: BackupBegun) -> None:
    node = state.nodes[event.node]
    if node.full != event.full or len(event.full) != len(event.host):
        note(state, "a_copy_mirrors_what_is_on_the_device", f"node {event.node}", 0, event.full)
    if node.host:
        note(state, "a_node_has_one_copy", f"node {event.node}", Pool.HOST, node.host)
    move(state, state.host, event.host, FREE, transfer_account(event.transfer))
    _write_copy(state, node, event.host, event.transfer)
    _begin(state, Transfer(event.transfer, event.node, event.host))


def gathered(state: State, event: Gathered) -> None:
    transfer = state.transfers[event.transfer]
    if transfer.gathered or transfer.loads:
        note(state, "a_backup_is_gathered_once", f"transfer {event.transfer}")
    transfer.gathered = True
    for node, _ in parts_of(state, transfer):
        offer_leaf(state, node)


def backup_ended(state: State, event: BackupEnded) -> None:
    account, transfer = transfer_account(event.transfer), state.transfers.get(event.transfer)
    node = state.nodes.get(event.node)
    if event.landed:
        move(state, state.host, event.host, account, tree_account(event.node))
        if node is None or node.host != event.host or node.backup != event.transfer:
            note(state, "a_copy_lands_where_it_was_meant", f"node {event.node}", Pool.HOST, event.host)
        if transfer is not None and not transfer.gathered:
            note(state, "a_copy_lands_after_it_was_read", f"transfer {event.transfer}", Pool.HOST, event.host)
    else:
        move(state, state.host, event.host, account, FREE)
    _count_down(state, event.transfer, event.host)
    if node is not None and node.parent is not None:
        _write_copy(state, node, node.host if event.landed else NO_PAGES, NO_TRANSFER)
        offer_leaf(state, node)


def demoted(state: State, event: Demoted) -> None:
    node = state.nodes[event.node]
    parent = node.parent
    assert parent is not None, "the root has no pages"
    _check_demotion(state, node, event)
    move(state, state.full, event.full, tree_account(event.node), event.to)
    if node.holds:
        state.full_protected -= len(node.full) >> 2
    parent.demoted += bool(node.full)
    _write_full(state, node, NO_PAGES)
    state.totals.full_evicted += len(event.full) >> 2
    inherit(state, parent, node)
    offer_leaf(state, node)
    if parent.parent is not None:
        offer_leaf(state, parent)


def _check_demotion(state: State, node: Node, event: Demoted) -> None:
    if node.children and len(node.children) != node.demoted:
        note(
            state,
            "what_is_on_the_device_begins_at_the_root",
            f"node {node.id} has children there",
            0,
            event.full,
        )
    if node.holds:
        note(state, "locked_full_pages_are_never_given_up", f"node {node.id}", 0, event.full)
    if not node.host or node.host != event.host:
        note(state, "a_full_tombstone_has_a_copy", f"node {node.id}", Pool.HOST, event.host)
    elif node.backup and is_unread(state, node):
        note(state, "pages_are_read_before_they_are_given_up", f"node {node.id}", 0, event.full)


def adopted(state: State, event: Adopted) -> None:
    move(state, state.full, event.full, event.giver, tree_account(event.node))
    _promote(state, state.nodes[event.node], event.full)


def load_begun(state: State, event: LoadBegun) -> None:
    move(state, state.full, event.full, FREE, transfer_account(event.transfer))
    transfer = Transfer(event.transfer, event.node, event.full, Receipt(event.node, event.boundary))
    _begin(state, transfer)
    copies, above = [], state.nodes[event.node]
    for node, _ in parts_of(state, transfer):
        copies.append(node.host if not (node.full or node.backup) else NO_PAGES)
        above = node.parent or node
    if b"".join(reversed(copies)) != event.host or above.id != event.above:
        note(state, "a_load_reads_copies_that_landed", f"node {event.node}", Pool.HOST, event.host)


def load_ended(state: State, event: LoadEnded) -> None:
    account = transfer_account(event.transfer)
    if event.landed:
        if state.running:
            note(state, "a_load_lands_while_no_step_runs", f"step {next(iter(state.running))}", 0, event.full)
        move(state, state.full, event.full, account, tree_account(event.node))
        _promote(state, state.nodes[event.node], event.full)
    else:
        move(state, state.full, event.full, account, event.to)
    _count_down(state, event.transfer, event.full)


def host_dropped(state: State, event: HostDropped) -> None:
    node = state.nodes[event.node]
    if node.host != event.host or node.backup:
        note(state, "a_copy_is_dropped_when_it_has_landed", f"node {event.node}", Pool.HOST, event.host)
    if node.holds and not node.full:
        note(state, "a_locked_copy_is_never_dropped", f"node {event.node}", Pool.HOST, event.host)
    move(state, state.host, event.host, tree_account(event.node), FREE)
    _write_copy(state, node, NO_PAGES, NO_TRANSFER)


def _begin(state: State, transfer: Transfer) -> None:
    if transfer.id in state.transfers or not transfer.pages:
        note(state, "a_transfer_begins_once", f"transfer {transfer.id}")
    state.transfers[transfer.id] = transfer
    state.next_transfer = max(state.next_transfer, transfer.id + 1)


def _count_down(state: State, number: TransferId, pages: Pages) -> None:
    """Pages of a transfer have come to their end; with the last of them so has it."""
    transfer = state.transfers.get(number)
    if transfer is None:
        note(state, "a_transfer_ends_once", f"transfer {number} is not under way")
        return
    transfer.left -= len(pages) >> 2
    if transfer.left < 0:
        note(state, "a_transfer_ends_once", f"transfer {number} has {transfer.left} pages left")
    if transfer.left <= 0:
        del state.transfers[number]


def _promote(state: State, node: Node, full: Pages) -> None:
    """A FULL tombstone has FULL pages again, and is the youngest."""
    parent = node.parent
    if node.full or parent is None or len(full) != 4 * node.pages:
        note(state, "only_full_tombstones_get_full_pages", f"node {node.id}", 0, full)
    if parent is not None and parent.parent is not None and not parent.full:
        note(state, "what_is_on_the_device_begins_at_the_root", f"node {node.id}", 0, full)
    if parent is not None:
        parent.demoted -= not node.full
    if node.holds:
        state.full_protected += (len(full) - len(node.full)) >> 2
    _write_full(state, node, full)
    touch(state, node)
    offer_leaf(state, node)


def _write_full(state: State, node: Node, full: Pages) -> None:
    start, bare = node.end - node.pages, bare_pages(node)
    content = (place_sum(start, full) if full else 0) - (place_sum(start, node.full) if node.full else 0)
    node.full = full
    node.content += content
    state.tree_digest += node.weight * content
    _count_bare(state, node, bare)


def _write_copy(state: State, node: Node, host: Pages, backup: TransferId) -> None:
    start, bare = node.end - node.pages, bare_pages(node)
    content = (place_sum(start, host) if host else 0) - (place_sum(start, node.host) if node.host else 0)
    state.tree_digest += node.weight * (HOST * content + BACKUP * (backup - node.backup))
    node.content += HOST * content
    node.host, node.backup = host, backup
    _count_bare(state, node, bare)


def _count_bare(state: State, node: Node, before: int) -> None:
    change = bare_pages(node) - before
    state.host_bare += change
    if node.holds:
        state.host_protected += change
