"""What never came into the tree, or not as a whole, and which event made it so: windows given back early, leaves not kept.

A request gives its window back while it runs, so that what it leaves behind ends in one window and has none before it
(R132); and what lies wholly below that is freed instead of kept (R93). Rule: it looks at events before they are folded,
and remembers what is of use while a request lives.
"""

from collections.abc import Callable, Mapping
from typing import Any

from radixledger.journal.causes import Site
from radixledger.journal.events import Aborted, AnyEvent, Finished, Freed, Opened, Reclaimed, Retracted
from radixledger.journal.frame import Frame
from radixledger.journal.units import ROOT
from radixledger.replay.reuse.stays import Loss, Stay


class Withheld:
    """By live request: the event by which it last gave windows back, and the one by which pages of it were not kept."""

    def __init__(self, stays: Mapping[int, Stay]) -> None:
        self._stays = stays
        self._given_back: dict[int, Loss] = {}
        self._vetoed: dict[int, Loss] = {}
        self._looks: dict[type, Callable[[Any, Loss], None]] = {
            Reclaimed: self._reclaimed,
            Freed: self._freed,
            Finished: self._finished,
            Retracted: self._forget,
            Aborted: self._forget,
            Opened: self._reopened,
        }

    def look(self, frame: Frame, seq: int, event: AnyEvent) -> None:
        """Look at the event with number `seq`."""
        look = self._looks.get(type(event))
        if look is not None:
            cause: int = getattr(event, "cause", 0)
            look(event, Loss(seq, frame.time_ns, frame.step, type(event).__name__, cause, ROOT, (0, 0)))

    def given_back(self, request: int) -> Loss | None:
        """The event by which a live request last gave windows back, if it did."""
        return self._given_back.get(request)

    def _reclaimed(self, event: Reclaimed, loss: Loss) -> None:
        self._given_back[event.request] = loss

    def _freed(self, event: Freed, loss: Loss) -> None:
        if event.cause & 31 == Site.VETO:
            self._vetoed[event.request] = loss

    def _finished(self, event: Finished, loss: Loss) -> None:
        """The path of a request ends where what was not kept would have begun."""
        stay = self._stays.get(event.node)
        if stay is not None and event.request in self._vetoed:
            stay.vetoed = self._vetoed[event.request]
        self._forget(event, loss)

    def _forget(self, event: Finished | Retracted | Aborted, _: Loss) -> None:
        self._given_back.pop(event.request, None)
        self._vetoed.pop(event.request, None)

    def _reopened(self, _: Opened, __: Loss) -> None:
        self._given_back.clear()
        self._vetoed.clear()
