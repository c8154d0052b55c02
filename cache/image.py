"""A state as bytes and back: what a snapshot holds.

An image has what cannot be worked out of the rest; counts, sums, `holds` and the orders of victims are made anew, so
a restored state goes on exactly like the one it was taken from. Keys and namespaces leave as the journal's redactor
writes them. Rule: an image is never trusted. Sizes are compared with the bytes that are there before anything is
built, and what does not fit is a BadImage, not a crash and not a guess.
"""

from collections.abc import Iterator

import msgspec
import numpy as np
from msgspec.structs import replace

from radixledger.cache.config import bounded
from radixledger.cache.image_layout import NodeImage, PoolImage, RequestImage, StateImage, TransferImage
from radixledger.cache.ledger import MappingBook, PoolBook
from radixledger.cache.running import Running
from radixledger.cache.spare import ask, asks
from radixledger.cache.state import Node, Request, State, Transfer
from radixledger.cache.tree import (
    bare_pages,
    child_key,
    offer_leaf,
    offer_state,
    offer_window,
)
from radixledger.cache.window import pages_for
from radixledger.journal.accounts import Kind
from radixledger.journal.codec import UNREADABLE
from radixledger.journal.redact import HASH_BYTES, Redactor
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import (
    ROOT,
    Pages,
)

IMAGE_VERSION = 1


class BadImage(ValueError):
    """The bytes are no image of a state, or of one that a later version took."""


# -- out -----------------------------------------------------------------------------------------------------


def image(state: State, redactor: Redactor | None = None) -> bytes:
    """The image of a state; with a redactor, keys are hashed and `restore` gives a state of stride 8 (J10)."""
    totals = state.totals
    return msgspec.msgpack.encode(
        StateImage(
            version=IMAGE_VERSION,
            opened=replace(state.opened, stride=HASH_BYTES) if redactor else state.opened,
            seq=state.seq,
            full=_pool_image(state.full),
            swa=_pool_image(state.swa),
            recurrent=_pool_image(state.recurrent),
            mapping=state.mapping.swa_of.tobytes(),
            nodes=_node_images(state, redactor),
            requests=[_request_image(state, request, redactor) for request in state.requests.values()],
            free_rows=state.rows.free,
            running=[(step, running.writes) for step, running in state.running.items()],
            clock=state.clock,
            next_node=state.next_node,
            next_boundary=state.next_boundary,
            next_request=state.next_request,
            dangling=state.dangling,
            group_open=state.group_open,
            closed=state.closed,
            totals=(totals.full_evicted, totals.swa_evicted, totals.tombstones, totals.healed),
            host=_pool_image(state.host),
            transfers=[
                TransferImage(each.id, each.node, each.pages, each.left, each.gathered, each.receipt)
                for each in state.transfers.values()
            ],
            next_transfer=state.next_transfer,
        )
    )


def _pool_image(book: PoolBook) -> PoolImage:
    return PoolImage(book.account.tobytes(), book.since.tobytes(), bytes(book.free), bytes(book.pending))


def _preorder(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed((node.children or {}).values()))


def _node_images(state: State, redactor: Redactor | None) -> list[NodeImage]:
    nodes = list(_preorder(state.root))
    places = {node.id: place for place, node in enumerate(nodes)}
    return [
        NodeImage(
            id=node.id,
            parent=places[node.parent.id] if node.parent else -1,
            key=redactor.page_hashes(node.key) if redactor else node.key,
            full=node.full,
            swa=node.swa,
            namespace=redactor.namespace_hash(node.namespace) if redactor else node.namespace,
            anchors=node.anchors,
            swa_locks=node.swa_locks,
            boundary=node.boundary,
            tick=node.tick,
            swa_tick=node.swa_tick,
            host=node.host,
            backup=node.backup,
            hits=node.hits,
            recurrent=node.recurrent,
            recurrent_tick=node.recurrent_tick,
            answers=node.answers,
            priority=node.priority,
        )
        for node in nodes
    ]


def _request_image(state: State, request: Request, redactor: Redactor | None) -> RequestImage:
    rows, row = state.rows, request.row
    length = int(rows.length[row])
    held = pages_for(length, state.page_size)
    return RequestImage(
        id=request.id,
        rid=request.rid,
        prompt=request.prompt,
        prefix=request.prefix,
        node=request.node,
        namespace=redactor.namespace_hash(request.namespace) if redactor else request.namespace,
        receipt=request.receipt,
        length=length,
        cursor=int(rows.cursor[row]),
        protected=int(rows.protected[row]),
        full=Pages(rows.full_table[row, :held].tobytes()),
        swa=Pages(rows.swa_table[row, :held].tobytes()),
        priority=request.priority,
        source=request.source,
        states=tuple(rows.states[row].tolist()),
        tracked=tuple(rows.tracked[row].tolist()),
    )


# -- in ------------------------------------------------------------------------------------------------------


def restore(packed: bytes) -> State:
    """The state that an image was taken of, with no findings; raises BadImage.

    Its digest is the taken state's; whoever knows what that was compares.
    """
    try:
        found = msgspec.msgpack.decode(packed, type=StateImage)
        _check(found)
        return _built(found)
    except (*UNREADABLE, BadConfig, KeyError, IndexError, ValueError, OverflowError) as error:
        raise BadImage(f"this is no image of a state: {error}") from error


def _check(found: StateImage) -> None:
    if found.version != IMAGE_VERSION:
        raise BadImage(f"an image of version {found.version}; this radixledger reads version {IMAGE_VERSION}")
    config = bounded(found.opened).config
    books = (("FULL", found.full, config.full_pages), ("SWA", found.swa, config.swa_pages),
             ("RECURRENT", found.recurrent, config.recurrent_slots), ("HOST", found.host, config.host_pages))  # fmt: skip
    columns: list[tuple[str, bytes, int, int]] = []
    for name, book, pages in books:
        columns += (
            (f"{name} accounts", book.account, pages + 1, 8),
            (f"{name} since", book.since, pages + 1, 8),
        )
    columns.append(("mapping", found.mapping, config.full_pages + 1, 4))
    for name, column, entries, size in columns:
        if len(column) != entries * size:
            raise BadImage(f"{name}: {len(column)} bytes for {entries} entries of {size} bytes")
    if len(found.requests) + len(found.free_rows) != config.rows:
        raise BadImage(
            f"{len(found.requests)} requests and {len(found.free_rows)} free rows of {config.rows}"
        )


def _built(found: StateImage) -> State:
    state = State(found.opened)
    state.seq = found.seq
    _fill_book(state.full, found.full)
    _fill_book(state.swa, found.swa)
    _fill_book(state.host, found.host)
    _fill_transfers(state, found.transfers)
    _fill_book(state.recurrent, found.recurrent)
    _fill_mapping(state.mapping, found.mapping)
    _fill_tree(state, found.nodes)
    state.rows.free = found.free_rows
    for request in found.requests:
        _fill_row(state, request)
    _count_the_asked(state)
    state.running = {step: Running.of(writes) for step, writes in found.running}
    state.clock, state.next_node, state.next_boundary = found.clock, found.next_node, found.next_boundary
    state.next_request, state.dangling = found.next_request, found.dangling
    state.next_transfer = found.next_transfer
    state.group_open, state.closed = found.group_open, found.closed
    totals = state.totals
    totals.full_evicted, totals.swa_evicted, totals.tombstones, totals.healed = found.totals
    return state


def _fill_book(book: PoolBook, found: PoolImage) -> None:
    book.account[:] = np.frombuffer(found.account, "<i8")
    book.since[:] = np.frombuffer(found.since, "<i8")
    book.free, book.pending = bytearray(found.free), bytearray(found.pending)
    counts = np.bincount(book.account & 7, minlength=8).tolist()
    counts[Kind.RESERVED] -= 1
    book.held = counts[: len(Kind)]
    book.kept.look_at_all()


def _fill_transfers(state: State, found: list[TransferImage]) -> None:
    for each in found:
        transfer = Transfer(each.id, each.node, each.pages, each.receipt)
        transfer.left, transfer.gathered = each.left, each.gathered
        state.transfers[each.id] = transfer


def _fill_mapping(book: MappingBook, found: bytes) -> None:
    book.swa_of[:] = np.frombuffer(found, "<i4")
    book.nonzero = int(np.count_nonzero(book.swa_of))
    book.kept.look_at_all()


def _fill_tree(state: State, found: list[NodeImage]) -> None:
    if not found or (found[0].id, found[0].parent) != (state.root.id, -1):
        raise BadImage("the first node is not the root")
    nodes = [state.root]
    _fill_node(state.root, found[0])
    for place, each in enumerate(found[1:], 1):
        if not 0 <= each.parent < place or each.id in state.nodes:
            raise BadImage(f"node {each.id} comes before its parent, or twice")
        pages = len(each.full or each.host)
        if pages % 4 or not pages or len(each.key) * 4 != pages * state.stride:
            raise BadImage(f"node {each.id} has {pages} bytes of pages, {len(each.key)} of keys")
        node = Node(each.id, nodes[each.parent], each.key, each.full, each.swa, each.namespace, each.host)
        _fill_node(node, each)
        nodes.append(node)
        state.nodes[node.id] = node
        _hang(state, node)
    for node in reversed(nodes):
        _derive(state, node)


def _fill_node(node: Node, found: NodeImage) -> None:
    node.anchors, node.swa_locks, node.boundary = found.anchors, found.swa_locks, found.boundary
    node.tick, node.swa_tick, node.answers = found.tick, found.swa_tick, found.answers
    node.backup, node.hits, node.priority = found.backup, found.hits, found.priority
    node.recurrent, node.recurrent_tick = found.recurrent, found.recurrent_tick


def _hang(state: State, node: Node) -> None:
    parent, key = node.parent, child_key(node, state.stride)
    assert parent is not None, "only the root has no parent"
    if parent.children is None:
        parent.children = {}
    if key in parent.children:
        raise BadImage(f"node {node.id} begins like its sibling {parent.children[key].id}")
    parent.children[key] = node


def _derive(state: State, node: Node) -> None:
    """What follows from a node and its children: holds, what is demoted, protected pages, the digest, the orders."""
    node.holds = node.anchors + sum(1 for child in (node.children or {}).values() if child.holds > 0)
    node.demoted = sum(1 for child in (node.children or {}).values() if not child.full)
    if node.parent is None:
        return
    state.host_bare += bare_pages(node)
    state.host_protected += bare_pages(node) if node.holds > 0 else 0
    state.full_protected += len(node.full) >> 2 if node.holds > 0 else 0
    state.swa_protected += len(node.swa) >> 2 if node.swa_locks > 0 else 0
    state.recurrent_protected += int(bool(node.recurrent) and node.anchors > 0)
    offer_leaf(state, node)
    offer_window(state, node)
    offer_state(state, node)


def _count_the_asked(state: State) -> None:
    """Prompts that wait at a node: those of live requests, and those whose answers still are leaves."""
    for request in state.requests.values():
        ask(state, asks(state, request))
    for node in state.nodes.values():
        if node.answers != ROOT:
            ask(state, state.nodes.get(node.answers))


def _fill_row(state: State, found: RequestImage) -> None:
    rows, config, row = state.rows, state.config, state.row_of(found.id)
    held = pages_for(found.length, state.page_size)
    if rows.request[row] or found.id in state.requests:
        raise BadImage(f"request {found.id} stands in a row that is taken")
    if not 0 <= held <= config.context_pages or {len(found.full), len(found.swa)} != {held * 4}:
        raise BadImage(f"request {found.id} has {found.length} tokens and {len(found.full)} bytes of pages")
    rows.request[row], rows.length[row], rows.living = found.id, found.length, b""
    rows.cursor[row], rows.protected[row] = found.cursor, found.protected
    rows.reclaim_at[row] = state.reclaim_due(found.cursor)
    rows.full_table[row, :held] = np.frombuffer(found.full, "<i4")
    rows.swa_table[row, :held] = np.frombuffer(found.swa, "<i4")
    rows.states[row], rows.tracked[row] = found.states, found.tracked
    request = Request(
        found.id, found.rid, row, found.prompt, found.prefix, found.node, found.namespace, found.priority
    )  # fmt: skip
    request.receipt, request.source = found.receipt, found.source
    state.requests[found.id] = request
    state.rids[found.rid] = found.id
