"""What an image of a state is made of: the values that a snapshot holds, field by field.

Rule: fields are only ever added, at the end and with defaults, so that an image of an earlier build can be read.
"""

from msgspec import Struct

from radixledger.cache.running import Writes
from radixledger.cache.state import Receipt
from radixledger.journal.events import Opened
from radixledger.journal.units import (
    NO_PAGES,
    NO_TRANSFER,
    ROOT,
    BoundaryId,
    NodeId,
    Pages,
    RequestId,
    Seq,
    TransferId,
)


class PoolImage(Struct, frozen=True, array_like=True):
    """One pool: account and since, int64 [capacity + 1]; the two queues, packed pages in order."""

    account: bytes
    since: bytes
    free: bytes
    pending: bytes


class NodeImage(Struct, frozen=True, array_like=True):
    """A node; `parent` is its parent's place in the list of nodes, which has parents before children."""

    id: NodeId
    parent: int
    key: bytes
    full: Pages
    swa: Pages
    namespace: bytes
    anchors: int
    swa_locks: int
    boundary: BoundaryId
    tick: int
    swa_tick: int
    host: Pages = NO_PAGES
    backup: TransferId = NO_TRANSFER
    hits: int = 0
    answers: NodeId = ROOT
    priority: int = 0
    recurrent: Pages = NO_PAGES
    recurrent_tick: int = 0


class TransferImage(Struct, frozen=True, array_like=True):
    """A copy under way."""

    id: TransferId
    node: NodeId
    pages: Pages
    left: int
    gathered: bool
    receipt: Receipt | None


class RequestImage(Struct, frozen=True, array_like=True):
    """A live request with its row: FULL and SWA pages of positions [0, held), state slots, what they track."""

    id: RequestId
    rid: str
    prompt: int
    prefix: int
    node: NodeId
    namespace: bytes
    receipt: Receipt | None
    length: int
    cursor: int
    protected: int
    full: Pages
    swa: Pages
    priority: int = 0
    source: Pages = NO_PAGES
    states: tuple[int, int, int] = (0, 0, 0)
    tracked: tuple[int, int] = (0, 0)


class StateImage(Struct, frozen=True, array_like=True):
    """Everything that `evolve` may ever read."""

    version: int
    opened: Opened
    seq: Seq
    full: PoolImage
    swa: PoolImage
    mapping: bytes
    nodes: list[NodeImage]
    requests: list[RequestImage]
    free_rows: list[int]
    running: list[tuple[int, Writes]]
    clock: int
    next_node: int
    next_boundary: int
    next_request: int
    dangling: int
    group_open: bool
    closed: bool
    totals: tuple[int, int, int, int]
    host: PoolImage
    transfers: list[TransferImage]
    next_transfer: int
    recurrent: PoolImage
