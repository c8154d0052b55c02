"""What an event did to a node, a request, a device step or a free group, in a few words; pages are told by where they went.

Rule: only what the event itself says, so that no state is needed.
"""

from collections.abc import Callable
from typing import Any

from radixledger.journal.events import (
    Aborted,
    Admitted,
    Adopted,
    AnyEvent,
    Bound,
    Demoted,
    Extended,
    Finished,
    GroupOpened,
    Healed,
    HealMode,
    Locked,
    Matched,
    Phase,
    Reclaimed,
    Removed,
    Repointed,
    Retracted,
    Split,
    Stepped,
    Stop,
    Tombstoned,
    Transferred,
    Unlocked,
)
from radixledger.journal.packed import whole_ids, whole_pages
from radixledger.replay.counted import counted


def words(event: AnyEvent) -> str:
    """What it did; empty where its name says it all."""
    tell = _WORDS.get(type(event))
    return tell(event) if tell is not None else ""


def _admitted(event: Admitted) -> str:
    return f"{event.prompt:,} tokens, the tree has {event.prefix:,} of them"


def _matched(event: Matched) -> str:
    why = Stop(event.stop).name.lower() if event.stop in list(Stop) else str(event.stop)
    return f"{event.hit:,} of {event.asked:,} tokens hit, up to node {event.node}: {why}"


def _repointed(event: Repointed) -> str:
    return f"the tree has its first {event.protected:,} tokens, up to node {event.node}"


def _extended(event: Extended) -> str:
    grown = whole_pages(event.grown)
    return f"{counted(len(event.requests) // 8, 'request')} grew by {sum(grown):,} tokens"


def _finished(event: Finished) -> str:
    return f"{event.cached:,} of {event.tokens:,} tokens cached, up to node {event.node}"


def _transferred(event: Transferred) -> str:
    live = "" if event.swa else ", without SWA"
    return f"node {event.node}, a new leaf under node {event.parent}{live}"


def _split(event: Split) -> str:
    return f"node {event.node} is cut: its first {len(event.full or event.host) // 4} pages are node {event.upper}"


def _healed(event: Healed) -> str:
    mode = HealMode(event.mode).name.lower() if event.mode in list(HealMode) else str(event.mode)
    return f"node {event.node} has live SWA again ({mode})"


def _stepped(event: Stepped) -> str:
    if event.phase != Phase.BEGAN:
        return f"step {event.step} ends"
    return f"step {event.step} begins, with {counted(len(whole_ids(event.requests)), 'request')}"


def _locked(event: Locked | Unlocked) -> str:
    return f"node {event.node}" + (f" to boundary {event.boundary}" if event.boundary else " to the root")


_WORDS: dict[type, Callable[[Any], str]] = {
    Admitted: _admitted,
    Matched: _matched,
    Repointed: _repointed,
    Extended: _extended,
    Finished: _finished,
    Retracted: lambda event: f"after {event.tokens:,} tokens",
    Aborted: lambda event: f"after {event.tokens:,} tokens",
    Reclaimed: lambda event: f"its SWA below token {event.stop:,} goes, from {event.start:,}",
    Bound: lambda event: f"row written from token {event.start:,}",
    Transferred: _transferred,
    Split: _split,
    Tombstoned: lambda event: f"node {event.node} loses its SWA",
    Healed: _healed,
    Removed: lambda event: f"node {event.node} leaves the tree",
    Demoted: lambda event: f"node {event.node} keeps its copy on the host alone",
    Adopted: lambda event: f"node {event.node} has FULL pages again",
    Locked: _locked,
    Unlocked: _locked,
    Stepped: _stepped,
    GroupOpened: lambda _: "a free group opens",
}
