"""The laws of events of the tree: matches end in a window, leaves have their shape, locks cover what they must.

Part of `laws.of_events`. Those that only the unified route follows ask for it by themselves (`unified`).
"""

from collections.abc import Iterator, Sequence

from radixledger.cache.eviction import oldest_leaf, oldest_spare, oldest_window
from radixledger.cache.laws.event_law import LAWFUL, event_law
from radixledger.cache.laws.law import Breach
from radixledger.cache.laws.of_page_events import lent
from radixledger.cache.laws.of_requests import live_run
from radixledger.cache.spare import spare_pages
from radixledger.cache.state import Node, State
from radixledger.journal.accounts import Pool
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import (
    AnyEvent,
    Demoted,
    Evicted,
    Flushed,
    Healed,
    HealMode,
    HostDropped,
    Locked,
    Matched,
    Removed,
    Split,
    Tombstoned,
    Transferred,
)
from radixledger.journal.moves import ids_of
from radixledger.journal.units import ROOT, BoundaryId, NodeId

_FLUSH = cause(Operation.FLUSH)
_FULL_LEAF = cause(Operation.EVICT, Site.FULL_LEAF)
_SWA_LEAF = cause(Operation.EVICT, Site.SWA_LEAF)
_SWA_INTERNAL = cause(Operation.EVICT, Site.SWA_INTERNAL)
_SWA_LOCKED_LEAF = cause(Operation.EVICT, Site.SWA_LOCKED_LEAF)


def has_a_tree(state: State) -> bool:
    """Whether requests give pages to a tree here: what matches, locks, heals and victims have to keep is the same in all."""
    return state.traits.tree


def has_our_tree(state: State) -> bool:
    """Whether our rules chose what stands in the tree, what is locked and who goes: another server has its own."""
    return state.traits.tree and state.traits.chosen_here


@event_law
def a_match_ends_in_a_live_window(state: State, event: Matched) -> Sequence[Breach]:
    """A usable prefix has a window of live SWA behind it, or is live from the root (R73-R76)."""
    if event.node != ROOT and not event.full_only and has_a_tree(state):
        run = live_run(state.nodes[event.node], state.tail_pages)
        if run < state.tail_pages:
            text = f"{run} live pages end at node {event.node}, {state.tail_pages} are needed"
            return [Breach(text, expected=state.tail_pages, found=run)]
    return LAWFUL


@event_law
def a_match_stays_within_its_question(state: State, event: Matched) -> Sequence[Breach]:
    """hit <= full_hit <= asked, and the node belongs to the namespace that was asked in."""
    found: list[Breach] = []
    if event.stop != 4 and not 0 <= event.hit <= event.full_hit <= event.asked:
        found.append(
            Breach(f"asked {event.asked} tokens, FULL reaches {event.full_hit}, {event.hit} are usable")
        )
    if event.node != ROOT and state.nodes[event.node].namespace != event.namespace:
        found.append(Breach(f"node {event.node} belongs to another namespace than the one that was asked in"))
    return found


@event_law
def a_leaf_grows_where_there_is_a_tree(state: State, event: Transferred) -> Sequence[Breach]:
    """A chunk route gives nothing to a tree: what a request computed is its own to the end (R150)."""
    if not state.traits.tree:
        return [Breach(f"route {state.opened.route!r} has no tree", Pool.FULL, event.full)]
    return LAWFUL


@event_law
def a_new_leaf_is_whole_and_alone(state: State, event: Transferred) -> Sequence[Breach]:
    """A leaf has a key for each page, SWA for all or none, and begins like no other child of its parent (R82, R97)."""
    found: list[Breach] = []
    full, swa, stride = len(event.full) >> 2, len(event.swa) >> 2, state.stride
    if not full or len(event.key) != full * stride or swa not in (0, full):
        found.append(
            Breach(
                f"{full} FULL and {swa} SWA pages have {len(event.key)} bytes of key", Pool.FULL, event.full
            )
        )
    parent = state.nodes[event.parent]
    first = event.key[:stride]
    begun = (parent.children or {}).get((event.namespace, first) if parent.parent is None else first)
    if begun is not None:
        found.append(Breach(f"node {begun.id} begins with the same page", Pool.FULL, event.full))
    return found


def shape_of_the_last_leaf(state: State, leaf: Transferred) -> str:
    """What is wrong with a leaf that an insert ended with; empty where nothing is.

    A path never ends in a tombstone from birth, unless leaves are materialised (R93, A15); its last node is no longer
    than a window (R95), but on the legacy route.
    """
    if not has_our_tree(state) or not state.tail_pages:
        return ""
    if not leaf.swa:
        return f"node {leaf.node} was born a tombstone" if state.config.tombstone_leaf == "veto" else ""
    pages, node = len(leaf.full) >> 2, state.nodes.get(leaf.node)
    if node is None:
        return ""  # its parent does not exist, as was told when it was folded
    if (
        leaf.cause >> 5 == Operation.UNFINISHED
        and (run := live_run(node, state.tail_pages)) < state.tail_pages
    ):
        return f"{run} live pages end at node {leaf.node}, {state.tail_pages} are needed to go on (R259)"
    too_long = pages > state.tail_pages and not state.traits.live_ends
    return f"node {leaf.node} has {pages} pages, a window {state.tail_pages}" if too_long else ""


@event_law
def a_split_moves_the_mark(state: State, event: Split) -> Sequence[Breach]:
    """The boundary mark goes to the older part, once (R114)."""
    mark = state.nodes[event.node].boundary
    if event.boundary != mark:
        text = f"node {event.node} has mark {mark}, node {event.upper} got {event.boundary}"
        return [Breach(text, expected=mark, found=event.boundary)]
    return LAWFUL


@event_law
def a_tombstone_keeps_no_mapping(state: State, event: Tombstoned) -> Sequence[Breach]:
    """All FULL pages of the node lose their mapping with its SWA pages (R30, R99)."""
    node = state.nodes[event.node]
    if event.full != node.full:
        text = f"node {node.id} has {node.pages} FULL pages, {len(event.full) >> 2} lose their mapping"
        return [Breach(text, Pool.FULL, node.full, node.pages, len(event.full) >> 2)]
    return LAWFUL


@event_law
def a_heal_covers_its_node(state: State, event: Healed) -> Sequence[Breach]:
    """Every page of the node gets a live one, which was mapped to the SWA page that comes with it (R83, R89)."""
    node = state.nodes[event.node]
    if event.old != node.full or not len(event.fresh) == len(event.old) == len(event.swa):
        text = (
            f"node {node.id} has {node.pages} pages: {len(event.old) >> 2} old, {len(event.fresh) >> 2} fresh"
        )
        return [Breach(text, Pool.FULL, event.fresh, node.pages, len(event.fresh) >> 2)]
    if not state.mapping.leads(event.fresh, event.swa):
        return [Breach(f"the fresh pages of node {node.id} are mapped to others", Pool.SWA, event.swa)]
    return LAWFUL


@event_law
def a_heal_keeps_what_is_locked_and_nothing_else(state: State, event: Healed) -> Sequence[Breach]:
    """FULL pages stay where a lock holds them, and are replaced where none does (A13, R90)."""
    held = state.nodes[event.node].holds > 0
    if has_our_tree(state) and held != (event.mode == HealMode.TRANSFER):
        text = (
            f"node {event.node} is {'held' if held else 'not held'}, mode {HealMode(event.mode).name.lower()}"
        )
        return [Breach(text, Pool.FULL, event.old)]
    return LAWFUL


@event_law
def a_removed_leaf_gives_up_all_its_pages(state: State, event: Removed) -> Sequence[Breach]:
    """Of all pools, each page once (R100)."""
    found: list[Breach] = []
    node = state.nodes[event.node]
    if event.recurrent != node.recurrent:
        found.append(Breach(f"node {node.id} has another state, or none", Pool.RECURRENT, node.recurrent))
    if (event.full, event.swa) != (node.full, node.swa):
        text = f"node {node.id} has {node.pages} FULL and {len(node.swa) >> 2} SWA pages, "
        text += f"{len(event.full) >> 2} and {len(event.swa) >> 2} went"
        found.append(Breach(text, Pool.FULL, node.full, node.pages, len(event.full) >> 2))
    return found


@event_law
def the_victim_is_the_oldest_candidate(state: State, event: Removed | Tombstoned) -> Sequence[Breach]:
    """Pressure takes the candidate that was used longest ago, by tick, then by number (R102, R103); of SWA first what
    nobody can need, where the rank asks for that.
    """
    if event.cause not in _ORDERS or not has_our_tree(state):
        return LAWFUL
    spare: Node | None = None
    if event.cause == _FULL_LEAF:
        oldest = oldest_leaf(state)
    else:
        spare = oldest_spare(state) if state.spare_order else None
        oldest = spare or oldest_window(state)
    if oldest is None or oldest.id != event.node:
        first = "nobody" if oldest is None else f"node {oldest.id}"
        text = f"node {event.node} went, {first} is the oldest candidate"
        return [Breach(text, Pool.FULL, event.full, oldest.id if oldest else 0, event.node)]
    if spare is not None and (pages := spare_pages(state, spare)) < spare.pages:
        text = f"all {spare.pages} pages of node {spare.id} went, {pages} of them nobody can need"
        return [Breach(text, Pool.SWA, event.swa, pages, spare.pages)]
    return LAWFUL


_SWA_ORDERS = frozenset((_SWA_LEAF, _SWA_INTERNAL, _SWA_LOCKED_LEAF))
_ORDERS = _SWA_ORDERS | {_FULL_LEAF}


@event_law
def who_has_children_stays(state: State, event: Removed | Tombstoned) -> Sequence[Breach]:
    """SWA pressure removes a childless node that nobody holds, and tombstones every other (R104, R109, A24)."""
    node = state.nodes[event.node]
    if event.cause in _SWA_ORDERS:
        stays = bool(node.children) or node.holds > 0
        if stays != isinstance(event, Tombstoned):
            text = f"node {node.id} with {len(node.children or ())} children and {node.holds} holds"
            return [Breach(f"{text}: {type(event).__name__}", Pool.FULL, event.full)]
    return LAWFUL


@event_law
def a_flush_finds_the_rank_idle(state: State, event: Removed | Flushed | HostDropped) -> Sequence[Breach]:
    """A flush must not hide what others hold: nobody is live, nothing is lent or locked (R33, R177)."""
    if event.cause == _FLUSH and (
        state.requests or state.running or state.transfers or state.root.holds or lent(state)
    ):
        text = f"{len(state.requests)} requests are live, {lent(state)} pages are out, {state.root.holds} paths held"
        return [Breach(text)]
    return LAWFUL


@event_law
def a_flush_empties_the_tree(state: State, _: Flushed) -> Sequence[Breach]:
    """No node is left (R166)."""
    if len(state.nodes) > 1:
        return [Breach(f"{len(state.nodes) - 1} nodes are left", expected=0, found=len(state.nodes) - 1)]
    return LAWFUL


@event_law
def a_lock_covers_the_last_window(state: State, event: Locked) -> Sequence[Breach]:
    """SWA is locked from the node up to the one in which the window is full, or to the root; no further (R111, R119)."""
    found: list[Breach] = []
    if not has_our_tree(state):
        return found
    node, boundary = state.nodes[event.node], event.boundary
    segment, over = _last_window(node, state.tail_pages)
    end = segment[-1] if segment and over >= 0 else None
    told = event.marked or (_marked(node, boundary) if boundary else ROOT)
    if bool(boundary) != (end is not None) or told != (end.id if end else ROOT):
        text = f"node {node.id}: the window ends in node {end.id if end else ROOT}, the lock in node {told}"
        found.append(Breach(text, expected=end.id if end else ROOT, found=told))
    if over and end is not None and end.swa and state.spare_order is not None:
        found.append(Breach(f"node {node.id}: the lock holds {over} pages more than a window", found=over))
    if event.marked and (state.nodes[event.marked].boundary or boundary != state.next_boundary):
        found.append(Breach(f"mark {boundary} is not fresh, or node {event.marked} has one", found=boundary))
    skipped = [each.id for each in segment if not each.swa]
    if (skipped or event.skipped) and not state.states_each and ids_of(event.skipped).tolist() != skipped:
        found.append(Breach(f"tombstones {skipped} were passed, {ids_of(event.skipped).tolist()} are told"))
    return found


def _last_window(node: Node, window: int) -> tuple[list[Node], int]:
    """The nodes from `node` upwards that the last `window` pages reach into, and how many pages more those have."""
    segment: list[Node] = []
    over, walk = -window, node
    while over < 0 and walk.parent is not None:
        segment.append(walk)
        over += walk.pages
        walk = walk.parent
    return segment, over


def _marked(node: Node, boundary: BoundaryId) -> NodeId:
    """The first node from `node` upwards that has the mark, or the root."""
    walk = node
    while walk.parent is not None:
        if walk.boundary == boundary:
            return walk.id
        walk = walk.parent
    return ROOT


def credited(event: Evicted, given: Sequence[AnyEvent]) -> Iterator[Breach]:
    """`given`: the events that an eviction says are its own (R105, R108)."""
    full = swa = states = 0
    for each in given:
        if isinstance(each, Tombstoned):
            swa += len(each.swa) >> 2
        elif isinstance(each, Removed):
            full += len(each.full) >> 2
            swa += len(each.swa) >> 2
            states += len(each.recurrent) >> 2
        elif isinstance(each, Demoted):
            full += len(each.full) >> 2
    if states != event.gained_recurrent:
        yield Breach(f"credited {event.gained_recurrent} states, {states} were freed", Pool.RECURRENT)
    if (full, swa, len(given)) != (event.gained_full, event.gained_swa, event.events):
        text = (
            f"credited {event.gained_full} FULL and {event.gained_swa} SWA pages, {full} and {swa} were freed"
        )
        yield Breach(text)
