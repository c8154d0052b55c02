"""What giving back windows does to a run: the same requests with it and without, side by side (R267, R273).

Each level of evidence is a question to the runs and their journals, told with what it came to. Rule: a level that was
not looked at says so; it is never passed by silence.
"""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from radixledger.cache import window
from radixledger.cache.keys import KEY_MODES
from radixledger.journal.accounts import Kind, Pool
from radixledger.journal.events import Config, LedgerTaken
from radixledger.journal.moves import moves
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.journal.units import KeyLen, Rank, TokenCount
from radixledger.replay.verify import verify_rank

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
    swa_released_tokens: int
    """Given back by requests, or evicted from the tree."""
    leaks: list[str]
    """What an idle rank still held, or `verify` found; empty when all is well."""


def examined(
    run: Path, name: str, config: Config, cached_tokens: int, answers: list[list[int]] | None
) -> WindowRun:
    """What the journals of a run say about its windows. Raises what `JournalReader` raises."""
    peak, released, leaks = 0, 0, list[str]()
    for rank in ranks_in(run):
        most, gone, held = _windows_of(run, rank)
        peak, released = peak + most, released + gone
        report = verify_rank(run, rank)
        leaks += [f"rank {rank}: {law}" for law in report.broken] + [f"rank {rank}: {each}" for each in held]
    return WindowRun(
        name=name,
        config=config,
        cached_tokens=cached_tokens,
        answers=answers,
        peak_swa_tokens=peak * config.page_size,
        swa_released_tokens=released * config.page_size,
        leaks=leaks,
    )


def _windows_of(run: Path, rank: Rank) -> tuple[int, int, list[str]]:
    """The most SWA pages that requests held at once, those that came free, and what was left when it was idle."""
    held = peak = gone = 0
    left: list[str] = []
    for frame in JournalReader(run, rank).frames():
        for event in frame.events:
            if isinstance(event, LedgerTaken):
                left = _held_when_idle(event)
            for move in moves(event):
                if move.pool is Pool.SWA:
                    count = len(move.pages) // 4
                    held += count * ((move.taker & 7 == Kind.REQUEST) - (move.giver & 7 == Kind.REQUEST))
                    gone += count * (move.taker & 7 == Kind.FREE)
            peak = max(peak, held)
    return peak, gone, left


def _held_when_idle(ledger: LedgerTaken) -> list[str]:
    """What the last ledger of a run that ended well must not show (R156, R161)."""
    told = []
    for pool in ("full", "swa"):
        owned = getattr(ledger, f"{pool}_request_owned") + getattr(ledger, f"{pool}_pending_free")
        locked = getattr(ledger, f"{pool}_tree_protected")
        if owned or locked:
            told.append(f"{owned} {pool.upper()} tokens of requests and {locked} locked ones in an idle rank")
    return told


def short_paths(config: Config) -> tuple[int, int]:
    """How many lengths were tried, and how many of them would leave a cached path without a whole window (R259)."""
    page, width = config.page_size, config.window_tokens
    lookahead = KEY_MODES[config.key_mode].lookahead
    lengths = range(1, UNIT_LENGTHS * (width + 2 * page))
    short = 0
    for tokens in lengths:
        units = window.key_length(TokenCount(tokens), lookahead)
        stop = window.insert_stop(units, page)
        for pre in {units - 1, min(units, tokens - 1)}:  # before an insert, and in decode
            new = window.frontier(
                0, KeyLen(pre), window_tokens=width, page_size=page, formula=config.formula
            )
            short += new > 0 and stop - new < width
    return len(lengths), short


def weighed(on: WindowRun, off: WindowRun, others: Sequence[WindowRun] = ()) -> list[Evidence]:
    """The levels of evidence, from the cheapest on; `others`: runs that must give the same answers, as without pairs."""
    lengths, short = short_paths(on.config)
    runs = [on, off, *others]
    leaks = [f"{run.name}: {leak}" for run in runs for leak in run.leaks]
    return [
        Evidence(
            "unit: every cached path ends in a whole window",
            _level(short == 0),
            f"{lengths} lengths at page {on.config.page_size}, window {on.config.window_tokens}, "
            f"{on.config.key_mode} keys, formula {on.config.formula}: {short} short",
        ),
        _same_answers(runs),
        Evidence(
            "cached tokens are not lower",
            _level(on.cached_tokens >= off.cached_tokens),
            f"{on.cached_tokens} with giving back, {off.cached_tokens} without",
        ),
        Evidence(
            "peak SWA of requests is lower",
            _level(on.peak_swa_tokens < off.peak_swa_tokens),
            f"{on.peak_swa_tokens} tokens with giving back, {off.peak_swa_tokens} without",
        ),
        Evidence("nothing leaks, and the journals verify", _level(not leaks), "; ".join(leaks[:4]) or "clean"),
        Evidence("accuracy of a real model on a benchmark", Level.UNSEEN, "needs real weights"),
        Evidence("end to end on 8 devices", Level.UNSEEN, "needs the devices"),
    ]


def _same_answers(runs: Sequence[WindowRun]) -> Evidence:
    claim = "the same ids come out"
    if any(run.answers is None for run in runs):
        return Evidence(claim, Level.UNSEEN, "no model ran")
    first, *others = runs
    names = ", ".join(run.name for run in runs)
    for run in others:
        wrong = [at for at, pair in enumerate(zip(first.answers or (), run.answers or (), strict=True)) if pair[0] != pair[1]]  # fmt: skip
        if wrong:
            return Evidence(
                claim, Level.BROKEN, f"{len(wrong)} requests differ between {first.name} and {run.name}"
            )
    count = len(first.answers or ())
    return Evidence(claim, _level(count > 0), f"{count} requests, {names}")


def _level(holds: bool) -> Level:
    return Level.HELD if holds else Level.BROKEN
