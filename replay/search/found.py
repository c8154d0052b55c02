"""What a search for the beginning of something asks, and what it found.

Not here: the searches, by halves (`bisect`) and command by command (`every_command`).
"""

from collections.abc import Callable

from msgspec import Struct

from radixledger.cache.laws.law import Law
from radixledger.cache.state import State
from radixledger.journal.frame import Frame

Ask = Callable[[State], str]
"""A question to a state, between two commands: what makes it so, or an empty text for no."""

TURNS_KEPT = 64


class Turn(Struct, frozen=True):
    """From event `seq` on the answer was `now`."""

    seq: int
    now: bool


class Found(Struct):
    """Where an answer turned from no to yes.

    first, last: the events of the command behind which it is yes; 0 where it is no wherever it was asked. no_at: the last
    event behind which it was no, 0 where it was yes from the beginning on. looks: how often it was asked. at_the_end:
    the answer behind the last event. turns: with `every_command`, each change of the answer, the first ones.
    """

    first: int = 0
    last: int = 0
    detail: str = ""
    no_at: int = 0
    time_ns: int = 0
    step: int = 0
    looks: int = 0
    snapshots: int = 0
    at_the_end: bool = False
    every_command: bool = False
    contradicted: int = 0
    """Where a snapshot says yes, and the events up to it say no: it does not hold the state that they give."""
    turns: list[Turn] = []
    notices: list[str] = []


def of_laws(laws: list[Law]) -> Ask:
    """Whether one of these laws of the whole state is broken."""

    def broken(state: State) -> str:
        return next((f"{found.law}: {found.detail}" for law in laws for found in law(state)), "")

    return broken


def tell(found: Found, frame: Frame, detail: str) -> None:
    """Name a command as the first one."""
    found.first, found.last = frame.seq_first, frame.seq_last
    found.time_ns, found.step, found.detail = frame.time_ns, frame.step, detail
