"""The kinds of ownership transition that the machine must meet, as `witnesses.transition` tells them.

`EVERYWHERE` under every setting, `SOMEWHERE` under one at least. The list was written by looking at what can happen, not
at what a seed happened to play: a kind that goes missing means that the plays have become too tame for it.

Two kinds cannot happen and are therefore not here. A childless node that FULL holds is the anchor of a receipt, and a
receipt holds the window of its anchor too, so SWA pressure never finds such a leaf (R109, A24). And nothing is evicted
inside a free group, so neither `Removed` nor `Tombstoned` pages are ever pending.
"""


def kinds(text: str) -> tuple[str, ...]:
    """One kind a line, without indentation."""
    return tuple(line.strip() for line in text.strip().splitlines())


EVERYWHERE = kinds("""
    FULL free→request: Allocated alloc
    FULL free→request: Extended extend/prefill
    FULL free→request: Extended extend/decode
    FULL request→free: Freed abort/tail
    FULL request→free: Freed free/composite
    FULL request→free: Freed free/full_only
    FULL request→free: Freed insert/duplicate
    FULL request→free: Freed retract/tail
    FULL request→tree: Transferred finish
    FULL request→tree: Transferred insert
    FULL request→tree: Transferred unfinished
    FULL tree→free: Removed evict/full_leaf
    FULL tree→free: Removed evict/swa_leaf
    FULL tree→free: Removed flush
    FULL pending→free: GroupFlushed unknown
    SWA free→request: Allocated alloc
    SWA free→request: Extended extend/prefill
    SWA free→request: Extended extend/decode
    SWA request→free: Freed abort/tail
    SWA request→free: Freed free/composite
    SWA request→free: Freed free/swa_only
    SWA request→free: Freed insert/duplicate
    SWA request→tree: Transferred finish
    SWA request→tree: Transferred insert
    SWA request→tree: Transferred unfinished
    SWA tree→free: Removed evict/full_leaf
    SWA tree→free: Removed evict/swa_leaf
    SWA tree→free: Removed flush
    SWA tree→free: Tombstoned evict/swa_internal
    SWA pending→free: GroupFlushed unknown
    nothing: free/swa_only
    refused: busy
    refused: pool_short
    refused: refused
    refused: unknown_request
""")

SOMEWHERE = kinds("""
    FULL request→request: Bound unknown
    FULL request→free: Freed flush
    FULL request→free: Freed finish/duplicate
    FULL request→free: Freed finish/veto
    FULL request→free: Freed finish/tail
    FULL request→free: Freed insert/veto
    FULL request→free: Freed unfinished/duplicate
    FULL request→free: Healed finish/heal by transfer
    FULL request→free: Healed insert/heal by transfer
    FULL request→free: Healed unfinished/heal by transfer
    FULL request→tree: Healed finish/heal by replace
    FULL request→tree: Healed insert/heal by replace
    FULL request→tree: Healed unfinished/heal by replace
    FULL tree→free: Healed finish/heal by replace
    FULL tree→free: Healed insert/heal by replace
    FULL tree→free: Healed unfinished/heal by replace
    FULL tree→tree: Split admit
    FULL tree→tree: Split admit/window
    FULL tree→tree: Split evict
    FULL tree→tree: Split lock/window
    FULL tree→tree: Split unfinished/window
    FULL tree→tree: Split finish
    FULL tree→tree: Split insert
    FULL tree→tree: Split match
    FULL tree→tree: Split unfinished
    FULL tree→tree: Split insert/heal
    FULL request→pending: Freed abort/tail
    FULL request→pending: Freed finish/duplicate
    FULL request→pending: Freed finish/tail
    FULL request→pending: Freed free/composite
    FULL request→pending: Freed free/full_only
    FULL request→pending: Freed insert/duplicate
    FULL request→pending: Freed retract/tail
    FULL request→pending: Freed unfinished/duplicate
    FULL request→pending: Healed finish/heal by transfer
    FULL request→pending: Healed insert/heal by transfer
    FULL tree→pending: Healed finish/heal by replace
    FULL tree→pending: Healed insert/heal by replace
    SWA request→free: Freed finish/duplicate
    SWA request→free: Freed finish/tail
    SWA request→free: Freed insert/released
    SWA request→free: Freed insert/veto
    SWA request→free: Freed retract/tail
    SWA request→free: Freed unfinished/duplicate
    SWA request→free: Reclaimed reclaim
    SWA request→request: Bound unknown
    SWA request→request: Remapped alloc
    SWA request→free: Freed flush
    SWA request→tree: Healed finish/heal by replace
    SWA request→tree: Healed finish/heal by transfer
    SWA request→tree: Healed insert/heal by replace
    SWA request→tree: Healed insert/heal by transfer
    SWA request→tree: Healed unfinished/heal by replace
    SWA request→tree: Healed unfinished/heal by transfer
    SWA tree→tree: Split admit
    SWA tree→tree: Split admit/window
    SWA tree→tree: Split evict
    SWA tree→tree: Split lock/window
    SWA tree→tree: Split unfinished/window
    SWA tree→tree: Split finish
    SWA tree→tree: Split insert
    SWA tree→tree: Split match
    SWA tree→tree: Split unfinished
    SWA request→pending: Freed abort/tail
    SWA request→pending: Freed finish/duplicate
    SWA request→pending: Freed finish/tail
    SWA request→pending: Freed free/composite
    SWA request→pending: Freed free/swa_only
    SWA request→pending: Freed insert/duplicate
    SWA request→pending: Freed retract/tail
    SWA request→pending: Freed unfinished/duplicate
    SWA request→pending: Reclaimed reclaim
    refused: double_free
    refused: foreign_free
    refused: never_fits
    refused: unmapped
    violated: double_free
    violated: foreign_free
""")


LEGACY_EVERYWHERE = kinds("""
    FULL tree→free: Removed evict/childless_tombstone
""")
"""What the legacy route does and no other: a leaf takes the childless tombstones above it along."""


STATES_EVERYWHERE = kinds("""
    RECURRENT free→request: StateTaken admit
    RECURRENT free→request: StateTaken alloc
    RECURRENT request→free: StateFreed abort/tail
    RECURRENT request→free: StateFreed finish/rejected
    RECURRENT request→free: StateFreed finish/tail
    RECURRENT request→free: StateFreed free
    RECURRENT request→free: StateFreed insert/rejected
    RECURRENT request→free: StateFreed retract/tail
    RECURRENT request→tree: StateDonated finish
    RECURRENT request→tree: StateDonated insert
    RECURRENT tree→free: Removed evict/full_leaf
    StateCopied
    refused: state_short
""")
"""Where there are states of a recurrent model."""

STATES_SOMEWHERE = kinds("""
    RECURRENT request→free: StateFreed flush
    RECURRENT tree→free: Removed admit/state_leaf
    RECURRENT tree→free: Removed evict/state_leaf
    RECURRENT tree→free: Removed flush
    RECURRENT tree→free: StateFreed finish/outgrown
    RECURRENT tree→free: StateFreed insert/outgrown
    RECURRENT tree→free: StateFreed unfinished/outgrown
    RECURRENT tree→free: StateFreed unlock/outgrown
""")

TRACKED_EVERYWHERE = kinds("""
    RECURRENT free→request: StateReplaced unfinished/replacement
    RECURRENT request→tree: StateDonated unfinished
    StateTracked
""")
"""Where requests track their states, too."""

TRACKED_SOMEWHERE = kinds("""
    RECURRENT request→free: StateFreed unfinished/rejected
    RECURRENT tree→free: Removed unfinished/state_leaf
""")


COPIES_EVERYWHERE = kinds("""
    FULL free→in_flight: LoadBegun load_back
    FULL in_flight→free: LoadEnded load_back
    FULL in_flight→tree: LoadEnded load_back
    FULL tree→free: Demoted evict/host_copy
    HOST in_flight→free: BackupEnded back_up
    HOST in_flight→tree: BackupEnded back_up
    HOST tree→free: HostDropped evict_host
    HOST tree→free: HostDropped flush
    HOST tree→tree: Split match
    Gathered
""")
"""What a host tier does, whichever way it writes."""

COPIES_SOMEWHERE = kinds("""
    FULL in_flight→free: LoadEnded load_back/duplicate
    FULL in_flight→pending: LoadEnded load_back
    FULL in_flight→pending: LoadEnded load_back/duplicate
    FULL request→tree: Adopted finish/adopted
    FULL request→tree: Adopted insert/adopted
    FULL request→tree: Adopted unfinished/adopted
    HOST free→in_flight: BackupBegun back_up/write_back
    HOST free→in_flight: BackupBegun back_up/write_through
    HOST in_flight→free: BackupEnded back_up/unreachable
    HOST tree→free: HostDropped back_up/unreachable
    HOST tree→free: HostDropped evict/unreachable
    HOST tree→tree: Split admit
""")

EVERY_KIND = (
    *EVERYWHERE, *SOMEWHERE, *LEGACY_EVERYWHERE, *STATES_EVERYWHERE, *STATES_SOMEWHERE, *TRACKED_EVERYWHERE,
    *TRACKED_SOMEWHERE, *COPIES_EVERYWHERE, *COPIES_SOMEWHERE,
)  # fmt: skip
"""All of them, whatever they are asked of."""


def everywhere(play: str) -> list[str]:
    """What must happen under every setting of a kind of play."""
    own = {
        "legacy": LEGACY_EVERYWHERE,
        "states": STATES_EVERYWHERE,
        "tracked": (*STATES_EVERYWHERE, *TRACKED_EVERYWHERE),
        "copies": COPIES_EVERYWHERE,
    }
    return [*(kind for kind in EVERYWHERE if _happens(play, kind)), *own.get(play, ())]


def somewhere(play: str) -> list[str]:
    """What must happen under one setting of a kind of play at least; with states, what they add to their route."""
    states = (*STATES_SOMEWHERE, *(TRACKED_SOMEWHERE if play == "tracked" else ()))
    copies = COPIES_SOMEWHERE if play == "copies" else ()
    return (
        [*states] if play in _OF_STATES else [*(kind for kind in SOMEWHERE if _happens(play, kind)), *copies]
    )


_OF_STATES = ("states", "tracked")


def _happens(play: str, kind: str) -> bool:
    """Without a window nothing has SWA or heals, no eviction asks for it, and a stranger keeps the duplicates he brought;
    without a tree nothing goes to it or comes from it, and nobody brings anything. Rows that are longer than a pool are
    played where there are both. A state ends a node, so no match cuts one. The rollback route cuts no window out.
    """
    of_windows = (
        "SWA ",
        "Healed",
        "Reclaimed",
        "/heal",
        "/veto",
        "evict/swa_leaf",
        "insert/duplicate",
        "/window",
        "Split evict",
    )
    of_trees = ("tree", "Healed", "/duplicate", "/veto", "/released")
    of_cuts = ("Split match", "Split admit")
    of_windows_cut_out = ("/window", "Split evict")
    if kind == "refused: never_fits":
        return play in ("unified", "legacy")
    return not (
        (play in ("radix", "chunk", "copies", *_OF_STATES) and any(word in kind for word in of_windows))
        or (play in ("chunk", "swa_chunk") and any(word in kind for word in of_trees))
        or (play in _OF_STATES and any(word in kind for word in of_cuts))
        or (play == "legacy" and any(word in kind for word in of_windows_cut_out))
    )
