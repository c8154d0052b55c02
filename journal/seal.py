"""Sealing: a finished live segment becomes its compressed, indexed form.

Every frame is read back and checked on the way, so that a live file is only given up for a sealed one that
says the same. Rule: atomic — the sealed file is complete and durable before it has its name, and the
live file goes after that; a crash at any point leaves one of the two to read, or both.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import suppress

from radixledger.journal.block import BLOCK_BYTES, encode_block
from radixledger.journal.codec import NotEvents
from radixledger.journal.disk import Disk, publish
from radixledger.journal.errors import Damaged
from radixledger.journal.events import AnyEvent, Closed, Digested, LedgerTaken, Snapshotted
from radixledger.journal.frame import RawFrame
from radixledger.journal.live import LiveSegment
from radixledger.journal.sealed import Footer, IndexEntry, encode_footer, pack_index
from radixledger.journal.segment import Form, SegmentFile, encode_heading, segment_name
from radixledger.journal.units import Seq

DIGESTS = Digested | LedgerTaken | Snapshotted | Closed
"""The events that record a digest of the state."""

DIGEST_SEARCH_BLOCKS = 8
"""The digest in a footer is looked for in this many last blocks; digests are recorded more often than that."""


def seal(listed: SegmentFile, disk: Disk, *, until: int | None = None) -> SegmentFile:
    """Make the sealed form of a live segment and take the live file away; the sealed file.

    Numbers from `until` on are left out: a later segment tells them again. A torn end is left out and counted
    in the footer. Raises what reading raises (the live file then stays as it is), FileExistsError where something has the
    name already, and OSError.
    """
    assert listed.form is Form.LIVE
    path = listed.path.with_name(segment_name(listed.seq_first, Form.SEALED))
    if path.exists():  # whoever put it there: a finished segment is sealed once
        raise FileExistsError(f"{path.name} is there already, and is not written over")
    live = LiveSegment(listed)
    try:
        publish(disk, path, _Sealing(live, until).chunks())
    finally:
        live.close()
    with suppress(FileNotFoundError):
        disk.remove(listed.path)
    return SegmentFile(path, listed.seq_first, Form.SEALED)


class _Sealing:
    """The state of one pass over a live segment."""

    def __init__(self, live: LiveSegment, until: int | None) -> None:
        self.live, self.until = live, until
        self.index: list[IndexEntry] = []
        self.latest: deque[list[RawFrame]] = deque(maxlen=DIGEST_SEARCH_BLOCKS)
        self.events = self.frames = self.torn_bytes = 0

    def chunks(self) -> Iterator[bytes]:
        """The bytes of the sealed file, a block at a time."""
        heading = self.live.heading
        chunk = encode_heading(heading, Form.SEALED)
        offset, chain, chain_after = len(chunk), heading.chain, heading.chain
        yield chunk
        for frames, chain_after in self._groups():
            chunk = encode_block(frames, chain, chain_after)
            chain = chain_after
            self._note(frames, offset)
            offset += len(chunk)
            yield chunk
        yield encode_footer(self._footer(chain_after), offset)

    def _groups(self) -> Iterator[tuple[list[RawFrame], bytes]]:
        """Frames by the block, each group with the chain after it."""
        group: list[RawFrame] = []
        size = 0
        chain = self.live.heading.chain
        for raw, chain in self._frames():
            group.append(raw)
            size += len(raw.body)
            if size >= BLOCK_BYTES:
                yield group, chain
                group, size = [], 0
        if group:
            yield group, chain

    def _frames(self) -> Iterator[tuple[RawFrame, bytes]]:
        while (raw := self.live.frames.read()) is not None:
            if self.until is not None and raw.seq_begin >= self.until:
                return
            assert self.live.chain is not None, "a frame that was read has a chain"
            yield raw, self.live.chain
        self.torn_bytes = self.live.torn_bytes

    def _note(self, frames: list[RawFrame], offset: int) -> None:
        self.index.append(IndexEntry(frames[0].seq_begin, max(each.time_ns for each in frames), offset))
        self.latest.append(frames)
        self.events += sum(each.event_count for each in frames)
        self.frames += len(frames)

    def _footer(self, chain: bytes) -> Footer:
        last = self.latest[-1][-1] if self.latest else None
        digest_seq, digest = self._last_digest()
        return Footer(
            seq_next=last.seq_next if last else self.live.heading.seq_first,
            chain=chain,
            events=self.events,
            frames=self.frames,
            live_bytes=self.live.frames.offset,
            torn_bytes=self.torn_bytes,
            time_last_ns=last.time_ns if last else self.live.heading.created_ns,
            step_last=last.step if last else 0,
            digest_seq=digest_seq,
            digest=digest,
            index=pack_index(self.index),
        )

    def _last_digest(self) -> tuple[int, bytes]:
        """The last event among the latest blocks that records a digest of the state, and that digest."""
        for frames in reversed(self.latest):
            for raw in reversed(frames):
                events = self._decoded(raw)
                for seq, event in reversed(list(enumerate(events, raw.seq_first))):
                    if isinstance(event, DIGESTS) and event.digest:
                        return seq, event.digest
        return 0, b""

    def _decoded(self, raw: RawFrame) -> list[AnyEvent]:
        """The events of a frame; raises Damaged where a foreign writer put down what are none."""
        try:
            return self.live.heading.decoder().decode(raw.body, raw.event_count)
        except NotEvents as error:
            reason = f"frame {raw.seq_first} does not hold what it says: {error}"
            after = Seq(raw.seq_begin - 1)
            raise Damaged(self.live.path, offset=0, after=after, reason=reason) from None
