"""Images of states: what was taken comes back, goes on the same, and hostile bytes do no more than fail."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from radixledger.cache.config import bounded
from radixledger.cache.digest import digest, recount
from radixledger.cache.evolve import begin, evolve
from radixledger.cache.image import BadImage, image, restore
from radixledger.cache.image_layout import NodeImage, StateImage
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.ledger import PoolBook
from radixledger.cache.state import Node, State
from radixledger.journal.events import Config, Opened
from radixledger.journal.redact import Redactor
from radixledger.journal.sizes import MAX_STATE_BYTES, BadConfig
from radixledger.journal.units import Rank, TokenCount

from .driven import FULL_SHAPES, SHAPES, STATE_SHAPES, Driven

KEY = bytes(range(32))


def facts_of(node: Node) -> tuple[object, ...]:
    children = [child.id for child in (node.children or {}).values()]
    derived = ("parent", "children", "queued", "content", "weight")
    kept = (getattr(node, slot) for slot in Node.__slots__ if slot not in derived)
    return (node.parent.id if node.parent else None, children, *kept)


def facts_of_book(book: PoolBook) -> tuple[object, ...]:
    return book.account.tolist(), book.since.tolist(), book.free, book.pending, book.held


def victims(state: State) -> list[list[tuple[int, int]]]:
    """The orders as eviction would go through them: lagging entries settled, those that are no candidates passed over."""
    leaves = (node for _, _, node in state.leaf_order if node.parent and not node.children and not node.holds)
    windows = (node for _, _, node in state.window_order if node.parent and node.swa and not node.swa_locks)
    return [
        sorted((node.tick, node.id) for node in leaves),
        sorted((node.swa_tick, node.id) for node in windows),
        sorted(
            (node.recurrent_tick, node.id)
            for _, _, node in state.state_order
            if node.parent and node.recurrent and not node.children and not node.holds
        ),
    ]


def facts(state: State) -> dict[str, object]:
    """Everything that `evolve` and the deciders may read, in comparable form."""
    rows = state.rows
    kept = ("opened", "seq", "clock", "next_node", "next_boundary", "next_request", "full_protected", "swa_protected", "recurrent_protected", "states_each",
            "dangling", "group_open", "running", "closed", "rids", "stride", "tail_pages")  # fmt: skip
    return {
        **{name: getattr(state, name) for name in kept},
        "pools": [facts_of_book(book) for book in (state.full, state.swa, state.recurrent)],
        "mapping": (state.mapping.swa_of.tolist(), state.mapping.nonzero),
        "nodes": {number: facts_of(node) for number, node in state.nodes.items()},
        "rows": [getattr(rows, name).tolist() for name in
                 ("full_table", "swa_table", "length", "cursor", "protected", "reclaim_at", "request", "states", "tracked")],
        "free rows": rows.free,
        "requests": {number: [getattr(each, slot) for slot in each.__slots__]
                     for number, each in state.requests.items()},
        "totals": [getattr(state.totals, slot) for slot in state.totals.__slots__],
        "victims": victims(state),
    }  # fmt: skip


@pytest.mark.parametrize("shape", [*SHAPES, *FULL_SHAPES, *STATE_SHAPES], ids=str)
def test_a_restored_state_is_the_one_that_was_taken(shape: tuple[int, ...]) -> None:
    """J12: every field that is ever read, the orders of victims and the queues of free pages among them."""
    driven = Driven(11, shape)
    for count in driven.steps(150):
        if count % 10 == 0:
            state = driven.cache.state
            again = restore(image(state))
            assert facts(again) == facts(state)
            assert digest(again) == digest(state) == recount(again)
            assert list(broken_laws(again)) == []
            assert again.findings == []


@given(
    seed=st.integers(0, 1 << 32),
    cut=st.floats(0, 1),
    shape=st.sampled_from((*SHAPES, *FULL_SHAPES, *STATE_SHAPES)),
)
def test_an_image_and_the_events_after_it_are_the_whole_fold(
    seed: int, cut: float, shape: tuple[int, ...]
) -> None:
    """J13: snapshot and tail give the same state as all events, wherever the snapshot was taken."""
    events = Driven(seed, shape).run(60).journal.events
    place = 1 + int(cut * (len(events) - 1))
    assert isinstance(events[0], Opened)
    whole = begin(events[0])
    for event in events[1:place]:
        evolve(whole, event)
    tail = restore(image(whole))
    for event in events[place:]:
        evolve(whole, event)
        evolve(tail, event)
    assert facts(tail) == facts(whole)
    assert digest(tail) == digest(whole)
    assert [*whole.findings, *tail.findings] == []


def test_a_redacted_image_folds_on_with_a_hashed_journal_to_the_same_digest() -> None:
    """J10, N18: keys leave as hashes of 8 bytes a page, and nothing else of the state is changed by that."""
    driven = Driven(3)
    redactor = Redactor(KEY, driven.journal.opened.stride)
    before = len(driven.run(80).journal.events)
    taken = image(driven.cache.state, redactor)
    state = restore(taken)
    assert state.stride == 8
    assert digest(state) == driven.cache.digest()
    for event in driven.run(80).journal.events[before:]:
        evolve(state, redactor.redact(event))
    assert state.findings == []
    assert digest(state) == driven.cache.digest()


def test_a_redacted_image_holds_no_page_of_text_and_no_namespace() -> None:
    driven = Driven(3).run(80)
    keys = {node.key[:16] for node in driven.cache.state.nodes.values() if node.key}
    assert keys
    plain = image(driven.cache.state)
    hashed = image(driven.cache.state, Redactor(KEY, driven.journal.opened.stride))
    assert all(key in plain for key in keys)
    assert b"tenant" in plain
    assert not any(key in hashed for key in keys)
    assert b"tenant" not in hashed


def changed(**changes: object) -> bytes:
    """A real image with some of it replaced."""
    found = msgspec.msgpack.decode(image(Driven(4).run(100).cache.state), type=StateImage)
    return msgspec.msgpack.encode(replace(found, **changes))


def good() -> StateImage:
    return msgspec.msgpack.decode(image(Driven(4).run(100).cache.state), type=StateImage)


def with_node(place: int, **changes: object) -> bytes:
    nodes = list(good().nodes)
    nodes[place] = replace(nodes[place], **changes)
    return changed(nodes=nodes)


def with_config(**changes: object) -> bytes:
    opened = good().opened
    return changed(opened=replace(opened, config=replace(opened.config, **changes)))


def twins() -> bytes:
    nodes: list[NodeImage] = good().nodes
    return changed(nodes=[*nodes, replace(nodes[1], id=10_000)])


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "truncated"),
    "no msgpack": (lambda: b"\xc1" * 40, "MessagePack"),
    "another thing": (lambda: msgspec.msgpack.encode([1, 2, 3]), "array"),
    "a later version": (lambda: changed(version=99), "version 99"),
    "pools that are not there": (lambda: with_config(full_pages=1 << 20), "FULL accounts"),
    "pools that no machine has": (lambda: with_config(full_pages=(1 << 29) - 1), "of memory, more than"),
    "rows that no machine has": (lambda: with_config(rows=1 << 28, context_pages=1), "of memory, more than"),
    "pages of no tokens": (lambda: with_config(page_size=0), "page_size"),
    "no root": (lambda: changed(nodes=[]), "not the root"),
    "a child before its parent": (lambda: with_node(2, parent=2), "before its parent"),
    "a node twice": (lambda: with_node(2, id=good().nodes[1].id), "or twice"),
    "a node without pages": (lambda: with_node(2, full=b""), "bytes of pages"),
    "a key of another length": (lambda: with_node(2, key=b"1"), "of keys"),
    "siblings that begin alike": (twins, "like its sibling"),
    "a row twice": (lambda: changed(requests=good().requests[:1] * 8, free_rows=[]), "taken"),
    "rows that are not there": (lambda: changed(free_rows=list(range(999))), "999 free rows"),
    "a request of a mile": (
        lambda: changed(requests=[replace(good().requests[0], length=1 << 40), *good().requests[1:]]),
        "bytes of pages",
    ),
    "a torn column": (lambda: changed(mapping=good().mapping[:-1]), "mapping"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_bytes_that_are_no_image_say_so(name: str) -> None:
    make, told = HOSTILE[name]
    with pytest.raises(BadImage, match=told):
        restore(make())


def test_an_image_cut_anywhere_is_refused() -> None:
    whole = image(Driven(4).run(40).cache.state)
    for size in range(0, len(whole), 7):
        with pytest.raises(BadImage):
            restore(whole[:size])


def test_an_image_with_any_byte_changed_fails_clearly_or_gives_a_state() -> None:
    """The digest that travels beside an image tells the rest; see `replay.seek`."""
    whole = image(Driven(4).run(25).cache.state)
    chance = np.random.default_rng(1)
    for place, bit in zip(chance.integers(0, len(whole), 300), chance.integers(0, 8, 300), strict=True):
        spoiled = bytearray(whole)
        spoiled[place] ^= 1 << int(bit)
        try:
            state = restore(bytes(spoiled))
        except BadImage:
            continue
        assert isinstance(state, State)


def test_the_bound_of_a_state_is_above_every_cache_that_we_would_serve() -> None:
    """A million pages a pool, 512 rows of 131,072 pages: 0.6 GiB of tables."""
    state_bytes = 28 * 2_000_000 + 512 * (100 + 8 * 131_072)
    assert state_bytes < MAX_STATE_BYTES


@pytest.mark.parametrize(
    "changes",
    [
        {"full_pages": 280_000_000},
        {"recurrent_slots": 250_000_000, "recurrent_mode": "base"},
        {"host_pages": 280_000_000},
        {"rows": 1 << 20, "context_pages": 1 << 20},
    ],
)
def test_a_journal_that_asks_for_gigabytes_is_refused_before_any_is_taken(changes: dict[str, Any]) -> None:
    """Nobody vouches for what an `Opened` on disk says."""
    config = Config(1, 64, 0, 0, rows=4, context_pages=16)
    told = Opened("", Rank(0), 1, 1, "radix", config, TokenCount(0), 4, "plain")
    assert bounded(told) is told
    with pytest.raises(BadConfig, match="GiB that a replay would give"):
        bounded(replace(told, config=replace(config, **changes)))
