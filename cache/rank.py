"""One rank's cache, ready to serve: decide, record, evolve.

The shell around the state. It is the only place where a decision meets the journal: each event is appended and
evolved before the decider is asked for the next, and what one command decided is one unit in the journal.
Rules: a refused command leaves the state as it was, but for the number of the one `Refused` that tells of it; a
decision that fails after its first event, or a failed append or write, poisons the rank, and every later command is
refused with the cause. No clock is read here: the journal is given one.
"""

from typing import Protocol, runtime_checkable

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from radixledger.cache import decide_eviction, decide_pages, decide_requests, decide_unified
from radixledger.cache.arguments import (
    name_space,
    number,
    octets,
    packed,
    receipt_given,
    request_numbers,
    slice_given,
    text,
    token_counts,
)
from radixledger.cache.config import checked
from radixledger.cache.decide_eviction import Gain
from radixledger.cache.decide_pages import Decision, T
from radixledger.cache.decide_requests import Admission
from radixledger.cache.decide_unified import Hit, Inserted, Slice
from radixledger.cache.digest import digest
from radixledger.cache.evolve import EVOLVE, begin
from radixledger.cache.image import image
from radixledger.cache.match import walk
from radixledger.cache.refusals import LawBroken, RankPoisoned, Refusal, asked
from radixledger.cache.state import Receipt, State, rows_at
from radixledger.cache.taken_ledger import take_ledger
from radixledger.journal.errors import SnapshotFailed, WriterError
from radixledger.journal.events import AnyEvent, Closed, Digested, LedgerTaken, Opened, Snapshotted
from radixledger.journal.redact import Redactor
from radixledger.journal.units import FIRST, NodeId, Pages, Seq, TokenCount

DIGEST_EVERY = 4096
"""Events between two recorded digests."""


class Recorder(Protocol):
    """What the shell needs of a journal; `JournalWriter` is one."""

    opened: Opened

    def append(self, event: AnyEvent, /) -> None:
        """Take one event into the frame being built."""

    def end_command(self) -> None:
        """One command's events are complete."""

    def end_step(self, step: int) -> None:
        """What is recorded must be safe before a device step or an output."""

    def close(self) -> None:
        """Write what is left and let the journal go."""


@runtime_checkable
class SnapshotRecorder(Recorder, Protocol):
    """A journal that keeps snapshots too."""

    redactor: Redactor | None

    def write_snapshot(self, image: bytes, digest: bytes, /) -> object:
        """Keep the state as of the last appended event."""


class RankCache:
    """The cache of one rank: commands that decide, reads that do not.

    journal: where events go; None keeps no journal at all (J9). strict: a free of pages that the giver does not
    hold is refused (True), or told as `Violated` and skipped (False). seq: the number of `opened` in the journal,
    more than 1 where a run is resumed. snapshot_every: events between two snapshots of the state, None for none; one
    that the disk had no room for is told in `notices`, and the rank goes on.
    Raises Refusal (see `refusals`) for commands that are turned down, TypeError or ValueError for what is no argument
    at all (see `arguments`), RankPoisoned once a command has failed half-way.
    """

    def __init__(
        self,
        opened: Opened,
        journal: Recorder | None = None,
        *,
        strict: bool = True,
        digest_every: int = DIGEST_EVERY,
        snapshot_every: int | None = None,
        seq: Seq = FIRST,
    ) -> None:
        checked(opened)
        self.state: State = begin(opened, seq)
        self.journal = journal
        self.strict = strict
        self._append = journal.append if journal is not None else None
        self._poison: Exception | None = None
        self._digest_every = digest_every
        self._digest_due = seq + digest_every
        self._snapshot_every = snapshot_every
        self._snapshot_due = seq + snapshot_every if snapshot_every else None
        self.notices: list[str] = []

    # -- reads -----------------------------------------------------------------------------------------------

    def peek(self, key: bytes, namespace: bytes = b"", *, full_only: bool = False) -> Hit:
        """What a match would give; nothing is split, no recency moves (A19)."""
        found = walk(self.state, key, namespace, full_only=full_only)
        page_size = self.state.page_size
        hit, full_hit = TokenCount(found.hit * page_size), TokenCount(found.full_hit * page_size)
        return Hit(found.node.id, hit, full_hit, found.stop)

    def translate(self, full: Pages, *, require_mapped: bool = True) -> Pages:
        """The SWA pages of FULL pages (R34-R37)."""
        return decide_pages.translate(self.state, full, require_mapped=require_mapped)

    def digest(self) -> bytes:
        """The digest of the state as it is."""
        return digest(self.state)

    def ledger(self, phase: str = "") -> LedgerTaken:
        """The rank's accounts as the gates read them; nothing is written (R157)."""
        return take_ledger(self.state, phase)

    # -- the tree --------------------------------------------------------------------------------------------

    def match(
        self,
        key: bytes,
        namespace: bytes = b"",
        *,
        rid: str = "",
        full_only: bool = False,
        force_miss: bool = False,
    ) -> Hit:
        """The usable prefix of `key`; its node is cut where the prefix ends, and its path becomes the youngest."""
        return self._run(
            decide_unified.match(
                self.state,
                octets(key, "key"),
                name_space(namespace),
                rid=text(rid, "rid"),
                full_only=full_only,
                force_miss=force_miss,
            )
        )

    def insert(self, key: bytes, namespace: bytes, brought: Slice) -> Inserted:
        """Give the tree the pages of a key (R83-R97)."""
        return self._run(
            decide_unified.insert(self.state, octets(key, "key"), name_space(namespace), slice_given(brought))
        )

    def lock(self, node: NodeId) -> Receipt:
        """Shield a node's path from eviction, beside the locks that requests hold."""
        return self._run(decide_unified.lock(self.state, NodeId(number(node, "node"))))

    def unlock(self, receipt: Receipt) -> None:
        """Release a lock with its receipt."""
        self._run(decide_unified.unlock(self.state, receipt_given(receipt)))

    def evict(self, full_pages: int, swa_pages: int) -> Gain:
        """Ask the tree for free pages; the answer is what the pools gained."""
        full, swa = number(full_pages, "full_pages"), number(swa_pages, "swa_pages")
        return self._run(decide_eviction.evict(self.state, full, swa))

    def flush(self) -> int:
        """Empty the tree of an idle rank; returns the number of nodes removed (R33, R177)."""
        return self._run(decide_eviction.flush(self.state))

    # -- requests --------------------------------------------------------------------------------------------

    def admit(
        self, rid: str, key: bytes, prompt: int, namespace: bytes = b"", *, force_miss: bool = False
    ) -> Admission:
        """Match a prompt, take a row, lock its prefix."""
        return self._run(
            decide_requests.admit(
                self.state, text(rid, "rid"), octets(key, "key"), number(prompt, "prompt"),
                name_space(namespace), force_miss=force_miss,
            )
        )  # fmt: skip

    def extend(self, requests: NDArray[np.int64], grown: NDArray[np.int32]) -> None:
        """Let requests grow, with pages where they need them; PoolShort if the pools cannot."""
        self._run(decide_requests.extend(self.state, request_numbers(requests), token_counts(grown, "grown")))

    def decode(self, requests: NDArray[np.int64]) -> NDArray[np.int32]:
        """Let each request grow by one token; returns their FULL slots, int32 [n]."""
        return self._run(decide_requests.decode(self.state, request_numbers(requests)))

    def reclaim(self, request: int, pre: int, in_flight: int = 0) -> TokenCount:
        """Give back a request's SWA below its window; returns its cursor."""
        return self._run(
            decide_requests.reclaim(
                self.state, number(request, "request"), number(pre, "pre"), number(in_flight, "in_flight")
            )
        )

    def reclaim_batch(self, requests: NDArray[np.int64], in_flight: int = 0) -> None:
        """`reclaim` for a decode batch; nothing is written unless a request crossed a page."""
        rows, requests, in_flight = self.state.rows, request_numbers(requests), number(in_flight, "in_flight")
        coded = requests.tobytes()
        at, _ = rows_at(coded, rows.mask)
        due = rows.length.take(at) > rows.reclaim_at.take(at) + in_flight
        if np.count_nonzero(due) or rows.request.take(at).tobytes() != coded:
            self._run(decide_requests.reclaim_batch(self.state, requests, in_flight))

    def cache_unfinished(self, request: int, key: bytes, tokens: int | None = None) -> TokenCount:
        """Give the tree what a running request has computed, `tokens` of `key` or all; returns its protected length."""
        request, key = number(request, "request"), octets(key, "key")
        if tokens is not None:
            tokens = number(tokens, "tokens")
        return self._run(decide_requests.cache_unfinished(self.state, request, key, tokens))

    def finish(self, request: int, key: bytes | None) -> TokenCount:
        """End a request well and cache `key` (None: nothing); returns the cached length."""
        request, key = number(request, "request"), None if key is None else octets(key, "key")
        return self._run(decide_requests.finish(self.state, request, key))

    def retract(self, request: int) -> None:
        """Take everything back from a request that will be admitted again."""
        self._run(decide_requests.retract(self.state, number(request, "request")))

    def abort(self, request: int) -> None:
        """End a request without caching it."""
        self._run(decide_requests.abort(self.state, number(request, "request")))

    # -- pages -----------------------------------------------------------------------------------------------

    def alloc(self, count: int) -> tuple[Pages, Pages]:
        """`count` pages of each pool for whoever asks, mapped pairwise; PoolShort if there are not so many."""
        return self._run(decide_pages.alloc(self.state, number(count, "count")))

    def free(self, full: Pages, giver: int | None = None) -> None:
        """Free FULL pages with their SWA pages."""
        self._run(decide_pages.free(self.state, packed(full, "full"), _giver(giver), self.strict))

    def free_full(self, full: Pages, giver: int | None = None) -> None:
        """Free FULL pages only; `free_swa` of the same pages must follow."""
        self._run(decide_pages.free_full(self.state, packed(full, "full"), _giver(giver), self.strict))

    def free_swa(self, full: Pages, giver: int | None = None) -> None:
        """Free the SWA pages of FULL pages."""
        self._run(decide_pages.free_swa(self.state, packed(full, "full"), _giver(giver), self.strict))

    def remap(self, source: Pages, target: Pages) -> None:
        """Move mapping and SWA pages from `source` to `target`."""
        self._run(decide_pages.remap(self.state, packed(source, "source"), packed(target, "target")))

    def open_group(self) -> None:
        """Begin a free group."""
        self._run(decide_pages.open_group(self.state))

    def flush_group(self) -> None:
        """End the free group: what is pending becomes free."""
        self._run(decide_pages.flush_group(self.state))

    # -- steps and evidence ----------------------------------------------------------------------------------

    def step_began(
        self, step: int, requests: NDArray[np.int64], starts: NDArray[np.int32], stops: NDArray[np.int32]
    ) -> None:
        """A device step is about to be dispatched; the journal is made safe first."""
        step, requests = number(step, "step"), request_numbers(requests)
        starts, stops = token_counts(starts, "starts"), token_counts(stops, "stops")
        self._run(decide_requests.step_began(self.state, step, requests, starts, stops))
        if self.journal is not None:
            self.journal.end_step(step)

    def step_ended(self, step: int) -> None:
        """The step's results are here."""
        self._run(decide_requests.step_ended(self.state, number(step, "step")))

    def record_ledger(self, phase: str) -> LedgerTaken:
        """Take the ledger and write it down, with the digest."""
        return self._run(_recorded(replace(self.ledger(text(phase, "phase")), digest=self.digest())))

    def snapshot(self) -> Seq:
        """Put the whole state down beside the journal, for replay to begin at (J12); the event it is the state of.

        The journal is made safe, then the file, then `Snapshotted` tells of it. Raises WriterError where there is
        no journal, and SnapshotFailed where the disk has no room for it: the rank goes on.
        """
        if self._poison is not None:
            raise RankPoisoned(f"rank {self.state.opened.rank} stopped: {self._poison}") from self._poison
        if not isinstance(self.journal, SnapshotRecorder):
            raise WriterError("a rank without a journal on disk has no place for snapshots")
        seq, now = self.state.seq, self.digest()
        self.journal.write_snapshot(image(self.state, self.journal.redactor), now)
        self._run(_recorded(Snapshotted(now)))
        return seq

    def close(self, reason: str = "") -> None:
        """Write the clean end and let the journal go; a poisoned rank only lets go."""
        text(reason, "reason")
        if self._poison is None:
            self._run(_recorded(Closed(self.digest(), reason)))
        if self.journal is not None:
            self.journal.close()

    # -- the one way in --------------------------------------------------------------------------------------

    def _run(self, decision: Decision[T]) -> T:
        """Drive a decider to its end; see the rules above."""
        if self._poison is not None:
            raise RankPoisoned(f"rank {self.state.opened.rank} stopped: {self._poison}") from self._poison
        state, append, advance = self.state, self._append, decision.__next__
        begun = state.seq
        try:
            while True:
                event = advance()
                if append is not None:
                    append(event)
                state.seq += 1  # type: ignore[assignment]  # a call to `Seq` per event would show
                EVOLVE[type(event)](state, event)
                if state.findings:
                    raise LawBroken(_told(state))
        except StopIteration as stop:
            if state.seq != begun:
                self._end_command()
            result: T = stop.value
            return result
        except Refusal as refusal:
            if state.seq != begun:
                self._stop(refusal)
            else:
                self._tell(refusal.event(asked(getattr(decision, "__name__", ""))))
            raise
        except BaseException as error:
            self._stop(error)
            raise

    def _record(self, event: AnyEvent) -> None:
        """Append and evolve one event of the shell's own."""
        state = self.state
        if self._append is not None:
            self._append(event)
        state.seq = Seq(state.seq + 1)
        EVOLVE[type(event)](state, event)

    def _tell(self, event: AnyEvent) -> None:
        try:
            self._record(event)
            self._end_command()
        except BaseException as error:
            self._stop(error)
            raise

    def _end_command(self) -> None:
        if self.state.seq >= self._digest_due:
            self._digest_due = self.state.seq + self._digest_every
            self._record(Digested(self.digest()))
        if self.journal is not None:
            try:
                self.journal.end_command()
            except BaseException as error:
                self._stop(error)
                raise
        if self._snapshot_due is not None and self.state.seq >= self._snapshot_due:
            self._snapshot_due = None  # what the snapshot itself puts down makes none due
            try:
                self.snapshot()
            except SnapshotFailed as error:
                self.notices.append(str(error))
            self._snapshot_due = self.state.seq + (self._snapshot_every or 0)

    def _stop(self, error: BaseException) -> None:
        """Poison the rank: what it holds in memory may be ahead of the journal from now on."""
        if self._poison is None:
            self._poison = error if isinstance(error, Exception) else RuntimeError(repr(error))
            drop = getattr(self.journal, "drop_command", None)
            if drop is not None:
                drop()


def _giver(giver: int | None) -> int | None:
    return None if giver is None else number(giver, "giver")


def _told(state: State) -> str:
    finding = state.findings[0]
    return f"event {finding.seq} broke a law: {finding.law}: {finding.detail}"


def _recorded(event: T) -> Decision[T]:
    yield event  # type: ignore[misc]
    return event
