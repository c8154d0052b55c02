"""`radixledger reduce`: from the journal of an incident to a pytest file with the few commands that show it.

Not here: finding what can be left out (`radixledger.replay.reduce.reduce`) and writing the file (`radixledger.replay.reduce.fixture`);
this module parses and prints.
"""

from pathlib import Path

import click
from msgspec import to_builtins

from radixledger.journal.reader import JournalReader
from radixledger.replay.reduce.fixture import NoSchedule, fixture, schedule_of
from radixledger.replay.reduce.incident import Incident, NoSuchLaw, incident_of
from radixledger.replay.reduce.reduce import CannotReduce, Reduced, reduced
from radixledger.replay.schedule.letters import TooManyPages
from radixledger.replay.whole_file import whole_file
from radixledger.tools.console import (
    FINDINGS,
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
from radixledger.tools.near import near
from radixledger.tools.numbers import Seconds
from radixledger.tools.places import check_place, new_file
from radixledger.tools.printable import say, say_lines
from radixledger.tools.ranks import rank_option, the_rank
from radixledger.tools.run_argument import as_given, run_of_one_rank_argument
from radixledger.tools.watching import watched


@click.command(
    epilog=examples(
        "radixledger reduce RUN -o test_incident.py",
        "radixledger reduce RUN --rank 3 --law a_page_is_freed_once -o test_double_free.py",
        "radixledger reduce RUN --seconds 10 --json",
    ),
)
@run_of_one_rank_argument
@rank_option
@click.option("--law", help="The law whose first breach is wanted.  [default: the first that is broken]")
@click.option("-o", "--output", type=new_file, help="The file.  [default: stdout]")
@click.option(
    "--seconds",
    type=Seconds(0.1),
    default=60.0,
    show_default=True,
    help="Look for less no longer than this.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_flag
def command(
    run: Path, rank: int | None, law: str | None, output: Path | None, seconds: float, force: bool, as_json: bool
) -> None:  # fmt: skip
    """Reduce an incident to the few commands that show it, and write a pytest file that fails while the fault is in the code.

    The commands are read off the journal and performed again by the installed cache, fewer and fewer of them, as long as
    the wrong one meets the same situation and breaks the same law. Exit code 0: no law is broken. 1: one is.
    """
    if output is not None:
        check_place(output, force=force)
    found = _incident(run, rank, law)
    if found is None:
        if as_json:
            print_json({"clean": True})
        else:
            say(f"{as_given(run)}: {law or 'every law'} holds; there is nothing to reduce")
        return
    least, text = _reduced(found, seconds)
    if output is not None:
        with whole_file(output) as file:
            file.write(text.encode())
    if as_json:
        print_json(_as_data(least, text, output))
    else:
        _tell(least, output)
        if output is None:
            say_lines(text, nl=False)
    exit_with(FINDINGS)


def _incident(run: Path, rank: int | None, law: str | None) -> Incident | None:
    reader = JournalReader(run, the_rank(run, rank))
    try:
        with watched(run, reader.rank) as watch:
            return incident_of(reader, law, watch)
    except NoSuchLaw as error:
        hint = near(error.law, error.known, "; there are\n  " + "\n  ".join(error.known))
        raise CommandFailure(f"{error}{hint}", USAGE) from None


def _reduced(found: Incident, seconds: float) -> tuple[Reduced, str]:
    try:
        with progress("performed again", None) as advance:
            least = reduced(found, seconds, advance)
        return least, fixture(least)
    except (CannotReduce, NoSchedule, TooManyPages) as error:
        first = found.first
        raise CommandFailure(
            f"event {first.seq:,} broke {first.law}: {first.detail}; but it cannot be reduced: {error}",
            FINDINGS,
        ) from None


def _tell(least: Reduced, output: Path | None) -> None:
    """What was found and what is left; beside the file, or on stderr where the file goes to stdout."""
    incident = least.incident
    before = f"{count_of(incident.events, 'event')} of {count_of(least.at_first, 'command')}"
    after = f"{count_of(least.enacted.size, 'event')} of {count_of(len(least.deeds), 'command')}"
    lines = [
        f"event {incident.first.seq:,} broke {incident.first.law}: {incident.first.detail}",
        f"{before} led to it; {after} are left",
    ]
    if not least.finished:
        lines.append("time ran out before everything was tried: give more with --seconds")
    if least.wrong is None:
        lines.append(
            "the installed cache decides as was recorded: the file fails until it is mended, or its caller is"
        )
    for line in lines:
        if output is None:
            remark(line)
        else:
            print_lines([line])
    if output is not None:
        say(f"run it: pytest {output}")


def _as_data(least: Reduced, text: str, output: Path | None) -> dict[str, object]:
    incident = least.incident
    return {
        "clean": False,
        "law": incident.first.law,
        "event": incident.first.seq,
        "detail": incident.first.detail,
        "events_before": incident.events,
        "commands_before": least.at_first,
        "events_after": least.enacted.size,
        "commands_after": len(least.deeds),
        "tried": least.tried,
        "finished": least.finished,
        "decided_so_today": least.wrong is None,
        "schedule": [to_builtins(each) for each in schedule_of(least)],
        "file": str(output) if output is not None else text,
    }
