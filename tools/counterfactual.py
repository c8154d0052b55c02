"""`radixledger counterfactual`: would another revision have decided the incident rightly?

Not here: performing and judging (`radixledger.replay.reduce.counterfactual`); this module finds the revision, parses and prints.
"""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from msgspec import to_builtins

import radixledger
from radixledger.journal.events import Opened
from radixledger.journal.reader import JournalReader
from radixledger.replay.reduce.counterfactual import Counterfactual, counterfactual
from radixledger.replay.reduce.incident import incident_of
from radixledger.replay.schedule.commands import AnyCommand
from radixledger.replay.schedule.elsewhere import Elsewhere, OtherRevisionFailed, performed_elsewhere
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
    waiting,
)
from radixledger.tools.leaving import leaving_when_told
from radixledger.tools.printable import say
from radixledger.tools.ranks import rank_option, the_rank
from radixledger.tools.run_argument import as_given, run_of_one_rank_argument
from radixledger.tools.watching import watched


@click.command(
    epilog=examples(
        "radixledger counterfactual RUN --with ../radixledger-fixed",
        "radixledger counterfactual RUN --rank 3 --with v1.4 --json",
    ),
)
@run_of_one_rank_argument
@rank_option
@click.option(
    "--with",
    "revision",
    metavar="PATH|REV",
    required=True,
    help="A checkout, a site-packages folder, or a git revision of the checkout that this command runs from.",
)
@json_flag
def command(run: Path, rank: int | None, revision: str, as_json: bool) -> None:
    """Perform an incident again with another revision's deciders: does the violation go away, and without a new one?

    Events are judged by the laws of this revision. Exit code 0: it goes away, and nothing else is broken; or there was
    none. 1: it stays, or something else breaks.
    """
    reader = JournalReader(run, the_rank(run, rank))
    with watched(run, reader.rank) as watch:
        incident = incident_of(reader, None, watch)
    if incident is None:
        if as_json:
            print_json({"clean": True})
        else:
            say(f"{as_given(run)}: every law holds; there is nothing that could go away")
        return

    with package_of(revision) as path, waiting(f"deciding with {revision}"):

        def decide(opened: Opened, commands: Sequence[AnyCommand]) -> list[Elsewhere]:
            return performed_elsewhere(path, opened, commands, strict=incident.strict)

        try:
            found = counterfactual(incident, decide)
        except OtherRevisionFailed as error:
            raise CommandFailure(f"{revision} cannot perform these commands: {error}", USAGE) from None
    if as_json:
        difference = None if found.difference is None else found.difference._asdict()
        told = {**found._asdict(), "difference": difference, "mends": found.mends, "clean": False}
        print_json(to_builtins(told))
    else:
        _tell(found, revision)
    if not found.mends:
        exit_with(FINDINGS)


def _tell(found: Counterfactual, revision: str) -> None:
    print_lines([*_told(found, revision)])


def _told(found: Counterfactual, revision: str) -> Iterator[str]:
    others = ", ".join(f"{law} ({many})" for law, many in found.others.items())
    yield f"event {found.seq:,} broke {found.law}; with {revision} it {'goes away' if found.gone else 'stays'}"
    yield f"broken now: {others}" if others else "nothing else is broken"
    if found.failed:
        yield f"it fell over: {found.failed}"
    yield f"{count_of(found.performed, 'command')} of {found.asked} performed, {found.refused} of them turned down"
    if found.difference is None:
        yield "all of them were decided as recorded"
        return
    yield f"from event {found.difference.seq:,} on it decides otherwise; what follows is an estimate"
    yield f"  asked      {found.difference.command}"
    for label, sentences in (("recorded", found.difference.recorded), ("instead", found.difference.instead)):
        yield from (f"  {label:<10} {sentence}" for sentence in sentences or ["nothing"])


@contextmanager
def package_of(revision: str) -> Iterator[Path]:
    """A folder that holds the package `radixledger` of a revision; raises CommandFailure where there is none."""
    given = Path(revision)
    for folder in (given / "src", given):
        if (folder / "radixledger" / "__init__.py").is_file():
            yield folder.resolve()
            return
    if given.is_dir():
        raise CommandFailure(f"{revision} holds no package radixledger, neither in src/ nor itself", USAGE)
    checkout = Path(radixledger.__file__).resolve().parents[2]
    with leaving_when_told(), TemporaryDirectory(prefix="radixledger-") as room:
        _check_out(checkout, revision, Path(room))
        if not (Path(room) / "src" / "radixledger" / "__init__.py").is_file():
            raise CommandFailure(f"{revision} holds no package radixledger in src/", USAGE)
        yield Path(room) / "src"


def _check_out(checkout: Path, revision: str, room: Path) -> None:
    """Unpack a git revision; raises CommandFailure."""
    archived = subprocess.run(
        ["git", "-C", str(checkout), "archive", "--format=tar", "--end-of-options", revision],
        capture_output=True,
        check=False,
    )
    if archived.returncode:
        raise CommandFailure(
            f"{revision!r} is no folder, and no git revision of {checkout}: give a checkout, or a folder with the package",
            USAGE,
        )
    unpacked = subprocess.run(
        ["tar", "-x", "-C", str(room)], input=archived.stdout, capture_output=True, check=False
    )
    if unpacked.returncode:
        said = unpacked.stderr.decode(errors="replace").strip().splitlines() or [
            f"tar left with {unpacked.returncode}"
        ]
        raise CommandFailure(f"{revision} could not be unpacked into {room}: {said[0]}")
