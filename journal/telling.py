"""What every call of a recorder does: find the numbers, pack the columns, hand the event over.

Part of `recorder`, see there. Rule: what no reader could read back is refused before anything is told, and before a name is
given or taken: a caller that goes on after such an error has told nothing.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from radixledger.journal.accounts import FREE, Account, request_account, tree_account
from radixledger.journal.event import Event
from radixledger.journal.events import AnyEvent
from radixledger.journal.frame import BODY_BYTES_MAX
from radixledger.journal.names import Names
from radixledger.journal.units import NO_PAGES, UNBOUND, NodeId, Pages, RequestId
from radixledger.journal.writer import JournalWriter

PageIds = Sequence[int] | NDArray[np.integer]
"""Page numbers of one pool on this rank, from 1; page 0 is padding and nobody's."""

Told = TypeVar("Told", bound=Event)

ROOT: None = None
"""The root of the tree, where a node is asked for."""


Teller = TypeVar("Teller", bound="Telling")
Given = ParamSpec("Given")
Result = TypeVar("Result")


def in_turn(
    verb: Callable[Concatenate[Teller, Given], Result],
) -> Callable[Concatenate[Teller, Given], Result]:
    """A verb for which other threads wait, from the numbers that it finds to the frame that it writes."""

    @wraps(verb)
    def told(self: Teller, /, *given: Given.args, **named: Given.kwargs) -> Result:
        with self._entry:
            return verb(self, *given, **named)

    return told


class Telling:
    """A writer, and the names that the caller uses."""

    def __init__(self, writer: JournalWriter) -> None:
        self.writer = writer
        self._names = Names(writer.last_seq, writer.opened.config.rows)
        self._nested = 0
        self._entry = RLock()
        self._to: int = FREE
        """Where pages go that are given up: pending while a free group is open."""

    @contextmanager
    def command(self) -> Iterator[None]:
        """What is told inside is one command: one frame, which a torn end loses whole or not at all. Other threads wait."""
        with self._entry:
            self._nested += 1
            try:
                yield
            finally:
                self._nested -= 1
                self._end()

    def _tell(self, event: AnyEvent, then: Callable[[], None] | None = None) -> None:
        """Write an event as a reader will have it; `then` changes names, once it is known that there is such an event."""
        readable = as_read_back(event)
        if then is not None:
            then()
        self.writer.append(readable)
        self._end()

    def _end(self) -> None:
        if not self._nested:
            self.writer.end_command()

    def _id(self, node: Hashable) -> NodeId:
        return self._names.node(node).id

    def _request(self, rid: str | None) -> RequestId:
        return UNBOUND if rid is None else self._names.request(rid)

    def _account(self, rid: str | None, node: Hashable) -> Account:
        return tree_account(self._id(node)) if node is not ROOT else request_account(self._request(rid))


_INT64_BEYOND = 1 << 63
_UINT64 = b"\xcf"
"""How msgpack begins a number of 8 bytes without a sign; other bytes may look like it."""


def _plain(value: object) -> int | str:
    """A number or text of numpy as Python's; raises TypeError for anything else."""
    if isinstance(value, np.integer | np.bool_ | np.str_):
        plain: int | str = value.item()
        return plain
    raise TypeError(f"{type(value).__name__} is nothing that a journal holds")


_pack = msgspec.msgpack.Encoder(enc_hook=_plain).encode
_read_back = msgspec.msgpack.Decoder(AnyEvent).decode


def as_read_back(event: Told) -> Told:
    """The event that a reader of the journal will have; raises ValueError, which names the field, where it will have none."""
    try:
        body = _pack(event)
        if len(body) >= BODY_BYTES_MAX >> 1:
            raise ValueError(f"{len(body)} bytes; no event is longer than {BODY_BYTES_MAX >> 1}")
        readable = _read_back(body)
        assert isinstance(readable, type(event))
        if _UINT64 in body:
            _check_int64(readable)
    except (ValueError, TypeError, OverflowError, msgspec.ValidationError) as error:
        raise ValueError(f"{type(event).__name__} cannot be told: {_named(event, str(error))}") from error
    return readable


def _check_int64(event: Event) -> None:
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if isinstance(value, int) and value >= _INT64_BEYOND:
            raise ValueError(f"{name} is {value}; numbers are int64")


def _named(event: Event, reason: str) -> str:
    """A decoder's reason with the name of the field, where it counts them; the tag is the first."""
    place = re.search(r" - at `\$\[(\d+)\](.*)`$", reason)
    if place is None:
        return reason
    fields = ("tag", *event.__struct_fields__)
    return f"{fields[int(place[1])]}{place[2]}: {reason[: place.start()]}"


def packed(numbers: PageIds) -> Pages:
    """Numbers as packed int32; raises ValueError for what does not fit."""
    wide = np.asarray(numbers)
    if wide.ndim == 1 and not len(wide):
        return NO_PAGES
    if wide.ndim != 1 or wide.dtype.kind not in "iu":
        raise ValueError(
            f"pages and lengths are one row of whole numbers, not {wide.dtype} {list(wide.shape)}"
        )
    if wide.min() < 0 or wide.max() >= 1 << 31:
        raise ValueError(f"numbers from {wide.min()} to {wide.max()} are given; pages and lengths are int32")
    return Pages(wide.astype("<i4").tobytes())


def ids(numbers: Iterable[int]) -> bytes:
    """Numbers of requests or nodes as packed int64."""
    return np.fromiter(numbers, "<i8").tobytes()


def same_length(**columns: Sized) -> None:
    """Raise ValueError where columns that tell of the same things differ in length, TypeError where one is none."""
    for name, column in columns.items():
        if isinstance(column, str | bytes) or not isinstance(column, Sized):
            raise TypeError(f"{name} is a column, not {type(column).__name__}")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise ValueError(f"{told}: they tell of the same requests, one for each")
