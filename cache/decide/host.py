"""Decisions about copies on the host: which are made, how they end, what is loaded back, what is dropped.

A decider is a generator, see `decide.pages`; nothing is copied here, see `host_tier`. Rule: every refusal is raised
before the first yield, and a copy under way is known by its number until its end is told.
"""

from collections.abc import Iterator
from typing import NamedTuple

from radixledger.cache.decide.host_room import check_tier, lose, make_room
from radixledger.cache.decide.locks import locked_by
from radixledger.cache.decide.pages import Decision, destination, short
from radixledger.cache.eviction import oldest_leaf
from radixledger.cache.fold.host import parts_of
from radixledger.cache.refusals import Busy, Refusal
from radixledger.cache.state import Node, State, Transfer
from radixledger.journal.causes import Cause, Operation, Site, cause
from radixledger.journal.events import (
    BackupBegun,
    BackupEnded,
    Gathered,
    LoadBegun,
    LoadEnded,
    Unlocked,
)
from radixledger.journal.units import ROOT, UNBOUND, NodeId, Pages, TransferId

_THROUGH = cause(Operation.BACK_UP, Site.WRITE_THROUGH)
_BACK = cause(Operation.BACK_UP, Site.WRITE_BACK)
_BACK_UP = cause(Operation.BACK_UP)
_LOST = cause(Operation.BACK_UP, Site.UNREACHABLE)
_LOAD = cause(Operation.LOAD_BACK)
_OVERTAKEN = cause(Operation.LOAD_BACK, Site.DUPLICATE)


class Copy(NamedTuple):
    """A copy under way: FULL page i is mirrored by HOST page i."""

    transfer: TransferId
    full: Pages
    host: Pages


def write_through(state: State, node: NodeId) -> Decision[list[Copy]]:
    """Back up what of the path to `node` was used often enough and has no copy, parents first, as far as there is room."""
    check_tier(state)
    if state.config.host_write != "through":
        raise Refusal(f"copies are written {state.config.host_write!r}, not 'through'")
    path = list(_path_up(_node(state, node)))
    begun: list[Copy] = []
    for each in reversed(path):
        if each.hits < state.config.host_threshold or not each.full:
            break
        if not each.host:
            if not (yield from make_room(state, each.pages)):
                break
            begun.append((yield from _back_up(state, each, _THROUGH)))
    return begun


def write_back(state: State) -> Decision[Copy | None]:
    """Back up the leaf that FULL pressure takes next; None if it has a copy already, or the host has no room."""
    check_tier(state)
    if state.config.host_write != "back":
        raise Refusal(f"copies are written {state.config.host_write!r}, not 'back'")
    leaf = oldest_leaf(state)
    if leaf is None or leaf.host or not (yield from make_room(state, leaf.pages)):
        return None
    return (yield from _back_up(state, leaf, _BACK))


def gathered(state: State, transfer: TransferId) -> Decision[None]:
    """The FULL pages of a backup have been read on the device; from here on they may be given up."""
    found = _transfer(state, transfer, loads=False)
    if found.gathered:
        raise Refusal(f"backup {transfer} was gathered already")
    yield Gathered(found.id, found.node, _BACK_UP)


def end_backup(state: State, transfer: TransferId, landed: bool) -> Decision[None]:
    """What became of a backup. A failed one leaves no copy; a node that was only there is removed with all below it."""
    found = _transfer(state, transfer, loads=False)
    if landed and not found.gathered:
        raise Refusal(f"backup {transfer} was not gathered, so nothing can have been written")
    parts = list(parts_of(state, found))
    left = len(found.pages) - sum(len(pages) for _, pages in parts)
    for node, pages in reversed(parts):
        yield BackupEnded(found.id, node.id, pages, landed, _BACK_UP)
    if left:
        yield BackupEnded(found.id, ROOT, Pages(found.pages[:left]), False, _LOST)
    lost = [node for node, _ in parts if not (node.full or node.host)]
    if lost:
        yield from lose(state, lost[-1], _LOST)


def load_back(state: State, node: NodeId) -> Decision[Copy]:
    """Begin to load the FULL tombstones that end at `node` back to the device: all of them or none.

    Refuses if one of them has no copy that could be read, or FULL has too few free pages; nothing is evicted here.
    """
    check_tier(state)
    last = _node(state, node)
    chain = [each for each in _path_up(last) if not each.full]
    if not chain:
        raise Refusal(f"node {node} is on the device")
    unread = [each.id for each in chain if each.backup]
    if unread:
        raise Busy(f"the copy of node {unread[-1]} is still being written")
    count = sum(each.pages for each in chain)
    if state.full.available < count:
        raise short(state, count)
    above = chain[-1].parent
    assert above is not None, "the root has no pages to load"
    lock = locked_by(state, last, UNBOUND, _LOAD)
    yield lock
    host = Pages(b"".join(each.host for each in reversed(chain)))
    full, transfer = state.full.next_free(count), TransferId(state.next_transfer)
    yield LoadBegun(transfer, last.id, above.id, full, host, lock.boundary, _LOAD)
    return Copy(transfer, full, host)


def end_load(state: State, transfer: TransferId, landed: bool) -> Decision[None]:
    """What became of a load. Its nodes are on the device again, or everything is as it was; no step may be running.

    Nodes that an insert brought back meanwhile keep what they have; what was loaded for them is freed.
    """
    found = _transfer(state, transfer, loads=True)
    if landed and state.running:
        raise Busy(f"step {next(iter(state.running))} is running: a load lands between two steps")
    receipt, to = found.receipt, destination(state)
    assert receipt is not None, "a load holds its path"
    if landed:
        for node, pages in reversed(list(parts_of(state, found))):
            taken = not node.full
            yield LoadEnded(found.id, node.id, pages, taken, to, _LOAD if taken else _OVERTAKEN)
    else:
        yield LoadEnded(found.id, found.node, found.pages, False, to, _LOAD)
    yield Unlocked(receipt.node, receipt.boundary, cause=_LOAD)


def _back_up(state: State, node: Node, why: Cause) -> Decision[Copy]:
    host, transfer = state.host.next_free(node.pages), TransferId(state.next_transfer)
    yield BackupBegun(transfer, node.id, node.full, host, why)
    return Copy(transfer, node.full, host)


def _path_up(node: Node) -> Iterator[Node]:
    walk: Node | None = node
    while walk is not None and walk.parent is not None:
        yield walk
        walk = walk.parent


def _node(state: State, node: NodeId) -> Node:
    if node not in state.nodes:
        raise Refusal(f"node {node} is not in the tree")
    return state.nodes[node]


def _transfer(state: State, transfer: TransferId, *, loads: bool) -> Transfer:
    found = state.transfers.get(transfer)
    if found is None or found.loads != loads:
        raise Refusal(f"{'load' if loads else 'backup'} {transfer} is not under way")
    return found
