"""`radixledger drive`: send a recorded trace of requests through the cache, without a model.

Everything a server's cache would do happens, in trace order and as fast as it goes: match, admission, chunks,
decode steps, frees, evictions, with the journal on. Rule: figures come from the driver's own counts and the
state's totals; what else one wants to know is a question to the journal.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
from msgspec.structs import replace

from radixledger.cache.faces.routing import RouteName
from radixledger.cache.rank import RankCache
from radixledger.cache.sizing import swa_pages_for
from radixledger.cache.watch import Watched
from radixledger.journal.errors import RunExists
from radixledger.journal.events import Config
from radixledger.journal.retention import Retention
from radixledger.journal.sizes import BadConfig
from radixledger.journal.writer import Policy
from radixledger.tools.console import (
    FINDINGS,
    USAGE,
    CommandFailure,
    GivenPath,
    bytes_text,
    count_of,
    count_text,
    examples,
    exit_with,
    json_flag,
    print_facts,
    print_json,
    progress,
    remark,
    seconds_text,
)
from radixledger.tools.driver import Driver, StepClock
from radixledger.tools.numbers import INT32_MAX, Whole
from radixledger.tools.opening import MOST_RANKS, Recording, open_rank
from radixledger.tools.places import SourceFile, check_key_place, check_run_place
from radixledger.tools.policy_options import Policies, policy_options
from radixledger.tools.route_options import Asked, route_for, route_options
from radixledger.tools.streams import BadTrace, Job, TraceStream, read_trace
from radixledger.tools.window_evidence import (
    COMPARE,
    WindowRun,
    check_comparable,
    examined,
    recording_of,
    show,
    variants,
    windows_option,
)

SHOWN_REFUSALS = 20
"""Requests that are turned away and told of one by one; of more, the number is told at the end."""


class Schedule(NamedTuple):
    """What is driven, and how: request i of the trace goes to rank i modulo `ranks`."""

    trace: Path
    limit: int | None
    ranks: int
    chunk: int
    running: int
    requests: int


class Drive(msgspec.Struct):
    """What one drive came to, all ranks together; lengths in tokens, times of this process."""

    route: str = ""
    requests: int = 0
    refused: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    full_hit_tokens: int = 0
    swa_hit_tokens: int = 0
    full_evicted_tokens: int = 0
    swa_evicted_tokens: int = 0
    tombstones: int = 0
    heals: int = 0
    retractions: int = 0
    prefill_steps: int = 0
    decode_steps: int = 0
    host_seconds: float = 0.0
    events: int = 0
    journal_bytes: int = 0

    @property
    def hit_rate(self) -> float:
        """Cached part of the prompt tokens."""
        return self.swa_hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


def rows_for(running: int) -> int:
    """The row count for so many live requests: a power of two."""
    return 1 << max(0, running - 1).bit_length()


def drive_rank(
    cache: RankCache,
    jobs: Iterator[Job],
    clock: StepClock,
    *,
    chunk_tokens: int,
    max_running: int,
    into: Drive,
) -> None:
    """Drive one rank until its jobs are through, close its journal, and add what happened to `into`."""
    driver = Driver(cache, TraceStream(jobs), chunk_tokens=chunk_tokens, max_running=max_running, clock=clock)
    begun = time.process_time()
    try:
        while driver.step():
            pass
    finally:
        cache.close("the trace is through")
    into.host_seconds += time.process_time() - begun
    counts, totals, page_size = driver.counts, cache.state.totals, cache.state.page_size
    for refusal in driver.refusals[: max(0, SHOWN_REFUSALS - into.refused)]:
        remark(f"refused {refusal}")
    into.requests += counts.finished + counts.refused
    into.refused += counts.refused
    into.prompt_tokens += counts.prompt_tokens
    into.output_tokens += counts.output_tokens
    into.full_hit_tokens += counts.full_hit_tokens
    into.swa_hit_tokens += counts.hit_tokens
    into.full_evicted_tokens += totals.full_evicted * page_size
    into.swa_evicted_tokens += totals.swa_evicted * page_size
    into.tombstones += totals.tombstones
    into.heals += totals.healed
    into.retractions += counts.retracted
    into.prefill_steps += counts.prefill_steps
    into.decode_steps += counts.decode_steps
    into.events += cache.state.seq


@click.command(
    epilog=examples(
        "radixledger drive trace.jsonl --journal run --unified",
        "radixledger drive trace.jsonl --journal run --unified --limit 500 --swa-pages 512 --json",
        "radixledger drive trace.jsonl --journal run --disable-radix-cache --limit 500",
        "radixledger drive trace.jsonl --journal run --unified --key-mode bigram --lift-bigram "
        "--free-out-of-window compare",
        "radixledger drive trace.jsonl --journal run --unified --swa-victims use --eviction slru",
    )
)
@click.argument("trace", type=SourceFile())
@click.option(
    "--journal",
    "run",
    type=GivenPath(path_type=Path),
    help="Folder of the run; needed unless the policy is off.",
)
@route_options
@policy_options
@windows_option
@click.option(
    "--page-size", type=Whole(1, INT32_MAX), default=128, show_default=True, help="Tokens per page."
)
@click.option(
    "--window",
    type=Whole(0, INT32_MAX),
    default=1024,
    show_default=True,
    help="Sliding window in tokens; 0: a model without one.",
)
@click.option(
    "--full-pages", type=Whole(1, INT32_MAX), default=4096, show_default=True, help="FULL pages of each rank."
)
@click.option(
    "--swa-pages", type=Whole(0, INT32_MAX), help="SWA pages of each rank.  [default: by the sizing rule]"
)
@click.option(
    "--chunked-prefill-size",
    "chunk",
    type=Whole(1, INT32_MAX),
    default=2048,
    show_default=True,
    help="Prompt tokens of one step.",
)
@click.option(
    "--max-running-requests",
    "running",
    type=Whole(1, INT32_MAX),
    default=32,
    show_default=True,
    help="Live requests of each rank.",
)
@click.option(
    "--dp-size",
    "ranks",
    type=Whole(1, MOST_RANKS),
    default=1,
    show_default=True,
    help="Ranks; request i goes to rank i modulo this.",
)
@click.option("--limit", type=Whole(1), help="Stop after so many requests of the trace.")
@click.option(
    "--commit-policy",
    "policy",
    type=click.Choice([policy.value for policy in Policy]),
    default="operation",
    show_default=True,
    help="When the journal is written.",
)
@click.option(
    "--tokens",
    type=click.Choice(["hashed", "plain"]),
    default="hashed",
    show_default=True,
    help="How keys leave the process.",
)
@click.option(
    "--key-file",
    type=GivenPath(path_type=Path),
    help="Key of the hashes, shared by runs that are to be compared.",
)
@click.option(
    "--snapshot-every",
    type=Whole(1),
    help="Events between two snapshots of the state.  [default: none]",
)
@click.option(
    "--keep-bytes",
    type=Whole(1),
    help="Drop the oldest segments beyond this size, behind a snapshot.  [default: keep all]",
)
@click.option(
    "--watch",
    "watched",
    type=click.Choice([level.value for level in Watched]),
    default=Watched.BOOKS.value,
    show_default=True,
    help="Laws that are asked while it runs: of the books, of every event too, or of the whole state too.",
)
@json_flag
def command(
    trace: Path, run: Path | None, asked: Asked, policies: Policies, windows: str, page_size: int, window: int, full_pages: int, swa_pages: int | None,
    chunk: int, running: int, ranks: int, limit: int | None, policy: str, tokens: str, key_file: Path | None,
    snapshot_every: int | None, keep_bytes: int | None, watched: str, as_json: bool,
) -> None:  # fmt: skip
    """Send a request trace in the Mooncake format through the cache, without a model.

    Which cache is driven follows from --window, --unified and --disable-radix-cache. Exit code 1: a request was refused.
    """
    route = route_for(asked, hybrid_swa=window != 0, page_size=page_size)
    if run is None and policy != Policy.OFF:
        raise CommandFailure(
            "say where the journal goes: --journal FOLDER, or --commit-policy off for none", USAGE
        )
    check_run_place(run)
    check_key_place(key_file, run)
    if swa_pages is None:
        swa_pages = 0 if window == 0 else _swa_pages_by_rule(window, page_size, running, chunk)
    config = policies.put_into(Config(
        page_size, full_pages, swa_pages, window, rows_for(running), full_pages,
        key_mode=asked.key_mode, free_out_of_window=windows != "off",
    ))  # fmt: skip
    recording = Recording(
        run, Policy(policy), tokens, key_file, snapshot_every=snapshot_every, retention=Retention(keep_bytes),
        watched=Watched(watched),
    )  # fmt: skip
    schedule = Schedule(trace, limit, ranks, chunk, running, _checked_length(trace, limit))
    if windows == COMPARE:
        refused = _compare(route, config, recording, schedule, as_json)
    else:
        drive = _driven(route, config, recording, schedule)
        _report(drive, as_json)
        refused = drive.refused
    if refused:
        exit_with(FINDINGS)


def _driven(route: RouteName, config: Config, recording: Recording, schedule: Schedule) -> Drive:
    """Every rank, one after the other."""
    drive = Drive(route)
    with progress("driving", schedule.requests) as advance:
        for rank in range(schedule.ranks):
            clock = StepClock()
            cache = _opened(route, config, recording, rank, schedule.ranks, clock)
            jobs = _share(schedule, rank, advance)
            drive_rank(
                cache, jobs, clock, chunk_tokens=schedule.chunk, max_running=schedule.running, into=drive
            )
    if recording.run is not None and recording.policy is not Policy.OFF:
        drive.journal_bytes = sum(
            entry.stat().st_size for entry in recording.run.rglob("*") if entry.is_file()
        )
    return drive


def _compare(
    route: RouteName, config: Config, recording: Recording, schedule: Schedule, as_json: bool
) -> int:
    """The same trace with giving back and without (R273); there is no model, so no ids. How many requests were refused."""
    check_comparable(recording, windowed=config.window_tokens > 0)
    assert recording.run is not None, "what is compared is recorded"
    runs: list[WindowRun] = []
    refused = 0
    for variant in variants(config.key_mode):
        mine = replace(config, key_mode=variant.key_mode, free_out_of_window=variant.free_out_of_window)
        apart = recording_of(variant, recording)
        drive = _driven(route, mine, apart, schedule)
        assert apart.run is not None, "what is compared is recorded"
        runs.append(examined(apart.run, variant.name, mine, drive.swa_hit_tokens, None))
        if drive.refused:
            remark(f"{variant.name}: {count_of(drive.refused, 'request')} refused")
        refused += drive.refused
    show(recording.run, runs, as_json=as_json)
    return refused


def _swa_pages_by_rule(window: int, page_size: int, running: int, chunk: int) -> int:
    """The sizing rule's number of SWA pages, which is told; 1 where page size or window is nonsense, to be refused."""
    if min(window, page_size) < 1:
        return 1
    pages = swa_pages_for(
        window_tokens=window,
        page_size=page_size,
        running=running,
        chunk_tokens=chunk,
        kept_prefixes=4 * running,
    )
    remark(f"{pages} SWA pages of {page_size} tokens by the sizing rule: --swa-pages sets another number")
    return pages


def _checked_length(trace: Path, limit: int | None) -> int:
    """How many requests there are; the whole trace is checked before a journal is begun."""
    try:
        return sum(1 for _ in read_trace(trace, limit))
    except BadTrace as error:
        raise CommandFailure(str(error)) from None


def _opened(
    route: RouteName, config: Config, recording: Recording, rank: int, ranks: int, clock: StepClock
) -> RankCache:
    try:
        return open_rank(RankCache, config, recording, route=route, rank=rank, ranks=ranks, clock=clock)
    except BadConfig as error:
        raise CommandFailure(str(error), USAGE) from None
    except RunExists as error:
        raise CommandFailure(
            f"{error.folder} holds a journal already, and a run is never written over: give --journal another folder",
            USAGE,
        ) from None


def _share(schedule: Schedule, rank: int, advance: Callable[[int], None]) -> Iterator[Job]:
    """The jobs of one rank."""
    for number, job in enumerate(read_trace(schedule.trace, schedule.limit)):
        if number % schedule.ranks == rank:
            advance(1)
            yield job


def _report(drive: Drive, as_json: bool) -> None:
    if as_json:
        print_json({**msgspec.structs.asdict(drive), "hit_rate": drive.hit_rate})
        return
    per_million = drive.journal_bytes / max(1, drive.requests) * 1_000_000
    print_facts(
        {
            "route": drive.route,
            "requests": f"{count_text(drive.requests)} ({drive.refused} refused, {drive.retractions} retractions)",
            "prompt tokens": count_text(drive.prompt_tokens)
            + (" (those of a retracted request again)" if drive.retractions else ""),
            "hit tokens, FULL": count_text(drive.full_hit_tokens),
            "hit tokens, FULL + SWA window": f"{count_text(drive.swa_hit_tokens)} ({drive.hit_rate:.1%} of the prompts)",
            "sampled tokens": count_text(drive.output_tokens),
            "steps": f"{count_text(drive.prefill_steps)} prefill, {count_text(drive.decode_steps)} decode",
            "evicted tokens, FULL": count_text(drive.full_evicted_tokens),
            "evicted tokens, SWA": count_text(drive.swa_evicted_tokens),
            "tombstones, heals": f"{count_text(drive.tombstones)}, {count_text(drive.heals)}",
            "host time": seconds_text(drive.host_seconds),
            "events": count_text(drive.events),
            "journal": f"{bytes_text(drive.journal_bytes)} ({bytes_text(int(per_million))} per million requests)",
        }
    )
