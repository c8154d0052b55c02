"""Pages that left the tree, by what they held: the latest so many of them, with who had brought them and what took them.

Rule: bounded; those that have been gone longest are forgotten first, and counted.
"""

from collections.abc import Iterable

from radixledger.replay.reuse.stays import Stay


class Gone:
    """Remembers `pages` pages, and of each the last `stays` stays."""

    def __init__(self, pages: int, stays: int) -> None:
        self._pages, self._stays_kept = pages, stays
        self._stays: dict[int, tuple[Stay, ...]] = {}
        """By chain: the stays of a page that are over, older ones first."""
        self.forgotten = 0
        """Pages that were forgotten because too many are gone."""

    def __len__(self) -> int:
        """How many pages are remembered now."""
        return len(self._stays)

    def of(self, chain: int) -> tuple[Stay, ...]:
        """The stays of a page that are over."""
        return self._stays.get(chain, ())

    def add(self, chains: Iterable[int], stay: Stay) -> None:
        """The pages of a stay that is over."""
        alone, stays, kept = (stay,), self._stays, self._stays_kept
        for chain in chains:
            before = stays.pop(chain, None)
            stays[chain] = alone if before is None else (*before, stay)[-kept:]
        while len(stays) > self._pages:
            del stays[next(iter(stays))]
            self.forgotten += 1
