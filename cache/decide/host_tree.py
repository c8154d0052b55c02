"""The tree's rules where FULL pages have copies on the host: what a match finds there, what is adopted, evicted, flushed.

Matching goes on over FULL tombstones whose copies can be read; inserting is the unified route's, which adopts pages over
them. See `routes` for who asks; copies are made and ended in `decide.host`. A decider is a generator, see
`decide.pages`.
"""

from radixledger.cache.components.component import Segment, leaf_removal
from radixledger.cache.decide import eviction as decide_eviction
from radixledger.cache.decide import unified as decide_unified
from radixledger.cache.decide.eviction import Gain
from radixledger.cache.decide.host_room import lose
from radixledger.cache.decide.pages import Decision
from radixledger.cache.eviction import oldest_leaf
from radixledger.cache.match import Beyond, Hit, Walk, hit_of, walk
from radixledger.cache.refusals import Busy
from radixledger.cache.slices import split_at
from radixledger.cache.state import Node, State
from radixledger.journal.causes import Cause, Operation, Site, cause
from radixledger.journal.events import Demoted, Evicted, Matched, Stop
from radixledger.journal.units import UNBOUND, RequestId, TokenCount

_MATCH = cause(Operation.MATCH)
_EVICT = cause(Operation.EVICT)
_LEAF = cause(Operation.EVICT, Site.FULL_LEAF)
_COPIED = cause(Operation.EVICT, Site.HOST_COPY)
_UNREACHABLE = cause(Operation.EVICT, Site.UNREACHABLE)

insert = decide_unified.insert
go_on = decide_unified.go_on
flush = decide_eviction.flush


def look(state: State, key: bytes, namespace: bytes, *, full_only: bool = False) -> Walk:
    """What `match` would find: the part on the device, and how far copies go on behind it; reads only."""
    found = walk(state, key, namespace, full_only=full_only)
    bare: list[Node] = []
    node = found.node
    while not node.full and node.parent is not None:
        bare.append(node)
        node = node.parent
    if not bare:
        return found
    last, inside = None, 0
    for each in reversed(bare):
        if each.backup:
            break
        last, inside = each, found.inside if each is found.node else 0
    hit = 0 if last is None else (last.end if not inside else last.end - last.pages + inside) - node.end
    beyond = None if last is None else Beyond(last, inside, hit)
    return Walk(node, 0, node.end, node.end, Stop.ON_HOST, beyond)


def match(
    state: State, key: bytes, namespace: bytes = b"", *, rid: str = "", request: RequestId = UNBOUND,
    full_only: bool = False, force_miss: bool = False, why: Cause = _MATCH,
) -> Decision[Hit]:  # fmt: skip
    """Find the usable prefix of `key` and what copies there are behind it; cut the nodes in which they end."""
    found = look(state, key, namespace, full_only=full_only)
    if force_miss:
        found = Walk(state.root, 0, 0, found.full_hit, Stop.FORCED_MISS)
    node, beyond = found.node, found.beyond
    if found.inside:
        node = yield from _cut(state, node, found.inside, why)
    if beyond is not None and beyond.inside:
        beyond = Beyond((yield from _cut(state, beyond.node, beyond.inside, why)), 0, beyond.hit)
    hit = hit_of(found._replace(beyond=beyond), node, state.page_size)
    asked = TokenCount(len(key) // state.stride * state.page_size)
    yield Matched(
        rid, request, asked, hit.full_tokens, hit.tokens, node.id, found.stop, namespace, why, full_only,
        host_hit=hit.host_tokens, host_node=hit.host_node,
    )  # fmt: skip
    return hit


def _cut(state: State, node: Node, inside: int, why: Cause) -> Decision[Node]:
    event = split_at(state, node, inside, why)
    yield event
    return state.nodes[event.upper]


def segment(state: State, node: Node) -> Segment:
    """What a lock of `node` holds: FULL pages and copies up to the root; a copy that is being written cannot be held."""
    walk_up: Node | None = node
    while walk_up is not None and not walk_up.full:
        if walk_up.backup:
            raise Busy(f"the copy of node {walk_up.id} is still being written")
        walk_up = walk_up.parent
    return decide_unified.segment(state, node)


def evict(state: State, full_pages: int, swa_pages: int) -> Decision[Gain]:
    """Give FULL pages back to the pool, oldest first: a leaf that has a copy stays as a FULL tombstone (R105, R108).

    A leaf without one goes with all that was only reachable through it.
    """
    if state.group_open:
        raise Busy("a free group is open: what eviction frees would stay pending, so nothing can be gained")
    gained = events = 0
    while gained < full_pages:
        leaf = oldest_leaf(state)
        if leaf is None:
            break
        gained, events = gained + leaf.pages, events + 1
        if leaf.host:
            yield Demoted(leaf.id, leaf.full, leaf.host, cause=_COPIED)
            continue
        for child in list((leaf.children or {}).values()):
            events += yield from lose(state, child, _UNREACHABLE)
        yield leaf_removal(state, leaf, _LEAF)
    yield Evicted(full_pages, swa_pages, gained, 0, events, _EVICT)
    return Gain(gained, 0)
