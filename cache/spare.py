"""Window pages that no boundary can need: they are spare, and the first to go where `swa_victims` is `use`.

A request starts from a boundary, and needs the window before it. Where the next one will start is guessed from the
tree: behind a leaf; where paths branch; and where a prompt ended whose answer nobody has taken up yet (`Node.asked`). A
next prompt may repeat the answer word for word, and then it starts behind the leaf. Or it leaves the path at the end of
the last prompt, somewhat before it even (answers without their thoughts, templates, prompts that are named by coarse
parts), so half a window more is kept there. A page is needed if such a boundary lies at or below it, within that
distance, and all pages between are live; every other page of an unlocked window is spare.

Called by `evolve`, and read by deciders. Rules: looking down follows only children and ends `reach_pages` below, so that
the question costs a few steps whatever is cached; whatever can make a page spare offers the nodes that far above it.
The state of a rank that evicts by recency alone has no order of spare nodes, and nothing here happens.
"""

from heapq import heappush

from radixledger.cache.state import IN_SPARE_ORDER, Node, Request, State
from radixledger.cache.weights import ANSWERS, ASKED
from radixledger.cache.window import key_length
from radixledger.journal.units import ROOT, TokenCount


def spare_pages(state: State, node: Node) -> int:
    """How many of the first pages of `node` no boundary can need; all of them are live or none."""
    return max(0, node.pages - needed_pages(state, node))


def needed_pages(state: State, node: Node) -> int:
    """How many pages that end where `node` does a boundary may need that lies there or below."""
    far, below = state.reach_pages, 0
    while not node.asked:
        children = node.children
        if children is None or len(children) != 1:
            return max(0, state.tail_pages - below)
        (node,) = children.values()
        below += node.pages
        if below >= far or not node.swa:
            return 0
    return far - below  # whatever lies below needs less


def offer_spare(state: State, node: Node) -> None:
    """Enter a node into the order of spare nodes if it has pages that may go and that nobody can need."""
    order = state.spare_order
    if order is None or not node.swa or node.swa_locks or node.queued & IN_SPARE_ORDER:
        return
    if spare_pages(state, node):
        node.queued |= IN_SPARE_ORDER
        heappush(order, (node.swa_tick, node.id, node))


def offer_above(state: State, node: Node) -> None:
    """What is below `node` has changed, or that it ends something: it and those above it may be spare by now."""
    order = state.spare_order
    if order is None:
        return
    far = span = state.reach_pages
    needed = needed_pages(state, node)  # and of each node above worked out from the one below it
    while span > 0 and node.parent is not None:
        pages = node.pages
        if node.swa:
            if pages > needed and not (node.swa_locks or node.queued & IN_SPARE_ORDER):
                node.queued |= IN_SPARE_ORDER
                heappush(order, (node.swa_tick, node.id, node))
            needed -= pages
        else:
            needed = 0
        span -= pages
        node = node.parent
        if node.children is None or len(node.children) != 1:
            return
        if node.asked:
            needed = far


# -- prompts and their answers -------------------------------------------------------------------------------


def prompt_pages(state: State, request: Request) -> int:
    """The whole pages that the key of a request's prompt has."""
    return key_length(TokenCount(request.prompt), state.lookahead) // state.page_size


def asks(state: State, request: Request) -> Node | None:
    """The node at which a live request's prompt ends, once all of it is the tree's; None before and without `use`."""
    if state.spare_order is None:
        return None
    node = state.nodes.get(request.node)
    return node if node is not None and 0 < node.end == prompt_pages(state, request) else None


def ask(state: State, node: Node | None) -> None:
    """One prompt more ends here and waits for what will be made of its answer."""
    if node is not None:
        node.asked += 1
        state.tree_digest += node.weight * ASKED


def withdraw(state: State, node: Node | None) -> None:
    """One prompt less."""
    if node is not None and node.asked:
        node.asked -= 1
        state.tree_digest -= node.weight * ASKED
        offer_above(state, node)


def answer(state: State, leaf: Node, asked: Node) -> None:
    """`leaf` ends the answer to the prompt that ends at `asked`, which goes on waiting until the leaf gets a child."""
    take_up(state, leaf)
    _name(state, leaf, asked)


def take_up(state: State, leaf: Node) -> None:
    """Somebody goes on behind an answer, so nobody will leave the path at its prompt; or the answer is gone."""
    withdraw(state, forget(state, leaf))


def forget(state: State, leaf: Node) -> Node | None:
    """`leaf` is no answer any more; returns where its prompt ends, still waiting."""
    if leaf.answers == ROOT:
        return None
    asked = state.nodes.get(leaf.answers)
    state.tree_digest -= leaf.weight * (ANSWERS * leaf.answers)
    leaf.answers = ROOT
    return asked


def will(state: State, leaf: Node) -> Node | None:
    """A leaf is about to go: where the prompt ends whose answer it ended, if that is somewhere above it."""
    asked = forget(state, leaf)
    if asked is leaf:
        withdraw(state, leaf)
        return None
    return asked


def bequeath(state: State, asked: Node | None, parent: Node) -> None:
    """A leaf under `parent` is gone that ended the answer to `asked`: what is left of its path ends it, if that is a leaf
    at or below the prompt's end.
    """
    if asked is None:
        return
    if parent.children is None and parent.answers == ROOT and parent.end >= asked.end:
        _name(state, parent, asked)
    else:
        withdraw(state, asked)


def _name(state: State, leaf: Node, asked: Node) -> None:
    leaf.answers = asked.id
    state.tree_digest += leaf.weight * (ANSWERS * leaf.answers)
