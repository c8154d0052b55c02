"""The commands of a rank as data: what a server asked for, by names that mean the same in any run of them.

A schedule is a list of these; `stage` performs it, `recorded` reads it off a journal. Names instead of numbers: a
request is called by its name (`r1`), a page by who was handed it first and its place there (`r1.3`, `a2.0`), a node by
the letters of its path, one letter a page, a receipt or a copy by the name it was given. Rule: a command never says
what was decided, only what was asked.
"""

from radixledger.replay.schedule.commands_of_pages import (
    Allocate,
    Clear,
    EndBackup,
    EndLoad,
    EvictCopies,
    FlushGroup,
    Free,
    FreeFull,
    FreeStates,
    FreeSwa,
    Gather,
    GiveUp,
    LoadBack,
    OpenGroup,
    Remap,
    TakeLedger,
    TakeStates,
    WriteBack,
    WriteThrough,
)
from radixledger.replay.schedule.commands_of_requests import (
    Abort,
    Admit,
    BeginStep,
    Command,
    Decode,
    EndStep,
    Extend,
    Finish,
    Keep,
    MakeRoom,
    Reclaim,
    Retract,
    Seat,
    Write,
    Written,
)


class Match(Command, frozen=True):
    """A key is looked up."""

    key: str
    space: str = ""
    rid: str = ""
    full_only: bool = False
    miss: bool = False


class Insert(Command, frozen=True):
    """Somebody without a row gives the tree pages: [prev, n) are his, the SWA of [0, released) is gone."""

    key: str
    pages: list[str]
    space: str = ""
    prev: int = 0
    released: int = 0
    states: tuple[str, ...] = ()


class Lock(Command, frozen=True):
    """A path is locked."""

    name: str
    node: str
    space: str = ""


class Unlock(Command, frozen=True):
    """The receipt of that lock is given back."""

    lock: str


class Evict(Command, frozen=True):
    """The tree is asked for free pages."""

    full: int
    swa: int = 0


class EvictStates(Command, frozen=True):
    """The tree is asked for state slots."""

    count: int
    full: int = 0


class Flush(Command, frozen=True):
    """The tree is emptied."""


AnyCommand = (
    Admit | Seat | MakeRoom | Extend | Decode | Write | Reclaim | Keep | Finish | Retract | Abort | BeginStep
    | EndStep | Match | Insert | Lock | Unlock | Evict | EvictStates | Flush | Allocate | Free | FreeFull | FreeSwa
    | GiveUp | Remap | OpenGroup | FlushGroup | Clear | TakeStates | FreeStates | TakeLedger | WriteThrough | WriteBack
    | Gather | EndBackup | EvictCopies | LoadBack | EndLoad
)  # fmt: skip

__all__ = [
    "Abort",
    "Admit",
    "Allocate",
    "AnyCommand",
    "BeginStep",
    "Clear",
    "Command",
    "Decode",
    "EndBackup",
    "EndLoad",
    "EndStep",
    "Evict",
    "EvictCopies",
    "EvictStates",
    "Extend",
    "Finish",
    "Flush",
    "FlushGroup",
    "Free",
    "FreeFull",
    "FreeStates",
    "FreeSwa",
    "Gather",
    "GiveUp",
    "Insert",
    "Keep",
    "LoadBack",
    "Lock",
    "MakeRoom",
    "Match",
    "OpenGroup",
    "Reclaim",
    "Remap",
    "Retract",
    "Seat",
    "TakeLedger",
    "TakeStates",
    "Unlock",
    "Write",
    "WriteBack",
    "WriteThrough",
    "Written",
]
