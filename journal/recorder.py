"""Writes our events for another server, from its own allocator and tree calls: one method per verb, and no cache.

The server goes on deciding by its own rules and tells what it did, in the order in which it did it; nodes and requests
are named as it names them. What comes out is a journal that every tool of the house reads. Rule 1: the recorder judges nothing: a
free of a free page and a lock on a node that is gone are written down as told, because these are what a triage
looks for. Rule 2: what was told is written, also when the block that told it fails.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from radixledger.journal.accounts import FREE, PENDING, Account, request_account, tree_account
from radixledger.journal.causes import Operation, cause
from radixledger.journal.event import Config, HealMode, Phase, Stop
from radixledger.journal.events import (
    Aborted,
    Admitted,
    Allocated,
    AnyEvent,
    Bound,
    Closed,
    Extended,
    Finished,
    Flushed,
    Freed,
    GroupFlushed,
    GroupOpened,
    Healed,
    Locked,
    Matched,
    Opened,
    Reclaimed,
    Refused,
    Remapped,
    Removed,
    Repointed,
    Retracted,
    Split,
    Stepped,
    Tombstoned,
    Transferred,
    Unlocked,
)
from radixledger.journal.names import Names
from radixledger.journal.units import (
    NO_PAGES,
    UNBOUND,
    BoundaryId,
    KeyLen,
    NodeId,
    Pages,
    Rank,
    RequestId,
    Seq,
    TokenCount,
)
from radixledger.journal.writer import JournalWriter, Policy

PageIds = Sequence[int] | NDArray[np.integer]
"""Page numbers of one pool on this rank, from 1; page 0 is padding and nobody's."""

ROOT: None = None
"""The root of the tree, where a node is asked for."""


class Held(NamedTuple):
    """What a lock holds: give it back to `unlocked`."""

    node: NodeId
    boundary: BoundaryId
    request: RequestId


def pages_of_slots(slots: PageIds, page_size: int) -> NDArray[np.int32]:
    """The pages that token slots lie in, each once, in the order of their first slots; int32 [pages].

    For servers that count in slots: `page = slot // page_size`. Slots of page 0 (padding) are left out.
    """
    pages: NDArray[np.int64] = np.asarray(slots, np.int64) // page_size
    _, first = np.unique(pages, return_index=True)
    ordered = pages[np.sort(first)]
    named: NDArray[np.int32] = ordered[ordered != 0].astype(np.int32)
    return named


class Recorder:
    """The journal of one rank of somebody else's server; made by `open`, ended by `close` or a `with` block.

    Lengths and positions are tokens, pages are numbers of pages. A node is named by any hashable thing that the
    server has for it (its id, or the object), the root by `ROOT`; a request by its text id. Every call is one command
    with one write, as the policy says; `command` makes several one. Raises what the writer raises (JournalPoisoned
    when the disk fails), and ValueError for columns that do not fit each other; a server that must not be stopped by
    its recorder opens it with `on_failure=OnFailure.GAP`.
    """

    def __init__(self, writer: JournalWriter) -> None:
        self.writer = writer
        self._names = Names(writer.last_seq, writer.opened.config.rows)
        self._nested = 0
        self._to: int = FREE

    @classmethod
    def open(
        cls,
        run: Path,
        config: Config,
        *,
        rank: int = 0,
        ranks: int = 1,
        window_need: int | None = None,
        key_bytes: int | None = None,
        redaction: str = "hashed",
        policy: Policy = Policy.OPERATION,
        code: str = "",
        labels: dict[str, str] | None = None,
        clock: Callable[[], int] = time.time_ns,
        **how: object,
    ) -> Self:
        """A recorder for `rank` under `run`, with its `Opened` written.

        config: sizes of the pools, without page 0; `swa_pages` 0 for a model without windows. `rows` (a power of two)
        bounds how many requests are live at once. window_need: SWA tokens that a hit needs behind it (default: the
        window). key_bytes: bytes of key per page (default: 4 a token); keys are hashed page by page unless redaction
        is `plain`. how: what `JournalWriter.open` takes besides (`resume`, `retention`, `on_failure`, ...). Raises as it does.
        """
        windowed = config.swa_pages > 0
        opened = Opened(
            run="",
            rank=Rank(rank),
            ranks=ranks,
            epoch=0,
            route="recorded" if windowed else "recorded_full",
            config=config,
            window_need=TokenCount(config.window_tokens if window_need is None else window_need),
            stride=key_bytes or 4 * config.page_size,
            redaction=redaction,
            code=code,
            labels=labels or {},
        )
        return cls(JournalWriter.open(run, opened, policy=policy, clock=clock, **how))  # type: ignore[arg-type]

    @property
    def last_seq(self) -> Seq:
        """The number of the event that was told last."""
        return self.writer.last_seq

    @contextmanager
    def command(self) -> Iterator[None]:
        """What is told inside is one command: one frame, which a torn end loses whole or not at all."""
        self._nested += 1
        try:
            yield
        finally:
            self._nested -= 1
            self._end()

    # -- requests ----------------------------------------------------------------------------------------------

    def admitted(
        self, rid: str, prompt: int, *, prefix: int = 0, node: Hashable = ROOT, namespace: bytes = b"", priority: int = 0,
        why: Operation = Operation.ADMIT,
    ) -> None:  # fmt: skip
        """A request of `prompt` tokens got a row; its first `prefix` tokens are those of the path to `node`.

        Raises ValueError where more requests are live than `rows`.
        """
        request = self._names.begin(rid)
        self._tell(
            Admitted(request, rid, TokenCount(prompt), TokenCount(prefix), self._id(node), namespace, cause(why), priority)
        )  # fmt: skip

    def extended(
        self, rids: Sequence[str], grown: Sequence[int], *, takers: Sequence[str] = (), counts: Sequence[int] = (),
        full: PageIds = (), swa: PageIds = (), why: Operation = Operation.EXTEND,
    ) -> None:  # fmt: skip
        """A step: each of `rids` grew by so many tokens; each of `takers` took the next `counts` pages of `full` and of `swa`."""
        _same_length(grown=grown, rids=rids)
        _same_length(counts=counts, takers=takers)
        requests = _ids(map(self._names.request, rids))
        taking = _ids(map(self._names.request, takers))
        self._tell(
            Extended(
                requests, _packed(grown), taking, _packed(counts), _packed(full), _packed(swa), cause(why)
            )
        )

    def bound(
        self, rid: str, *, full: PageIds = (), swa: PageIds = (), start: int = 0, row: PageIds = (), length: int = -1
    ) -> None:  # fmt: skip
        """Pages that were allocated for nobody are this request's now; its row names `row` from token `start` on.

        `full` and `swa` are those of them that nobody had named; the row is `length` tokens long (-1: as before).
        """
        request = self._names.request(rid)
        self._tell(
            Bound(request, _packed(full), _packed(swa), TokenCount(start), _packed(row), TokenCount(length))
        )

    def reclaimed(
        self, rid: str, start: int, stop: int, *, full: PageIds = (), swa: PageIds = (), in_flight: int = 0, pre: int = -1,
        why: Operation = Operation.RECLAIM,
    ) -> None:  # fmt: skip
        """A request's SWA pages left its window: tokens [start, stop) have none from now on; `full` lose their mapping."""
        self._tell(
            Reclaimed(self._names.request(rid), TokenCount(start), TokenCount(stop), _packed(full), _packed(swa),
                      self._to, TokenCount(in_flight), cause(why), KeyLen(pre))
        )  # fmt: skip

    def repointed(
        self, rid: str, protected: int, node: Hashable, *, start: int = 0, full: PageIds = (),
        why: Operation = Operation.UNFINISHED,
    ) -> None:  # fmt: skip
        """A request's row names pages of the tree: `full` from token `start` on; it goes on behind `node`, `protected` tokens deep."""
        self._tell(
            Repointed(self._names.request(rid), TokenCount(start), _packed(full), TokenCount(protected), self._id(node), cause(why))
        )  # fmt: skip

    def finished(
        self,
        rid: str,
        tokens: int,
        *,
        cached: int = 0,
        node: Hashable = ROOT,
        why: Operation = Operation.FINISH,
    ) -> None:
        """A request ended well, `cached` of its `tokens` are in the tree, which ends at `node`; its row is empty."""
        self._tell(
            Finished(self._names.end(rid), TokenCount(tokens), TokenCount(cached), self._id(node), cause(why))
        )

    def retracted(self, rid: str, tokens: int, *, why: Operation = Operation.RETRACT) -> None:
        """A running request gave everything back, to be admitted again later."""
        self._tell(Retracted(self._names.end(rid), TokenCount(tokens), cause(why)))

    def aborted(self, rid: str, tokens: int, *, why: Operation = Operation.ABORT) -> None:
        """A request ended without being cached."""
        self._tell(Aborted(self._names.end(rid), TokenCount(tokens), cause(why)))

    def step_began(self, step: int, rids: Sequence[str], starts: Sequence[int], stops: Sequence[int]) -> None:
        """The device is given step `step`: request i writes tokens [starts[i], stops[i]) and reads its window below."""
        _same_length(starts=starts, stops=stops, rids=rids)
        requests = _ids(map(self._names.request, rids))
        self._tell(Stepped(step, Phase.BEGAN, requests, _packed(starts), _packed(stops)))
        if not self._nested:
            self.writer.end_step(step)

    def step_ended(self, step: int) -> None:
        """The device has done with step `step`."""
        self._tell(Stepped(step, Phase.ENDED))

    # -- pages -------------------------------------------------------------------------------------------------

    def allocated(
        self, rid: str | None, full: PageIds, swa: PageIds = (), *, why: Operation = Operation.ALLOC
    ) -> None:
        """free → request, or nobody yet (None): FULL pages, and SWA pages that the last of them are mapped to, in order."""
        self._tell(Allocated(self._request(rid), _packed(full), _packed(swa), cause(why)))

    def freed(
        self, full: PageIds = (), swa: PageIds = (), *, unmapped: PageIds = (), rid: str | None = None,
        node: Hashable = ROOT, why: Operation = Operation.FREE,
    ) -> None:  # fmt: skip
        """Pages were given up, by request `rid`, by `node`, or by nobody in particular; pending while a group is open.

        `unmapped` are the FULL pages that `swa` were mapped from, one for each, whether or not they go too.
        """
        giver = self._account(rid, node)
        self._tell(
            Freed(giver, _packed(full), _packed(unmapped), _packed(swa), self._to, self._request(rid), cause(why))
        )  # fmt: skip

    def remapped(
        self, source: PageIds, target: PageIds, swa: PageIds, *, giver: str | None = None, taker: str | None = None,
        why: Operation = Operation.ALLOC,
    ) -> None:  # fmt: skip
        """SWA pages changed hands with their mapping, from FULL pages `source` to `target`, which stay where they are."""
        left, came = (request_account(self._request(each)) for each in (giver, taker))
        self._tell(Remapped(left, came, _packed(source), _packed(target), _packed(swa), cause(why)))

    def group_opened(self) -> None:
        """A free group began: what is freed is pending until it is flushed."""
        self._to = PENDING
        self._tell(GroupOpened())

    def group_flushed(self, full: PageIds = (), swa: PageIds = ()) -> None:
        """pending → free, both pools; the group is over."""
        self._to = FREE
        self._tell(GroupFlushed(_packed(full), _packed(swa)))

    def refused(self, reason: str, detail: str = "", *, rid: str | None = None, pages: PageIds = ()) -> None:
        """The server turned something down: `pool_short`, `double_free`, or a word of its own."""
        self._tell(Refused(reason, detail, self._request(rid), 0, _packed(pages)))

    # -- the tree ----------------------------------------------------------------------------------------------

    def matched(
        self, rid: str, asked: int, *, full_hit: int = 0, hit: int = 0, node: Hashable = ROOT, stop: Stop = Stop.NO_CHILD,
        namespace: bytes = b"", full_only: bool = False, why: Operation = Operation.MATCH,
    ) -> None:  # fmt: skip
        """A key of `asked` tokens was looked up: FULL reaches `full_hit`, `hit` tokens are usable and end at `node`.

        full_only: no live window was asked for, as where a request looks up a path of its own.
        """
        self._tell(
            Matched(rid, self._names.live.get(rid, UNBOUND), TokenCount(asked), TokenCount(full_hit), TokenCount(hit),
                    self._id(node), stop, namespace, cause(why), full_only)
        )  # fmt: skip

    def transferred(
        self, node: Hashable, parent: Hashable, key: bytes, full: PageIds, swa: PageIds = (), *, rid: str | None = None,
        namespace: bytes = b"", why: Operation = Operation.INSERT,
    ) -> None:  # fmt: skip
        """giver → tree: a new leaf with a key of `stride` bytes a page; `swa` as long as `full`, or empty (no window lives)."""
        above = self._id(parent)
        made = self._names.made(node, above)
        self._tell(
            Transferred(made, above, request_account(self._request(rid)), key, _packed(full), _packed(swa), namespace,
                        self._request(rid), cause(why))
        )  # fmt: skip

    def split(
        self,
        node: Hashable,
        upper: Hashable,
        full: PageIds,
        swa: PageIds = (),
        *,
        why: Operation = Operation.INSERT,
    ) -> None:
        """`node` was cut: its first pages went to `upper`, a new node between it and its parent; a mark moves up."""
        lower = self._names.node(node)
        parent, mark = lower.parent, lower.boundary
        above = self._names.put_above(node, upper)
        self._tell(
            Split(lower.id, above, parent, _packed(full), _packed(swa), mark, cause(why))
        )  # fmt: skip

    def tombstoned(
        self, node: Hashable, full: PageIds, swa: PageIds, *, why: Operation = Operation.EVICT
    ) -> None:
        """tree → free: the node's SWA pages; the node stays, and all its `full` pages lose their mapping."""
        self._tell(Tombstoned(self._id(node), _packed(full), _packed(swa), self._to, cause(why)))

    def healed(
        self, node: Hashable, mode: HealMode, *, fresh: PageIds, old: PageIds, swa: PageIds, rid: str | None = None,
        why: Operation = Operation.INSERT,
    ) -> None:  # fmt: skip
        """giver → tree: a tombstone has live SWA again; by `REPLACE` it takes `fresh` for `old`, by `TRANSFER` it keeps `old`."""
        giver = request_account(self._request(rid))
        self._tell(
            Healed(self._id(node), mode, giver, _packed(fresh), _packed(old), _packed(swa), self._to, self._request(rid),
                   cause(why))
        )  # fmt: skip

    def removed(
        self, node: Hashable, full: PageIds, swa: PageIds = (), *, why: Operation = Operation.EVICT
    ) -> None:
        """tree → free: a leaf left the tree with all its pages."""
        gone = self._names.gone(node)
        self._tell(Removed(gone.id, gone.parent, _packed(full), _packed(swa), self._to, cause(why)))

    def flushed(self, removed: int) -> None:
        """The tree was emptied on purpose; its `removed` nodes were told just before, leaves first."""
        self._tell(Flushed(removed, cause(Operation.FLUSH)))

    def locked(
        self, node: Hashable, *, until: Hashable = ROOT, skipped: Iterable[Hashable] = (), rid: str | None = None,
        why: Operation = Operation.LOCK,
    ) -> Held:  # fmt: skip
        """FULL is held from `node` to the root, SWA from `node` up to `until` (ROOT: all the way); what to give back."""
        boundary, marked = self._names.marked(until)
        held = Held(self._id(node), boundary, self._request(rid))
        passed = _ids(map(self._id, skipped))
        self._tell(Locked(held.node, boundary, passed, marked, held.request, cause(why)))
        return held

    def unlocked(self, held: Held, *, why: Operation = Operation.UNLOCK) -> None:
        """A lock was given back: exactly what `held` says."""
        self._tell(Unlocked(held.node, held.boundary, held.request, cause(why)))

    # -- the record --------------------------------------------------------------------------------------------

    def close(self, reason: str = "") -> None:
        """The server ended; the journal is whole. A second close does nothing."""
        if self._names.open:
            self._names.open = False
            self._tell(Closed(b"", reason))
        self.writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close("" if error is None else f"{type(error).__name__}: {error}")

    def _tell(self, event: AnyEvent) -> None:
        self.writer.append(event)
        self._end()

    def _end(self) -> None:
        if not self._nested:
            self.writer.end_command()

    def _id(self, node: Hashable) -> NodeId:
        return self._names.node(node).id

    def _request(self, rid: str | None) -> RequestId:
        return UNBOUND if rid is None else self._names.request(rid)

    def _account(self, rid: str | None, node: Hashable) -> Account:
        return tree_account(self._id(node)) if node is not ROOT else request_account(self._request(rid))


def _packed(numbers: PageIds) -> Pages:
    """Numbers as packed int32; raises ValueError for what does not fit."""
    if not len(numbers):
        return NO_PAGES
    wide = np.asarray(numbers)
    if wide.ndim != 1 or wide.dtype.kind not in "iu":
        raise ValueError(
            f"pages and lengths are one row of whole numbers, not {wide.dtype} {list(wide.shape)}"
        )
    if wide.min() < 0 or wide.max() >= 1 << 31:
        raise ValueError(f"numbers from {wide.min()} to {wide.max()} are given; pages and lengths are int32")
    return Pages(wide.astype("<i4").tobytes())


def _ids(numbers: Iterable[int]) -> bytes:
    return np.fromiter(numbers, "<i8").tobytes()


def _same_length(**columns: Sequence[object]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise ValueError(f"{told}: they tell of the same requests, one for each")
