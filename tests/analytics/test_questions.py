"""Questions: found by name, helped by their first comment, told their parameters, and changing nothing."""

import re

import duckdb
import pytest

from radixledger.analytics.beside import BESIDE
from radixledger.analytics.queries import (
    Parameter,
    Question,
    QuestionError,
    ask,
    ask_checks,
    ask_sql,
    find,
    of_kind,
    parse,
    questions,
    view_statements,
)
from radixledger.analytics.store import Database
from radixledger.analytics.tables import TABLES

from .asked import loaded
from .faults import FAULTS
from .story import Story, first_request, healthy

FILE = """\
-- Frees of one page: which they were.
-- And a second line.
--
-- More about it.
-- kind: report
-- set page INTEGER: the page's number
-- set pool VARCHAR = full: full or swa
SELECT getvariable('page') AS page, getvariable('pool') AS pool;
"""


def test_a_question_is_read_from_its_file() -> None:
    question = parse("frees", FILE)
    assert question.kind == "report"
    assert question.title == "Frees of one page: which they were. And a second line."
    assert question.help.endswith("More about it.")
    assert question.parameters == (
        Parameter("page", "INTEGER", None, "the page's number"),
        Parameter("pool", "VARCHAR", "full", "full or swa"),
    )
    assert question.query == "SELECT getvariable('page') AS page, getvariable('pool') AS pool"


BOUNDED = FILE.replace("INTEGER: the", "INTEGER 1..99: the")


def test_a_number_may_have_bounds_and_what_is_beyond_them_is_refused() -> None:
    """Also as SQL would read it: `1e9` is a thousand millions, and nobody waits for so many rows."""
    assert parse("frees", BOUNDED).parameters[0][:2] == ("page", "INTEGER")
    assert parse("frees", BOUNDED).parameters[0][-2:] == (1, 99)
    assert parse("frees", FILE.replace("INTEGER:", "INTEGER 0..:")).parameters[0][-2:] == (0, None)
    with duckdb.connect() as connection:
        for inside in ("1", "99", "5e1"):
            assert ask(connection, parse("frees", BOUNDED), {"page": inside}).rows
        for outside in ("0", "-1", "100", "1e9"):
            with pytest.raises(
                QuestionError, match=f"page is the page's number, from 1 to 99, not '{outside}'"
            ):
                ask(connection, parse("frees", BOUNDED), {"page": outside})


@pytest.mark.parametrize(
    "text", ["SELECT 1", "-- kind: check\nSELECT 1", "-- Help.\nSELECT 1", "-- Help.\n-- kind: check\n", "-- Help.\n-- kind: guess\nSELECT 1"]
)  # fmt: skip
def test_a_file_without_help_kind_or_query_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"sql/x\.sql"):
        parse("x", text)


def test_parameters_are_cast_and_defaults_stand_in() -> None:
    with duckdb.connect() as connection:
        answer = ask(connection, parse("frees", FILE), {"page": "7"})
        assert (answer.columns, answer.rows) == (("page", "pool"), [(7, "full")])


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "frees needs page: the page's number"),
        ({"page": "seven"}, "page is the page's number, not 'seven'"),
        ({"page": "7", "leaf": "1", "root": "2"}, "no parameter leaf, root .it has: page, pool"),
    ],
)
def test_what_a_question_cannot_be_told_is_said(values: dict[str, str], why: str) -> None:
    with duckdb.connect() as connection, pytest.raises(QuestionError, match=why):
        ask(connection, parse("frees", FILE), values)


def test_one_asks_in_ones_own_sql_with_variables() -> None:
    with duckdb.connect() as connection:
        assert ask_sql(connection, "SELECT getvariable('a') AS a", {"a": "it's"}).rows == [("it's",)]
        with pytest.raises(QuestionError, match="no name for a variable"):
            ask_sql(connection, "SELECT 1", {'a" = 1; --': "x"})
        with pytest.raises(QuestionError, match="pagez"):
            ask_sql(connection, "SELECT * FROM pagez")


def test_a_name_that_is_nearly_right_is_helped() -> None:
    with pytest.raises(QuestionError, match=r"near: double_free, foreign_free"):
        find("free_double_foreign")
    assert find("double_free").kind == "check"


def values_for(question: Question) -> dict[str, str]:
    """Something that each parameter may be, for the healthy story."""
    anything = {"RUN": "told"}
    return {each.name: each.default or anything.get(each.type, "1") for each in question.parameters}


def test_a_run_that_is_not_here_is_not_taken_for_one_in_which_nothing_happened() -> None:
    connection = loaded(healthy()).questioned()
    with pytest.raises(QuestionError, match=r"other is the other run, and 'tolt' is not here .here: told."):
        ask(connection, find("first_divergence"), {"run": "told", "other": "tolt"})


def test_every_question_can_be_asked_of_a_run_and_its_help_is_a_sentence() -> None:
    connection = loaded(healthy()).questioned()
    for question in questions().values():
        assert re.match(r"[A-Z].*[.?]$", question.title), question.name
        if question.kind != "view":
            assert ask(connection, question, values_for(question)).columns, question.name


def test_views_say_what_they_are_and_shadow_no_table() -> None:
    assert not {view.name for view in of_kind("view")} & (TABLES | BESIDE).keys()
    assert len(list(view_statements("VIEW"))) == len(of_kind("view"))


def test_no_question_changes_anything() -> None:
    database = loaded(healthy())
    before = database.connection.execute(
        "SELECT table_name, estimated_size FROM duckdb_tables() ORDER BY ALL"
    ).fetchall()
    for question in of_kind("check") + of_kind("report"):
        ask(database.questioned(), question, values_for(question))
    after = database.connection.execute(
        "SELECT table_name, estimated_size FROM duckdb_tables() ORDER BY ALL"
    ).fetchall()
    assert before == after


def test_all_checks_at_once_answer_as_each_does_alone_and_leave_the_views_as_they_were() -> None:
    story = Story()
    first_request(story)
    FAULTS["double_free"](story)
    connection = loaded(story).questioned()
    alone = {check.name: ask(connection, check) for check in of_kind("check")}
    assert ask_checks(connection) == alone
    assert {check.name: ask(connection, check) for check in of_kind("check")} == alone
    assert connection.execute("SELECT * FROM duckdb_tables() WHERE temporary").fetchall() == []


def test_numbers_without_a_word_are_null_or_unknown() -> None:
    """A journal of another version may know more words."""
    connection = Database().connection
    told = connection.execute(
        "SELECT event_of(0), event_of(1), event_of(200), pool_of(1), pool_of(9), stop_of(3), kind_of(4), kind_of(7),"
        " cause_of(-1), cause_of(0), cause_of(161), cause_of(32767), operation_of(-1), operation_of(5), site_of(31)"
    ).fetchall()
    assert told == [
        (None, "Opened", None, "swa", None, "window_dead", "tree", None,
         None, "unknown", "finish/duplicate", "unknown", None, "finish", None),
    ]  # fmt: skip
