"""Events to bytes and back: one msgpack array of events, in the vocabulary of one schema version.

The encoder redacts on the way out where it was given a `Redactor`. The decoder brings events of older
versions up step by step through `UPCASTERS`, and refuses newer ones. Rule: bytes are never trusted; what is built from them
grows with their length and not with what they claim.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from radixledger.journal.events import SCHEMA_VERSION, AnyEvent, Gap
from radixledger.journal.frame import RawFrame
from radixledger.journal.redact import Redactor

RawEvent = list[Any]
"""An event as msgpack holds it: its tag, then its fields in order."""

Upcaster = Callable[[RawEvent], RawEvent]

UPCASTERS: Mapping[int, Upcaster] = {}
"""By schema version: how one raw event of that version is told in the next one. Versions without an
entry differ from the next by fields with defaults only, which need no help."""


UNREADABLE = (msgspec.DecodeError, RecursionError)
"""What decoding raises for bytes that are not what they should be: of another shape, or nested without end."""


class NotEvents(ValueError):
    """The bytes do not hold the events that they should; the message says how."""


class Encoder:
    """Encodes lists of events for a journal; without a redactor, as they are."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._pack = msgspec.msgpack.Encoder().encode
        self._redact = redactor.by_type if redactor else {}

    def encode(self, events: Sequence[AnyEvent]) -> bytes:
        """One frame's body."""
        redact = self._redact
        if redact:
            events = [redact[type(each)](each) if type(each) in redact else each for each in events]
        return self._pack(events)


class Decoder:
    """Decodes frame bodies of schema version `schema`; raises ValueError for one newer than ours."""

    def __init__(self, schema: int = SCHEMA_VERSION, upcasters: Mapping[int, Upcaster] = UPCASTERS) -> None:
        if schema > SCHEMA_VERSION:
            raise ValueError(f"schema {schema} is newer than {SCHEMA_VERSION}")
        self._steps = [upcasters[each] for each in range(schema, SCHEMA_VERSION) if each in upcasters]
        self._unpack = msgspec.msgpack.Decoder(list[AnyEvent]).decode
        self._unpack_raw = msgspec.msgpack.Decoder(list[RawEvent]).decode

    def decode(self, body: bytes, count: int) -> list[AnyEvent]:
        """The `count` events in `body`; raises NotEvents."""
        try:
            events = self._upcast(body) if self._steps else self._unpack(body)
        except (*UNREADABLE, LookupError, TypeError, ValueError) as error:
            raise NotEvents(str(error)) from error
        if len(events) != count:
            raise NotEvents(f"{count} events were announced, the body holds {len(events)}")
        return events

    def _upcast(self, body: bytes) -> list[AnyEvent]:
        raw = self._unpack_raw(body)
        for step in self._steps:
            raw = [step(each) for each in raw]
        return msgspec.convert(raw, list[AnyEvent])


@cache
def decoder_for(schema: int) -> Decoder:
    """The decoder of a schema version, made once: making one takes longer than reading a small journal."""
    return Decoder(schema)


def gap_frame(lost: int, seq_next: int, reason: str, time_ns: int, step: int) -> RawFrame:
    """A frame that stands for the `lost` numbers before `seq_next`, at least one."""
    return RawFrame(seq_next - 1, 1, lost - 1, time_ns, step, Encoder().encode([Gap(lost, reason)]))


@cache
def fingerprint() -> bytes:
    """8 bytes over the vocabulary: every event's tag, name and fields with their types and defaults.

    Segments carry it beside the schema version, so that two builds which share a number but not a
    vocabulary do not read each other's journals wrongly.
    """
    return hashlib.blake2b(vocabulary().encode(), digest_size=8).digest()


def vocabulary() -> str:
    """The text under the fingerprint, one event a line: what has to stay true of released versions (J5)."""
    union = inspect.type_info(AnyEvent)
    assert isinstance(union, inspect.UnionType)
    return "\n".join(sorted(map(_type_text, union.types)))


def _type_text(each: inspect.Type) -> str:
    match each:
        case inspect.StructType():
            fields = ", ".join(map(_field_text, each.fields))
            return f"{each.tag or 0:>3} {each.cls.__name__}({fields})"
        case inspect.DictType():
            return f"dict[{_type_text(each.key_type)}, {_type_text(each.value_type)}]"
        case _:
            return type(each).__name__.removesuffix("Type").lower()


def _field_text(field: inspect.Field) -> str:
    text = f"{field.name}: {_type_text(field.type)}"
    if field.required:
        return text
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return f"{text} = {int(default) if isinstance(default, int) else default!r}"
