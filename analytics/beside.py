"""Tables that no event has a row in: what was loaded and under which labels, and where the hits went.

Their rows are stored as they are shown; the tables of events are in `tables`. Rule: types are those that SQL knows by then,
words of the vocabulary among them.
"""

from collections.abc import Iterator

BESIDE: dict[str, dict[str, str]] = {
    "loads": {
        "run": "VARCHAR", "rank": "INTEGER", "epoch": "INTEGER",
        "first_seq": "BIGINT", "last_seq": "BIGINT", "events": "BIGINT",
    },
    "labels": {"run": "VARCHAR", "key": "VARCHAR", "value": "VARCHAR"},
    "reuse": {
        "run": "VARCHAR", "rank": "INTEGER", "epoch": "INTEGER", "seq": "BIGINT", "step": "BIGINT",
        "time_ns": "BIGINT", "admitted_seq": "BIGINT", "request": "BIGINT", "rid": "VARCHAR",
        "kind": "VARCHAR", "start": "BIGINT", "stop": "BIGINT", "tokens": "BIGINT",
        "by_seq": "BIGINT", "by_step": "BIGINT", "by_event": "event_name", "by_node": "BIGINT",
        "cause": "cause_name", "took": "VARCHAR", "pool": "VARCHAR",
        "asked_full": "BIGINT", "asked_swa": "BIGINT", "asked_recurrent": "BIGINT",
        "wanted_by": "VARCHAR", "wanted_seq": "BIGINT", "evicted_full": "BIGINT", "evicted_swa": "BIGINT",
        "cached_by": "VARCHAR", "cached_seq": "BIGINT", "open": "BOOLEAN",
    },
    "reuse_folds": {
        "run": "VARCHAR", "rank": "INTEGER", "last_seq": "BIGINT", "begins_at": "BIGINT",
        "missing": "BIGINT", "forgotten": "BIGINT", "unlooked": "BIGINT", "unnamed": "BIGINT",
    },
}  # fmt: skip
"""Their columns, and the types as which these are stored and shown."""

BESIDE_TITLES: dict[str, str] = {
    "loads": "What was loaded when: the first and last event of each batch.",
    "labels": "The labels that were given while loading.",
    "reuse": "Where each prompt's tokens went: hit, or lost to an event, or why not; `load --reuse` fills it.",
    "reuse_folds": "How far `reuse` is told, and what it cannot know.",
}
"""What each of them tells."""


def beside() -> Iterator[str]:
    """The statements that make the tables of `BESIDE`, empty."""
    for name, columns in BESIDE.items():
        body = ", ".join(f'"{column}" {shown_type}' for column, shown_type in columns.items())
        yield f"CREATE TABLE {name} ({body})"
