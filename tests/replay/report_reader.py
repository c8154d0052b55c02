"""Reads a report as its own page does, written anew from what `bundle` and `packet` say: the second witness of the format."""

import base64
import gzip
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DATA = re.compile(
    r'<script type="text/plain" class="track" data-track="(\d+)" data-label="([^"]*)">([^<]*)</script>'
)


class Varints:
    """Numbers in a row of bytes."""

    def __init__(self, coded: bytes) -> None:
        self.coded, self.at = coded, 0

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.coded[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def signed(self) -> int:
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def ascending(self) -> list[int]:
        numbers, before = [], 0
        for _ in range(self.unsigned()):
            before += self.signed()
            numbers.append(before)
        return numbers

    def fields(self, before: list[int]) -> list[int]:
        after = list(before)
        for _ in range(self.unsigned()):
            place = self.unsigned()
            after[place] += self.signed()
        return after


class ReadTrack:
    """One rank of a report; `to` folds its packets up to an event that one of them tells."""

    def __init__(self, coded: str) -> None:
        raw = gzip.decompress(base64.b64decode(coded))
        (size,) = struct.unpack_from("<I", raw)
        self.head: dict[str, Any] = json.loads(raw[4 : 4 + size])
        self._columns = {
            name: raw[4 + size + at :][:length] for name, (at, length) in self.head["columns"].items()
        }
        self.seq, self.time, self.step = (self._column(name, deltas=True) for name in ("seq", "time", "step"))
        self.tag, self.cause, self.request = (self._column(name) for name in ("tag", "cause", "request"))
        self.line = self._column("line", deltas=True)
        self.lines = self._columns["lines"].decode().split("\n")
        ends = np.cumsum(self._column("size"))
        self._bodies = [
            self._columns["bodies"][end - size : end]
            for end, size in zip(ends, self._column("size"), strict=True)
        ]
        sizes = [self._largest(pool) + 1 for pool in self.head["pools"]]
        self.account: list[NDArray[np.int64]] = [np.zeros(size, np.int64) for size in sizes]
        self.since: list[NDArray[np.int64]] = [np.zeros(size, np.int64) for size in sizes]
        self.mapped = np.zeros(sizes[0], np.int64)
        self.nodes: dict[int, list[int]] = {}
        self.requests: dict[int, list[int]] = {}
        self.numbers = [0] * len(self.head["number_fields"])
        self.place = -1

    def stops(self) -> Iterator[int]:
        """Fold packet by packet; after each, the event behind which the tables stand."""
        for place in range(self.place + 1, len(self.seq)):
            self._write(place)
            self.place = place
            yield self.seq[place]

    def named(self, kind: str, record: list[int]) -> dict[str, int]:
        return dict(zip(self.head[f"{kind}_fields"], record, strict=True))

    def _largest(self, pool: str) -> int:
        place = self.head["number_fields"].index(f"{pool}_capacity")
        return max((numbers[place] for numbers in self.head["buckets"]["numbers"]), default=0)

    def _column(self, name: str, *, deltas: bool = False) -> list[int]:
        reader, numbers, before = Varints(self._columns[name]), [], 0
        for _ in range(self.head["packets"]):
            before = reader.signed() + (before if deltas else 0)
            numbers.append(before)
        assert reader.at == len(reader.coded)
        return numbers

    def _write(self, place: int) -> None:
        reader = Varints(self._bodies[place])
        for pool in range(4):
            for _ in range(reader.unsigned()):
                kind = reader.unsigned()
                account = kind | reader.unsigned() << 3
                since = self.seq[place] - reader.unsigned()
                pages = reader.ascending()
                self.account[pool][pages], self.since[pool][pages] = account, since
        for full in reader.ascending():
            self.mapped[full] = reader.signed()
        self._records(reader, self.nodes, len(self.head["node_fields"]))
        self._records(reader, self.requests, len(self.head["request_fields"]))
        self.numbers = reader.fields(self.numbers)
        assert reader.at == len(reader.coded)

    def _records(self, reader: Varints, table: dict[int, list[int]], wide: int) -> None:
        for number in reader.ascending():
            del table[number]
        number = 0
        for _ in range(reader.unsigned()):
            number += reader.signed()
            table[number] = reader.fields(table.get(number, [0] * wide))


def tracks_of(page: Path) -> list[ReadTrack]:
    """The ranks of a report, in order."""
    return [ReadTrack(coded) for _, _, coded in DATA.findall(page.read_text("utf-8"))]
