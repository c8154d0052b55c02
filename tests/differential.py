"""The same schedule through both routes, and through models in which one rule after the other is the legacy one.

A schedule is what clients and the scheduler want: who comes when, with which prompt, in which order requests take their
steps. It knows no hits. How much room it takes to fulfil it is the route's doing, so a request that finds none leaves,
on that side alone. Rule: a difference between the routes has a name if it appears where one rule is turned over; models
share no code with the cache, and the first and the last of them must say what the caches say.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import NeverFits
from radixledger.cache.shell import Journal
from radixledger.journal.accounts import FREE

from .machine import opened
from .model import Turned
from .model_legacy import LEGACY, UNIFIED, LegacyModel, LegacyTree, Rules
from .model_tree import Prefix, Shape

STEPS: tuple[tuple[str, str], ...] = (
    ("tail cut R95", "leaf_is_whole"),
    ("refresh R77", "path_is_refreshed"),
    ("refresh of the walk", "walk_is_refreshed"),
    ("cut of the walk", "walk_is_cut"),
    ("tombstone clean-up", "tombstones_go_along"),
    ("lock over a tombstone A21", "locks_have_no_gap"),
)
"""The rules in which the routes differ, in the order in which the models turn them over: a name, a switch."""


class Want(NamedTuple):
    """One request: the contents of its pages, how long its prompt is, how many tokens it decodes."""

    letters: str
    prompt: int
    decoded: int


class Schedule(NamedTuple):
    """Requests, and their steps in order: (who, what)."""

    wants: list[Want]
    steps: list[tuple[int, str]]


def schedule(seed: int, shape: Shape, requests: int = 40) -> Schedule:
    """Conversations that share beginnings; up to three live at a time, each step taken by one of them."""
    chance = random.Random(seed)
    wants = [_want(chance, shape) for _ in range(requests)]
    waiting, live, steps = list(range(requests)), dict[int, list[str]](), list[tuple[int, str]]()
    while waiting or live:
        if waiting and len(live) < 3 and (not live or chance.random() < 0.4):
            live[waiting.pop(0)] = ["admit", "half", "whole", "decode", "decode", "end"]
        who = chance.choice(list(live))
        steps.append((who, live[who].pop(0)))
        live = {each: left for each, left in live.items() if left}
    return Schedule(wants, steps)


def _want(chance: random.Random, shape: Shape) -> Want:
    beaten = chance.choice(("aaabaaab", "aabbabab", "bababbba"))
    stay = chance.randrange(len(beaten) + 1)
    letters = beaten[:stay] + "".join(chance.choice("aAb") for _ in range(shape.row_pages))
    pages = chance.randrange(2, shape.row_pages - 5)
    prompt = pages * shape.page + chance.choice((0, 1, shape.page // 2))
    return Want(letters, prompt, chance.randrange(1, 2 * shape.page + 1))


class Side(Protocol):
    """One route being served; tokens and pages as everywhere."""

    shape: Shape

    def admit(self, who: int, want: Want) -> int | None:
        """The hit in tokens; None if it was refused."""

    def grow(self, who: int, tokens: int) -> bool:
        """Let a request grow, with room made for it; whether there was room."""

    def cache(self, who: int, letters: str) -> None: ...

    def reclaim(self, who: int) -> None: ...

    def end(self, who: int, letters: str | None) -> None: ...

    def length(self, who: int) -> int: ...


class CacheSide:
    """The rank itself."""

    def __init__(self, shape: Shape, route: str, journal: Journal | None = None) -> None:
        self.shape = shape
        self.cache_of = RankCache(opened(replace(shape, route=route)), journal)
        self.numbers: dict[int, int] = {}
        self.content = {
            letter: np.array([ord(letter.lower())] * (shape.page - 1) + [ord(letter)], "<i4").tobytes()
            for letter in "aAb"
        }

    def _key(self, letters: str) -> bytes:
        return b"".join(self.content[letter] for letter in letters)

    def admit(self, who: int, want: Want) -> int | None:
        whole = want.letters[: want.prompt // self.shape.page]
        try:
            admission = self.cache_of.admit(f"r{who}", self._key(whole), want.prompt)
        except NeverFits:
            return None
        self.numbers[who] = admission.request
        return int(admission.hit.tokens)

    def grow(self, who: int, tokens: int) -> bool:
        state = self.cache_of.state
        needed = self.shape.pages(self.length(who) + tokens) - self.shape.pages(self.length(who))
        full, swa = needed - state.full.available, needed - state.swa.available
        if full > 0 or swa > 0:
            self.cache_of.evict(max(full, 0), max(swa, 0))
        if min(state.full.available, state.swa.available) < needed:
            return False
        self.cache_of.extend(np.array([self.numbers[who]]), np.array([tokens], np.int32))
        return True

    def cache(self, who: int, letters: str) -> None:
        self.cache_of.cache_unfinished(self.numbers[who], self._key(letters))

    def reclaim(self, who: int) -> None:
        self.cache_of.reclaim(self.numbers[who], self.length(who) - 1)

    def end(self, who: int, letters: str | None) -> None:
        number = self.numbers.pop(who)
        if letters is None:
            self.cache_of.abort(number)
        else:
            self.cache_of.finish(number, self._key(letters))

    def length(self, who: int) -> int:
        return int(self.cache_of.state.rows.length[self.cache_of.state.row_of(self.numbers[who])])


class ChoosingTree(LegacyTree):
    """A tree that names its victim itself: the oldest; a cut leaves equals, and then the upper part goes first."""

    def judge_victim(self, pages: Sequence[int], candidates: Mapping[Prefix, tuple[int, int]]) -> Prefix:
        return min(candidates, key=lambda end: (candidates[end], len(end)))


class ModelSide:
    """The naive model, which hands out the lowest pages that are free."""

    def __init__(self, shape: Shape, rules: Rules) -> None:
        self.shape = shape
        self.model = LegacyModel(shape, rules=rules)
        self.model.tree = ChoosingTree(shape, rules=rules)

    def admit(self, who: int, want: Want) -> int | None:
        letters = want.letters[: want.prompt // self.shape.page]
        try:
            hit, _ = self.model.admit(who + 1, f"r{who}", b"", letters, want.prompt, False)
        except Turned:
            return None
        return hit * self.shape.page

    def grow(self, who: int, tokens: int) -> bool:
        model = self.model
        needed = model.crossings([who + 1], [tokens])[who + 1]
        free = [[page for page, held in book.items() if held == FREE] for book in (model.full, model.swa)]
        short = [needed - len(pages) for pages in free]
        if max(short) > 0:
            model.evict(max(short[0], 0), max(short[1], 0), ())
            free = [[page for page, held in book.items() if held == FREE] for book in (model.full, model.swa)]
        if min(map(len, free)) < needed:
            return False
        model.extend([who + 1], [tokens], {who + 1: (free[0][:needed], free[1][:needed])})
        return True

    def cache(self, who: int, letters: str) -> None:
        self.model.cache_unfinished(who + 1, letters)

    def reclaim(self, who: int) -> None:
        self.model.reclaim(who + 1, self.length(who) - 1, 0)

    def end(self, who: int, letters: str | None) -> None:
        if letters is None:
            self.model.surrender(who + 1)
        else:
            self.model.finish(who + 1, letters)

    def length(self, who: int) -> int:
        return self.model.guests[who + 1].length


def hits(side: Side, plan: Schedule) -> list[int]:
    """The hit of each request, -1 for one that was refused; whoever finds no room leaves."""
    found, gone = [-1] * len(plan.wants), set[int]()
    for who, step in plan.steps:
        want = plan.wants[who]
        if step == "admit":
            hit = side.admit(who, want)
            found[who] = -1 if hit is None else hit
            if hit is None:
                gone.add(who)
        elif who not in gone and not _take(side, who, want, step):
            side.end(who, None)
            gone.add(who)
    return found


def _take(side: Side, who: int, want: Want, step: str) -> bool:
    """One step of a live request; whether there was room for it."""
    page = side.shape.page
    if step == "end":
        side.end(who, want.letters[: side.length(who) // page])
        return True
    if step == "decode":
        return all(_decoded(side, who) for _ in range(want.decoded))
    stop = want.prompt if step == "whole" else want.prompt // 2 // page * page
    if stop > side.length(who) and not side.grow(who, stop - side.length(who)):
        return False
    side.cache(who, want.letters[: side.length(who) // page])
    return True


def _decoded(side: Side, who: int) -> bool:
    side.reclaim(who)
    return side.grow(who, 1)


def chain() -> Iterator[tuple[str, Rules]]:
    """From the rules of the unified route to those of the legacy one, turning over one at a time."""
    rules = UNIFIED
    yield "unified", rules
    for name, switch in STEPS:
        rules = rules._replace(**{switch: True})
        yield name, rules
    assert rules == LEGACY


class Difference(NamedTuple):
    """A request that hit `unified` tokens on one route and `legacy` on the other, and the rules that made it so."""

    request: int
    unified: int
    legacy: int
    rules: tuple[str, ...]


def differences(plan: Schedule, shape: Shape) -> list[Difference]:
    """Play a schedule on both routes and on the chain of models between them."""
    models = [(name, hits(ModelSide(shape, rules), plan)) for name, rules in chain()]
    routes = [hits(CacheSide(shape, route), plan) for route in ("unified", "legacy")]
    assert routes[0] == models[0][1], "the model of the unified rules says otherwise"
    assert routes[1] == models[-1][1], "the model of the legacy rules says otherwise"
    return [
        Difference(at, unified, legacy, _named(models, at))
        for at, (unified, legacy) in enumerate(zip(*routes, strict=True))
        if unified != legacy
    ]


def _named(models: Sequence[tuple[str, list[int]]], at: int) -> tuple[str, ...]:
    return tuple(name for (_, before), (name, after) in pairwise(models) if before[at] != after[at])
