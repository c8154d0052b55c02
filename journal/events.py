"""Everything that can happen to the cache of one rank, as facts in the past tense.

Rule 1: an event says what was decided, never how to decide it. Pages, nodes, victims and marks
are written out, so that folding needs no clock, no chance and no policy.

Rule 2: events are only ever extended. New fields go last and have defaults; a field is never
renamed, reordered or given another meaning; a tag is never used again.

Rule 3: an event that moves pages, or changes which node or request holds them, lists the page
ids of both pools even where the state could tell, so that SQL needs no fold (`moves.py` reads
them off). Columns of pages are packed int32, columns of requests and nodes packed int64, both
little-endian; lengths and positions are tokens unless a name says pages.
"""

from radixledger.journal.event import NO_CAUSE, Config, Event, HealMode, Phase, Stop
from radixledger.journal.events_of_pages import Allocated, Bound, Freed, GroupFlushed, GroupOpened, Remapped
from radixledger.journal.events_of_requests import (
    Aborted,
    Admitted,
    Extended,
    Finished,
    Reclaimed,
    Repointed,
    Retracted,
    Stepped,
)
from radixledger.journal.events_of_states import (
    StateCopied,
    StateDonated,
    StateFreed,
    StateReplaced,
    StateTaken,
    StateTracked,
)
from radixledger.journal.events_of_the_host import (
    Adopted,
    BackupBegun,
    BackupEnded,
    Demoted,
    Gathered,
    HostDropped,
    LoadBegun,
    LoadEnded,
)
from radixledger.journal.events_of_the_record import (
    SCHEMA_VERSION,
    Closed,
    Digested,
    Gap,
    LedgerTaken,
    Opened,
    Refused,
    Snapshotted,
    Violated,
)
from radixledger.journal.events_of_the_tree import (
    Evicted,
    Flushed,
    Healed,
    Locked,
    Matched,
    Removed,
    Split,
    Tombstoned,
    Transferred,
    Unlocked,
)

__all__ = [
    "NO_CAUSE",
    "SCHEMA_VERSION",
    "Aborted",
    "Admitted",
    "Adopted",
    "Allocated",
    "AnyEvent",
    "BackupBegun",
    "BackupEnded",
    "Bound",
    "Closed",
    "Config",
    "Demoted",
    "Digested",
    "Event",
    "Evicted",
    "Extended",
    "Finished",
    "Flushed",
    "Freed",
    "Gap",
    "Gathered",
    "GroupFlushed",
    "GroupOpened",
    "HealMode",
    "Healed",
    "HostDropped",
    "LedgerTaken",
    "LoadBegun",
    "LoadEnded",
    "Locked",
    "Matched",
    "Opened",
    "Phase",
    "Reclaimed",
    "Refused",
    "Remapped",
    "Removed",
    "Repointed",
    "Retracted",
    "Snapshotted",
    "Split",
    "StateCopied",
    "StateDonated",
    "StateFreed",
    "StateReplaced",
    "StateTaken",
    "StateTracked",
    "Stepped",
    "Stop",
    "Tombstoned",
    "Transferred",
    "Unlocked",
    "Violated",
]

AnyEvent = (
    Opened
    | Admitted
    | Finished
    | Retracted
    | Aborted
    | Allocated
    | Extended
    | Bound
    | Stepped
    | Refused
    | Transferred
    | Split
    | Tombstoned
    | Healed
    | Reclaimed
    | Freed
    | GroupOpened
    | GroupFlushed
    | Removed
    | Repointed
    | Matched
    | Locked
    | Unlocked
    | LedgerTaken
    | Snapshotted
    | Flushed
    | Violated
    | Gap
    | Closed
    | Digested
    | Evicted
    | Remapped
    | BackupBegun
    | Gathered
    | BackupEnded
    | Demoted
    | Adopted
    | LoadBegun
    | LoadEnded
    | HostDropped
    | StateTaken
    | StateCopied
    | StateTracked
    | StateReplaced
    | StateDonated
    | StateFreed
)
