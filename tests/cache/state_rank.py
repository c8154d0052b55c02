"""A rank whose nodes keep states of a recurrent model, served by hand: what a server of one page would do to it."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pytest

from radixledger.cache.decide.requests import Admission
from radixledger.cache.keys import raw_key
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.rank import RankCache
from radixledger.cache.state import Node, State
from radixledger.journal.events import AnyEvent
from radixledger.journal.moves import pages_of

from .driven import FrameList, opened

E = TypeVar("E")


class StateRank:
    """Texts are letters; each stands for `unit` equal tokens, so that at page 128 a letter can be a page."""

    def __init__(
        self, *, page: int = 1, slots: int = 6, interval: int = 0, full: int = 60, unit: int | None = None
    ) -> None:
        self.unit = unit or page
        self.journal = FrameList(opened((page, 0, full, 0, slots, interval)))
        self.cache = RankCache(self.journal.opened, self.journal)
        self.count = 0

    @property
    def state(self) -> State:
        return self.cache.state

    def tokens(self, text: str) -> list[int]:
        return [ord(letter) for letter in text for _ in range(self.unit)]

    def key(self, text: str) -> bytes:
        return raw_key(self.tokens(text))

    def admit(self, text: str, **options: bool) -> Admission:
        self.count += 1
        return self.cache.admit(
            f"r{self.count}",
            self.key(text),
            len(text) * self.unit,
            force_miss=options.get("force_miss", False),
        )

    def grow(self, request: int, letters: float = 1) -> None:
        self.cache.extend(np.array([request]), np.array([int(letters * self.unit)], np.int32))

    def grow_to(self, request: int, text: str) -> None:
        """Compute what is left of a text."""
        length = int(self.state.rows.length[self.state.row_of(request)])
        if length < len(text) * self.unit:
            self.grow(request, len(text) - length / self.unit)

    def unfinished(self, request: int, text: str) -> int:
        """Cache what is computed; in letters."""
        return int(self.cache.cache_unfinished(request, self.key(text))) // self.unit

    def finish(self, request: int, text: str) -> int:
        return int(self.cache.finish(request, self.key(text))) // self.unit

    def serve(self, text: str) -> int:
        """One request, from its admission to its end; how many letters the tree gave it."""
        admission = self.admit(text)
        self.grow_to(admission.request, text)
        self.finish(admission.request, text)
        return int(admission.hit.tokens) // self.unit

    def hit(self, text: str) -> int:
        """How many letters of a text would be usable."""
        return int(self.cache.peek(self.key(text)).tokens) // self.unit

    def node(self, text: str) -> Node:
        """The node in which a text ends, states or not."""
        return self.state.nodes[self.cache.peek(self.key(text), full_only=True).node]

    def states(self) -> dict[int, int]:
        """Which slot each node has, where it has one."""
        return {
            number: int(pages_of(node.recurrent)[0])
            for number, node in self.state.nodes.items()
            if node.recurrent
        }

    def slots_of(self, request: int) -> list[int]:
        """The slots of a live request: running, then those that track."""
        return [slot for slot in self.state.rows.states[self.state.row_of(request)].tolist() if slot]

    def tracked(self, request: int) -> list[int]:
        """The letters after which a live request's track slots hold its state."""
        ends: list[int] = self.state.rows.tracked[self.state.row_of(request)].tolist()
        return [end // self.unit for end in ends]

    def since(self, count: int) -> list[AnyEvent]:
        return self.journal.events[count:]

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.journal.events if isinstance(event, kind)]

    def check(self) -> None:
        """Every law, and the slots add up."""
        assert list(broken_laws(self.state)) == []
        row = self.cache.ledger()
        assert row.recurrent_capacity == (
            row.recurrent_available + row.recurrent_tree_evictable + row.recurrent_tree_protected
            + row.recurrent_request_running + row.recurrent_request_track
        )  # fmt: skip


def names(events: Sequence[AnyEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


def base(**changes: int) -> StateRank:
    """Page size 1, no track slots."""
    return StateRank(**changes)


def buffered(**changes: int) -> StateRank:
    """Pages of 128, a state tracked at every second one; a letter is a page."""
    return StateRank(**({"page": 128, "interval": 256, "slots": 12} | changes))


BOTH = pytest.mark.parametrize("make", [base, buffered])
