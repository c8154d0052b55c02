"""Why a command was turned down. A refused command changed nothing; the journal has one `Refused`.

Refusal                    what every one of them is: reason, detail, and the pages concerned
+-- PoolShort              a pool has not that many free pages; carries the numbers of both (R152)
+-- OwnershipError         the pages are not the giver's
|   +-- DoubleFree         they are free already
|   +-- ForeignFree        somebody else holds them
|   +-- Unmapped           a FULL page has no SWA page where one was required (R35)
+-- NeverFits              a prompt is larger than a pool, whoever leaves (B109, B116); carries the numbers
+-- UnknownRequest         no live request has this number
+-- Busy                   live requests, locks or an open group stand in the way

RankPoisoned               a decision failed half-way: the state can no longer be trusted, the rank stops
+-- RankClosed             the rank was closed: its journal has its end
Reentered                  a command was called from within another one of the same rank; nothing changed
"""

from radixledger.journal.accounts import Pool, describe
from radixledger.journal.causes import Cause, Operation, cause
from radixledger.journal.events import NO_CAUSE, Refused
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NO_PAGES, UNBOUND, Pages, RequestId, Seq

_ASKED = {
    "match": Operation.MATCH,
    "admit": Operation.ADMIT,
    "seat": Operation.ADMIT,
    "make_room": Operation.ADMIT,
    "extend": Operation.EXTEND,
    "decode": Operation.EXTEND,
    "cache_unfinished": Operation.UNFINISHED,
    "finish": Operation.FINISH,
    "retract": Operation.RETRACT,
    "abort": Operation.ABORT,
    "reclaim": Operation.RECLAIM,
    "reclaim_batch": Operation.RECLAIM,
    "evict": Operation.EVICT,
    "evict_states": Operation.EVICT,
    "take": Operation.ALLOC,
    "give_back": Operation.FREE,
    "insert": Operation.INSERT,
    "alloc": Operation.ALLOC,
    "remap": Operation.ALLOC,
    "free": Operation.FREE,
    "free_full": Operation.FREE,
    "free_swa": Operation.FREE,
    "give_up": Operation.FREE,
    "write": Operation.BIND,
    "lock": Operation.LOCK,
    "unlock": Operation.UNLOCK,
    "reclaim_for": Operation.RECLAIM,
    "open_group": Operation.GROUP,
    "flush_group": Operation.GROUP,
    "flush": Operation.FLUSH,
    "clear": Operation.FLUSH,
    "flushable": Operation.FLUSH,
    "step_began": Operation.STEP,
    "step_ended": Operation.STEP,
}
"""Which operation a decider decides, by its name."""


def asked(decider: str) -> Cause:
    """The cause of a refusal: what the decider of that name was asked for."""
    return cause(_ASKED.get(decider, Operation.UNKNOWN))


class Refusal(Exception):
    """A command was turned down before anything changed."""

    reason = "refused"

    def __init__(
        self,
        detail: str,
        *,
        request: int = UNBOUND,
        pool: Pool = Pool.FULL,
        pages: Pages = NO_PAGES,
        expected: int = 0,
        found: int = 0,
        since: int = 0,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.request = RequestId(request)
        self.pool = pool
        self.pages = pages
        self.expected = expected
        self.found = found
        self.since = Seq(since)

    def event(self, why: Cause = NO_CAUSE) -> Refused:
        """The fact of this refusal."""
        return Refused(
            self.reason,
            self.detail,
            self.request,
            self.pool,
            self.pages,
            self.expected,
            self.found,
            self.since,
            why,
        )


class PoolShort(Refusal):
    """Not enough free pages; what eviction could still gain is told beside it. SWA is told of where there is any."""

    reason = "pool_short"

    def __init__(
        self,
        *,
        needed: int,
        full_available: int,
        full_evictable: int,
        swa_available: int,
        swa_evictable: int,
        windowed: bool = True,
        request: int = UNBOUND,
    ) -> None:
        super().__init__(
            f"{needed} page{'s are' if needed != 1 else ' is'} needed{' in each pool' * windowed}; "
            f"FULL has {full_available} free + {full_evictable} evictable"
            + f", SWA has {swa_available} free + {swa_evictable} evictable"
            * windowed,
            request=request,
            pool=Pool.FULL if full_available < needed else Pool.SWA,
        )
        self.needed = needed
        self.full_available, self.full_evictable = full_available, full_evictable
        self.swa_available, self.swa_evictable = swa_available, swa_evictable


class NeverFits(Refusal):
    """A prompt that a pool cannot hold though it held nothing else: no use to wait."""

    reason = "never_fits"

    def __init__(self, *, rid: str, prompt: int, pool: Pool, needed: int, capacity: int) -> None:
        what = "" if pool is Pool.FULL else " for the window of its last token"
        super().__init__(
            f"request {rid!r} has a prompt of {prompt} tokens, which takes {needed} {pool.name} pages{what}; "
            f"the rank has {capacity}",
            pool=pool,
        )
        self.prompt, self.needed, self.capacity = prompt, needed, capacity


class StateShort(Refusal):
    """Not enough state slots; what eviction could still gain is counted in."""

    reason = "state_short"

    def __init__(self, *, needed: int, available: int, evictable: int, request: int = UNBOUND) -> None:
        super().__init__(
            f"{needed} state slot{'s are' if needed != 1 else ' is'} needed; RECURRENT has {available} free + "
            f"{evictable} evictable",
            request=request,
            pool=Pool.RECURRENT,
        )
        self.needed, self.available, self.evictable = needed, available, evictable


class OwnershipError(Refusal):
    """Pages were given up by somebody who does not hold them."""

    reason = "foreign_free"

    def __init__(
        self, *, pool: Pool, pages: Pages, expected: int, found: int, since: int, request: int = UNBOUND
    ) -> None:
        shown = ", ".join(str(page) for page in pages_of(pages).tolist()[:8])
        super().__init__(
            f"{pool.name} page {shown}: {self.claim}; expected {describe(expected)}, found {describe(found)} "
            f"since event {since}",
            request=request,
            pool=pool,
            pages=pages,
            expected=expected,
            found=found,
            since=since,
        )

    claim = "not the giver's to free"


class DoubleFree(OwnershipError):
    """The pages are free already, or pending in the open group under another call's name."""

    reason = "double_free"
    claim = "freed a second time"


class ForeignFree(OwnershipError):
    """The pages belong to another request or to the tree."""


class Unmapped(OwnershipError):
    """A FULL page has no SWA page, and the caller requires one (R35)."""

    reason = "unmapped"
    claim = "has no SWA page"


class UnknownRequest(Refusal):
    """No live request of this rank has the number."""

    reason = "unknown_request"

    def __init__(self, request: int) -> None:
        super().__init__(f"no live request has number {request}", request=request)


class Busy(Refusal):
    """The command needs a quiet rank."""

    reason = "busy"


class RankPoisoned(Exception):
    """A decision or a write failed after it had begun; every later command is refused with this cause."""


class RankClosed(RankPoisoned):
    """The rank was closed, and takes no more commands; what it knows can still be read."""


class Reentered(RuntimeError):
    """A rank was called from within one of its own commands: by its journal, its watch, or a signal's handler.

    The call changed nothing and nothing was written of it; the command goes on if the caller handles this.
    """


class LawBroken(Exception):
    """An event of the rank's own broke a law; the rank stops before anything is served.

    `seq` is the event's number and `law` the law's name, where one event is to blame.
    """

    def __init__(self, text: str, *, seq: int = 0, law: str = "") -> None:
        super().__init__(text)
        self.seq, self.law = seq, law
