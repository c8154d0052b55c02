"""`radixledger replay bisect`: the first command of a journal behind which a law is broken, a predicate true, a query answered.

Not here: the search (`radixledger.replay.search.bisect`), the language of predicates (`radixledger.replay.search.predicate`) and the
tables (`radixledger.analytics.prefix`); this module parses and prints.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
from msgspec.structs import asdict

from radixledger.analytics.load import load_frames
from radixledger.analytics.prefix import Prefix
from radixledger.analytics.queries import Answer, Question, QuestionError, find
from radixledger.analytics.store import Database
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Seq
from radixledger.replay.laws import OF_EVENTS, OF_STATES
from radixledger.replay.search.bisect import turned, turned_at
from radixledger.replay.search.every_command import first_event_that_broke, first_of_all, first_of_all_at
from radixledger.replay.search.found import Ask, Found, of_laws
from radixledger.replay.search.predicate import BadPredicate, Predicate
from radixledger.tools.console import (
    FINDINGS,
    USAGE,
    CommandFailure,
    GivenPath,
    count_of,
    examples,
    exit_with,
    json_flag,
    print_json,
    print_lines,
    remark,
    waiting,
)
from radixledger.tools.event_text import as_json, line, time_text
from radixledger.tools.load import told_plainly
from radixledger.tools.near import near
from radixledger.tools.printable import say
from radixledger.tools.ranks import rank_option, the_rank
from radixledger.tools.replay.arguments import salvage_flag
from radixledger.tools.run_argument import run_of_one_rank_argument
from radixledger.tools.watching import watched


class _Question(NamedTuple):
    """What was asked: in words, and the search for it, with every command or by halves."""

    words: str
    search: Callable[[JournalReader, bool], Found]
    by_halves: bool = True


@click.command(
    epilog=examples(
        "radixledger replay bisect RUN --law every_page_has_one_owner",
        "radixledger replay bisect RUN --predicate 'full.free < 8 and requests > 20'",
        "radixledger replay bisect RUN --predicate 'full[57].owner == \"request(98)\"' --first",
        "radixledger replay bisect RUN --sql two_owners",
        "radixledger replay bisect RUN --sql mine.sql --rank 3 --json",
    ),
)
@run_of_one_rank_argument
@rank_option
@click.option("--law", metavar="NAME", help="Which law; a NAME that is none is answered with all of them.")
@click.option(
    "--predicate",
    metavar="EXPR",
    help="A question to the state; a name in it that is none is answered with all of them.",
)
@click.option(
    "--sql",
    type=GivenPath(path_type=Path),
    metavar="FILE|NAME",
    help="A query, or a question of `radixledger sql`, to the events up to some number; yes where it has rows.",
)
@click.option("--first", "every", is_flag=True, help="Look at every command: slower, and exact.")
@salvage_flag
@json_flag
def command(
    run: Path, rank: int | None, law: str | None, predicate: str | None, sql: Path | None, every: bool, salvage: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Find the first command behind which a law is broken, a predicate is true, or a query has rows.

    It is asked at snapshots and then between two of them, by halves: right where the answer turns from no to yes once.
    Exit code 0: it is no wherever it was asked. 1: found.
    """
    question = _question(law, predicate, sql)
    reader = JournalReader(run, the_rank(run, rank), salvage=salvage)
    with told_plainly():
        found = question.search(reader, every)
    events = _events(reader, found)
    if as_json:
        told = {"question": question.words, "found": found.first > 0, "events": [each for _, each in events]}
        print_json(told | asdict(found) | {"time": time_text(found.time_ns)})
    else:
        _print(question, found, [text for text, _ in events])
    for notice in [*reader.notices, *found.notices]:
        remark(notice)
    if found.first or found.contradicted:
        exit_with(FINDINGS)


def _question(law: str | None, predicate: str | None, sql: Path | None) -> _Question:
    if [law, predicate, sql].count(None) != 2:
        raise CommandFailure("give one of --law, --predicate and --sql", USAGE)
    if law is not None:
        return _of_law(law)
    if predicate is not None:
        try:
            return _of_states(predicate, Predicate(predicate))
        except BadPredicate as error:
            raise CommandFailure(f"--predicate {error}", USAGE) from error
    assert sql is not None, "one of the three was given"
    return _of_rows(sql)


def _of_law(name: str) -> _Question:
    if name in OF_STATES:
        return _of_states(f"{name} is broken", of_laws([OF_STATES[name]]))
    if name in OF_EVENTS:
        return _Question(f"{name} is broken", lambda reader, _: _by_event(reader, name), by_halves=False)
    laws = sorted({*OF_STATES, *OF_EVENTS})
    hint = near(name, laws, "; there are\n  " + "\n  ".join(laws))
    raise CommandFailure(f"no law is called {name!r}{hint}", USAGE)


def _by_event(reader: JournalReader, name: str) -> Found:
    with watched(reader.run, reader.rank) as watch:
        return first_event_that_broke(reader, name, watch)


def _of_states(words: str, ask: Ask) -> _Question:
    def search(reader: JournalReader, every: bool) -> Found:
        with watched(reader.run, reader.rank) as watch:
            return (first_of_all if every else turned)(reader, ask, watch)

    return _Question(words, search)


def _of_rows(file: Path) -> _Question:
    query = _query(file)

    def search(reader: JournalReader, every: bool) -> Found:
        prefix = _loaded(reader)

        def ask(seq: int) -> str:
            return _rows(prefix.ask(query, seq))

        if every:
            with watched(reader.run, reader.rank) as watch:
                return first_of_all_at(reader, ask, watch)
        with waiting(f"asking {file.name}"):
            return turned_at(reader, ask)

    return _Question(f"{file.name} has rows", search)


def _query(file: Path) -> str | Question:
    """The text of a file; what is no file may be the name of a question."""
    if file.is_file():
        return file.read_text("utf-8", errors="replace")
    try:
        return find(str(file))
    except QuestionError as error:
        raise CommandFailure(f"--sql: there is no file {file}, and {error}", USAGE) from error


def _loaded(reader: JournalReader) -> Prefix:
    """The rank in memory, loaded once."""
    database = Database()
    with watched(reader.run, reader.rank) as watch:
        name = reader.opened.run or reader.run.name
        load_frames(database, name, reader.rank, iter(watch(reader.frames())))
    return Prefix(database)


def _rows(answer: Answer) -> str:
    """How many rows there are, and the first one; empty for none."""
    if not answer.rows:
        return ""
    cells = zip(answer.columns, answer.rows[0], strict=True)
    first = ", ".join(f"{name} {value}" for name, value in cells if value is not None)
    return f"{count_of(len(answer.rows), 'row')}, first: {first[:400]}"


def _events(reader: JournalReader, found: Found) -> list[tuple[str, dict[str, object]]]:
    """The events of the command that was found, as lines and as JSON."""
    if not found.first:
        return []
    frame = next(iter(reader.frames(Seq(found.first))))
    found.time_ns, found.step = frame.time_ns, frame.step
    return [
        (
            f"{seq}  {type(event).__name__}  {line(event)}",
            {"seq": seq, "type": type(event).__name__, **as_json(event)},
        )
        for seq, event in enumerate(frame.events, frame.seq_first)
        if seq <= found.last
    ]


def _print(question: _Question, found: Found, events: list[str]) -> None:
    asked = f"asked {count_of(found.looks, 'time')}, {found.snapshots} of them at snapshots"
    if found.contradicted:
        print_lines(
            [f"a snapshot says yes behind event {found.contradicted}, and the events up to it say no"]
        )
        say("`radixledger replay verify` compares the two")
    elif not found.first:
        hint = "; --first looks at every command" if question.by_halves and not found.every_command else ""
        print_lines([f"{question.words}: no; {asked}{hint}"])
    else:
        span = (
            f"{found.first}" if found.first == found.last else f"{found.first} to {found.last}, one command"
        )
        print_lines(
            [f"{question.words}: first behind event {span}, {time_text(found.time_ns)}, step {found.step}"]
        )
        if found.detail:
            print_lines([f"  {found.detail}"])
        print_lines([f"  {text}" for text in events])
        before = f"no behind event {found.no_at}" if found.no_at else "yes from the beginning on"
        print_lines(["", f"{before}; {asked}"])
        _print_turns(question, found)


def _print_turns(question: _Question, found: Found) -> None:
    if len(found.turns) > 1:
        turns = ", ".join(f"{'yes' if turn.now else 'no'} behind {turn.seq}" for turn in found.turns)
        print_lines([f"it turned {count_of(len(found.turns), 'time')}: {turns}"])
    if not found.at_the_end:
        print_lines(["at the end of the journal it is no again"])
    if question.by_halves and not found.every_command:
        print_lines(
            [
                "found by halves: there may be an earlier place if it turned back; --first looks at every command"
            ]
        )
