"""What changed from one moment to the next, as values and as bytes.

A packet that tells one event is at full detail; one that tells many has only what is different behind the last of them.
Two neighbours can be merged, and what is left is what is different behind the second.

The bytes are varints (7 bits, low first), signed ones zigzag. A packet has five parts, each with its count first:

    owners    for each of the four pools: groups of pages with one account and one event that made it so:
              kind, holder, age = packet's event - that event, pages (each as its difference from the one before)
    mapping   FULL page (difference), SWA page
    nodes     those that are gone (differences); then those that changed: number (difference), pairs of
              field and difference from the value before (of a new node from 0)
    requests  the same
    numbers   pairs of field and difference

Rule: nothing here reads a state.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Record = tuple[int, ...]
Mapping = tuple[NDArray[np.intp], NDArray[np.int32]]
LIMIT = 1 << 51
"""Numbers between -LIMIT and LIMIT, and their differences, are exact in a browser; ids of lawful journals are far below."""


class Owners(Struct):
    """Pages of one pool, with the account that each is in and the event that made it so."""

    pages: NDArray[np.intp]
    account: NDArray[np.int64]
    since: NDArray[np.int64]


class Packet(Struct):
    """The cells that differ behind event `seq` from what they were behind the packet before.

    tag: the type of the event, 0 where many are told at once. line: its place among the lines, 0 for none.
    """

    seq: int
    time_ns: int
    step: int
    tag: int = 0
    cause: int = 0
    request: int = 0
    line: int = 0
    owners: dict[int, Owners] = {}
    mapping: Mapping | None = None
    nodes: dict[int, Record | None] = {}
    requests: dict[int, Record | None] = {}
    numbers: Record = ()

    @property
    def cells(self) -> int:
        """About how much there is to tell."""
        pages = sum(each.pages.size for each in self.owners.values())
        mapped = self.mapping[0].size if self.mapping else 0
        return pages + mapped + 4 * (len(self.nodes) + len(self.requests)) + 8


def merged(first: Packet, second: Packet) -> Packet:
    """One packet for both: the later word counts."""
    owners = dict(first.owners)
    for pool, later in second.owners.items():
        owners[pool] = _merged_owners(owners[pool], later) if pool in owners else later
    mapping = second.mapping or first.mapping
    if first.mapping and second.mapping:
        full, places = _last_of(np.concatenate([first.mapping[0], second.mapping[0]]))
        mapping = (full, np.concatenate([first.mapping[1], second.mapping[1]])[places])
    return Packet(
        second.seq, second.time_ns, second.step,
        owners=owners, mapping=mapping,
        nodes=first.nodes | second.nodes,
        requests=first.requests | second.requests,
        numbers=second.numbers,
    )  # fmt: skip


def _merged_owners(first: Owners, second: Owners) -> Owners:
    pages, places = _last_of(np.concatenate([first.pages, second.pages]))
    return Owners(
        pages,
        np.concatenate([first.account, second.account])[places],
        np.concatenate([first.since, second.since])[places],
    )


def _last_of(pages: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Each page once, in order, and where it stands last."""
    found, from_the_end = np.unique(pages[::-1], return_index=True)
    return found, len(pages) - 1 - from_the_end


class Encoder:
    """Packets of one rank to bytes, in order: what each is a difference to is remembered."""

    def __init__(self) -> None:
        self._nodes: dict[int, Record] = {}
        self._requests: dict[int, Record] = {}
        self._numbers: Record = ()
        self._out = bytearray()

    def encode(self, packet: Packet) -> bytes:
        """The body of one packet."""
        self._out = bytearray()
        for pool in range(4):
            self._owners(packet.owners.get(pool), packet.seq)
        self._mapping(packet.mapping)
        self._records(packet.nodes, self._nodes)
        self._records(packet.requests, self._requests)
        self._numbers = self._fields(packet.numbers, self._numbers)
        return bytes(self._out)

    def _owners(self, owners: Owners | None, seq: int) -> None:
        if owners is None:
            self._out.append(0)
            return
        groups: dict[tuple[int, int], list[int]] = {}
        for page, account, since in zip(
            owners.pages.tolist(), owners.account.tolist(), owners.since.tolist(), strict=True
        ):
            groups.setdefault((account, since), []).append(page)
        put_unsigned(self._out, len(groups))
        for (account, since), pages in groups.items():
            put_unsigned(self._out, account & 7)
            put_unsigned(self._out, account >> 3)
            put_unsigned(self._out, seq - since)
            self._ascending(pages)

    def _ascending(self, numbers: Sequence[int]) -> None:
        put_unsigned(self._out, len(numbers))
        before = 0
        for number in numbers:
            near = max(-LIMIT, min(LIMIT, number))
            put_signed(self._out, near - before)
            before = near

    def _mapping(self, mapping: Mapping | None) -> None:
        if mapping is None:
            self._out.append(0)
            return
        self._ascending(mapping[0].tolist())
        for swa in mapping[1].tolist():
            put_signed(self._out, swa)

    def _records(self, told: dict[int, Record | None], known: dict[int, Record]) -> None:
        gone = sorted(number for number, record in told.items() if record is None and number in known)
        self._ascending(gone)
        for number in gone:
            del known[number]
        there = sorted((number, record) for number, record in told.items() if record is not None)
        put_unsigned(self._out, len(there))
        before = 0
        for number, record in there:
            near = max(-LIMIT, min(LIMIT, number))
            put_signed(self._out, near - before)
            before = near
            known[number] = self._fields(record, known.get(number, ()))

    def _fields(self, record: Record, before: Record) -> Record:
        base = before or (0,) * len(record)
        bounded = tuple(max(-LIMIT, min(LIMIT, value)) for value in record)
        changed = [place for place, value in enumerate(bounded) if value != base[place]]
        put_unsigned(self._out, len(changed))
        for place in changed:
            put_unsigned(self._out, place)
            put_signed(self._out, bounded[place] - base[place])
        return bounded or before


def put_unsigned(out: bytearray, value: int) -> None:
    """One varint; what is negative or too large for a browser becomes the nearest that is not."""
    value = max(0, min(4 * LIMIT - 1, value))
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def put_signed(out: bytearray, value: int) -> None:
    """One zigzag varint."""
    put_unsigned(out, value << 1 if value >= 0 else (-value << 1) - 1)


def column(values: Iterable[int], *, deltas: bool = False) -> bytes:
    """Numbers one after the other, signed; as differences from the one before where they grow."""
    out, before = bytearray(), 0
    for value in values:
        value = max(-LIMIT, min(LIMIT, value))
        put_signed(out, value - before)
        before = value if deltas else 0
    return bytes(out)
