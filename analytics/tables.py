"""The tables: what a column is called, how it is stored, and how it is shown.

Stored are the arrays of a batch as they are, numbers for words and -1 for none; that costs little while
loading. Shown, by views in DuckDB and in Parquet files, are words and NULL. Tables are only ever appended
to and begin with the same columns: `run`, `rank`, `epoch`, `seq`, `step`. A row is keyed by (run, rank,
seq) and, where an event has many, its place. Lives that span events are views over these, see `sql/`.

Rule: the names are those of the vocabulary.
"""

import zlib
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from radixledger.analytics.batch import EVENT_TYPES, NONE, TAGS, fields_of
from radixledger.analytics.beside import BESIDE
from radixledger.journal.accounts import Kind, Pool
from radixledger.journal.causes import Operation, Site, label
from radixledger.journal.events import Evicted, LedgerTaken, Phase, Stop


class Column(NamedTuple):
    """One column: its type as shown, the array and its type as stored, and the expression that shows it."""

    name: str
    type: str
    array: str
    stored: str
    shown: str


def _numbers(*names: str, sql: str = "BIGINT") -> tuple[Column, ...]:
    """Numbers that have no none."""
    return tuple(Column(name, sql, name, sql, f'"{name}"') for name in names)


def _numbers_or_null(*names: str, sql: str = "BIGINT") -> tuple[Column, ...]:
    return tuple(Column(name, sql, name, sql, f'nullif("{name}", {NONE})') for name in names)


def _texts(*names: str, sql: str = "VARCHAR") -> tuple[Column, ...]:
    return tuple(Column(name, sql, name, sql, f'"{name}"') for name in names)


def _flag(name: str) -> Column:
    return Column(name, "BOOLEAN", name, "BIGINT", f'"{name}"::BOOLEAN')


def _word(name: str, word: str, array: str, stored: str = "UTINYINT") -> Column:
    """A number that means a word of `_WORDS`."""
    return Column(name, _TYPE_OF[word], array, stored, f"{word}_of({array})")


SHORT_LIST = 8

_TYPE_OF = {
    "event": "event_name",
    "operation": "operation_name",
    "site": "site_name",
    "cause": "cause_name",
    "pool": "pool_name",
    "kind": "account_kind",
    "stop": "stop_name",
    "phase": "phase_name",
}
_KEY = (*_numbers("epoch", sql="INTEGER"), *_numbers("seq", "step"))
_TIME = _numbers("time_ns")
_EVENT = _word("event", "event", "tag")
_CAUSE = _word("cause", "cause", "cause", "SMALLINT")
_REQUEST, _NODE = _numbers_or_null("request", "node")
_FINDING = (
    _REQUEST,
    _word("pool", "pool", "pool", "BIGINT"),
    Column("pages", "INTEGER[]", "pages", "VARCHAR", "pages::INTEGER[]"),
    *_texts("expected", "found"),
    Column("since", "BIGINT", "since", "BIGINT", "nullif(since, 0)"),
    _CAUSE,
)

_LEDGER = fields_of(LedgerTaken, "phase", "idle", "digest")
TABLES: dict[str, tuple[Column, ...]] = {
    "events": (
        *_KEY,
        *_TIME,
        _EVENT,
        Column("operation", "operation_name", "cause", "SMALLINT", "operation_of(cause >> 5)"),
        Column("site", "site_name", "cause", "SMALLINT", "site_of(cause & 31)"),
        _CAUSE,
        _REQUEST,
        _NODE,
    ),
    "pages": (
        *_KEY,
        _EVENT,
        _word("pool", "pool", "pool"),
        *_numbers("place", "page", sql="INTEGER"),
        _word("from_kind", "kind", "from_kind"),
        *_numbers("from_holder"),
        _word("to_kind", "kind", "to_kind"),
        *_numbers("to_holder"),
        *_numbers_or_null("partner", sql="INTEGER"),
        _CAUSE,
        _REQUEST,
    ),
    "mappings": (
        *_KEY,
        _EVENT,
        *_numbers("place", "full_page", sql="INTEGER"),
        *_numbers_or_null("swa_page", sql="INTEGER"),
    ),
    "openings": (
        *_KEY,
        *_TIME,
        *_texts("opened_run"),
        *_numbers("opened_rank", "ranks"),
        *_texts("route", "code"),
        _flag("dirty"),
        *_texts("key_id", "redaction"),
        *_numbers("schema", "window_need", "stride", "seed", "page_size", "full_pages", "swa_pages"),
        *_numbers("window_tokens", "rows", "context_pages"),
        *_texts("formula", "tombstone_leaf", "key_mode", "swa_victims", "eviction"),
        _flag("free_out_of_window"),
        *_numbers("recurrent_slots", "track_interval", "host_pages", "host_threshold"),
        *_texts("recurrent_mode", "host_write"),
    ),
    "opened_labels": (*_KEY, *_texts("key", "value")),
    "admissions": (
        *_KEY,
        *_TIME,
        _REQUEST,
        *_texts("rid"),
        *_numbers("prompt", "prefix", "priority"),
        _NODE,
        *_texts("namespace", sql="BLOB"),
        _CAUSE,
    ),
    "endings": (
        *_KEY,
        *_TIME,
        _EVENT,
        _REQUEST,
        *_numbers("tokens"),
        *_numbers_or_null("cached"),
        _NODE,
        _CAUSE,
    ),
    "matches": (
        *_KEY,
        *_TIME,
        *_texts("rid"),
        _REQUEST,
        *_numbers("asked", "full_hit", "hit", "host_hit"),
        _NODE,
        _word("stop", "stop", "stop", "BIGINT"),
        _flag("full_only"),
        *_texts("namespace", sql="BLOB"),
        _CAUSE,
    ),
    "node_changes": (
        *_KEY,
        _EVENT,
        _NODE,
        *_numbers_or_null("parent"),
        *_numbers("full_delta", "swa_delta", "host_delta"),
        *_numbers_or_null("boundary"),
        _REQUEST,
        _CAUSE,
    ),
    "lock_changes": (
        *_KEY,
        *_TIME,
        _EVENT,
        _NODE,
        *_numbers("boundary"),
        *_numbers_or_null("marked", "skipped"),
        _REQUEST,
        _CAUSE,
    ),
    "copies": (
        *_KEY,
        *_TIME,
        _EVENT,
        *_numbers("transfer"),
        _NODE,
        *_numbers("pages"),
        Column("landed", "BOOLEAN", "landed", "BIGINT", f"nullif(landed, {NONE})::BOOLEAN"),
        _CAUSE,
    ),
    "reclaims": (*_KEY, _REQUEST, *_numbers("start", "stop", "pages", "in_flight", "pre"), _CAUSE),
    "takings": (*_KEY, _REQUEST, *_numbers("grown", "pages"), _CAUSE),
    "repointings": (*_KEY, _REQUEST, *_numbers("start", "protected", "pages"), _NODE, _CAUSE),
    "step_changes": (
        *_KEY,
        *_TIME,
        *_numbers("number"),
        _word("phase", "phase", "phase", "BIGINT"),
        *_numbers("requests", "tokens"),
    ),
    "step_spans": (*_KEY, *_numbers("number"), _REQUEST, *_numbers("start", "stop")),
    "evictions": (*_KEY, *_numbers(*fields_of(Evicted, "cause")), _CAUSE),
    "state_copies": (*_KEY, _REQUEST, _NODE, *_numbers("source", "target", sql="INTEGER"), _CAUSE),
    "state_tracks": (*_KEY, _REQUEST, *_numbers("slot", "end_token", sql="INTEGER"), _CAUSE),
    "ledgers": (*_KEY, *_texts("phase"), _flag("idle"), *_numbers(*_LEDGER)),
    "refusals": (*_KEY, *_texts("reason", "detail"), *_FINDING),
    "violations": (*_KEY, *_texts("law", "detail"), *_FINDING),
    "gaps": (*_KEY, *_numbers("lost"), *_texts("reason")),
    "digests": (*_KEY, _EVENT, *_texts("digest")),
}
"""One table for each kind of fact that events tell; `events` has a row for every one of them."""

TITLES: dict[str, str] = {
    "events": "Every event: when, at which step, why, and which request or node it names.",
    "pages": "One row for each page that an event moved: which pool, from whom, to whom, why.",
    "mappings": "One row for each FULL page whose mapping an event set or, where swa_page is NULL, cleared.",
    "openings": "What each rank and epoch was built with, as its Opened says; see the view runs.",
    "opened_labels": "The labels in each Opened.",
    "admissions": "Requests that got a row, with their prompt and the prefix that the tree had.",
    "endings": "Requests that finished, were retracted or aborted.",
    "matches": "Look-ups: how far FULL reached, how far the window, how far copies behind it, and why no further.",
    "node_changes": "What each node gained or lost by an event, and its parent where that was set.",
    "lock_changes": "Receipts handed out and given back.",
    "copies": "Copies between device and host: begun, gathered, ended, node by node.",
    "takings": "Growths over a page: who grew by how many tokens, and took how many pages.",
    "reclaims": "Windows reclaimed: where each request's cursor moved, from and to.",
    "repointings": "Rows that name tree pages from now on, and their protected length.",
    "step_changes": "Device steps that began or ended.",
    "step_spans": "For each request of a step that began: which tokens it writes, [start, stop).",
    "evictions": "What each eviction was asked for and what it reports as gained, in pages.",
    "state_copies": "Requests that go on from a node's state, and the slots that it is copied from and to.",
    "state_tracks": "States that requests keep on their way: which slot, after which token.",
    "ledgers": "The accounts of a rank as checks read them, idle and busy, in tokens and state slots.",
    "refusals": "Commands that were turned down, and why.",
    "violations": "Laws that the writer saw broken.",
    "gaps": "Where events are missing, and how many.",
    "digests": "Recorded digests of the state, in hexadecimal.",
}
"""What each table tells, in a sentence."""

ARRAYS: dict[str, dict[str, str]] = {
    name: {column.array: column.stored for column in columns} for name, columns in TABLES.items()
}
"""What is stored of each table: the arrays and their SQL types."""


def _words(members: type[IntEnum]) -> tuple[str | None, ...]:
    """The members in lower case, each at the place of its number; None for a number that nobody has yet."""
    names = {member.value: member.name.lower() for member in members}
    assert min(names) >= 0, members
    return tuple(names.get(number) for number in range(max(names) + 1))


def _event_names() -> tuple[str | None, ...]:
    by_tag = {TAGS[kind]: kind.__name__ for kind in EVENT_TYPES}
    return tuple(by_tag.get(tag) for tag in range(max(by_tag) + 1))


def _cause_names() -> tuple[str, ...]:
    """The label of each cause; numbers without one, and those of the future, are `unknown`."""
    labels = map(label, range((max(Operation) + 1) << 5))
    return (*(name if "(" not in name else "unknown" for name in labels), "unknown")


_WORDS: dict[str, tuple[str | None, ...]] = {
    "event": _event_names(),
    "operation": (*_words(Operation), "unknown"),
    "site": _words(Site),
    "cause": _cause_names(),
    "pool": _words(Pool),
    "kind": _words(Kind),
    "stop": _words(Stop),
    "phase": _words(Phase),
}
"""What a number means, by its place; a number outside means NULL, for causes `unknown`."""


def vocabulary() -> Iterator[str]:
    """The statements that make the types, and the functions `event_of(number)`, `cause_of(number)`, ..."""
    for word, names in _WORDS.items():
        yield f"CREATE TYPE {_TYPE_OF[word]} AS ENUM ({_literals(dict.fromkeys(filter(None, names)))})"
        place = f"least(number, {len(names) - 1})" if names[-1] == "unknown" else "number"
        yield f"CREATE MACRO {word}_of(number) AS ([{_literals(names)}]::{_TYPE_OF[word]}[])[{place} + 1]"
    kinds = [name for name in _WORDS["kind"] if name]
    codes = " ".join(f"WHEN '{name}' THEN {code}" for code, name in enumerate(kinds))
    yield f"CREATE MACRO account_code(kind, holder) AS holder * 8 + CASE kind {codes} END"
    pools = " ".join(f"WHEN '{name}' THEN {code}" for code, name in enumerate(_WORDS["pool"]) if name)
    yield f"CREATE MACRO pool_code(pool) AS CASE pool {pools} END"
    words = " ".join(f"WHEN {code} THEN '{name}'" for code, name in enumerate(kinds))
    yield f"CREATE MACRO account_kind(code) AS CASE code & 7 {words} END"


def shown(name: str) -> str:
    """The columns of a table as they are shown, as expressions over its arrays, for a SELECT."""
    return ", ".join(f'({column.shown})::{column.type} AS "{column.name}"' for column in TABLES[name])


def described(name: str) -> list[tuple[str, str]]:
    """The columns of a table with their types; for a word, which words there are, unless they are many."""
    of_events = {column.name: column.type for column in TABLES.get(name, ())}
    columns = BESIDE.get(name) or {"run": "VARCHAR", "rank": "INTEGER"} | of_events
    return [(column, _described_type(shown_type)) for column, shown_type in columns.items()]


def _described_type(shown_type: str) -> str:
    word = next((word for word, name in _TYPE_OF.items() if name == shown_type), None)
    if word is None:
        return shown_type
    names = [name for name in _WORDS[word] if name]
    return (
        f"one of {', '.join(names)}" if len(names) <= SHORT_LIST else f"a word, as {names[len(names) // 2]}"
    )


def _literals(names: Iterable[str | None]) -> str:
    return ", ".join("NULL" if name is None else f"'{name}'" for name in names)


LAYOUT = f"{zlib.crc32(repr((TABLES, BESIDE, _WORDS)).encode()):08x}"
"""A fingerprint of all this: loaded runs with another one are refused and have to be loaded again."""
