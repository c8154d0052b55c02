"""A router's side of the wire, written from its public description alone: no class of ours, msgpack as it comes.

It keeps which blocks are held on which medium, and what a block's prefix is: the tokens of its parents and its own.
"""

from typing import Any

import msgspec


class Subscriber:
    """Takes batches as bytes, in order."""

    def __init__(self) -> None:
        self.held: dict[str, set[int]] = {}
        self.prefixes: dict[int, tuple[int, ...]] = {}
        self.ranks: set[int] = set()
        self.times: list[float] = []

    def take(self, payload: bytes) -> None:
        """One message's batch: `[time, events, data-parallel rank]`."""
        time, events, rank = msgspec.msgpack.decode(payload)
        self.times.append(time)
        self.ranks.add(rank)
        for name, *fields in events:
            match name:
                case "BlockStored":
                    self.stored(*fields)
                case "BlockRemoved":
                    self.removed(*fields)
                case "AllBlocksCleared":
                    self.held.clear()
                case _:
                    raise AssertionError(name)

    def stored(
        self, hashes: list[int], parent: int | None, tokens: list[int], size: int, lora: Any, medium: str
    ) -> None:
        assert lora is None
        assert len(tokens) in (0, len(hashes) * size)
        before = self.prefixes[parent] if parent is not None else ()
        for at, each in enumerate(hashes):
            assert isinstance(each, int)
            before += tuple(tokens[at * size : (at + 1) * size])
            self.prefixes[each] = before
        already = self.held.setdefault(medium, set())
        assert not already & set(hashes), "a block is stored once"
        already |= set(hashes)

    def removed(self, hashes: list[int], medium: str) -> None:
        assert set(hashes) <= self.held.get(medium, set()), "only what was stored is removed"
        self.held[medium] -= set(hashes)

    def seen(self, medium: str) -> set[tuple[int, ...]]:
        """The prefixes that are held, as tokens."""
        return {self.prefixes[each] for each in self.held.get(medium, set())}
