"""A batch of frames, flattened: what every event has, and the events of each type side by side.

Rule: one pass over the events, by C loops only (`map`, `attrgetter`, `numpy`); an event is an object
here and nowhere behind this module. `-1` stands for "none" in integer arrays, the tables make it NULL.
"""

import struct
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from radixledger.journal.events import AnyEvent, Event
from radixledger.journal.frame import Frame

Array: TypeAlias = NDArray[Any]
Columns: TypeAlias = dict[str, Array]

NONE = -1

LAST_CAUSE = 2**15 - 1
"""Stands for every cause that has no name today; causes are int16 in columns."""


EVENT_TYPES: tuple[type[Event], ...] = get_args(AnyEvent)

TAGS: dict[type, int] = {kind: int(str(kind.__struct_config__.tag)) for kind in EVENT_TYPES}
"""The number of each event type, as the vocabulary promises it; SQL knows the names by them."""


def fields_of(kind: type[Event], *but: str) -> tuple[str, ...]:
    """The fields of an event in their order, without some."""
    return tuple(name for name in kind.__struct_fields__ if name not in but)


class MalformedEvent(ValueError):
    """An event whose columns do not fit each other, so that nobody can say what it moved.

    No writer of ours makes one; the journal was damaged in a way that its checksums cannot show, or
    somebody else wrote it. `seq` says where, for `radixledger journal cat`.
    """

    def __init__(self, seq: int, kind: type, why: str) -> None:
        super().__init__(f"event {seq} ({kind.__name__}) cannot be read as columns: {why}")
        self.seq, self.kind, self.why = seq, kind, why


class Packed(NamedTuple):
    """A page column of many events, end to end: event i has the next `counts[i]` of `values`."""

    values: Array
    counts: Array

    def spread(self, per_event: Array) -> Array:
        """One value for each event, repeated for each of its pages."""
        return np.repeat(per_event, self.counts)

    def places(self) -> Array:
        """The place of each page in its own event, from 0; int32."""
        firsts = np.cumsum(self.counts) - self.counts
        return (np.arange(len(self.values)) - self.spread(firsts)).astype(np.int32)

    def sums(self) -> Array:
        """The sum of each event's values, int64."""
        running = np.concatenate(([0], np.cumsum(self.values, dtype=np.int64)))
        ends = np.cumsum(self.counts)
        sums: Array = running[ends] - running[ends - self.counts]
        return sums


class Group:
    """All events of one type in a batch; `at` are their places in it, `seq` their sequence numbers."""

    def __init__(self, kind: type[Event], at: Array, seq: Array, events: Sequence[Any]) -> None:
        self.kind, self.at, self.seq, self.events = kind, at, seq, events
        self._ints: dict[str, Array] = {}

    def ints(self, field: str) -> Array:
        """One integer field, int64; raises MalformedEvent for a number that 64 bits cannot hold."""
        column = self._ints.get(field)
        if column is None:
            column = self._ints[field] = self._read_ints(field)
        return column

    def _read_ints(self, field: str) -> Array:
        values = list(map(attrgetter(field), self.events))
        try:
            return np.frombuffer(struct.pack(f"{len(values)}q", *values), np.int64)  # twice as fast as numpy
        except struct.error:
            place = next(i for i, value in enumerate(values) if not -(2**63) <= value < 2**63)
            raise self._malformed(place, f"{field} is {values[place]}") from None

    def objects(self, field: str) -> Array:
        """One field of any type, as it stands."""
        values = np.empty(len(self.events), object)
        values[:] = list(map(attrgetter(field), self.events))
        return values

    def packed(self, field: str, width: int = 4) -> Packed:
        """One packed field of int32 (`width` 4) or int64 (8); raises MalformedEvent for a broken length."""
        columns = list(map(attrgetter(field), self.events))
        counts = self._lengths(field, columns, width)
        return Packed(np.frombuffer(b"".join(columns), f"<i{width}"), counts)

    def lengths(self, field: str, width: int = 4) -> Array:
        """How many numbers a packed field has, int64; raises MalformedEvent for a broken length."""
        return self._lengths(field, list(map(attrgetter(field), self.events)), width)

    def where(self, mask: Array) -> "Group":
        """The events of this group for which `mask` is true."""
        places = mask.nonzero()[0]
        events = [self.events[place] for place in places.tolist()]
        return Group(self.kind, self.at[places], self.seq[places], events)

    def demand(self, holds: Array, why: str) -> None:
        """Raise MalformedEvent for the first event for which `holds` is false."""
        if not holds.all():
            raise self._malformed(int((~holds).nonzero()[0][0]), why)

    def _lengths(self, field: str, columns: list[bytes], width: int) -> Array:
        sizes = np.fromiter(map(len, columns), np.int64, len(columns))
        counts, rest = sizes // width, sizes & (width - 1)
        if rest.any():
            place = int(rest.nonzero()[0][0])
            raise self._malformed(place, f"{field} has {sizes[place]} bytes, no multiple of {width}")
        return counts

    def _malformed(self, place: int, why: str) -> MalformedEvent:
        return MalformedEvent(int(self.seq[place]), self.kind, why)


class Batch(NamedTuple):
    """The events of some frames in the order of the journal; array i is about event i."""

    seq: Array
    time_ns: Array
    step: Array
    epoch: Array
    tag: Array
    cause: Array
    request: Array
    node: Array
    groups: dict[type[Event], Group]

    def group(self, kind: type[Event]) -> Group | None:
        """The events of one type; None when the batch has none."""
        return self.groups.get(kind)


def flatten(frames: Sequence[Frame]) -> Batch:
    """One batch of whole frames, which may lie apart in the journal; raises MalformedEvent."""
    counts = np.fromiter(map(len, map(attrgetter("events"), frames)), np.int64, len(frames))
    seq = _per_frame(frames, counts, "seq_first")
    seq += np.arange(len(seq)) - np.repeat(np.cumsum(counts) - counts, counts)
    events = list(chain.from_iterable(map(attrgetter("events"), frames)))
    tag = np.frombuffer(bytes(map(TAGS.__getitem__, map(type, events))), np.uint8)
    groups = _groups(events, tag, seq)
    return Batch(
        seq=seq,
        time_ns=_per_frame(frames, counts, "time_ns"),
        step=_per_frame(frames, counts, "step"),
        epoch=_per_frame(frames, counts, "epoch").astype(np.int32),
        tag=tag,
        cause=np.minimum(_where_present("cause", groups, len(events)), LAST_CAUSE).astype(np.int16),
        request=_where_present("request", groups, len(events)),
        node=_where_present("node", groups, len(events)),
        groups=groups,
    )


def _per_frame(frames: Sequence[Frame], counts: Array, field: str) -> Array:
    values = np.fromiter(map(attrgetter(field), frames), np.int64, len(frames))
    return np.repeat(values, counts)


def _groups(events: list[Any], tag: Array, seq: Array) -> dict[type[Event], Group]:
    order = np.argsort(tag, kind="stable")
    in_order = list(map(events.__getitem__, order.tolist()))
    _, firsts = np.unique(tag[order], return_index=True)
    groups = {}
    for first, end in zip(firsts.tolist(), [*firsts.tolist()[1:], len(events)], strict=True):
        kind, at = type(in_order[first]), order[first:end]
        groups[kind] = Group(kind, at, seq[at], in_order[first:end])
    return groups


def _where_present(field: str, groups: dict[type[Event], Group], size: int) -> Array:
    """One field over all events, NONE for the types that do not have it."""
    column = np.full(size, NONE, np.int64)
    for kind, group in groups.items():
        if field in kind.__struct_fields__:
            column[group.at] = group.ints(field)
    return column
