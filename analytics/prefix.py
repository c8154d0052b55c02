"""A loaded run as it was at any event: the tables and views of today, of events up to a number (J15).

A journal is loaded once; then its tables are views that end where `until` says, so that a question is put to a prefix at
the cost of the question. Rule: only what a query names is bounded, so a query of one's own runs as it stands.
"""

import duckdb

from radixledger.analytics.queries import Answer, Question, QuestionError, ask, ask_sql
from radixledger.analytics.store import Database
from radixledger.analytics.tables import TABLES, shown

_UNTIL = "until_event"

ASKING = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.MULTI})
"""Kinds of statements that ask; a PIVOT is `MULTI`."""


class Prefix:
    """A database in memory whose tables end where the last question said."""

    def __init__(self, database: Database) -> None:
        connection: duckdb.DuckDBPyConnection = database.questioned()
        for name in TABLES:
            connection.execute(
                f"CREATE OR REPLACE VIEW {name} AS SELECT run, rank, {shown(name)} FROM stored.{name}"
                f" JOIN stored.books USING (book) WHERE seq <= getvariable('{_UNTIL}')"
            )
        self._connection = connection
        self._asking: set[str] = set()
        """Queries that are known to ask, and nothing else."""

    def ask(self, query: str | Question, seq: int) -> Answer:
        """What a query, or a question without parameters, answers of the events up to `seq`; raises QuestionError.

        A query of one's own is asked again and again: it is one SELECT, and changes nothing.
        """
        self._connection.execute(f"SET VARIABLE {_UNTIL} = {int(seq)}")
        if isinstance(query, Question):
            return ask(self._connection, query)
        if query not in self._asking:
            self._check_asks(query)
        return ask_sql(self._connection, query)

    def _check_asks(self, query: str) -> None:
        try:
            kinds = [each.type for each in self._connection.extract_statements(query)]
        except duckdb.Error as error:
            raise QuestionError(str(error)) from error
        if len(kinds) > 1 or not set(kinds) <= ASKING:
            told = ", ".join(kind.name for kind in kinds)
            raise QuestionError(
                f"this is {told}: one SELECT is asked of each prefix, and nothing that changes anything"
            )
        self._asking.add(query)
