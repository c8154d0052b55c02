"""Decisions about state slots that need no request: take them for nobody in particular, give them back.

A decider is a generator, see `decide.pages`. Rule: every refusal is raised before the first yield.
"""

import numpy as np

from radixledger.cache.decide.pages import Decision
from radixledger.cache.refusals import DoubleFree, ForeignFree, Refusal, StateShort
from radixledger.cache.state import State
from radixledger.journal.accounts import FREE, Pool, request_account
from radixledger.journal.causes import Operation, cause
from radixledger.journal.events import StateFreed, StateTaken
from radixledger.journal.units import UNBOUND, Pages

_ALLOC, _FREE = cause(Operation.ALLOC), cause(Operation.FREE)
_NOBODY = request_account(UNBOUND)


def take(state: State, count: int) -> Decision[Pages]:
    """free → request(unbound): `count` state slots, which a stranger brings to an insert or gives back."""
    if count <= 0:
        raise Refusal(f"{count} state slots were asked for; at least one is taken")
    if state.recurrent.available < count:
        raise StateShort(
            needed=count, available=state.recurrent.available, evictable=state.recurrent_evictable
        )
    slots = state.recurrent.next_free(count)
    yield StateTaken(UNBOUND, slots, _ALLOC)
    return slots


def give_back(state: State, slots: Pages) -> Decision[None]:
    """request(unbound) → free. What somebody else has, or what is free already, is refused by its name (A5)."""
    if not state.recurrent.all_with(slots, _NOBODY):
        holders = state.recurrent.holders(slots)
        at = int(np.argmax(holders != _NOBODY))
        slot = int.from_bytes(slots[at * 4 : at * 4 + 4], "little", signed=True)
        if holders[at] == _NOBODY:
            raise Refusal("a state slot is named twice", pool=Pool.RECURRENT, pages=slots)
        kind = DoubleFree if holders[at] == FREE else ForeignFree
        since = state.recurrent.since_at[slot] if 0 <= slot <= state.recurrent.capacity else 0
        raise kind(
            pool=Pool.RECURRENT, pages=Pages(slots[at * 4 : at * 4 + 4]), expected=_NOBODY,
            found=int(holders[at]), since=since,
        )  # fmt: skip
    if slots:
        yield StateFreed(_NOBODY, slots, cause=_FREE)
