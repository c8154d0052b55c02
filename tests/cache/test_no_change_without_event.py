"""J2: a state changes by its events and by nothing else. Hard to get wrong by accident, and noticed where it is wrong.

Hard: deciders store into nothing but their own variables, and what they import from the modules that write is what
does not write; both are read off the code. Noticed: each planted change is caught twice, by a rank that is watched
between the events of a decider, and by comparing the live state with the one folded from its journal.
"""

import ast
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from radixledger.cache.decide import growth as decide_growth
from radixledger.cache.decide import pages as decide_pages
from radixledger.cache.decide import unified as decide_unified
from radixledger.cache.decide.pages import Decision
from radixledger.cache.evolve import EVOLVE, begin, evolve
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Refusal
from radixledger.cache.state import State
from radixledger.journal.events import Allocated
from radixledger.journal.units import Pages

from ..machine import opened
from ..model_tree import Shape
from ..witnesses import Tape, WatchedRank, image

CACHE = Path(__file__).parents[2] / "cache"
SHAPE = Shape(page=4, window=6, full=20, swa=16)

# -- hard ----------------------------------------------------------------------------------------------------

READERS = (
    *(CACHE / "components").glob("[!_]*.py"),
    *(CACHE / "decide").glob("[!_]*.py"),
    *(CACHE / f"{name}.py" for name in ("match", "slices", "taken_ledger", "digest")),
)
"""Who decides, walks and reports. `eviction`, `kept_sum` and `tree_sum` are apart: settling an order or a sum is the one
thing a reader may do (their rule)."""
WRITERS = tuple(CACHE / f"{name}.py" for name in ("tree", "ledger", "locks", "image"))
WRITERS += (CACHE / "evolve.py", *(CACHE / "fold").glob("[!_]*.py"))
CHANGES = {"append", "add", "clear", "discard", "extend", "fill", "insert", "move", "pop", "popitem", "put", "remove",
           "resize", "reverse", "set", "setdefault", "sort", "update"}  # fmt: skip
"""Methods that change what they are called on, of the built-in containers, of arrays and of our books."""


def stores(tree: ast.AST) -> Iterator[str]:
    """Where something that is not a variable of one's own is written: `state.x = `, `node.y += `, `a.b[i] = `, `x.pop()`."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                yield ast.unparse(node)
            case ast.Subscript(ctx=ast.Store() | ast.Del(), value=base) if not isinstance(base, ast.Name):
                yield ast.unparse(node)
            case ast.Call(func=ast.Attribute(attr=name, value=base)) if name in CHANGES:
                if not isinstance(base, ast.Name):
                    yield ast.unparse(node.func)


def calls(tree: ast.AST) -> set[str]:
    """The names of what is called, plain or as an attribute of a module."""
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {each.id if isinstance(each, ast.Name) else getattr(each, "attr", "") for each in functions}


def module_of(path: Path) -> str:
    """The name of a module within the cache: `tree`, `fold.tree`."""
    return ".".join(path.relative_to(CACHE).with_suffix("").parts)


def writing_functions() -> set[tuple[str, str]]:
    """The functions of the writing modules that write, themselves or through one another: (module, name)."""
    functions = {
        (module_of(path), node.name): node
        for path in WRITERS
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name != "__init__"
    }
    found = {place for place, node in functions.items() if any(stores(node))}
    while (
        more := {place for place, node in functions.items() if calls(node) & {name for _, name in found}}
        - found
    ):
        found |= more
    return found


def taken_from_others(tree: ast.Module) -> set[tuple[str, str]]:
    """What a module imports by name or uses through a module of the cache: (module, name)."""
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    named = [
        (f"{node.module}.".removeprefix("radixledger.cache."), each)
        for node in imports
        for each in node.names
    ]
    taken = {(within.rstrip("."), each.name) for within, each in named}
    modules = {each.asname or each.name: within + each.name for within, each in named}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            taken.add((modules[node.value.id], node.attr))
    return taken


@pytest.mark.parametrize("path", READERS, ids=lambda path: path.stem)
def test_a_reader_stores_into_nothing_but_its_own_variables(path: Path) -> None:
    assert list(stores(ast.parse(path.read_text("utf-8")))) == []


@pytest.mark.parametrize("path", READERS, ids=lambda path: path.stem)
def test_a_reader_takes_no_writing_function_from_a_writer(path: Path) -> None:
    assert taken_from_others(ast.parse(path.read_text("utf-8"))) & writing_functions() == set()


def test_this_reading_of_code_can_fail() -> None:
    wrong = "def decide(state):\n    state.clock += 1\n    state.rows.free.pop()\n    state.rows.length[0] = 1\n    del state.nodes[1]\n"
    assert len(list(stores(ast.parse(wrong)))) == 4
    right = (
        "def decide(state):\n    lots = []\n    lots.append(1)\n    held = {}\n    held[2] = state.clock\n"
    )
    assert list(stores(ast.parse(right))) == []
    writing = {
        ("tree", "touch"),
        ("tree", "prune"),
        ("locks", "lock"),
        ("ledger", "move"),
        ("fold.tree", "healed"),
    }
    assert writing <= writing_functions()
    assert ("locks", "receipt_of") not in writing_functions()
    source = (
        "from radixledger.cache import locks\nfrom radixledger.cache.tree import touch\nlocks.lock(1, 2, 3)\n"
        "from radixledger.cache.fold import tree as fold_tree\nfold_tree.healed(1, 2)\n"
    )
    assert taken_from_others(ast.parse(source)) >= {
        ("tree", "touch"),
        ("locks", "lock"),
        ("fold.tree", "healed"),
    }


# -- noticed -------------------------------------------------------------------------------------------------

Spoil = Callable[[State], None]


def clock(state: State) -> None:
    state.clock += 1


def recency(state: State) -> None:
    """A read that writes: the walk stamps the node that it passes."""
    next(iter(state.nodes.values())).swa_tick += 1


def queue(state: State) -> None:
    """The page is taken before anybody is told."""
    del state.full.free[:4]


def mapping(state: State) -> None:
    state.mapping.clear(Pages(b"\1\0\0\0"), Pages(b"\1\0\0\0"))


def row(state: State) -> None:
    state.rows.swa_table[0, 2] += 1


def receipt(state: State) -> None:
    next(iter(state.requests.values())).receipt = None


SPOILS = (clock, recency, queue, mapping, row, receipt)


def before_the_first_event(
    spoil: Spoil, decider: Any, state: State, *rest: Any, **named: Any
) -> Decision[Any]:
    spoil(state)
    return (yield from decider(state, *rest, **named))


def after_the_last_event(spoil: Spoil, decider: Any, state: State, *rest: Any, **named: Any) -> Decision[Any]:
    result = yield from decider(state, *rest, **named)
    spoil(state)
    return result


def before_a_refusal(spoil: Spoil, decider: Any, state: State, *rest: Any, **named: Any) -> Decision[Any]:
    spoil(state)
    yield from refuse()


def refuse() -> Iterator[Any]:
    raise Refusal("no")


PLACES = (before_the_first_event, after_the_last_event, before_a_refusal)


def busy_rank(kind: type[RankCache]) -> tuple[RankCache, Tape]:
    """A rank whose tree has two nodes, and which one request holds."""
    tape = Tape(opened(SHAPE))
    rank = kind(tape.opened, tape)
    for rid in ("ada", "bob"):
        request = rank.admit(rid, b"a" * 4 * 13, 13).request
        rank.extend(np.array([request], np.int64), np.array([5 if rid == "bob" else 13], np.int32))
        if rid == "ada":
            rank.finish(request, b"a" * 4 * 13)
    return rank, tape


def folded(tape: Tape) -> State:
    state = begin(tape.opened)
    for event in tape.events:
        evolve(state, event)
    return state


COMMANDS: dict[str, tuple[Any, Callable[[RankCache], object]]] = {
    "alloc": (decide_pages, lambda rank: rank.alloc(1)),
    "match": (decide_unified, lambda rank: rank.match(b"a" * 16)),
    "reclaim": (decide_growth, lambda rank: rank.reclaim(next(iter(rank.state.requests)), 1)),
}


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_decider_that_writes_is_caught_twice(
    name: str, place: Any, spoil: Spoil, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, command = COMMANDS[name]
    watched, _ = busy_rank(WatchedRank)
    unwatched, tape = busy_rank(RankCache)
    assert image(unwatched.state) == image(folded(tape))
    monkeypatch.setattr(module, name, partial(place, spoil, getattr(module, name)))
    with pytest.raises(AssertionError, match="the decider wrote to the state"):
        command(watched)
    try:
        command(unwatched)
    except Refusal:
        assert place is before_a_refusal
    assert image(unwatched.state) != image(folded(tape))


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
def test_a_change_between_two_commands_is_caught(spoil: Spoil) -> None:
    rank, tape = busy_rank(RankCache)
    spoil(rank.state)
    assert image(rank.state) != image(folded(tape))


def test_an_evolve_that_asks_more_than_its_event_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a clock, chance or a counter of the process would do: the second fold is not the first."""
    ticks, lawful = count(1), EVOLVE[Allocated]

    def allocated(state: State, event: Allocated) -> None:
        lawful(state, event)
        state.clock += next(ticks)

    monkeypatch.setitem(EVOLVE, Allocated, allocated)
    rank, tape = busy_rank(RankCache)
    rank.alloc(1)
    assert image(rank.state) != image(folded(tape))


def test_an_event_that_is_not_written_is_caught() -> None:
    rank, tape = busy_rank(RankCache)
    rank.alloc(1)
    assert image(rank.state) == image(folded(tape))
    tape.events.pop()
    assert image(rank.state) != image(folded(tape))
