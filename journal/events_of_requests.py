"""Events of a request's life: admission, growth, steps, reclaim, re-pointing, its end.

Part of the vocabulary, see `events` for its rules.
"""

from radixledger.journal.accounts import FREE
from radixledger.journal.causes import Cause
from radixledger.journal.event import NO_CAUSE, Event
from radixledger.journal.units import NO_PAGES, KeyLen, NodeId, Pages, RequestId, TokenCount


class Admitted(Event, frozen=True, array_like=True, gc=False, tag=2):
    """A request got a row, which begins with the `prefix` tokens that the tree holds up to `node`."""

    request: RequestId
    rid: str
    prompt: TokenCount
    prefix: TokenCount
    node: NodeId
    namespace: bytes = b""
    cause: Cause = NO_CAUSE
    priority: int = 0
    """How much its path counts against others under the eviction policy `priority`."""


class Finished(Event, frozen=True, array_like=True, gc=False, tag=3):
    """A request ended well; its row is empty, `cached` of its `tokens` are in the tree, which ends at `node`."""

    request: RequestId
    tokens: TokenCount
    cached: TokenCount
    node: NodeId
    cause: Cause = NO_CAUSE
    key: bytes = b""
    """Whole pages of its key behind `cached`, `stride` bytes each: no tree took them, another cache might have (J17)."""


class Retracted(Event, frozen=True, array_like=True, gc=False, tag=4):
    """A running request gave everything back, to be admitted again later under a new id."""

    request: RequestId
    tokens: TokenCount
    cause: Cause = NO_CAUSE


class Aborted(Event, frozen=True, array_like=True, gc=False, tag=5):
    """A request ended without being cached."""

    request: RequestId
    tokens: TokenCount
    cause: Cause = NO_CAUSE


class Extended(Event, frozen=True, array_like=True, gc=False, tag=7):
    """One per step: request i grew by `grown[i]` tokens; the pages taken at page crossings.

    `takers[j]` took the next `counts[j]` pages of `full` and of `swa` (equal lengths, mapped in order; no
    `swa` where there is no window) and appended them to its row. `takers` and `counts` are empty when no request crossed a page.
    """

    requests: bytes
    grown: bytes
    takers: bytes = b""
    counts: bytes = b""
    full: Pages = NO_PAGES
    swa: Pages = NO_PAGES
    cause: Cause = NO_CAUSE


class Stepped(Event, frozen=True, array_like=True, gc=False, tag=9):
    """A device step began or ended; request i writes tokens [starts[i], stops[i]) and reads its window below.

    `requests` is packed int64, `starts` and `stops` packed int32; empty when the step ended.
    """

    step: int
    phase: int
    requests: bytes = b""
    starts: bytes = b""
    stops: bytes = b""


class Reclaimed(Event, frozen=True, array_like=True, gc=False, tag=15):
    """request → free or pending: SWA pages out of the window; the cursor moved `start` → `stop` tokens (R131, R132).

    `full` are the request's FULL pages whose mapping is cleared, one for each page of `swa`; they do not
    move. Both are empty when only the cursor moved (A27).
    """

    request: RequestId
    start: TokenCount
    stop: TokenCount
    full: Pages
    swa: Pages
    to: int = FREE
    in_flight: TokenCount = TokenCount(0)
    cause: Cause = NO_CAUSE
    pre: KeyLen = KeyLen(-1)
    """The position that the window was counted back from, less what is in flight (R130); -1: nobody said."""


class Repointed(Event, frozen=True, array_like=True, gc=False, tag=20):
    """A request's row names tree pages: `full` from token `start` on where they differ from its own before.

    Its protected length is `protected` tokens from now on, the path to `node` (R149).
    """

    request: RequestId
    start: TokenCount
    full: Pages
    protected: TokenCount
    node: NodeId
    cause: Cause = NO_CAUSE
