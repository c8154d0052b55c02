"""The laws of events of the host tier: what is copied, demoted, dropped and loaded is what the rules choose.

Part of `laws.of_events`. What the books alone can tell (who had a page, what has landed) is noticed by `evolve`.
"""

from collections.abc import Iterator, Sequence

from radixledger.cache.eviction import oldest_copy, oldest_leaf
from radixledger.cache.laws.event_law import LAWFUL, event_law
from radixledger.cache.laws.law import Breach
from radixledger.cache.laws.of_the_tree import path_up
from radixledger.cache.state import State
from radixledger.journal.accounts import FREE, PENDING, Kind, Pool, describe
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import (
    Adopted,
    BackupBegun,
    Demoted,
    HostDropped,
    LoadBegun,
    LoadEnded,
    Matched,
)
from radixledger.journal.units import ROOT

_THROUGH = cause(Operation.BACK_UP, Site.WRITE_THROUGH)
_BACK = cause(Operation.BACK_UP, Site.WRITE_BACK)
_EVICT_HOST = cause(Operation.EVICT_HOST)


@event_law
def a_copy_is_made_when_it_is_due(state: State, event: BackupBegun) -> Iterator[Breach]:
    """Written through is what was used often enough, parents first; written back is the next victim of FULL pressure."""
    node = state.nodes[event.node]
    if event.cause == _THROUGH:
        parent = node.parent
        if node.hits < state.config.host_threshold:
            text = f"node {node.id} was used {node.hits} times, copies are due from {state.config.host_threshold} on"
            yield Breach(text, Pool.FULL, node.full, state.config.host_threshold, node.hits)
        if parent is not None and parent.parent is not None and not parent.host:
            yield Breach(f"node {node.id} is copied before its parent {parent.id}", Pool.FULL, node.full)
    elif event.cause == _BACK:
        oldest = oldest_leaf(state)
        if oldest is not node:
            text = f"node {node.id} is copied, FULL pressure takes node {oldest.id if oldest else 0} next"
            yield Breach(text, Pool.FULL, node.full, oldest.id if oldest else 0, node.id)


@event_law
def what_is_demoted_is_the_oldest_leaf(state: State, event: Demoted) -> Iterator[Breach]:
    """FULL pressure takes the candidate that was used longest ago, with all its FULL pages (R102)."""
    node, oldest = state.nodes[event.node], oldest_leaf(state)
    if event.full != node.full:
        text = f"node {node.id} has {node.pages} FULL pages, {len(event.full) >> 2} went"
        yield Breach(text, Pool.FULL, node.full, node.pages, len(event.full) >> 2)
    if oldest is not node and state.config.eviction == "lru":
        text = f"node {node.id} went, node {oldest.id if oldest else 0} is the oldest candidate"
        yield Breach(text, Pool.FULL, event.full, oldest.id if oldest else 0, node.id)


@event_law
def what_is_dropped_is_the_oldest_copy(state: State, event: HostDropped) -> Iterator[Breach]:
    """Host pressure takes the copy that stands alone and was used longest ago."""
    oldest = oldest_copy(state)
    if event.cause == _EVICT_HOST and (oldest is None or oldest.id != event.node):
        text = f"the copy of node {event.node} went, that of node {oldest.id if oldest else 0} is the oldest"
        yield Breach(text, Pool.HOST, event.host, oldest.id if oldest else 0, event.node)


@event_law
def a_full_tombstone_takes_what_a_request_brings(state: State, event: Adopted) -> Iterator[Breach]:
    """The pages come from a request, and the copy stays what it was (R64)."""
    if event.giver & 7 != Kind.REQUEST or event.host != state.nodes[event.node].host:
        text = f"node {event.node} takes pages of {describe(event.giver)}"
        yield Breach(text, Pool.FULL, event.full, found=event.giver)


@event_law
def a_load_holds_its_path(state: State, event: LoadBegun) -> Iterator[Breach]:
    """The path is locked before pages are taken, and begins behind what is on the device."""
    node, above = state.nodes[event.node], state.nodes[event.above]
    if node.holds <= 0:
        yield Breach(f"node {node.id} is loaded, and nothing holds it", Pool.HOST, event.host)
    if above.id != ROOT and not above.full:
        yield Breach(f"node {above.id} is not on the device", Pool.HOST, event.host)


@event_law
def what_was_not_loaded_goes_where_the_group_says(state: State, event: LoadEnded) -> Iterator[Breach]:
    """Freed pages are pending while a free group is open, and free otherwise (R29)."""
    lawful = PENDING if state.group_open else FREE
    if not event.landed and event.to != lawful:
        text = f"pages went to {describe(event.to)}, a group is {'open' if state.group_open else 'not open'}"
        yield Breach(text, Pool.FULL, event.full, lawful, event.to)


@event_law
def a_match_reaches_copies_that_can_be_read(state: State, event: Matched) -> Sequence[Breach]:
    """Behind the part on the device come nodes whose copies have landed, as many tokens as are told."""
    end = state.nodes[event.host_node] if event.host_node else None
    if end is None:
        if event.host_hit:
            return [Breach(f"{event.host_hit} tokens of no node are on the host", found=event.host_hit)]
        return LAWFUL
    bare = [node for node in path_up(end) if not node.full]
    start = end.end - sum(node.pages for node in bare)
    pages = event.host_hit // state.page_size
    if start * state.page_size != event.hit or pages != end.end - start or any(node.backup for node in bare):
        text = f"{event.host_hit} tokens behind {event.hit}: copies reach from page {start} to {end.end}"
        return [Breach(text, Pool.HOST, end.host, end.end - start, pages)]
    return LAWFUL
