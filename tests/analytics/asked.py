"""Stories asked in SQL: loaded as a journal is, without one on disk."""

from collections.abc import Iterable
from typing import Any

from radixledger.analytics.load import load_frames
from radixledger.analytics.queries import Answer, ask, ask_checks, ask_sql, find
from radixledger.analytics.store import Database

from .story import Story


def loaded(*stories: Story, batch_events: int = 1 << 18) -> Database:
    """A database in memory with these stories."""
    database = Database()
    for story in stories:
        load_frames(database, story.run, story.rank, iter(story.frames), batch_events=batch_events)
    return database


def answered(database: Database, name: str, **values: str) -> list[dict[str, Any]]:
    """The rows of a question, by column."""
    return _by_column(ask(database.questioned(), find(name), values))


def told(database: Database, query: str) -> list[dict[str, Any]]:
    """The rows of a query, by column."""
    return _by_column(ask_sql(database.questioned(), query))


def findings(*stories: Story) -> dict[str, list[dict[str, Any]]]:
    """The rows of every check that has any."""
    answers = ask_checks(loaded(*stories).questioned())
    return {name: _by_column(answer) for name, answer in answers.items() if answer.rows}


def only(found: Iterable[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of rows."""
    return [tuple(row[column] for column in columns) for row in found]


def _by_column(answer: Answer) -> list[dict[str, Any]]:
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
