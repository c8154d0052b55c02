"""The laws of the tree: its shape, its locks, its recency, and the orders of victims kept beside it.

Counts are recounted from what they count: `holds` from receipts and children, window locks from the receipts of
live requests where nobody else has any, protected pages from the nodes.
"""

from collections import Counter
from collections.abc import Iterator

from radixledger.cache.laws.law import Breach, law
from radixledger.cache.standing import age
from radixledger.cache.state import IN_HOST_ORDER, IN_LEAF_ORDER, IN_WINDOW_ORDER, Node, Order, Receipt, State
from radixledger.cache.tree import child_key, is_unread
from radixledger.journal.units import ROOT, BoundaryId


def below_the_root(state: State) -> Iterator[Node]:
    """Every node but the root."""
    return (node for node in state.nodes.values() if node is not state.root)


def path_up(node: Node) -> Iterator[Node]:
    """`node` and its ancestors, without the root."""
    walk: Node | None = node
    while walk is not None and walk.parent is not None:
        yield walk
        walk = walk.parent


def segment(node: Node, boundary: BoundaryId) -> Iterator[Node]:
    """The nodes whose window a receipt locks: from its anchor up to its boundary, or to the root (A22)."""
    for each in path_up(node):
        yield each
        if boundary and each.boundary == boundary:
            return


# -- shape ---------------------------------------------------------------------------------------------------


@law
def the_root_is_empty_and_first(state: State) -> Iterator[Breach]:
    """The root has number 0, no parent, no pages and no key (R70)."""
    root = state.root
    if root.id != ROOT or state.nodes.get(ROOT) is not root:
        yield Breach(f"the root has number {root.id}")
    if root.parent is not None or root.full or root.swa or root.key or root.end:
        yield Breach(f"the root has pages or a parent; it ends at page {root.end}")


@law
def a_tree_grows_only_where_there_is_one(state: State) -> Iterator[Breach]:
    """Chunk routes have the root and nothing more: whatever a request computes stays its own (R128, R150)."""
    if not state.traits.tree and len(state.nodes) > 1:
        yield Breach(f"route {state.opened.route!r} has no tree, and {len(state.nodes) - 1} nodes are there")


@law
def every_node_hangs_in_its_parent(state: State) -> Iterator[Breach]:
    """Parent and child name each other, by the child's first page, and there is no other child."""
    links = 0
    for number, node in state.nodes.items():
        if node.id != number:
            yield Breach(f"node {node.id} stands under number {number}")
        links += len(node.children or ())
        parent = node.parent
        if node is not state.root and (
            parent is None
            or state.nodes.get(parent.id) is not parent
            or (parent.children or {}).get(child_key(node, state.stride)) is not node
        ):
            yield Breach(f"node {number} does not hang in node {parent.id if parent else 'none'}")
    if links != len(state.nodes) - 1:
        yield Breach(f"{links} children hang in {len(state.nodes)} nodes")


@law
def every_node_has_whole_pages(state: State) -> Iterator[Breach]:
    """A node has at least one page, a key as long as its pages, SWA pages for all of them or none, and so with FULL and
    HOST pages, of which it has some (R82).
    """
    stride = state.stride
    for node in below_the_root(state):
        full, swa, host, size = len(node.full), len(node.swa), len(node.host), 4 * node.pages
        whole = (full == size or not full) and (swa == size or not swa) and (host == size or not host)
        if size < 4 or len(node.key) != stride * node.pages or not whole or not (full or host):
            lengths = len(node.key), full, swa, host
            yield Breach(f"node {node.id} has {node.pages} pages; bytes of key, FULL, SWA, HOST: {lengths}")


@law
def a_node_ends_behind_its_parent(state: State) -> Iterator[Breach]:
    """A node covers [parent's end, its end) of its path."""
    for node in below_the_root(state):
        start = node.parent.end if node.parent else 0
        if node.end != start + node.pages:
            yield Breach(
                f"node {node.id} of {node.pages} pages begins at page {start} and ends at {node.end}"
            )


@law
def numbers_of_nodes_and_marks_are_used_once(state: State) -> Iterator[Breach]:
    """The next node and boundary mark are above all that are there; a mark stands on one node (A23)."""
    if max(state.nodes) >= state.next_node:
        yield Breach(f"node {max(state.nodes)} exists, the next is {state.next_node}")
    marks = Counter(node.boundary for node in state.nodes.values() if node.boundary)
    for mark, count in marks.items():
        if count > 1 or not 0 < mark < state.next_boundary:
            yield Breach(f"boundary {mark} stands on {count} nodes, the next is {state.next_boundary}")


# -- locks ---------------------------------------------------------------------------------------------------


@law
def no_lock_count_is_negative(state: State) -> Iterator[Breach]:
    """What was released had been acquired (R122)."""
    for node in state.nodes.values():
        if min(node.anchors, node.holds, node.swa_locks) < 0:
            yield Breach(
                f"node {node.id}: {node.anchors} anchors, {node.holds} holds, {node.swa_locks} window locks"
            )


@law
def a_node_is_held_by_its_receipts_and_its_held_children(state: State) -> Iterator[Breach]:
    """`holds` counts the receipts anchored here and the children that are held: a path is held whole (R111)."""
    for node in state.nodes.values():
        children = sum(1 for child in (node.children or {}).values() if child.holds > 0)
        if node.holds != node.anchors + children:
            yield Breach(
                f"node {node.id} has {node.holds} holds: {node.anchors} receipts, {children} held children",
                expected=node.anchors + children,
                found=node.holds,
            )


@law
def a_locked_window_lies_on_a_held_path(state: State) -> Iterator[Breach]:
    """A receipt locks the window of the node it is anchored at, if there are any, and no window is locked without FULL."""
    for node in below_the_root(state):
        anchored = node.anchors if state.tail_pages else 0
        if anchored > node.swa_locks or (node.swa_locks > 0 and node.holds <= 0):
            yield Breach(
                f"node {node.id}: {node.anchors} anchors, {node.holds} holds, {node.swa_locks} window locks"
            )


@law
def locks_are_those_of_the_receipts(state: State) -> Iterator[Breach]:
    """Counts are what the receipts of live requests and loads give; more only where callers hold receipts of their own."""
    owned = [request.receipt for request in state.requests.values()]
    owned += [transfer.receipt for transfer in state.transfers.values()]
    receipts = [receipt for receipt in owned if receipt is not None]
    anchors = Counter(receipt.node for receipt in receipts)
    windows = _window_locks(state, receipts)
    strangers = sum(node.anchors for node in state.nodes.values()) != len(receipts)
    for node in state.nodes.values():
        found, known = (node.anchors, node.swa_locks), (anchors[node.id], windows[node.id])
        if found != known and not (strangers and found[0] >= known[0] and found[1] >= known[1]):
            yield Breach(f"node {node.id}: anchors and window locks {found}, receipts give {known}")


def _window_locks(state: State, receipts: list[Receipt]) -> Counter[int]:
    """How often the segments of these receipts run through each node; without windows there are none."""
    if not state.tail_pages:
        return Counter()
    return Counter(
        node.id for receipt in receipts for node in segment(state.nodes[receipt.node], receipt.boundary)
    )


@law
def protected_pages_equal_a_recount(state: State) -> Iterator[Breach]:
    """Protected are the FULL pages of held nodes and the SWA pages of live nodes in locked windows (R118, R123)."""
    full = sum(len(node.full) >> 2 for node in below_the_root(state) if node.holds > 0)
    swa = sum(len(node.swa) >> 2 for node in below_the_root(state) if node.swa_locks > 0)
    for pool, expected, found in ((0, full, state.full_protected), (1, swa, state.swa_protected)):
        if expected != found:
            text = f"{found} {('FULL', 'SWA')[pool]} pages are counted as protected, there are {expected}"
            yield Breach(text, pool, expected=expected, found=found)


# -- recency and victims -------------------------------------------------------------------------------------


@law
def no_tick_is_ahead_of_the_clock(state: State) -> Iterator[Breach]:
    """Recency is the clock of some use in the past."""
    for node in state.nodes.values():
        if max(node.tick, node.swa_tick) > state.clock:
            yield Breach(
                f"node {node.id} has ticks {node.tick} and {node.swa_tick}, the clock is {state.clock}"
            )


@law
def what_was_refreshed_last_ages_towards_the_root(state: State) -> Iterator[Breach]:
    """Of the live nodes that the last use refreshed, no ancestor is younger than its descendant (R80).

    Equal they may be where the path was cut since.
    """
    for last in below_the_root(state):
        if last.tick == state.clock:
            refreshed = state.clock - (last.end if state.traits.refreshes_path else state.tail_pages)
            younger = state.clock
            for node in path_up(last):
                if node.swa and node.swa_tick > refreshed:
                    if node.swa_tick > younger:
                        yield Breach(
                            f"node {node.id} has tick {node.swa_tick}, its descendant {younger}",
                            expected=younger,
                            found=node.swa_tick,
                        )
                    younger = node.swa_tick


@law
def every_victim_is_in_its_order(state: State) -> Iterator[Breach]:
    """A node that nothing holds waits among the FULL victims if it ends what is on the device, among the host victims
    if it is a childless copy; a live one in no locked window among the SWA victims. Once each, at its tick or an older
    one (R69, R103).
    """
    waiting = _waiting(state.leaf_order), _waiting(state.window_order), _waiting(state.host_order)
    for node in below_the_root(state):
        leaf = bool(node.full) and not node.holds and _ends(node) and not is_unread(state, node)
        window = bool(node.swa) and not node.swa_locks
        copy = bool(node.host) and not (node.full or node.backup or node.children or node.holds)
        for flag, candidate, order in zip(_ORDER_FLAGS, (leaf, window, copy), waiting, strict=True):
            ticks = order.get(id(node), ())
            if (candidate and not ticks) or bool(node.queued & flag) != bool(ticks) or len(ticks) > 1:
                yield Breach(f"node {node.id} is {len(ticks)} times in order {flag}, candidate: {candidate}")
            elif ticks and ticks[0] > (tick := _waits_at(state, node, flag)):
                yield Breach(f"node {node.id} waits in order {flag} at tick {ticks[0]}, it has {tick}")


_ORDER_FLAGS = (IN_LEAF_ORDER, IN_WINDOW_ORDER, IN_HOST_ORDER)


def _ends(node: Node) -> bool:
    """Whether no child has FULL pages."""
    return node.children is None or not any(child.full for child in node.children.values())


def _waits_at(state: State, node: Node, flag: int) -> int:
    """The tick by which a node waits in an order, if it has to."""
    if flag == IN_LEAF_ORDER:
        return age(state, node)
    return node.swa_tick if flag == IN_WINDOW_ORDER else node.tick


def _waiting(order: Order) -> dict[int, tuple[int, ...]]:
    """The ticks at which each node waits in an order, by the node's identity."""
    found: dict[int, tuple[int, ...]] = {}
    for tick, _, node in order:
        name = id(node)
        found[name] = (*found[name], tick) if name in found else (tick,)
    return found


@law
def an_order_of_victims_is_a_heap(state: State) -> Iterator[Breach]:
    """Whoever waits longest comes first."""
    for order in (state.leaf_order, state.window_order, state.state_order, state.host_order):
        for place in range(1, len(order)):
            (tick, node, _), (before, above, _) = order[place], order[(place - 1) // 2]
            if tick < before or (tick == before and node < above):
                yield Breach(f"place {place} of an order of victims is older than the one before it")


LAWS = (
    the_root_is_empty_and_first,
    a_tree_grows_only_where_there_is_one,
    every_node_hangs_in_its_parent,
    every_node_has_whole_pages,
    a_node_ends_behind_its_parent,
    numbers_of_nodes_and_marks_are_used_once,
    no_lock_count_is_negative,
    a_node_is_held_by_its_receipts_and_its_held_children,
    a_locked_window_lies_on_a_held_path,
    locks_are_those_of_the_receipts,
    protected_pages_equal_a_recount,
    no_tick_is_ahead_of_the_clock,
    what_was_refreshed_last_ages_towards_the_root,
    every_victim_is_in_its_order,
    an_order_of_victims_is_a_heap,
)
