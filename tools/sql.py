"""`radixledger sql`: ask runs a question by its name, or in one's own SQL; run every check.

A run is a journal (loaded into memory for the occasion), a DuckDB file or a Parquet folder that `load` made.
Rule: nothing that is asked changes anything on disk.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click
import duckdb

from radixledger.analytics.beside import BESIDE_TITLES
from radixledger.analytics.folder import is_folder, open_folder
from radixledger.analytics.judged import unjudged
from radixledger.analytics.queries import (
    Answer,
    Question,
    ask,
    ask_checks,
    ask_sql,
    find,
    of_kind,
    questions,
    runs_named,
)
from radixledger.analytics.reuse import asks_for_reuse, tellings
from radixledger.analytics.store import Database, StoreError, open_database
from radixledger.analytics.tables import TITLES, described
from radixledger.journal.absent import absent_ranks
from radixledger.journal.errors import ReaderError
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.tools.answer_text import objects, print_answer, print_csv, print_rows
from radixledger.tools.console import (
    FINDINGS,
    UNREADABLE,
    USAGE,
    CommandFailure,
    count_of,
    examples,
    exit_with,
    json_flag,
    print_json,
    print_lines,
    progress,
    remark,
)
from radixledger.tools.load import check_names, load_all, pairs, salvage_flag, told_plainly
from radixledger.tools.near import near
from radixledger.tools.printable import say, say_lines
from radixledger.tools.ranks import ranks_option, the_ranks
from radixledger.tools.reuse_rows import reservations, tell_reuse
from radixledger.tools.run_argument import RunPath, is_url, located_or_loaded
from radixledger.tools.table import print_table
from radixledger.tools.unread import RanksOf, leave_unread

FORMATS = ("table", "csv", "json")
KINDS = ("check", "report", "view", "table")


@click.command(
    epilog=examples(
        "radixledger sql RUN --checks",
        "radixledger sql RUN double_free",
        "radixledger sql RUN page_life --set page=7 --set pool=swa --set rank=1",
        'radixledger sql RUN_A RUN_B -c "SELECT run, count(*) FROM pages GROUP BY run" --format csv',
        "radixledger sql RUN_A RUN_B lost_reuse_by_cause",
        "radixledger sql --list hit_rate",
    )
)
@click.argument("words", nargs=-1, metavar="[RUN]... [NAME]", type=RunPath())
@click.option("-c", "query", metavar="QUERY", help="SQL of your own, over the tables that --list shows.")
@click.option("--checks", "all_checks", is_flag=True, help="Run every check; exit code 1 when one has rows.")
@click.option(
    "--list", "listed", is_flag=True, help="List the questions and tables; with NAME, show that one whole."
)
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="What a question has to be told."
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", help="How rows are printed.")
@ranks_option
@salvage_flag
@json_flag
def command(
    words: tuple[Path | str, ...],
    query: str | None,
    all_checks: bool,
    listed: bool,
    settings: tuple[str, ...],
    form: str,
    ranks: tuple[int, ...],
    salvage: bool,
    as_json: bool,
) -> None:
    """Ask runs in SQL: a question by its name, a query of your own, or every check at once.

    Exit code 1: a check has rows, or a rank is not here. 3: nothing of that, and a rank could not be read; the others are in the answer.
    """
    form = "json" if as_json else form
    values = pairs(settings, "--set")
    if values and (listed or all_checks):
        raise CommandFailure("--set tells something to NAME or to -c QUERY, and there is neither", USAGE)
    with told_plainly():
        if listed:
            _show_list(_only_name(words), form)
            return
        runs, name = _parted(words, all_runs=all_checks or query is not None)
        if [name is not None, query is not None, all_checks].count(True) != 1:
            raise CommandFailure("ask one thing: NAME (see --list), -c QUERY or --checks", USAGE)
        question = find(name) if name else None
        reuse = asks_for_reuse(question.query if question else query or "")
        if ranks and any(map(_is_loaded, runs)):
            raise CommandFailure(
                "--rank is of journals; of what is loaded, name the ranks in a query (-c)", USAGE
            )
        chosen = [] if any(map(_is_loaded, runs)) else [RanksOf(run, the_ranks(run, ranks)) for run in runs]
        absent = [] if ranks else absent_ranks((each.run, rank) for each in chosen for rank in each.ranks)
        for each in absent:
            remark(each.sentence())
        with _opened(runs, chosen, salvage=salvage, reuse=reuse) as connection:
            if reuse and _is_loaded(runs[0]):
                _say_how_far_told(connection, runs[0], runs_named(question, values) if question else [])
            if all_checks or (question and question.kind == "check"):
                _say_what_is_not_judged(connection)
            if all_checks:
                _run_checks(connection, form, chosen, complete=not absent)
            elif question:
                _answer(connection, question, values, form, chosen)
            else:
                print_answer(ask_sql(connection, query or "", values), form)
        leave_unread(chosen)


def _only_name(words: Sequence[Path | str]) -> str | None:
    """The name that --list is to show whole; a run has no questions of its own."""
    name = str(words[-1]) if words else None
    if name is None or name in questions() or name in _NAMED:
        return name
    return None if is_url(name) or Path(name).exists() else name


def _parted(words: Sequence[Path | str], *, all_runs: bool) -> tuple[list[Path], str | None]:
    """Runs and the name behind them: a last word that is neither a URL nor a path names a question.

    all_runs: no question is to be named, so that a word which names none is a run that is not there.
    """
    if not words or is_url(words[-1]) or Path(words[-1]).exists():
        return [located_or_loaded(word) for word in words], None
    runs, name = words[:-1], str(words[-1])
    if name not in questions() and name not in _NAMED:
        if all_runs:
            return [located_or_loaded(word) for word in words], None
        if not runs:
            hint = near(name, questions())
            raise CommandFailure(
                f"{name} is neither a run nor a question{hint or ': there is no such folder; --list shows the questions'}",
                USAGE if hint else UNREADABLE,
            )
    return [located_or_loaded(run) for run in runs], name


@contextmanager
def _opened(
    runs: Sequence[Path], chosen: Sequence[RanksOf], *, salvage: bool, reuse: bool
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that the tables of these runs can be read from; reuse: also that of where the hits went."""
    if not runs:
        raise CommandFailure("name a run: the folder of a journal, or what `radixledger load` made", USAGE)
    loaded = [run for run in runs if _is_loaded(run)]
    if loaded and len(runs) > 1:
        raise CommandFailure(
            f"{loaded[0]} is loaded already and is asked alone: load the others into it", USAGE
        )
    if loaded:
        connection = _opened_store(runs[0])
    else:
        database = Database()
        check_names(runs)
        load_all(database, chosen, {}, salvage=salvage)
        if reuse:
            tell_reuse(database, chosen, salvage=salvage)
        connection = database.questioned()
    try:
        yield connection
    finally:
        connection.close()


def _opened_store(place: Path) -> duckdb.DuckDBPyConnection:
    """What `load` made; a place that cannot be read is unreadable, as a journal is."""
    try:
        return open_folder(place) if place.is_dir() else open_database(place)
    except StoreError as error:
        raise CommandFailure(str(error), UNREADABLE) from error


def _is_loaded(run: Path) -> bool:
    """Whether this is what `load` made, and no journal."""
    return run.is_file() or is_folder(run)


def _say_how_far_told(connection: duckdb.DuckDBPyConnection, place: Path, named: Collection[str]) -> None:
    """Refuse to answer where nothing is told, or not of the runs that are named; remark on what is told in part."""
    ranks = tellings(connection)
    asked = [each for each in ranks if not named or each.run in named]
    untold = [each for each in asked if each.fold is None]
    if untold and (named or untold == asked):
        runs = ", ".join(dict.fromkeys(each.run for each in untold))
        raise CommandFailure(
            f"{runs}: loaded without telling where the hits went; `radixledger load RUN --to {place} --reuse`"
            " tells it, and loads no event twice",
            USAGE,
        )
    for each in asked:
        texts = reservations(each) if each.fold else ["is not in the answer: it was loaded without --reuse"]
        for text in texts:
            remark(f"{each.run}, rank {each.rank}: {text}")


def _say_what_is_not_judged(connection: duckdb.DuckDBPyConnection) -> None:
    for each in unjudged(connection):
        remark(
            f"{each.run}, rank {each.rank}: events are missing at event {each.lost_seq}; the {count_of(each.events, 'event')} of epoch"
            f" {each.epoch} from there on can be judged page by page alone, by the checks that need no past"
        )


def _answer(
    connection: duckdb.DuckDBPyConnection,
    question: Question,
    values: dict[str, str],
    form: str,
    chosen: Sequence[RanksOf],
) -> None:
    answer = _without_what_is_here(question.name, ask(connection, question, values), chosen)
    print_answer(answer, form)
    if question.kind == "check" and answer.rows:
        exit_with(FINDINGS)


def _without_what_is_here(name: str, answer: Answer, chosen: Sequence[RanksOf]) -> Answer:
    """A rank that was not asked for, or not read, is not loaded, and yet not missing."""
    if name != "missing_ranks" or not chosen:
        return answer
    here = {(name, rank) for each in chosen for name in _names(each.run) for rank in ranks_in(each.run)}
    run, rank = answer.columns.index("run"), answer.columns.index("missing_rank")
    return Answer(answer.columns, [row for row in answer.rows if (row[run], row[rank]) not in here])


def _names(run: Path) -> set[str]:
    """What the journals of a run that can be read call it."""
    names = set()
    for rank in ranks_in(run):
        with suppress(ReaderError):
            names.add(JournalReader(run, rank, salvage=True).opened.run or run.name)
    return names


def _run_checks(
    connection: duckdb.DuckDBPyConnection, form: str, chosen: Sequence[RanksOf], *, complete: bool
) -> None:
    """Print what every check finds; of a run that is not `complete` nothing is called clean, whatever is loaded of it."""
    with progress("check", len(of_kind("check"))) as advance:
        answers = {
            name: _without_what_is_here(name, answer, chosen)
            for name, answer in ask_checks(connection, advance).items()
        }
    found = {name: answer for name, answer in answers.items() if answer.rows}
    if form == "json":
        checks = [{"name": name, "rows": objects(answer)} for name, answer in answers.items()]
        print_json(
            {
                "clean": complete and not found and not any(each.unread.ranks for each in chosen),
                "checks": checks,
            }
        )
    elif form == "csv":
        print_csv(("check", "findings"), [(name, len(answer.rows)) for name, answer in answers.items()])
    else:
        _print_found(answers, found)
    if found or not complete:
        exit_with(FINDINGS)


def _print_found(answers: dict[str, Answer], found: dict[str, Answer]) -> None:
    for name, answer in found.items():
        print_rows(answer, title=f"{name}: {find(name).title}")
        say()
    rows = sum(len(answer.rows) for answer in found.values())
    told = f"{count_of(rows, 'finding')} on {len(found)} of them" if found else "no findings"
    say(f"{len(answers)} checks, {told}")


def _show_list(name: str | None, form: str) -> None:
    if name in _NAMED:
        print_answer(Answer(("column", "type"), list(described(name))), form)
    elif name is not None:
        _show_question(find(name), form)
    else:
        told = [(each.kind, each.name, each.title) for each in questions().values()]
        told += [("table", table, title) for table, title in _NAMED.items()]
        rows = sorted(told, key=lambda each: (KINDS.index(each[0]), each[1]))
        _print_list(rows) if form == "table" else print_answer(
            Answer(_LISTED, [tuple(row) for row in rows]), form
        )


_NAMED = TITLES | BESIDE_TITLES
"""Every table, and what it tells."""

_LISTED = ("kind", "name", "what it tells")


def _print_list(rows: Sequence[Sequence[str]]) -> None:
    """A table, or where that is too wide a paragraph for each."""
    print_table(_LISTED, rows, otherwise=[f"{kind} {name}: {title}" for kind, name, title in rows])


def _show_question(question: Question, form: str) -> None:
    if form == "json":
        told = ("name", "kind", "title", "help", "query")
        parameters = [parameter._asdict() for parameter in question.parameters]
        print_json({name: getattr(question, name) for name in told} | {"parameters": parameters})
        return
    if form == "csv":
        print_csv((*_LISTED, "query"), [(question.kind, question.name, question.title, question.query)])
        return
    print_lines([f"{question.name} ({question.kind})", "", *question.help.splitlines(), ""])
    for parameter in question.parameters:
        default = f" (default {parameter.default})" if parameter.default is not None else ""
        print_lines([f"--set {parameter.name}=...  {parameter.help}{default}"])
    say_lines(f"\n{question.query}" if question.parameters else question.query)
