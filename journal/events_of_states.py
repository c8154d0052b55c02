"""Events of recurrent states: slots of the RECURRENT pool, each with the whole state of a model after one token.

Part of the vocabulary, see `events` for its rules. A slot is a page of its pool and travels as one, packed int32.
Every request has a running slot; where states are tracked, two more that take turns.
"""

from radixledger.journal.causes import Cause
from radixledger.journal.event import NO_CAUSE, Event
from radixledger.journal.units import ROOT, UNBOUND, NodeId, Pages, RequestId


class StateTaken(Event, frozen=True, array_like=True, gc=False, tag=33):
    """free → request: the first of `slots` is where the model runs, the others are where states are tracked.

    What a former owner left in them counts for nothing: a running slot begins at zero, or as `StateCopied` says.
    """

    request: RequestId
    slots: Pages
    cause: Cause = NO_CAUSE


class StateCopied(Event, frozen=True, array_like=True, gc=False, tag=34):
    """A request goes on from a hit: the state in slot `source` of `node` is copied to its running slot `target`.

    Nothing moves. The copy is made before the request's first step, and `source` stays until then.
    """

    request: RequestId
    node: NodeId
    source: Pages
    target: Pages
    cause: Cause = NO_CAUSE


class StateTracked(Event, frozen=True, array_like=True, gc=False, tag=35):
    """Requests grow over boundaries: request i keeps its state after token `ends[i]` in its track slot `slots[i]`.

    `requests` is packed int64, `ends` packed int32. Nothing moves; what the slot held before is gone.
    """

    requests: bytes
    slots: Pages
    ends: bytes
    cause: Cause = NO_CAUSE


class StateReplaced(Event, frozen=True, array_like=True, gc=False, tag=36):
    """free → request: track slot `fresh` takes the place of `former`, which the request is about to give away."""

    request: RequestId
    former: Pages
    fresh: Pages
    cause: Cause = NO_CAUSE


class StateDonated(Event, frozen=True, array_like=True, gc=False, tag=37):
    """giver → tree: `slot` has the state after the last token of `node`, a leaf."""

    node: NodeId
    giver: int
    slot: Pages
    request: RequestId = UNBOUND
    cause: Cause = NO_CAUSE


class StateFreed(Event, frozen=True, array_like=True, gc=False, tag=38):
    """giver → free: state slots; those of a node that is no leaf any more, or of a request."""

    giver: int
    slots: Pages
    node: NodeId = ROOT
    request: RequestId = UNBOUND
    cause: Cause = NO_CAUSE
