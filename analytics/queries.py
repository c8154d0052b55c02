"""The questions: one SQL file each under `sql/`, found by name, with their help and parameters.

A file opens with a comment: its help, the first paragraph of which is one sentence. Lines in it that
begin with `kind:` or `set` are for this module:

    -- kind: check                      a healthy run gives no row (J22)
    -- kind: check anywhere             one that needs no past, or knows gaps itself: asked behind missing events too
    -- kind: report                     figures
    -- kind: view NUMBER                a table made of others; made in the order of the numbers
    -- set page INTEGER: its number     a parameter, read in the query as getvariable('page')
    -- set pool VARCHAR = full: ...     one with a default
    -- set other RUN: ...               the name of a run, which has to be here

Rule: questions read tables and views, and change nothing.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import duckdb

from radixledger.analytics.judged import judged_alone

SHARED = "unlawful_moves"
"""The view behind the checks of ownership."""

RUN = "RUN"
"""The type of a parameter that names a run."""


class QuestionError(Exception):
    """A question that cannot be asked: no such name, a parameter missing or unknown, or SQL that fails."""


class Parameter(NamedTuple):
    """What a question has to be told; `default` is None where the caller must say it."""

    name: str
    type: str
    default: str | None
    help: str
    least: int | None = None
    most: int | None = None
    """Bounds of a number that has some."""


class Question(NamedTuple):
    """One file of `sql/`; `order` places a view among the others."""

    name: str
    kind: str
    help: str
    parameters: tuple[Parameter, ...]
    query: str
    order: int = 0
    anywhere: bool = False
    """Whether this is a check that is asked behind missing events too."""

    @property
    def title(self) -> str:
        """The first sentence of the help."""
        return self.help.partition("\n\n")[0].replace("\n", " ")


class Answer(NamedTuple):
    """Column names and rows, in the order of the query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


@cache
def questions() -> Mapping[str, Question]:
    """Every question by its name, in the order of the names."""
    found = sorted(file.name for file in (files("radixledger.analytics") / "sql").iterdir())
    names = [name.removesuffix(".sql") for name in found if name.endswith(".sql")]
    return {name: parse(name, _text(name)) for name in names}


def of_kind(kind: str) -> list[Question]:
    """The questions of one kind: `check`, `report` or `view` (these in the order in which they are made)."""
    return sorted((each for each in questions().values() if each.kind == kind), key=lambda each: each.order)


def view_statements(make: str) -> Iterator[str]:
    """The statements that make the views, with `make` either `VIEW` or `TEMP VIEW`.

    Whoever cannot write to a database of an older version puts views of today before its own.
    """
    for view in of_kind("view"):
        yield f"CREATE OR REPLACE {make} {view.name} AS {view.query}"


def find(name: str) -> Question:
    """The question of that name; raises QuestionError, with the names that are near, when there is none."""
    if question := questions().get(name):
        return question
    alike = [each for each in questions() if set(name.split("_")) & set(each.split("_"))]
    near = dict.fromkeys([*get_close_matches(name, questions()), *alike])
    hint = f" (near: {', '.join(near)})" if near else ""
    raise QuestionError(f"there is no question called {name!r}{hint}; --list shows them all")


def ask(
    connection: duckdb.DuckDBPyConnection, question: Question, values: Mapping[str, str] | None = None
) -> Answer:
    """The answer to a question; raises QuestionError for a parameter that is missing, unknown or not of its type.

    A check is asked of what can be judged, see `judged`.
    """
    given, known = dict(values or {}), [parameter.name for parameter in question.parameters]
    if unknown := [name for name in given if name not in known]:
        close = dict.fromkeys(each for name in unknown for each in get_close_matches(name, known))
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise QuestionError(
            f"{question.name} has no parameter {', '.join(unknown)} (it has: {', '.join(known) or 'none'}){hint}"
        )
    for parameter in question.parameters:
        value = given.get(parameter.name, parameter.default)
        if value is None:
            raise QuestionError(f"{question.name} needs {parameter.name}: {parameter.help}")
        _set(connection, parameter, value)
    if question.kind != "check" or question.anywhere:
        return ask_sql(connection, question.query)
    with judged_alone(connection, tuple(view_statements("TEMP VIEW"))):
        return ask_sql(connection, question.query)


def runs_named(question: Question, values: Mapping[str, str]) -> list[str]:
    """The runs that a question is told to be about; none where it is about all."""
    return [values[each.name] for each in question.parameters if each.type == RUN and each.name in values]


def ask_checks(
    connection: duckdb.DuckDBPyConnection, advance: Callable[[int], None] = lambda _: None
) -> dict[str, Answer]:
    """The answer of every check; what several of them ask of all page moves is worked out once.

    `advance(1)` is called after each.
    """
    answers: dict[str, Answer] = {}

    def take(anywhere: bool) -> None:
        for check in of_kind("check"):
            if check.anywhere == anywhere:
                answers[check.name] = ask_sql(connection, check.query)
                advance(1)

    connection.execute(f"CREATE OR REPLACE TEMP TABLE worked_out AS FROM {SHARED}")
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {SHARED} AS FROM worked_out")
    try:
        take(anywhere=True)
    finally:
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {SHARED} AS {questions()[SHARED].query}")
        connection.execute("DROP TABLE worked_out")
    with judged_alone(connection, tuple(view_statements("TEMP VIEW"))):
        take(anywhere=False)
    return {check.name: answers[check.name] for check in of_kind("check")}


def ask_sql(
    connection: duckdb.DuckDBPyConnection, query: str, values: Mapping[str, str] | None = None
) -> Answer:
    """The answer to one's own SQL, `values` being variables of it; raises QuestionError with what DuckDB says."""
    try:
        for name, value in (values or {}).items():
            connection.execute(f'SET VARIABLE "{_identifier(name)}" = ?', [value])
        result = connection.execute(query)
        if result is None:
            raise QuestionError("the query is empty")
        return Answer(_distinct([column[0] for column in result.description or ()]), result.fetchall())
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise QuestionError(
            f"{error}\n\n`radixledger sql --list TABLE` shows the columns of a table"
        ) from error


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names of columns, a second `run` as `run_2`: what is keyed by name loses no column of a join."""
    given: list[str] = []
    for name in names:
        free, count = name, 1
        while free in given or (count > 1 and free in names):
            count += 1
            free = f"{name}_{count}"
        given.append(free)
    return tuple(given)


def _identifier(name: str) -> str:
    if not name.isidentifier():
        raise QuestionError(f"{name!r} is no name for a variable")
    return name


def parse(name: str, text: str) -> Question:
    """A question from its file; raises ValueError for a file without help or kind."""
    comment, query = _split(text)
    kind = re.search(r"^kind: (check|report|view)(?: (\d+)| (anywhere))?$", comment, re.MULTILINE)
    if not kind:
        raise ValueError(f"sql/{name}.sql does not say its kind")
    text = re.sub(r"^(kind:|set ).*\n?", "", comment, flags=re.MULTILINE).strip()
    if not text or not query:
        raise ValueError(f"sql/{name}.sql has no help or no query")
    return Question(name, kind[1], text, tuple(_parameters(comment)), query, int(kind[2] or 0), bool(kind[3]))


def _split(text: str) -> tuple[str, str]:
    """The opening comment without its dashes, and the query behind it."""
    lines = text.splitlines()
    end = next((at for at, line in enumerate(lines) if not line.startswith("--")), len(lines))
    comment = "\n".join(line.removeprefix("--").removeprefix(" ") for line in lines[:end])
    return comment, "\n".join(lines[end:]).strip().removesuffix(";")


def _parameters(comment: str) -> Iterator[Parameter]:
    form = r"^set (\w+) (\w+)(?: (\d+)\.\.(\d*))?(?: = (\S+))?: (.+)$"
    for name, kind, least, most, default, text in re.findall(form, comment, re.MULTILINE):
        bounds = [int(bound) if bound else None for bound in (least, most)]
        yield Parameter(name, kind, default or None, text, *bounds)


def _set(connection: duckdb.DuckDBPyConnection, parameter: Parameter, value: str) -> None:
    kind = parameter.type
    if kind == RUN:
        _demand_run(connection, parameter, value)
        kind = "VARCHAR"
    try:
        connection.execute(f'SET VARIABLE "{parameter.name}" = CAST(? AS {kind})', [value])
    except duckdb.Error as error:
        raise QuestionError(f"{parameter.name} is {parameter.help}, not {value!r}") from error
    if parameter.least is not None:
        _demand_bounds(connection, parameter, value)


def _demand_bounds(connection: duckdb.DuckDBPyConnection, parameter: Parameter, value: str) -> None:
    """Refuse a number that a question makes nothing of, or an answer too long for anybody to wait for."""
    ((number,),) = connection.execute(f"SELECT getvariable('{parameter.name}')").fetchall()
    least, most = parameter.least, parameter.most
    if number is None or number < least or (most is not None and number > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise QuestionError(f"{parameter.name} is {parameter.help}, {bounds}, not {value!r}")


def _demand_run(connection: duckdb.DuckDBPyConnection, parameter: Parameter, value: str) -> None:
    """Refuse a run that is not here: it would be taken for one in which nothing happened."""
    here = [run for (run,) in connection.execute("SELECT DISTINCT run FROM loads ORDER BY run").fetchall()]
    if value not in here:
        known = ", ".join(here) or "none"
        raise QuestionError(
            f"{parameter.name} is {parameter.help}, and {value!r} is not here (here: {known})"
        )


def _text(name: str) -> str:
    return (files("radixledger.analytics") / "sql" / f"{name}.sql").read_text("utf-8")
