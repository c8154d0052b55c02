"""`radixledger journal`: look at a journal, count it, examine it, recover it, take the tokens out of it.

Rule: these commands only read, and `recover` and `redact` write a copy; a journal on a read-only mount, or one that is being
written, can be given to any of them.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
import msgspec

from radixledger.journal.doctor import RankReport, Verdict, examine
from radixledger.journal.errors import NoJournal, ReaderError
from radixledger.journal.events import Gap
from radixledger.journal.folder import rank_folder
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.recover import Recovered, demand_absent
from radixledger.journal.recover import recover as recover_rank
from radixledger.journal.redact import default_key_path, load_or_create_key, spelled_out
from radixledger.journal.tally import tally
from radixledger.journal.units import Rank, Seq
from radixledger.replay.export.redaction import NotToRedact, demand_tokens
from radixledger.replay.export.redaction import redact as redact_rank
from radixledger.tools.console import (
    FINDINGS,
    UNREADABLE,
    USAGE,
    CommandFailure,
    GivenPath,
    examples,
    exit_with,
    json_flag,
    print_json,
    print_lines,
    progress,
    remark,
)
from radixledger.tools.event_lines import (
    TYPES,
    json_writer,
    line_writer,
    refuse_to_follow_a_copy,
    until_closed,
)
from radixledger.tools.journal_tables import print_recovered, print_reports, print_tally
from radixledger.tools.lazy_group import NearGroup
from radixledger.tools.near import near
from radixledger.tools.numbers import Whole
from radixledger.tools.places import check_key_place, check_run_place
from radixledger.tools.printable import say
from radixledger.tools.ranks import ranks_option, the_absent, the_ranks
from radixledger.tools.run_argument import as_given, in_given_words, run_argument
from radixledger.tools.times import time_ns_of
from radixledger.tools.unread import Unread


def _a_time(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """A text that names a time, see `times`."""
    try:
        if text is not None:
            time_ns_of(text, 0)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return text


def _event_names(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> list[str]:
    """Names of events as the vocabulary spells them, from whatever case they were given in."""
    names = {name.lower(): name for name in TYPES}
    for word in words:
        if word.lower() not in names:
            hint = near(word.capitalize(), TYPES, f"; events are: {', '.join(TYPES)}")
            raise click.BadParameter(f"no event is called {word!r}{hint}")
    return [names[word.lower()] for word in words]


copy_option = click.option(
    "--to",
    "to",
    type=GivenPath(path_type=Path),
    required=True,
    help="The run to make; it must not have these ranks yet.",
)


@click.group(
    "journal", cls=NearGroup, epilog=examples("radixledger journal cat RUN", "radixledger journal doctor RUN")
)
def command() -> None:
    """Look at a journal, count it, examine it, recover it, take the tokens out of it.

    RUN is the folder that was given as --journal, with one rank-NNNN folder per rank, or the URL of one.
    """


@command.command(
    short_help="Print events, one a line.",
    epilog=examples(
        "radixledger journal cat RUN | less -S",
        "radixledger journal cat RUN --rank 3 --from 1200 --to 1300",
        "radixledger journal cat RUN --type Refused --type Violated",
        "radixledger journal cat RUN --json --type Freed | jq .full",
    ),
)
@run_argument
@ranks_option
@click.option("--from", "from_seq", type=Whole(1), help="Begin at this event.")
@click.option("--to", "to_seq", type=Whole(1), help="End with this event.")
@click.option(
    "--since",
    metavar="TIME",
    callback=_a_time,
    help="Begin at the first frame of this time, e.g. 2026-05-01T12:00, or +12.5s since the run began.",
)
@click.option(
    "--type",
    "types",
    metavar="NAME",
    callback=_event_names,
    multiple=True,
    help="Only events of this type, e.g. Freed; may be given again.",
)
@click.option("--json", "as_lines", is_flag=True, help="One JSON object a line, for programs.")
@click.option("--salvage", is_flag=True, help="Read on behind damage; a Gap stands for what is lost.")
@click.option("--follow", is_flag=True, help="Go on with what the writer adds, until it closes.")
def cat(
    run: Path,
    ranks: tuple[int, ...],
    from_seq: int | None,
    to_seq: int | None,
    since: str | None,
    types: list[str],
    *,
    as_lines: bool,
    salvage: bool,
    follow: bool,
) -> None:
    """Print events, one a line: number, time, step, name, and the fields that say something.

    Exit code 1: a Gap stands for events that are lost (--salvage). 3: none does, and a rank could not be read.
    """
    chosen = the_ranks(run, ranks)
    if follow and len(chosen) > 1:
        raise click.UsageError("--follow follows one rank: name it with --rank")
    if follow:
        refuse_to_follow_a_copy(run, "--follow")
    if from_seq is not None and since is not None:
        raise click.UsageError("--from and --since both say where to begin: give one")
    if from_seq is not None and to_seq is not None and from_seq > to_seq:
        raise click.UsageError(f"--from {from_seq} is behind --to {to_seq}: there is nothing between them")
    gaps, unread = 0, Unread(run, chosen)
    for rank in chosen:
        with unread.around(rank):
            reader = JournalReader(run, rank, salvage=salvage)
            write = json_writer(reader) if as_lines else line_writer(rank, several=len(chosen) > 1)
            for frame in _frames(reader, from_seq, since, follow=follow):
                gaps += isinstance(frame.events[0], Gap)
                if to_seq is not None and frame.seq_first > to_seq:
                    break
                for seq, event in enumerate(frame.events, frame.seq_first):
                    if (not types or type(event).__name__ in types) and (to_seq is None or seq <= to_seq):
                        write(frame, seq, event)
            for notice in reader.notices:
                remark(f"rank {rank}: {notice}")
    unread.leave(found=bool(gaps and salvage))


def _frames(
    reader: JournalReader, from_seq: int | None, since: str | None, *, follow: bool
) -> Iterator[Frame]:
    start = None if from_seq is None else Seq(from_seq)
    if since is not None:
        start = reader.seq_at_time(time_ns_of(since, next(iter(reader.frames())).time_ns))
        if start is None:
            return
    if not follow:
        yield from reader.frames(start)
        return
    yield from until_closed(reader, start)


@command.command(
    short_help="Count events and bytes by type.",
    epilog=examples("radixledger journal stats RUN", "radixledger journal stats RUN --rank 0 --json"),
)
@run_argument
@ranks_option
@click.option("--salvage", is_flag=True, help="Count on behind damage.")
@json_flag
def stats(run: Path, ranks: tuple[int, ...], *, salvage: bool, as_json: bool) -> None:
    """Count events and bytes by type, epochs, segments, and the time they span. Exit code 3: a rank could not be read."""
    tallies, unread = [], Unread(run, chosen := the_ranks(run, ranks))
    with progress("counting events") as advance:
        for rank in chosen:
            with unread.around(rank):
                tallies.append(tally(run, rank, salvage=salvage, advance=advance))
    if as_json:
        told = [msgspec.to_builtins(each) | {"bytes_per_event": each.bytes_per_event} for each in tallies]
        print_json([*told, *unread.ranks])
    else:
        for place, each in enumerate(tallies):
            if place:
                say()
            print_tally(each)
    unread.leave(found=False)


@command.command(
    short_help="Say, file by file, what is whole and what is not.",
    epilog=examples("radixledger journal doctor RUN", "radixledger journal doctor RUN --json"),
)
@run_argument
@ranks_option
@json_flag
def doctor(run: Path, ranks: tuple[int, ...], *, as_json: bool) -> None:
    """Examine every frame and say, file by file, what is whole and what is not. Nothing is changed.

    Exit code 0: sound. 1: something is damaged or lost, or a rank is not here. 3: nothing of a rank can be read.
    """
    absent = the_absent(run, ranks)
    with progress("examining bytes") as advance:
        reports = [_examined(run, rank, advance) for rank in the_ranks(run, ranks)]
    if as_json:
        nothing = [
            RankReport(rank, 0, problems=[each.sentence()]) for each in absent for rank in each.missing
        ]
        print_json(
            [msgspec.to_builtins(each) | {"findings": each.has_findings} for each in nothing + reports]
        )
    else:
        print_lines([line for each in absent for line in (each.sentence(), "")])
        print_reports(reports)
    if any(all(s.verdict is Verdict.UNREADABLE for s in each.segments) for each in reports):
        exit_with(UNREADABLE)
    if absent or any(each.has_findings for each in reports):
        exit_with(FINDINGS)


def _examined(run: Path, rank: Rank, advance: Callable[[int], None]) -> RankReport:
    """What there is to say of a rank; of one whose folder is there and holds no segment, that."""
    try:
        return examine(run, rank, advance)
    except NoJournal as error:
        if not rank_folder(run, rank).is_dir():
            raise
        return RankReport(rank, 0, problems=[in_given_words(str(error))])


@command.command(
    short_help="Copy what can be read into a new run.",
    epilog=examples("radixledger journal recover RUN --to COPY", "radixledger journal doctor COPY"),
)
@run_argument
@copy_option
@ranks_option
@json_flag
def recover(run: Path, to: Path, ranks: tuple[int, ...], *, as_json: bool) -> None:
    """Copy what can be read into a new run, with a Gap for what cannot. RUN itself is not touched.

    A rank is copied whole or not at all. The exit code is 1 where events were lost, or a rank of which nothing can be read.
    """
    _demand_room(run, to)
    chosen = the_ranks(run, ranks)
    for rank in chosen:
        demand_absent(to, rank)
    with progress("copying events") as advance:
        done = [_copied(rank, chosen, lambda rank: recover_rank(run, rank, to, advance)) for rank in chosen]
    _tell_copied(done, as_json=as_json)


def _copied(rank: Rank, chosen: Sequence[Rank], copy: Callable[[Rank], Recovered]) -> Recovered:
    """What became of a rank; where it is not alone, the others are copied though nothing can be read of it."""
    try:
        return copy(rank)
    except ReaderError as error:
        if len(chosen) == 1:
            raise
        return Recovered(rank, "", notices=[f"not copied: {in_given_words(str(error))}"])


@command.command(
    short_help="Copy a run with its tokens as keyed hashes.",
    epilog=examples(
        "radixledger journal redact RUN --to COPY",
        "radixledger journal redact RUN --to COPY --key-file team.key  # joins with others of this key",
    ),
)
@run_argument
@copy_option
@click.option(
    "--key-file",
    type=GivenPath(path_type=Path),
    help="Key of the hashes, made where there is none.  [default: beside the copy]",
)
@ranks_option
@json_flag
def redact(run: Path, to: Path, key_file: Path | None, ranks: tuple[int, ...], *, as_json: bool) -> None:
    """Copy a run that holds token ids into one that holds keyed hashes of them, to hand to others. RUN is not touched.

    Who owned what, and every verdict, stays the same. Request ids, labels, lengths and times stay readable. Keep the key
    to yourself: with it, who knows a prompt can find it. The exit code is 1 where events were lost to damage, or a rank of which
    nothing can be read.
    """
    _demand_room(run, to)
    check_key_place(key_file, to)
    chosen = the_ranks(run, ranks)
    holds = [_holds_tokens(run, rank, to, chosen) for rank in chosen]
    key = load_or_create_key(key_file or default_key_path(to)) if any(holds) else b""
    with progress("redacting events") as advance:
        done = [
            _copied(rank, chosen, lambda rank: redact_rank(run, rank, to, key, advance)) for rank in chosen
        ]
    _tell_copied(done, as_json=as_json)


def _holds_tokens(run: Path, rank: Rank, to: Path, chosen: Sequence[Rank]) -> bool:
    """Whether a rank can be copied with hashes for its tokens; of one among others nothing may be readable.

    Raises what `demand_tokens` does of a rank that can be read, and then no key is made.
    """
    try:
        demand_tokens(run, rank, to)
    except NotToRedact:
        raise
    except ReaderError:
        if len(chosen) == 1:
            raise
        return False
    return True


def _demand_room(run: Path, to: Path) -> None:
    copy = spelled_out(to)
    if not copy.name or copy.is_relative_to(spelled_out(run)):
        raise CommandFailure(
            f"{to} is no place for a copy of {as_given(run)}, which stays as it is: name a new folder", USAGE
        )
    check_run_place(to)


def _tell_copied(done: list[Recovered], *, as_json: bool) -> None:
    if as_json:
        print_json(done)
    else:
        print_recovered(done)
    if any(each.lost or not each.segments for each in done):
        exit_with(FINDINGS)
