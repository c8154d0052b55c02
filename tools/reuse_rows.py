"""Where the hits of loaded runs went, for stores: every rank is folded once, and each miss becomes rows of `reuse` (J23).

It joins `radixledger.replay.reuse`, which knows how, to `radixledger.analytics.reuse`, which may not know the tree. Rule: a rank is
told exactly as far as its events are loaded, and not again where it is told that far.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from radixledger.analytics.batch import NONE
from radixledger.analytics.reuse import Fate, Fold, Told
from radixledger.analytics.store import Store
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import ROOT, Rank, Seq
from radixledger.replay.reuse.misses import Lost, Miss, Stretch
from radixledger.replay.reuse.reuse import Reading
from radixledger.replay.seek import Watch
from radixledger.tools.console import remark
from radixledger.tools.reuse_text import unknown
from radixledger.tools.unread import RanksOf, each_of
from radixledger.tools.watching import watched

POOL_OF = {"window": "swa", "state": "recurrent", "prefix": "full", "prefix on the device": "full"}
"""The pool that a start lacks when something is gone; `everything` is of no one pool."""

NOT_KEPT = {"Reclaimed": "window", "Freed": "prefix"}
"""What an event is known for that kept tokens from being kept in the first place."""


class ToldRank(NamedTuple):
    """What one call told of one rank, from its beginning on: admitted requests, and tokens of their prompts."""

    run: str
    rank: Rank
    requests: int
    prompt_tokens: int
    hit: int
    lost: int


class RankReuse:
    """One rank's misses up to event `until`, as rows; `reading.account` adds them up meanwhile."""

    def __init__(self, reader: JournalReader, until: Seq, watch: Watch = iter) -> None:
        def loaded(frames: Iterable[Frame]) -> Iterable[Frame]:
            return watch(takewhile(lambda frame: frame.seq_first <= until, frames))

        self.until, self.reading = until, Reading(reader, watch=loaded)

    def __iter__(self) -> Iterator[Fate]:
        for miss in self.reading:
            yield from fates_of(miss)

    def fold(self) -> Fold:
        """How far it went, and what it cannot know."""
        account = self.reading.account
        return Fold(
            self.until,
            account.begins_at,
            account.missing,
            account.forgotten,
            account.unlooked,
            account.unnamed,
        )


def tell_reuse(store: Store, chosen: Sequence[RanksOf], *, salvage: bool) -> list[ToldRank]:
    """Tell a store where the hits of loaded ranks went, with a progress bar for each rank; those that were folded for it.

    What a fold cannot know goes to stderr. Raises what reading and folding raise; ranks before that place are told.
    """
    told = []
    for run, rank, around in each_of(chosen):
        with around:
            reader = JournalReader(run, rank, salvage=salvage)
            name = reader.opened.run or run.name
            loaded = store.loaded(name, rank)
            if loaded is None or store.reuse_until(name, rank) == loaded.seq:
                continue
            with watched(run, rank) as watch:
                telling = RankReuse(reader, loaded.seq, watch)
                store.tell_reuse(name, rank, telling)
            account, kinds = telling.reading.account, telling.reading.account.kinds
            told.append(
                ToldRank(name, rank, account.requests, account.prompt_tokens, kinds["hit"], kinds["lost"])
            )
            for text in reservations(Told(name, rank, loaded.seq, telling.fold())):
                remark(f"{name}, rank {rank}: {text}")
    return told


def fates_of(miss: Miss) -> Iterator[Fate]:
    """The rows of one admission, what hit first; their tokens add up to the prompt."""
    yield _fate(miss, "hit", 0, miss.hit)
    for lost in miss.lost:
        yield _of_lost(miss, lost)
    for stretch in miss.stretches:
        yield _of_stretch(miss, stretch)


def _fate(miss: Miss, kind: str, start: int, stop: int) -> Fate:
    return Fate(
        miss.epoch, miss.seq, miss.step, miss.time_ns, miss.admitted_seq, miss.request, miss.rid,
        kind, start, stop, stop - start, open=miss.open,
    )  # fmt: skip


def _of_lost(miss: Miss, lost: Lost) -> Fate:
    asked = (lost.asked_full, lost.asked_swa, lost.asked_states) if lost.pressed else (NONE, NONE, NONE)
    return _fate(miss, "lost", lost.start, lost.stop)._replace(
        by_seq=lost.seq,
        by_step=lost.step,
        by_event=lost.event,
        by_node=lost.node if lost.node != ROOT else NONE,
        cause=lost.cause,
        took=lost.what,
        pool=POOL_OF.get(lost.what, ""),
        asked_full=asked[0],
        asked_swa=asked[1],
        asked_recurrent=asked[2],
        wanted_by=next(iter(lost.wanted_by), ""),
        wanted_seq=lost.wanted_seq or NONE,
        evicted_full=lost.evicted_full,
        evicted_swa=lost.evicted_swa,
        cached_by=lost.cached_by,
        cached_seq=lost.cached_seq or NONE,
    )


def _of_stretch(miss: Miss, stretch: Stretch) -> Fate:
    took = NOT_KEPT.get(stretch.event, "")
    return _fate(miss, stretch.kind, stretch.start, stretch.stop)._replace(
        by_seq=stretch.seq or NONE,
        by_event=stretch.event,
        cause=stretch.cause,
        took=took,
        pool=POOL_OF.get(took, ""),
        cached_by=stretch.cached_by,
        cached_seq=stretch.cached_seq or NONE,
    )


def reservations(told: Told) -> Iterator[str]:
    """What the rows of a rank cannot say, or do not say yet; nothing for a rank that is not told."""
    fold = told.fold
    if fold is None:
        return
    if fold.last_seq < told.loaded:
        yield f"`reuse` is told up to event {fold.last_seq} of {told.loaded}: load it again with --reuse to tell the rest"
    yield from unknown(fold)
