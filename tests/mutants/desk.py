"""A server of a few lines for the schedules of seeded faults: requests by name, prompts by letter, one letter a page."""

from dataclasses import dataclass, field

import numpy as np

from radixledger.cache.config import key_stride
from radixledger.cache.rank import RankCache
from radixledger.journal.events import Config, Opened
from radixledger.journal.units import NodeId, Rank, TokenCount

SMALL = Config(4, 40, 40, 8, rows=8, context_pages=16)
"""Pages of 4 tokens, a window of two pages."""


def opened(config: Config, run: str = "desk", route: str = "unified") -> Opened:
    """A rank of this configuration, with a plain journal."""
    return Opened(
        run=run, rank=Rank(0), ranks=1, epoch=0, route=route, config=config,
        window_need=TokenCount(config.window_tokens), stride=key_stride(config), redaction="plain",
    )  # fmt: skip


@dataclass
class Desk:
    """Requests at one rank."""

    cache: RankCache
    numbers: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def page(self) -> int:
        """Tokens of a page."""
        return self.cache.state.page_size

    def key(self, text: str, tokens: int | None = None) -> bytes:
        """The key of these pages, behind them of as many more as are asked for."""
        count = len(text) * self.page if tokens is None else tokens
        padded = text + "~" * (-(-count // self.page) - len(text))
        return self.cache.key_of([ord(letter) for letter in padded for _ in range(self.page)][:count])

    def length(self, name: str) -> int:
        """Tokens of a request so far."""
        return int(self.cache.state.rows.length[self.cache.state.row_of(self.numbers[name])])

    def admit(
        self, name: str, text: str, tokens: int | None = None, *, space: bytes = b"", miss: bool = False,
        priority: int = 0,
    ) -> None:  # fmt: skip
        """A request with this prompt, or the first `tokens` of it."""
        prompt = len(text) * self.page if tokens is None else tokens
        key = self.key(text, prompt)
        self.numbers[name] = self.cache.admit(
            name, key, prompt, space, force_miss=miss, priority=priority
        ).request
        self.texts[name] = text

    def grow(self, name: str, tokens: int) -> None:
        """So many tokens more."""
        number = np.array([self.numbers[name]], np.int64)
        self.cache.extend(number, np.array([tokens], np.int32))

    def fill(self, name: str) -> None:
        """Compute the rest of the prompt."""
        prompt = self.cache.state.requests[self.numbers[name]].prompt
        self.grow(name, prompt - self.length(name))

    def keep(self, name: str) -> None:
        """Cache what is computed, and go on."""
        self.cache.cache_unfinished(self.numbers[name], self.key(self.texts[name], self.length(name)))

    def reclaim(self, name: str) -> None:
        """Give back what lies below the window."""
        self.cache.reclaim(self.numbers[name], self.length(name) - 1)

    def finish(self, name: str) -> None:
        """End, and cache all of it."""
        self.cache.finish(self.numbers[name], self.key(self.texts[name], self.length(name)))

    def retract(self, name: str) -> None:
        """Take everything back."""
        self.cache.retract(self.numbers[name])

    def abort(self, name: str) -> None:
        """End without caching."""
        self.cache.abort(self.numbers[name])

    def serve(
        self, name: str, text: str, *, space: bytes = b"", miss: bool = False, priority: int = 0
    ) -> None:
        """A whole life."""
        self.admit(name, text, space=space, miss=miss, priority=priority)
        self.fill(name)
        self.finish(name)

    def step(self, number: int, name: str, start: int) -> None:
        """A device step that writes from token `start` to the end of what there is."""
        requests = np.array([self.numbers[name]], np.int64)
        stops = np.array([self.length(name)], np.int32)
        self.cache.step_began(number, requests, np.array([start], np.int32), stops)

    def node(self, text: str) -> NodeId:
        """The node in which a path ends."""
        return self.cache.peek(self.key(text), full_only=True).node
