"""Events in words and as JSON: accounts, causes and page lists as people read them.

Rule: both forms follow the fields of the event, so an event that is new to the vocabulary is told without a change
here. In the line, fields that say nothing (empty, zero where zero means none) are left out; in JSON all are there.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from radixledger.journal.accounts import Pool, describe
from radixledger.journal.causes import label
from radixledger.journal.events import (
    AnyEvent,
    Healed,
    HealMode,
    Matched,
    Phase,
    Refused,
    Stepped,
    Stop,
    Violated,
)
from radixledger.journal.fields import PAGE_FIELDS
from radixledger.journal.moves import ids_of, pages_of
from radixledger.tools.printable import in_a_line

RANGES_MAX = 12
"""A line tells this many runs of pages and then how many there are; JSON tells every page."""

NUMBER_COLUMNS = frozenset({"grown", "counts", "starts", "stops", "ends"})
ID_COLUMNS = frozenset({"requests", "takers", "skipped"})
OWNERSHIP = frozenset({"pool", "expected", "found", "since"})
"""What a refusal says of pages: all of it where there are pages, nothing where there are none."""

_WALL_CLOCK_SINCE_NS = 10**17
"""Times before 1973 are virtual: nanoseconds since a run began."""


def line(event: AnyEvent) -> str:
    """The fields of an event that say something, as `name value` pairs in their order."""
    codes = _codes(type(event))
    left_out = OWNERSHIP if isinstance(event, Refused | Violated) and not event.pages else frozenset()
    words = (
        _words(field.name, getattr(event, field.name), field.default, codes)
        for field in _fields(type(event))
        if field.name not in left_out
    )
    return in_a_line("  ".join(each for each in words if each))


def as_json(event: AnyEvent) -> dict[str, object]:
    """Every field, unpacked: page and id columns as lists, keys and digests in hex, codes as numbers and words."""
    out: dict[str, object] = {}
    codes = _codes(type(event))
    for field in _fields(type(event)):
        out |= _json_field(field.name, getattr(event, field.name), codes)
    return out


def time_text(time_ns: int) -> str:
    """A frame's time: UTC to the microsecond, or seconds since the start of a run in virtual time."""
    if time_ns < _WALL_CLOCK_SINCE_NS:
        return f"{time_ns / 1e9:+.6f}s"
    seconds, rest = divmod(time_ns, 10**9)
    stamp = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{stamp}.{rest // 1000:06d}Z"


def ranges(pages: list[int], most: int | None = None) -> str:
    """Page numbers as runs: `3-7,9`; with `most`, at most that many runs."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and runs[-1][1] + 1 == page:
            runs[-1][1] = page
        else:
            runs.append([page, page])
    told = [f"{first}" if first == last else f"{first}-{last}" for first, last in runs]
    if most is not None and len(told) > most:
        return f"{','.join(told[:most])},… ({len(pages)} pages)"
    return ",".join(told)


@cache
def _fields(kind: type[Struct]) -> tuple[FieldInfo, ...]:
    """The fields of an event, which msgspec works out anew at each call."""
    return fields(kind)


@cache
def _codes(kind: type[Struct]) -> Mapping[str, Callable[[int], str]]:
    return CODES | CODES_OF.get(kind, {})


def _words(name: str, value: Any, default: object, codes: Mapping[str, Callable[[int], str]]) -> str:
    match value:
        case bytes():
            return f"{name} {_packed_words(name, value)}" if value else ""
        case Struct():
            return f"{name} {_struct_words(value)}"
        case bool() | str() | dict():
            return f"{name} {value}" if value else ""
        case int() if value == default and name not in OWNERSHIP:
            return ""
        case int() if name == "cause":
            return codes[name](value)
        case int() if name in codes:
            return f"{name} {codes[name](value)}"
        case _:
            return f"{name} {value}"


def _packed_words(name: str, value: bytes) -> str:
    if name in PAGE_FIELDS and len(value) % 4 == 0:
        return ranges(pages_of(value).tolist(), RANGES_MAX)
    column = _column(name, value)
    if column is not None:
        listed = ",".join(map(str, column[:RANGES_MAX]))
        return f"{listed},… ({len(column)})" if len(column) > RANGES_MAX else listed
    return value.hex() if len(value) <= 16 else f"{value[:8].hex()}… ({len(value)} bytes)"


def _struct_words(value: Struct) -> str:
    return "(" + " ".join(f"{field.name}={getattr(value, field.name)}" for field in fields(value)) + ")"


def _json_field(name: str, value: Any, codes: Mapping[str, Callable[[int], str]]) -> Mapping[str, object]:
    match value:
        case bytes():
            column = _column(name, value)
            return {name: value.hex() if column is None else column}
        case int() if name in codes:
            return {name: int(value), f"{name}_text": codes[name](value)}
        case _:
            return {name: value}


def _column(name: str, value: bytes) -> list[int] | None:
    """A packed column as a list; None for bytes that are no column, or of a hostile length."""
    if name in PAGE_FIELDS | NUMBER_COLUMNS and len(value) % 4 == 0:
        return list(map(int, pages_of(value)))
    if name in ID_COLUMNS and len(value) % 8 == 0:
        return list(map(int, ids_of(value)))
    return None


def _enum_words(kind: type[Pool | Stop | HealMode | Phase]) -> Callable[[int], str]:
    def words(code: int) -> str:
        return kind(code).name.lower() if code in list(kind) else f"unknown({code})"

    return words


CODES: dict[str, Callable[[int], str]] = {
    **dict.fromkeys(("giver", "taker", "to", "expected", "found"), describe),
    "cause": label,
    "pool": _enum_words(Pool),
}
"""Fields whose numbers are codes wherever they stand, and the words for them."""

CODES_OF: dict[type, dict[str, Callable[[int], str]]] = {
    Matched: {"stop": _enum_words(Stop)},
    Healed: {"mode": _enum_words(HealMode)},
    Stepped: {"phase": _enum_words(Phase)},
}
"""And those whose numbers are codes in one event only."""
