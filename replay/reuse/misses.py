"""What a miss is, as data: how far an admitted request's prompt hit, and for every token that did not, why.

The yardstick is the hit itself: `H(t)` tokens of this very prompt would have hit behind event t. An event *lost* as many
tokens as H dropped by at it and never came back to until the request was admitted; a token that no H ever reached was
not lost. What a prompt is, the journal tells only when the request caches it: the key of a match is not written, the key
of a new node is. So a miss is judged (`judge`) when its path is known, or its request has ended. Rule: kinds are disjoint, and their
tokens add up to the prompt.

    hit            came from the tree
    lost           would have hit until some event, which is named
    not_usable     FULL pages were there, but never with the whole window, or the state, that a boundary needs
    concurrent     not there yet: another request computed the same pages meanwhile
    never_cached   no request had left these pages in the tree before
    forced         could have hit, and was told not to
    untold         the request ended, or the journal does, before its key was told; or there is no tree
    not_known      events are missing before it, or before its key was told: what the cache held is not known (J11)
    too_short      behind the last whole page that may hit, at least one token (E9)
"""

from msgspec import Struct

from radixledger.journal.events import Stop

KINDS = (
    "hit",
    "lost",
    "not_usable",
    "concurrent",
    "never_cached",
    "forced",
    "untold",
    "not_known",
    "too_short",
)

NOT_TOLD = -1
"""The stop of an admission whose match the journal does not have."""


class Lost(Struct, frozen=True):
    """Tokens [start, stop) of a prompt that would have hit until event `seq`.

    what: `prefix` (FULL and all that goes with it), `window`, `state`, `prefix on the device` (a copy stayed on the host)
    or `everything` (the process began anew). cached_by, cached_seq: who had left them there, and since when.
    pressed: whether it went because somebody wanted room. wanted_by, wanted_by_count: request ids that took room next, the first
    ones and how many, in event `wanted_seq`. asked_full, asked_swa, asked_states: what that eviction was asked for.
    evicted_full, evicted_swa: pages that evictions took from there to the match, this loss among them. also_seq,
    also_cause, also_evicted_full: a later event that took FULL pages of these tokens anyway, if one did, and the same
    count from there on. copy: what became of the copy on the host, if there was one.
    """

    start: int
    stop: int
    seq: int
    time_ns: int
    step: int
    event: str
    cause: str
    what: str
    node: int
    cached_by: str
    cached_seq: int
    pressed: bool
    wanted_by: list[str]
    wanted_by_count: int
    wanted_seq: int
    asked_full: int
    asked_swa: int
    asked_states: int
    evicted_full: int
    evicted_swa: int
    also_seq: int = 0
    also_cause: str = ""
    also_evicted_full: int = 0
    copy: str = ""

    @property
    def tokens(self) -> int:
        """How many tokens it cost."""
        return self.stop - self.start


class Stretch(Struct, frozen=True):
    """Tokens [start, stop) of a prompt that were not lost, and what they were instead; cached_* as in `Lost`.

    seq, event, cause: where it is known why they were not kept in the first place, which event that was: `not_usable`, the
    one by which the request that brought them had given their window back (R132); `never_cached`, the one by which another
    request's pages behind the same prefix were freed and not kept, perhaps these (R93: their key was never told).
    """

    start: int
    stop: int
    kind: str
    cached_by: str = ""
    cached_seq: int = 0
    seq: int = 0
    event: str = ""
    cause: str = ""


class Miss(Struct, frozen=True):
    """One admission: what it asked, what it got, where the rest went. Lengths in tokens.

    seq, time_ns, step: of the match that it was admitted on. asked: whole pages that may hit. full_hit: what FULL alone
    would have given; host_hit: what copies on the host go on for. stop: why the match went no further.
    kinds: tokens of the prompt by kind. known: how much of what it asked the journal tells the key of. admitted_seq: of
    its `Admitted`. open: the request was live where reading ended, so that more may be known later.
    """

    rank: int
    request: int
    rid: str
    seq: int
    time_ns: int
    step: int
    prompt: int
    asked: int
    full_hit: int
    hit: int
    host_hit: int
    stop: str
    node: int
    ended: str
    known: int
    kinds: dict[str, int]
    lost: list[Lost]
    stretches: list[Stretch]
    epoch: int = 0
    admitted_seq: int = 0
    open: bool = False

    @property
    def lost_tokens(self) -> int:
        """Tokens that would have hit, had nothing been taken."""
        return self.kinds["lost"]


def stop_text(code: int) -> str:
    """Why a match ended, as SQL spells it."""
    if code == NOT_TOLD:
        return "not_told"
    return Stop(code).name.lower() if code in list(Stop) else f"unknown({code})"
