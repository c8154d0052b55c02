"""What a page knows of a state, as cells: the records of nodes and requests, and the numbers of the rank.

Rule: cells are read off a state and never worked out from events.
"""

from collections.abc import Callable

from radixledger.cache.state import Node, Request, State
from radixledger.journal.accounts import Kind, Pool
from radixledger.replay.report.packet import Record

NODE_FIELDS = ("parent", "end", "pages", "full", "swa", "host", "backup", "anchors", "holds", "swa_locks", "boundary",
               "recurrent")  # fmt: skip
"""Of a node: its parent's number, where it ends and how long it is (pages); how many pages it has of each pool; locks."""

REQUEST_FIELDS = (
    "rid",
    "prompt",
    "prefix",
    "node",
    "length",
    "cursor",
    "protected",
    "receipt",
    "boundary",
    "priority",
)
"""Of a live request, lengths in tokens. rid: its place among the texts. receipt: the node that it holds, -1 for none."""

KINDS = tuple(kind.name.lower() for kind in Kind)
POOLS = tuple(pool.name for pool in Pool)
NUMBER_FIELDS = (
    *(f"{pool}_{name}" for pool in POOLS for name in ("capacity", *KINDS)),
    "full_protected", "swa_protected", "recurrent_protected", "host_bare", "host_protected", "group_open", "dangling",
    "running", "running_step", "nodes", "requests", "transfers", "epoch",
)  # fmt: skip
"""Of a rank: pages by pool and account (page 0 left out), the locked ones, and what else is open."""


def node_record(node: Node) -> Record:
    """The cells of a node, in the order of NODE_FIELDS."""
    return (
        node.parent.id if node.parent is not None else -1, node.end, node.pages, len(node.full) >> 2, len(node.swa) >> 2,
        len(node.host) >> 2, node.backup, node.anchors, node.holds, node.swa_locks, node.boundary,
        int.from_bytes(node.recurrent[:4], "little"),
    )  # fmt: skip


def request_record(state: State, request: Request, text: Callable[[str], int]) -> Record:
    """The cells of a request, in the order of REQUEST_FIELDS."""
    rows, row, receipt = state.rows, request.row, request.receipt
    return (
        text(request.rid), request.prompt, request.prefix, request.node, int(rows.length[row]), int(rows.cursor[row]),
        int(rows.protected[row]), receipt.node if receipt else -1, receipt.boundary if receipt else 0, request.priority,
    )  # fmt: skip


def numbers_of(state: State) -> Record:
    """The numbers of a rank, in the order of NUMBER_FIELDS."""
    pools = (number for book in state.books for number in (book.capacity, *book.held))
    running = state.running
    return (
        *pools, state.full_protected, state.swa_protected, state.recurrent_protected, state.host_bare,
        state.host_protected, int(state.group_open), state.dangling, len(running), max(running, default=-1),
        len(state.nodes), len(state.requests), len(state.transfers), state.opened.epoch,
    )  # fmt: skip
