"""A play: every command of a rank at random, by what Hypothesis draws or by what a seed rolls.

What a command may be called with is chosen in `play_requests` and `play_pages` by what the model says is there: mostly
lawful things; some of each kind are not, and must be refused. Pools are so small that shortage, eviction, tombstones
and heals are daily bread. Rule: a choice is a number from `Chance`, nothing else, so that Hypothesis can shrink a play
and a seed can repeat it.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Protocol, TypeVar

import numpy as np

from radixledger.cache.state import Receipt
from radixledger.journal.events import AnyEvent, Config, Opened
from radixledger.journal.units import Pages, Rank, TokenCount

from .model_tree import Lock, Shape
from .witnesses import Witnesses

T = TypeVar("T")


class Chance(Protocol):
    """Where choices come from; small numbers are the tame ones."""

    def number(self, least: int, most: int, /) -> int:
        """One of least, ..., most."""
        ...


@dataclass
class Dice:
    """Choices by seed."""

    rolls: random.Random

    def number(self, least: int, most: int, /) -> int:
        return self.rolls.randint(least, most)


def one_of(chance: Chance, things: Sequence[T]) -> T:
    return things[chance.number(0, len(things) - 1)]


def rarely(chance: Chance, percent: int) -> bool:
    return chance.number(0, 99) >= 100 - percent


def some(chance: Chance, things: Sequence[T], most: int) -> list[T]:
    """Between one and `most` of the things, neighbours in their order; none of none."""
    if not things:
        return []
    first, count = chance.number(0, len(things) - 1), chance.number(1, min(most, len(things)))
    return [things[(first + at) % len(things)] for at in range(count)]


@dataclass(frozen=True)
class Setting:
    """One configuration under which everything must hold."""

    shape: Shape
    ranks: int = 1
    strict: bool = True

    @property
    def play(self) -> str:
        """Which kinds of transition its plays must show: its route's, or those of states or copies."""
        if self.shape.host:
            return "copies"
        return ("tracked" if self.shape.interval else "states") if self.shape.states else self.shape.route


WINDOW_SETTINGS = {
    "page 1, window 4": Setting(Shape(1, 4, 40, 24, row_pages=16)),
    "page 1, window 1, tight": Setting(Shape(1, 1, 24, 14, row_pages=12, formula="tight")),
    "page 4, window 3": Setting(Shape(4, 3, 26, 14)),
    "page 4, window 6, rows longer than FULL": Setting(Shape(4, 6, 24, 14, row_pages=26)),
    "page 4, window 4, tight, materialise": Setting(Shape(4, 4, 24, 14, formula="tight", leaf="materialise")),
    "page 4, window 5": Setting(Shape(4, 5, 30, 20)),
    "page 4, window 14, materialise": Setting(Shape(4, 14, 34, 28, leaf="materialise")),
    "page 4, window 6, tight, two ranks": Setting(Shape(4, 6, 24, 16, formula="tight"), ranks=2),
    "page 16, window 40, going on": Setting(Shape(16, 40, 32, 26), strict=False),
    "page 128, window 200, tight": Setting(Shape(128, 200, 26, 18, formula="tight")),
    "page 128, window 128, two ranks": Setting(Shape(128, 128, 26, 16), ranks=2),
    "page 256, window 100": Setting(Shape(256, 100, 24, 12)),
    "page 256, window 700, tight, materialise, going on": Setting(
        Shape(256, 700, 34, 28, formula="tight", leaf="materialise"), strict=False
    ),
    "page 1, window 3, pairs, tight": Setting(Shape(1, 3, 36, 22, row_pages=14, formula="tight", ahead=1)),
    "page 4, window 5, pairs": Setting(Shape(4, 5, 30, 20, ahead=1)),
    "page 4, window 7, pairs, tight, materialise": Setting(
        Shape(4, 7, 30, 20, formula="tight", leaf="materialise", ahead=1)
    ),
    "page 128, window 200, pairs, two ranks": Setting(Shape(128, 200, 26, 18, ahead=1), ranks=2),
    "page 4, window 5, nothing given back": Setting(Shape(4, 5, 30, 24, frees=False)),
    "page 16, window 16, pairs, nothing given back": Setting(Shape(16, 16, 26, 18, ahead=1, frees=False)),
    "page 1, window 4, by use": Setting(Shape(1, 4, 40, 24, row_pages=16, victims="use")),
    "page 4, window 14, materialise, by use": Setting(
        Shape(4, 14, 34, 28, leaf="materialise", victims="use")
    ),
    "page 4, window 5, pairs, by use": Setting(Shape(4, 5, 30, 20, ahead=1, victims="use")),
    "page 128, window 200, tight, by use, two ranks": Setting(
        Shape(128, 200, 26, 18, formula="tight", victims="use"), ranks=2
    ),
    "page 256, window 100, by use, going on": Setting(Shape(256, 100, 24, 12, victims="use"), strict=False),
    "page 4, window 6, slru": Setting(Shape(4, 6, 22, 20, eviction="slru")),
    "page 1, window 4, priority, by use": Setting(
        Shape(1, 4, 26, 22, row_pages=14, victims="use", eviction="priority")
    ),
}
"""W < P, W = P, W > P; W mod P neither 0 nor P - 1 in half of them (R274); pools of a few rows; keys of both modes."""

RADIX_SETTINGS = {
    "radix, page 1": Setting(Shape(1, 0, 30, 0, row_pages=16, route="radix")),
    "radix, page 16, going on": Setting(Shape(16, 0, 22, 0, route="radix"), strict=False),
    "radix, page 128, two ranks": Setting(Shape(128, 0, 22, 0, route="radix"), ranks=2),
    "radix, page 256": Setting(Shape(256, 0, 20, 0, route="radix")),
    "radix, page 1, slru": Setting(Shape(1, 0, 26, 0, row_pages=14, route="radix", eviction="slru")),
    "radix, page 16, priority": Setting(Shape(16, 0, 22, 0, route="radix", eviction="priority")),
    "radix, page 4, pairs": Setting(Shape(4, 0, 22, 0, route="radix", ahead=1)),
}
"""One pool and one tree: models without a window."""

CHUNK_SETTINGS = {
    "chunk, page 1, two ranks": Setting(Shape(1, 0, 20, 0, row_pages=12, route="chunk"), ranks=2),
    "chunk, page 16": Setting(Shape(16, 0, 18, 0, route="chunk")),
    "chunk, page 128": Setting(Shape(128, 0, 18, 0, route="chunk")),
    "chunk, page 256, going on": Setting(Shape(256, 0, 18, 0, route="chunk"), strict=False),
    "chunk, page 1, window 3": Setting(Shape(1, 3, 24, 16, row_pages=12, route="swa_chunk")),
    "chunk, page 16, window 20, tight": Setting(Shape(16, 20, 20, 14, formula="tight", route="swa_chunk")),
    "chunk, page 128, window 128, two ranks": Setting(Shape(128, 128, 20, 14, route="swa_chunk"), ranks=2),
    "chunk, page 256, window 300, going on": Setting(
        Shape(256, 300, 20, 14, route="swa_chunk"), strict=False
    ),
}
"""No tree, with one pool and with two."""

LEGACY_SETTINGS = {
    "legacy, page 1, window 4": Setting(Shape(1, 4, 40, 24, row_pages=16, route="legacy")),
    "legacy, page 1, window 1, tight": Setting(
        Shape(1, 1, 24, 14, row_pages=12, formula="tight", route="legacy")
    ),
    "legacy, page 4, window 3, tight": Setting(
        Shape(4, 3, 28, 14, row_pages=12, formula="tight", route="legacy")
    ),
    "legacy, page 4, window 6, rows longer than FULL": Setting(
        Shape(4, 6, 24, 14, row_pages=26, route="legacy")
    ),
    "legacy, page 4, window 6, tight, two ranks": Setting(
        Shape(4, 6, 24, 16, formula="tight", route="legacy"), ranks=2
    ),
    "legacy, page 16, window 16, tight, two ranks": Setting(
        Shape(16, 16, 24, 16, formula="tight", route="legacy"), ranks=2
    ),
    "legacy, page 16, window 40, going on": Setting(Shape(16, 40, 32, 26, route="legacy"), strict=False),
    "legacy, page 128, window 200, tight": Setting(Shape(128, 200, 26, 18, formula="tight", route="legacy")),
    "legacy, page 128, window 128, two ranks": Setting(Shape(128, 128, 26, 16, route="legacy"), ranks=2),
    "legacy, page 4, window 5, pairs": Setting(Shape(4, 5, 30, 20, route="legacy", ahead=1)),
    "legacy, page 256, window 100": Setting(Shape(256, 100, 24, 12, route="legacy")),
    "legacy, page 256, window 700, tight, going on": Setting(
        Shape(256, 700, 34, 28, formula="tight", route="legacy"), strict=False
    ),
}
"""The rollback route: W below, at and above P, both formulas, one rank and two."""

STATE_SETTINGS = {
    "states, page 1": Setting(Shape(1, 0, 24, 0, row_pages=26, route="radix", states=6)),
    "states, page 1, many rows": Setting(Shape(1, 0, 40, 0, 8, row_pages=12, route="radix", states=11)),
    "states, page 1, two ranks, going on": Setting(
        Shape(1, 0, 26, 0, row_pages=12, route="radix", states=5), ranks=2, strict=False
    ),
    "states tracked, page 128": Setting(
        Shape(128, 0, 20, 0, row_pages=22, route="radix", states=14, interval=256)
    ),
    "states tracked, page 128, many rows, going on": Setting(
        Shape(128, 0, 40, 0, 8, route="radix", states=28, interval=128), strict=False
    ),
    "states tracked, page 128, two ranks": Setting(
        Shape(128, 0, 28, 0, route="radix", states=11, interval=128), ranks=2
    ),
    "states tracked, page 256, few": Setting(Shape(256, 0, 26, 0, route="radix", states=8, interval=256)),
}
"""FULL and RECURRENT, without and with track slots."""

HOST_SETTINGS = {
    "copies, page 1, through at once": Setting(Shape(1, 0, 40, 0, row_pages=12, route="radix", host=26)),
    "copies, page 16, through at 2, two ranks": Setting(
        Shape(16, 0, 34, 0, route="radix", host=20, threshold=2), ranks=2
    ),
    "copies, page 128, through at 3, going on": Setting(
        Shape(128, 0, 34, 0, route="radix", host=14, threshold=3), strict=False
    ),
    "copies, page 1, back, two ranks": Setting(
        Shape(1, 0, 26, 0, row_pages=12, route="radix", host=16, write="back"), ranks=2
    ),
    "copies, page 128, back": Setting(Shape(128, 0, 24, 0, route="radix", host=34, write="back")),
    "copies, page 256, back, going on": Setting(
        Shape(256, 0, 24, 0, route="radix", host=12, write="back"), strict=False
    ),
}
"""FULL alone, with a host tier of more or fewer pages than the device: both ways to write, one rank and two."""

SETTINGS = (
    WINDOW_SETTINGS | RADIX_SETTINGS | CHUNK_SETTINGS | LEGACY_SETTINGS | STATE_SETTINGS | HOST_SETTINGS
)

LETTERS = "aAb"
"""Contents of pages; `A` differs from `a` in its last token only."""


def opened(shape: Shape, rank: int = 0, ranks: int = 1) -> Opened:
    """The first event of a rank's journal."""
    mode = ("extra_buffer" if shape.interval else "base") if shape.states else ""
    config = Config(
        shape.page,
        shape.full,
        shape.swa,
        shape.window,
        shape.rows,
        shape.row_pages,
        shape.formula,
        shape.leaf,
        "bigram" if shape.ahead else "raw",
        shape.victims,
        shape.eviction,
        free_out_of_window=shape.frees,
        recurrent_slots=shape.states,
        recurrent_mode=mode,
        track_interval=shape.interval,
        host_pages=shape.host,
        host_write=shape.write,
        host_threshold=shape.threshold,
    )
    return Opened(
        run="machine", rank=Rank(rank), ranks=ranks, epoch=1, route=shape.route, config=config,
        window_need=TokenCount(shape.window), stride=4 * (1 + shape.ahead) * shape.page, redaction="plain",
    )  # fmt: skip


def packed(pages: Sequence[int]) -> Pages:
    return Pages(np.array(pages, "<i4").tobytes())


@dataclass(eq=False)
class Player:
    """One rank with its witnesses, and what its server would remember."""

    sides: Witnesses
    content: dict[str, bytes]
    streams: dict[int, tuple[bytes, str]] = field(default_factory=dict)
    """Namespace and contents, present and future, of each live request's pages."""
    receipts: list[tuple[Receipt, Lock | None]] = field(default_factory=list)
    spent: list[Receipt] = field(default_factory=list)
    arrivals: int = 0
    steps: int = 0
    save: Callable[["Player"], None] | None = None
    """What a server does with the next victim of FULL pressure before it goes, if it does anything."""
    told: list[str] = field(default_factory=list)
    """The script so far."""

    @property
    def shape(self) -> Shape:
        return self.sides.model.shape

    def key(self, letters: str, tokens: int | None = None) -> bytes:
        """The key of these pages, or of their first so many tokens."""
        said = self.tokens(letters, tokens)
        return paired(said) if self.shape.ahead else said

    def tokens(self, letters: str, tokens: int | None = None) -> bytes:
        """The tokens of these pages, int32, or the first so many of them."""
        whole = b"".join(self.content[letter] for letter in letters)
        return whole if tokens is None else whole[: 4 * tokens]

    def known(self, letters: str, tokens: int | None = None) -> tuple[str, ...]:
        """What the whole pages of that key say, one name a page; a page of pairs says how the next page begins."""
        tokens = len(letters) * self.shape.page if tokens is None else tokens
        count = min(self.shape.units(tokens) // self.shape.page, len(letters) - self.shape.ahead)
        return tuple(self.name(letters[at : at + 1 + self.shape.ahead]) for at in range(count))

    def name(self, letters: str) -> str:
        """The name of a page by its letter and, where keys are pairs, by the first token of the letter behind it."""
        return letters[:1] + "".join(chr(self.content[letter][0]) for letter in letters[1:])

    def play(self, script: str, act: Callable[[], T], imagine: Callable[[T | None], object]) -> T | None:
        """Run one command on all three witnesses; the script so far is told with any failure."""
        self.told.append(script)
        try:
            return self.sides.command(act, imagine)
        except BaseException as failure:
            failure.add_note("\n".join(self.told[-40:]))
            raise

    def events(self, begun: int) -> list[AnyEvent]:
        """What was written since."""
        return self.sides.tape.events[begun:]


def paired(key: bytes) -> bytes:
    """The bigram key of the tokens of a raw key, written down pair by pair."""
    return b"".join(key[at : at + 8] for at in range(0, len(key) - 4, 4))


Command = Callable[[Player, Chance], None]


class Play:
    """The ranks of one setting; they share nothing, so a command of one leaves the others as they are."""

    def __init__(self, setting: Setting) -> None:
        page, ranks = setting.shape.page, setting.ranks
        tokens = {letter: np.full(page, ord(letter.lower()), "<i4") for letter in LETTERS}
        for letter in LETTERS:
            tokens[letter][-1] = ord(letter)
        content = {letter: page_tokens.tobytes() for letter, page_tokens in tokens.items()}
        self.players = [
            Player(
                Witnesses(opened(setting.shape, rank, ranks), setting.shape, strict=setting.strict), content
            )
            for rank in range(ranks)
        ]
        ahead = setting.shape.ahead
        for player in self.players:
            player.sides.letters = {
                player.key("".join(each), page + ahead): player.name("".join(each))
                for each in product(LETTERS, repeat=1 + ahead)
            }

    def run(self, command: Command, chance: Chance) -> None:
        """One command on one of the ranks."""
        player = one_of(chance, self.players)
        others = [(each, each.sides.live.digest()) for each in self.players if each is not player]
        command(player, chance)
        for each, digest in others:
            assert each.sides.live.digest() == digest, "a command of one rank changed another"

    def seen(self) -> Counter[str]:
        """How often each kind of transition and refusal happened."""
        return sum((player.sides.seen for player in self.players), Counter())

    def end(self) -> None:
        """Every journal, folded from its first event, gives the state that its rank has."""
        for player in self.players:
            player.sides.end()
