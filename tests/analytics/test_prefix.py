"""A run as SQL saw it at any event: loaded once, asked of every prefix."""

from pathlib import Path

import pytest

from radixledger.analytics.load import load
from radixledger.analytics.prefix import Prefix
from radixledger.analytics.queries import QuestionError, ask_sql, find
from radixledger.analytics.store import Database
from radixledger.journal.events import Freed
from radixledger.journal.reader import JournalReader

from ..replay.runs import RANK, written


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("prefix") / "run"
    written(run, 60)
    return run


@pytest.fixture
def prefix(run: Path) -> Prefix:
    database = Database()
    load(database, run)
    return Prefix(database)


def test_a_prefix_holds_the_events_up_to_its_end(run: Path, prefix: Prefix) -> None:
    frees = [
        seq
        for frame in JournalReader(run, RANK).frames()
        for seq, event in enumerate(frame.events, frame.seq_first)
        if isinstance(event, Freed)
    ]
    assert frees
    for end in (0, 1, 2, frees[0] - 1, frees[0], frees[-1], 10_000):
        asked = prefix.ask(
            "SELECT count(*), count(*) FILTER (event = 'Freed'), coalesce(max(seq), 0) FROM events", end
        )
        ((events, freed, last),) = asked.rows
        assert freed == sum(seq <= end for seq in frees)
        assert last <= end
        assert events == last


def test_views_and_questions_end_where_the_tables_do(run: Path, prefix: Prefix) -> None:
    """A view that is made of others follows them: it is what a load of that prefix would give."""
    whole = Database()
    load(whole, run)
    query = "SELECT * FROM nodes ORDER BY ALL"
    assert prefix.ask(query, 10_000).rows == ask_sql(whole.questioned(), query).rows
    assert len(prefix.ask(query, 40).rows) < len(prefix.ask(query, 10_000).rows)
    assert prefix.ask(find("double_free"), 10_000).rows == []
    assert prefix.ask(find("occupancy"), 40).rows


def test_a_query_that_fails_says_so(prefix: Prefix) -> None:
    with pytest.raises(QuestionError, match="nowhere"):
        prefix.ask("FROM nowhere", 5)
