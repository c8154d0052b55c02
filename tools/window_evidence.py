"""What giving back windows does to a run: the same requests with it and without, side by side (R267, R273).

Each level of evidence is a question to the runs and their journals, told with what it came to. Rule: a level that was
not looked at says so; it is never passed by silence.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from radixledger.cache import window
from radixledger.cache.keys import KEY_MODES
from radixledger.journal.accounts import Kind, Pool
from radixledger.journal.events import Config, Reclaimed
from radixledger.journal.moves import moves
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.journal.redact import default_key_path
from radixledger.journal.units import Rank, TokenCount
from radixledger.journal.writer import Policy
from radixledger.replay.verify import verify_rank
from radixledger.tools.console import FINDINGS, count_text, exit_with, print_json, remark
from radixledger.tools.opening import Recording
from radixledger.tools.table import print_table

COMPARE = "compare"

windows_option = click.option(
    "--free-out-of-window", "windows", type=click.Choice(["on", "off", COMPARE]), default="on", show_default=True,
    help="Give back SWA below the windows of requests; compare: run with it and without, and show what it does.",
)  # fmt: skip

UNIT_LENGTHS = 4
"""Lengths up to so many windows and pages past the first that can be given back are tried: then they repeat."""


class Level(StrEnum):
    """How a level of evidence came out."""

    HELD = "holds"
    BROKEN = "BROKEN"
    UNSEEN = "not looked at"


class Evidence(Struct, frozen=True):
    """One level: what it claims, how it came out, and by which numbers."""

    claim: str
    level: Level
    numbers: str


class WindowRun(Struct, frozen=True, kw_only=True):
    """One of the runs; tokens and pages of all ranks. `answers`: what came out, request by request, None without a model."""

    name: str
    config: Config
    cached_tokens: int
    answers: list[list[int]] | None
    peak_swa_tokens: int
    """Of requests, at any moment: what giving back is there to lower."""
    given_back_tokens: int
    """SWA below the windows of requests, that they gave back."""
    leaks: list[str]
    """What an idle rank still held, or `verify` found; empty when all is well."""


class Variant(Struct, frozen=True):
    """One way to run the same requests."""

    name: str
    key_mode: str
    free_out_of_window: bool


def variants(key_mode: str) -> list[Variant]:
    """With giving back, without, and, where keys are pairs, with plain keys too: what came out before there were pairs."""
    found = [Variant("on", key_mode, True), Variant("off", key_mode, False)]
    return found if key_mode == "raw" else [*found, Variant("raw keys", "raw", True)]


def check_comparable(recording: Recording, *, windowed: bool) -> None:
    """Runs can be compared if there are windows, and their journals are whole and new; raises UsageError."""
    if not windowed:
        raise click.UsageError(
            "--free-out-of-window compare needs a model with windows; this one gives nothing back"
        )
    if recording.run is None or recording.policy is Policy.OFF:
        raise click.UsageError(
            "--free-out-of-window compare reads the journals of its runs: give --journal RUN"
        )
    if recording.resume or recording.retention.keep_bytes is not None:
        raise click.UsageError(
            "--free-out-of-window compare needs whole journals: leave --resume-run and --keep-bytes out"
        )


def recording_of(variant: Variant, recording: Recording) -> Recording:
    """A run in a folder of its own below RUN; all hash their keys alike, so that SQL can join them."""
    assert recording.run is not None, "what is compared is recorded"
    key_file = recording.key_file or default_key_path(recording.run)
    return recording._replace(run=recording.run / variant.name.replace(" ", "-"), key_file=key_file)


def examined(
    run: Path, name: str, config: Config, cached_tokens: int, answers: list[list[int]] | None
) -> WindowRun:
    """What the journals of a run say about its windows. Raises what `JournalReader` raises."""
    peak, given, leaks = 0, 0, list[str]()
    for rank in ranks_in(run):
        most, gone, left = _pages_of(run, rank)
        peak, given = peak + most, given + gone
        leaks += [f"rank {rank}: requests that ended hold {left} pages"] * (left != 0)
        leaks += [f"rank {rank}: {law}" for law in verify_rank(run, rank).broken]
    return WindowRun(
        name=name,
        config=config,
        cached_tokens=cached_tokens,
        answers=answers,
        peak_swa_tokens=peak * config.page_size,
        given_back_tokens=given * config.page_size,
        leaks=leaks,
    )


def _pages_of(run: Path, rank: Rank) -> tuple[int, int, int]:
    """SWA pages: the most that requests held at once, those they gave back; pages of both pools that they hold at the end."""
    held = dict.fromkeys(Pool, 0)
    peak = gone = 0
    for frame in JournalReader(run, rank).frames():
        for event in frame.events:
            for move in moves(event):
                count = len(move.pages) // 4
                held[move.pool] += count * (
                    (move.taker & 7 == Kind.REQUEST) - (move.giver & 7 == Kind.REQUEST)
                )
                gone += count * isinstance(event, Reclaimed)
            peak = max(peak, held[Pool.SWA])
    return peak, gone, sum(held.values())


def short_paths(config: Config) -> tuple[int, int]:
    """How many lengths were tried, and how many of them would leave a cached path without a whole window (R259)."""
    page, width = config.page_size, config.window_tokens
    lookahead = KEY_MODES[config.key_mode].lookahead
    lengths = range(1, UNIT_LENGTHS * (width + 2 * page))
    short = 0
    for tokens in lengths:
        units = window.key_length(TokenCount(tokens), lookahead)
        stop = window.insert_stop(units, page)
        for pre in {units - 1, tokens - 1}:  # before an insert, and in decode
            new = window.frontier(0, pre, window_tokens=width, page_size=page, formula=config.formula)
            short += new > 0 and stop - new < width
    return len(lengths), short


def weighed(on: WindowRun, off: WindowRun, others: Sequence[WindowRun] = ()) -> list[Evidence]:
    """The levels of evidence, from the cheapest on; `others`: runs that must give the same answers, as without pairs."""
    lengths, short = short_paths(on.config)
    runs = [on, off, *others]
    leaks = [f"{run.name}: {leak}" for run in runs for leak in run.leaks]
    return [
        Evidence(
            "unit: cached paths end in windows",
            _level(short == 0),
            f"{lengths} lengths, P {on.config.page_size}, W {on.config.window_tokens}, "
            f"{on.config.key_mode}, {on.config.formula}: {short} short",
        ),
        _same_answers(runs),
        Evidence(
            "cached tokens not lower",
            _level(on.cached_tokens >= off.cached_tokens),
            f"{on.cached_tokens} on, {off.cached_tokens} off",
        ),
        _lower_peak(on, off),
        Evidence("no leak, journals verify", _level(not leaks), "; ".join(leaks[:4]) or "clean"),
        Evidence("accuracy on a benchmark", Level.UNSEEN, "needs real weights"),
        Evidence("end to end on 8 devices", Level.UNSEEN, "needs the devices"),
    ]


def _lower_peak(on: WindowRun, off: WindowRun) -> Evidence:
    """A peak that is the same says nothing: it was that of a prompt, or nobody outgrew a window."""
    claim = "peak SWA of requests lower"
    numbers = f"{on.peak_swa_tokens} tokens on, {off.peak_swa_tokens} off"
    if not on.given_back_tokens:
        return Evidence(claim, Level.UNSEEN, "nobody outgrew a window, so nothing was given back")
    if on.peak_swa_tokens == off.peak_swa_tokens:
        return Evidence(claim, Level.UNSEEN, f"{numbers}: while prompts were computed")
    return Evidence(claim, _level(on.peak_swa_tokens < off.peak_swa_tokens), numbers)


def _same_answers(runs: Sequence[WindowRun]) -> Evidence:
    claim = "same ids"
    if any(run.answers is None for run in runs):
        return Evidence(claim, Level.UNSEEN, "no model ran")
    first, *others = runs
    names = ", ".join(run.name for run in runs)
    for run in others:
        pairs = zip(first.answers or (), run.answers or (), strict=True)
        wrong = sum(ours != theirs for ours, theirs in pairs)
        if wrong:
            return Evidence(
                claim, Level.BROKEN, f"{wrong} requests differ between {first.name} and {run.name}"
            )
    return Evidence(claim, Level.HELD, f"{len(first.answers or ())} requests: {names}")


def _level(holds: bool) -> Level:
    return Level.HELD if holds else Level.BROKEN


def show(run: Path, runs: Sequence[WindowRun], *, as_json: bool) -> None:
    """Print the runs side by side and the levels of evidence; leaves with FINDINGS if one is broken."""
    on, off, *others = runs
    levels = weighed(on, off, others)
    if as_json:
        print_json({"journals": str(run), "lifted": on.config.lifted, "runs": [_told(each) for each in runs],
                    "evidence": msgspec.to_builtins(levels)})  # fmt: skip
    else:
        names = {each.name: each for each in runs}
        print_table(
            ("run", *names),
            [(label, *map(told, names.values())) for label, told in COLUMNS.items()],
            title="giving windows back, on and off",
        )
        print_table(
            ("evidence", "outcome", "numbers"),
            [(each.claim, each.level.value, each.numbers) for each in levels],
            title="\nlevels of evidence",
        )
        if on.config.lifted:
            remark("keys of pairs beside windows are lifted by name: no gate accepts a run with them (R267)")
    if any(each.level is Level.BROKEN for each in levels):
        exit_with(FINDINGS)


COLUMNS: dict[str, Callable[[WindowRun], str]] = {
    "keys": lambda run: run.config.key_mode,
    "gives back": lambda run: "yes" if run.config.free_out_of_window else "no",
    "cached tokens": lambda run: count_text(run.cached_tokens),
    "peak SWA of requests, tokens": lambda run: count_text(run.peak_swa_tokens),
    "SWA given back, tokens": lambda run: count_text(run.given_back_tokens),
    "leaks": lambda run: str(len(run.leaks)),
}
"""What stands in the table of R273, by its label."""


def _told(run: WindowRun) -> dict[str, object]:
    """A run without its configuration's other fields and without the answers, which stand in the results."""
    kept: dict[str, object] = msgspec.to_builtins(run)
    del kept["config"], kept["answers"]
    return kept | {"key_mode": run.config.key_mode, "free_out_of_window": run.config.free_out_of_window}
