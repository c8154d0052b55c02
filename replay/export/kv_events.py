"""What the cache holds, block by block, in the wire form that vLLM and SGLang publish for routers.

A block is one page of a prefix that the tree keeps; its hash covers everything before it, so that equal hashes mean equal
prefixes. What an event looks like: `kv_wire`.

Rule 1: a batch is what one frame of the journal did; frames that change no block make none, and batches are numbered from 0, so
that the same journal gives the same batches whenever it is read. Rule 2: told is where FULL pages are, on the device or on the host; a
hit needs live SWA behind it too, which this form has no word for. Rule 3: where events are missing nothing is held that is known; told is
from there on what events say of blocks, and of those that stand before these.
"""

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from radixledger.cache.state import Node, State
from radixledger.journal.causes import Operation
from radixledger.journal.events import (
    Adopted,
    BackupEnded,
    Demoted,
    Flushed,
    HostDropped,
    LoadEnded,
    Opened,
    Removed,
    Split,
    Transferred,
)
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.redact import PLAIN
from radixledger.journal.units import FIRST, ROOT, NodeId
from radixledger.replay.export.kv_wire import (
    DEVICE,
    HOST,
    AllBlocksCleared,
    Batch,
    BlockRemoved,
    BlockStored,
    KvEvent,
)
from radixledger.replay.fold import check_opened
from radixledger.replay.known import Known
from radixledger.replay.seek import beginning_of, standing_in

_POSITIVE = (1 << 63) - 1
"""Hashes are positive in 64 bits with and without a sign."""


class _Blocks(NamedTuple):
    """A node's blocks: the hash before them, theirs, and the key bytes that they were made of."""

    parent: int | None
    hashes: list[int]
    key: bytes
    above: int


class KvEvents:
    """Follows the tree of one rank; give it every frame from the first, or from where `state` ends.

    Memory grows with the tree. Raises Unfoldable where an `Opened` opens nothing. A journal that was broken gives what it says: a node that was never told of holds nothing.
    known: what may stand in where events are missing.
    """

    def __init__(self, opened: Opened, known: Known | None = None) -> None:
        check_opened(opened, FIRST)
        self.known = known or Known()
        self._losses = 0
        self._nodes: dict[int, _Blocks] = {}
        self._unsure: dict[int, int] = {}
        """Nodes that may be gone from the device, because events are missing, by the node above each."""
        self._held: dict[str, set[int]] = {DEVICE: set(), HOST: set()}
        """Nodes that were told to be held, by medium."""
        self._begin(opened)
        self._by_type: dict[type, Callable[[Any], Iterator[KvEvent]]] = {
            Opened: self._opened,
            Transferred: self._transferred,
            Split: self._split,
            Removed: self._removed,
            Flushed: self._flushed,
            Demoted: lambda event: self._gone(event.node, DEVICE),
            HostDropped: lambda event: self._gone(event.node, HOST),
            Adopted: lambda event: self._stored(event.node, DEVICE),
            BackupEnded: lambda event: self._stored(event.node, HOST) if event.landed else iter(()),
            LoadEnded: lambda event: self._stored(event.node, DEVICE) if event.landed else iter(()),
        }

    def _begin(self, opened: Opened) -> None:
        self._clear()
        self._rank, self._stride = int(opened.rank), opened.stride
        self._page_size = opened.config.page_size
        self._words = opened.stride // 4 // opened.config.page_size if opened.redaction == PLAIN else 0
        """int32 words of a key unit; a pair's first one is its token. 0: keys are hashes."""

    def standing(self, state: State) -> list[KvEvent]:
        """What a state holds that the journal begins with, as events."""
        self._clear()
        events: list[KvEvent] = [AllBlocksCleared()]
        waiting: list[Node] = [state.root]
        while waiting:
            node = waiting.pop()
            waiting += (node.children or {}).values()
            if node.parent is None:
                continue
            self._put(node.id, node.parent.id, node.key, node.namespace)
            events += self._stored(node.id, DEVICE) if node.full else ()
            events += self._stored(node.id, HOST) if node.host and not node.backup else ()
        return events

    def batch(self, frame: Frame) -> Batch | None:
        """What a frame did to blocks; None where it did nothing."""
        for seq, event in enumerate(frame.events, frame.seq_first):
            if isinstance(event, Opened):
                check_opened(event, seq)
        events = [
            told for seq, event in enumerate(frame.events, frame.seq_first) for told in self._of(seq, event)
        ]
        return Batch(frame.time_ns / 1e9, events, self._rank) if events else None

    def _of(self, seq: int, event: Any) -> Iterator[KvEvent]:
        stands_in = self.known.look(seq, event)
        if self._losses != self.known.losses:
            self._losses = self.known.losses
            self._unsure |= {number: blocks.above for number, blocks in self._nodes.items()}
            self._clear_told()
            yield AllBlocksCleared()
        if stands_in is not None:
            yield from self.standing(stands_in)
        told = self._by_type.get(type(event))
        if told is not None:
            yield from told(event)

    def _opened(self, event: Opened) -> Iterator[KvEvent]:
        self._begin(event)
        yield AllBlocksCleared()

    def _flushed(self, _: Flushed) -> Iterator[KvEvent]:
        self._clear()
        yield AllBlocksCleared()

    def _clear(self) -> None:
        """There is no node any more."""
        self._nodes.clear()
        self._unsure.clear()
        self._clear_told()

    def _clear_told(self) -> None:
        for held in self._held.values():
            held.clear()

    def _transferred(self, event: Transferred) -> Iterator[KvEvent]:
        self._put(event.node, event.parent, event.key, event.namespace)
        return self._stored(event.node, DEVICE)

    def _put(self, node: NodeId, parent: NodeId, key: bytes, namespace: bytes) -> None:
        self._nodes.pop(node, None)
        self._unsure.pop(node, None)
        above = self._nodes.get(parent)
        if above is None and parent != ROOT:
            return  # what stands before it is not known, and so no hash of it
        before = above.hashes[-1] if above is not None and above.hashes else None
        last = (
            before.to_bytes(8, "little") if before is not None else blake2b(namespace, digest_size=8).digest()
        )
        hashes = []
        for at in range(0, len(key), self._stride):
            last = blake2b(last + key[at : at + self._stride], digest_size=8).digest()
            hashes.append(int.from_bytes(last, "little") & _POSITIVE)
            last = hashes[-1].to_bytes(8, "little")
        self._nodes[node] = _Blocks(before, hashes, key, parent)

    def _split(self, event: Split) -> Iterator[KvEvent]:
        blocks = self._nodes.get(event.node)
        if blocks is not None:
            cut = len(event.full or event.host) >> 2
            upper, at = int(event.upper), cut * self._stride
            self._nodes[upper] = _Blocks(blocks.parent, blocks.hashes[:cut], blocks.key[:at], blocks.above)
            before = blocks.hashes[cut - 1] if 0 < cut <= len(blocks.hashes) else blocks.parent
            self._nodes[event.node] = _Blocks(before, blocks.hashes[cut:], blocks.key[at:], upper)
            for held in self._held.values():
                held |= {upper} if event.node in held else set()
            if event.node in self._unsure:
                self._unsure |= {upper: blocks.above, int(event.node): upper}
        return iter(())

    def _removed(self, event: Removed) -> Iterator[KvEvent]:
        if event.full and event.cause >> 5 != Operation.FLUSH:  # a flush is told as a whole, at its end
            yield from self._gone(event.node, DEVICE)
        self._nodes.pop(event.node, None)
        self._unsure.pop(event.node, None)
        for held in self._held.values():
            held.discard(event.node)

    def _gone(self, node: NodeId, medium: str) -> Iterator[KvEvent]:
        if medium == DEVICE:
            self._unsure.pop(node, None)
        if node in self._held[medium]:
            self._held[medium].discard(node)
            yield BlockRemoved(self._nodes[node].hashes, medium)

    def _stored(self, node: NodeId, medium: str) -> Iterator[KvEvent]:
        blocks = self._nodes.get(node)
        if blocks and node != ROOT:
            yield from self._above(blocks.above)
            if medium == DEVICE:
                self._unsure.pop(node, None)
            yield self._block(node, medium)

    def _above(self, node: int) -> list[BlockStored]:
        """What stands before a block that is stored is held as well, and is told where that was not sure."""
        told: list[BlockStored] = []
        while node in self._unsure:
            told.append(self._block(node, DEVICE))
            node = self._unsure.pop(node)
        return told[::-1]

    def _block(self, node: int, medium: str) -> BlockStored:
        blocks = self._nodes[node]
        self._held[medium].add(node)
        return BlockStored(
            blocks.hashes, blocks.parent, self._tokens(blocks.key), self._page_size, None, medium
        )

    def _tokens(self, key: bytes) -> list[int]:
        if not self._words or len(key) % (4 * self._words):
            return []
        tokens: list[int] = np.frombuffer(key, "<i4")[:: self._words].tolist()
        return tokens


def batches(
    reader: JournalReader,
    frames: Callable[[int], Iterable[Frame]] | None = None,
    known: Known | None = None,
) -> Iterator[Batch]:
    """Every batch of a rank's journal in order, from its first event or the snapshot that stands in for what is gone.

    frames: what gives the frames from an event on (default: those that are there now). known: for who wants to hear where events
    are missing. Raises what the reader raises.
    """
    begin, known = beginning_of(reader), known or Known(standing_in(reader))
    events = KvEvents(reader.opened, known)
    if begin.state is not None:
        yield Batch(0.0, events.standing(begin.state), int(reader.rank))
    given = frames(begin.next_seq) if frames is not None else reader.frames(begin.next_seq)
    for frame in known.frames(reader, given):
        batch = events.batch(frame)
        if batch is not None:
            yield batch
