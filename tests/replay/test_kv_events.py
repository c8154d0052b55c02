"""A router that follows the published blocks knows which prefixes the tree holds, at any moment."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from radixledger.cache.state import Node, State
from radixledger.journal.events import Transferred
from radixledger.journal.reader import JournalReader
from radixledger.replay.export.kv_events import KvEvents, batches
from radixledger.replay.seek import state_at

from ..cache.driven import CHUNK_SHAPES, FULL_SHAPES, SHAPES, Driven
from ..cache.hosted import Hosted, hosted
from .runs import RANK, written
from .subscriber import Subscriber

encode = msgspec.msgpack.Encoder().encode


def prefixes(state: State, *, host: bool = False) -> set[tuple[int, ...]]:
    """What the tree holds on the device, or of what there are copies on the host: every prefix of whole pages, as tokens."""
    found: set[tuple[int, ...]] = set()
    waiting: list[tuple[Node, tuple[int, ...]]] = [(state.root, ())]
    while waiting:
        node, before = waiting.pop()
        tokens = before + tuple(np.frombuffer(node.key, "<i4").tolist())
        page = state.page_size
        if node.host and not node.backup if host else node.full:
            found |= {tokens[:end] for end in range(len(before) + page, len(tokens) + 1, page)}
        waiting += [(child, tokens) for child in (node.children or {}).values()]
    return found


@pytest.mark.parametrize(("route", "shape"), [
    *(("unified", shape) for shape in SHAPES), ("legacy", SHAPES[1]), *(("radix", shape) for shape in FULL_SHAPES),
    *CHUNK_SHAPES.items(),
])  # fmt: skip
def test_what_was_published_up_to_an_event_is_what_the_tree_holds_there(
    route: str, shape: tuple[int, ...]
) -> None:
    """Splits, evictions and flushes among it. Namespaces are apart for the router too; told as tokens they are one."""
    driven = Driven(11, shape, route=route)
    events, router, told = KvEvents(driven.journal.opened), Subscriber(), 0
    for _ in driven.steps(250):
        for frame in driven.journal.frames[told:]:
            batch = events.batch(frame)
            if batch is not None:
                router.take(encode(batch))
        told = len(driven.journal.frames)
        assert router.seen("GPU") == prefixes(driven.cache.state)
    assert router.ranks == {0}
    driven.drain()
    for frame in driven.journal.frames[told:]:
        batch = events.batch(frame)
        if batch is not None:
            router.take(encode(batch))
    assert router.held == {}


def test_the_same_prefix_of_two_tenants_is_two_blocks() -> None:
    driven = Driven(11)
    events = KvEvents(driven.journal.opened)
    stored: dict[tuple[bytes, bytes], int] = {}
    for _ in driven.steps(250):
        pass
    for frame in driven.journal.frames:
        events.batch(frame)
        for event in frame.events:
            if isinstance(event, Transferred) and event.parent == 0:
                block = events._nodes[event.node].hashes[0]
                stored[event.namespace, event.key[: driven.journal.opened.stride]] = block
    assert len({namespace for namespace, _ in stored}) == 2
    assert len(set(stored.values())) == len(stored)


def test_copies_on_the_host_are_held_on_another_medium() -> None:
    rank = Hosted(hosted(host=4))
    for text in ("ab", "abcd", "xy"):
        rank.insert(text)
    rank.back_up("abcd")
    rank.rank.evict(2, 0)
    events, router = KvEvents(rank.journal.opened), Subscriber()
    for frame in rank.journal.frames:
        batch = events.batch(frame)
        if batch is not None:
            router.take(encode(batch))
    assert router.seen("GPU") == prefixes(rank.rank.state)
    assert router.seen("CPU") == prefixes(rank.rank.state, host=True)
    assert router.seen("CPU") - router.seen("GPU")


def test_a_run_whose_beginning_was_dropped_begins_with_all_that_stood_there(tmp_path: Path) -> None:
    written(tmp_path / "run", steps=400, snapshots=(150, 300), rotate_bytes=4096, close=False)
    whole = last(batches(JournalReader(tmp_path / "run", RANK)))
    reader = JournalReader(tmp_path / "run", RANK)
    before = [
        each
        for each in sorted(reader.folder.glob("*.sealed"))
        if int(each.stem) <= reader.snapshots()[-1].seq
    ]
    for segment in before[:-1]:
        segment.unlink()
    reader = JournalReader(tmp_path / "run", RANK)
    assert reader.first_seq > 1
    assert (
        last(batches(reader)).seen("GPU") == whole.seen("GPU") == prefixes(state_at(reader, reader.last_seq))
    )


def last(told: Iterable[object]) -> Subscriber:
    """A router that has heard everything."""
    router = Subscriber()
    for batch in told:
        router.take(encode(batch))
    return router


def test_the_same_journal_gives_the_same_batches_and_a_hashed_one_no_tokens(tmp_path: Path) -> None:
    written(tmp_path / "run", redaction="hashed")
    reader = JournalReader(tmp_path / "run", RANK)
    once, again = ([encode(batch) for batch in batches(reader)] for _ in range(2))
    assert once == again
    router = last(batches(reader))
    assert router.held["GPU"]
    assert router.seen("GPU") == {()}
