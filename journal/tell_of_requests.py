"""What a recorder is told of requests: admission, growth, reclaim, re-pointing, ends, steps.

Part of `recorder`, with its rules.
"""

from collections.abc import Hashable, Sequence
from functools import partial

from radixledger.journal.causes import Operation, cause
from radixledger.journal.event import Phase
from radixledger.journal.events import (
    Aborted,
    Admitted,
    Bound,
    Extended,
    Finished,
    Reclaimed,
    Repointed,
    Retracted,
    Stepped,
)
from radixledger.journal.telling import ROOT, PageIds, Telling, ids, in_turn, packed, same_length
from radixledger.journal.units import (
    KeyLen,
    TokenCount,
)


class RequestVerbs(Telling):
    """The verbs."""

    @in_turn
    def admitted(
        self, rid: str, prompt: int, *, prefix: int = 0, node: Hashable = ROOT, namespace: bytes = b"", priority: int = 0,
        why: Operation = Operation.ADMIT,
    ) -> None:  # fmt: skip
        """A request of `prompt` tokens got a row; its first `prefix` tokens are those of the path to `node`.

        Raises ValueError where more requests are live than `rows`.
        """
        self._tell(
            Admitted(self._names.coming(rid), rid, TokenCount(prompt), TokenCount(prefix), self._id(node), namespace,
                     cause(why), priority),
            partial(self._names.begin, rid),
        )  # fmt: skip

    @in_turn
    def extended(
        self, rids: Sequence[str], grown: Sequence[int], *, takers: Sequence[str] = (), counts: Sequence[int] = (),
        full: PageIds = (), swa: PageIds = (), why: Operation = Operation.EXTEND,
    ) -> None:  # fmt: skip
        """A step: each of `rids` grew by so many tokens; each of `takers` took the next `counts` pages of `full` and of `swa`.

        Raises ValueError where the counts are not those of `full`, or `swa` is neither empty nor as long as that.
        """
        same_length(grown=grown, rids=rids)
        same_length(counts=counts, takers=takers)
        if sum(counts) != len(full) or len(swa) not in (0, len(full)):
            raise ValueError(
                f"takers take {sum(counts)} pages; {len(full)} FULL and {len(swa)} SWA pages are given"
            )
        requests = ids(map(self._names.request, rids))
        taking = ids(map(self._names.request, takers))
        self._tell(
            Extended(requests, packed(grown), taking, packed(counts), packed(full), packed(swa), cause(why))
        )

    @in_turn
    def bound(
        self, rid: str, *, full: PageIds = (), swa: PageIds = (), start: int = 0, row: PageIds = (), length: int = -1
    ) -> None:  # fmt: skip
        """Pages that were allocated for nobody are this request's now; its row names `row` from token `start` on.

        `full` and `swa` are those of them that nobody had named; the row is `length` tokens long (-1: as before).
        """
        request = self._names.request(rid)
        self._tell(
            Bound(request, packed(full), packed(swa), TokenCount(start), packed(row), TokenCount(length))
        )

    @in_turn
    def reclaimed(
        self, rid: str, start: int, stop: int, *, full: PageIds = (), swa: PageIds = (), in_flight: int = 0, pre: int = -1,
        why: Operation = Operation.RECLAIM,
    ) -> None:  # fmt: skip
        """A request's SWA pages left its window: tokens [start, stop) have none from now on; `full` lose their mapping."""
        self._tell(
            Reclaimed(self._names.request(rid), TokenCount(start), TokenCount(stop), packed(full), packed(swa),
                      self._to, TokenCount(in_flight), cause(why), KeyLen(pre))
        )  # fmt: skip

    @in_turn
    def repointed(
        self, rid: str, protected: int, node: Hashable, *, start: int = 0, full: PageIds = (),
        why: Operation = Operation.UNFINISHED,
    ) -> None:  # fmt: skip
        """A request's row names pages of the tree: `full` from token `start` on; it goes on behind `node`, `protected` tokens deep."""
        self._tell(
            Repointed(self._names.request(rid), TokenCount(start), packed(full), TokenCount(protected), self._id(node), cause(why))
        )  # fmt: skip

    @in_turn
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
            Finished(self._names.request(rid), TokenCount(tokens), TokenCount(cached), self._id(node), cause(why)),
            partial(self._names.end, rid),
        )  # fmt: skip

    @in_turn
    def retracted(self, rid: str, tokens: int, *, why: Operation = Operation.RETRACT) -> None:
        """A running request gave everything back, to be admitted again later."""
        self._tell(
            Retracted(self._names.request(rid), TokenCount(tokens), cause(why)), partial(self._names.end, rid)
        )

    @in_turn
    def aborted(self, rid: str, tokens: int, *, why: Operation = Operation.ABORT) -> None:
        """A request ended without being cached."""
        self._tell(
            Aborted(self._names.request(rid), TokenCount(tokens), cause(why)), partial(self._names.end, rid)
        )

    @in_turn
    def step_began(self, step: int, rids: Sequence[str], starts: Sequence[int], stops: Sequence[int]) -> None:
        """The device is given step `step`: request i writes tokens [starts[i], stops[i]) and reads its window below."""
        same_length(starts=starts, stops=stops, rids=rids)
        requests = ids(map(self._names.request, rids))
        self._tell(Stepped(step, Phase.BEGAN, requests, packed(starts), packed(stops)))
        if not self._nested:
            self.writer.end_step(step)

    @in_turn
    def step_ended(self, step: int) -> None:
        """The device has done with step `step`."""
        self._tell(Stepped(step, Phase.ENDED))
