"""One operation of the cache at a time, journal on disk: match, insert, alloc/free, lock, evict, decode, memory.

Keys are fresh int32 prompts in random order over many prefixes; turning tokens into a key is a figure of its own.
Rule: what is measured is what a server calls, `RankCache` and its journal, and afterwards the journal must replay.
"""

import random
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.keys import raw_key
from radixledger.cache.rank import RankCache
from radixledger.cache.slices import Slice
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation
from radixledger.journal.units import NO_PAGES, UNBOUND
from radixledger.tools.bench.bed import OPERATIONS_PER_FRAME, Bed
from radixledger.tools.bench.harness import Figure, median_us, still, time_us, times_us

PAGE = 128
WINDOW = 1024


def prompt(seed: int, tokens: int) -> NDArray[np.int32]:
    """A prompt of its own for each seed, int32 [tokens]."""
    return np.random.Generator(np.random.SFC64(seed)).integers(0, 1 << 30, tokens, dtype=np.int32)


def put(cache: RankCache, key: bytes) -> None:
    """Cache a whole key with fresh pages of both pools."""
    count = len(key) // cache.state.stride
    full, _ = cache.alloc(count)
    cache.insert(key, b"", Slice(full, 0, 0, request_account(UNBOUND), UNBOUND, Operation.INSERT))


def lookups(bed: Bed, quick: bool) -> Iterator[Figure]:
    """Match 4,096 and 131,072 cached tokens in one node, and 131,072 over 64 nodes."""
    for tokens, nodes, bar, prefixes in ((4096, 1, 5, 1000), (131072, 1, 25, 200), (131072, 64, 90, 100)):
        count = max(20, prefixes // 10) if quick else prefixes
        cache = bed.rank(full_pages=count * tokens // PAGE + 8)
        for seed in range(count):
            key = raw_key(prompt(seed, tokens))
            put(cache, key)
            for cut in range(1, nodes):
                cache.match(key[: cut * tokens // nodes * 4])
        taken: list[float] = []
        turning: list[float] = []
        floors: list[float] = []
        order = random.Random(tokens + nodes).sample(range(count), count)
        # As many fresh keys at a time as a busy step of a server would have made, within a mebibyte.
        at_once = max(1, min(OPERATIONS_PER_FRAME, (1 << 20) // (tokens * 4)))
        with still():
            for first in range(0, count, at_once):
                fresh = [prompt(seed, tokens) for seed in order[first : first + at_once]]
                turning += [time_us(partial(raw_key, each)) for each in fresh]
                keys = [raw_key(each) for each in fresh]
                taken += [time_us(partial(cache.match, key)) for key in keys]
                floors += [time_us(partial(key.__eq__, bytes(bytearray(key)))) for key in keys]
                for _ in keys:
                    bed.tick(cache)
        bed.check(cache)
        name = f"match {tokens:,} cached tokens, {'one node' if nodes == 1 else f'{nodes} nodes'}"
        floor = _median(floors)
        yield Figure(bed.topic, name, _median(taken), "us", bar, floor=floor)
        yield Figure(bed.topic, f"{tokens:,} tokens become a key", _median(turning), "us")


def inserts(bed: Bed, quick: bool) -> Iterator[Figure]:
    """Insert a new 32,768-token prompt whose pages a request holds."""
    count = 20 if quick else 200
    cache = bed.rank(full_pages=count * 32768 // PAGE + 8)
    keys = [raw_key(prompt(seed, 32768)) for seed in range(count)]
    slices = [
        Slice(cache.alloc(32768 // PAGE)[0], 0, 0, request_account(UNBOUND), UNBOUND, Operation.INSERT)
        for _ in keys
    ]
    taken = median_us(
        bed.ticking(cache, [partial(cache.insert, k, b"", s) for k, s in zip(keys, slices, strict=True)])
    )
    bed.check(cache)
    yield Figure(bed.topic, "insert a new 32,768-token prompt", taken, "us", 200)


def allocations(bed: Bed, quick: bool) -> Iterator[Figure]:
    """Allocate and free 1 and 1,024 pages of both pools."""
    for pages, bar, rounds in ((1, 6, 20000), (1024, 100, 1000)):
        cache = bed.rank(full_pages=20000)

        def both(pages: int = pages, cache: RankCache = cache) -> None:
            full, _ = cache.alloc(pages)
            cache.free(full)

        taken = median_us(bed.ticking(cache, [both] * (rounds // 10 if quick else rounds)))
        bed.check(cache)
        yield Figure(
            bed.topic, f"alloc + free {pages:,} page{'s' * (pages > 1)}, both pools", taken, "us", bar
        )


def lockings(bed: Bed, quick: bool) -> Iterator[Figure]:
    """Lock and unlock paths of 64 and 512 nodes."""
    for depth, bar in ((64, 8), (512, 45)):
        paths = 4 if quick else 20
        cache = bed.rank(full_pages=paths * depth * 8 + 8)
        ends = []
        for seed in range(paths):
            key = raw_key(prompt(seed, depth * 8 * PAGE))
            put(cache, key)
            for cut in range(1, depth):
                cache.match(key[: cut * 8 * PAGE * 4])
            ends.append(cache.match(key).node)

        def both(node: int, cache: RankCache = cache) -> None:
            cache.unlock(cache.lock(node))  # type: ignore[arg-type]

        calls = [partial(both, ends[at % paths]) for at in range(200 if quick else 2000)]
        taken = median_us(bed.ticking(cache, calls))
        bed.check(cache)
        yield Figure(bed.topic, f"lock + unlock, {depth} nodes deep", taken, "us", bar)


def _forest(bed: Bed, leaves: int) -> RankCache:
    """A tree of one-page leaves."""
    cache = bed.rank(full_pages=leaves + 8)
    for leaf in range(leaves):
        put(cache, np.full(PAGE, leaf, np.int32).tobytes())
    return cache


def evictions(bed: Bed, quick: bool) -> Iterator[Figure]:
    """Evict 1 page and 1,024 one-page leaves from a tree of 100,000 leaves."""
    leaves = 10_000 if quick else 100_000
    for pages, bar, rounds in ((1, 12, 2000), (1024, 5000, 40)):
        cache = _forest(bed, leaves)
        count = min(rounds, leaves // pages // 2)
        taken = median_us(bed.ticking(cache, [partial(cache.evict, pages, 0)] * count))
        bed.check(cache)
        what = "1 page" if pages == 1 else f"{pages:,} one-page leaves"
        yield Figure(bed.topic, f"evict {what}, tree of {leaves:,} leaves", taken, "us", bar)


def decoding(bed: Bed, quick: bool) -> Iterator[Figure]:
    """A decode step of 32 requests: reclaim, pages at crossings, slots; lengths are spread over the page."""
    cache = bed.rank(full_pages=20_000, context_pages=1024)
    ids = []
    for at in range(32):
        admission = cache.admit(f"bench-{at}", raw_key(prompt(at, 128)), 128)
        cache.extend(np.array([admission.request], np.int64), np.array([2000 + 4 * at], np.int32))
        ids.append(admission.request)
    batch = np.array(ids, np.int64)

    def step() -> None:
        cache.reclaim_batch(batch)
        cache.decode(batch)

    taken = times_us(bed.ticking(cache, [step] * (500 if quick else 5000)))
    bed.check(cache)
    yield Figure(bed.topic, "decode step of 32 requests", _median(taken), "us", 20)
    yield Figure(bed.topic, "decode step of 32 requests, mean with crossings", sum(taken) / len(taken), "us")


def memory(bed: Bed, quick: bool) -> Iterator[Figure]:
    """Bytes per cached token at page 128 and nodes of 8 pages, keys and books included."""
    nodes = 400 if quick else 4000
    pages = nodes * 8
    keys = [raw_key(prompt(seed, 8 * PAGE)) for seed in range(64)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        cache = bed.rank(full_pages=pages, context_pages=8)
        for node in range(nodes):
            put(cache, node.to_bytes(4, "little") + keys[node % 64][4:])
        bed.tick(cache, every=1)
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert cache.state.full.next_free(0) == NO_PAGES
    bed.check(cache)
    yield Figure(bed.topic, "memory per cached token (8-page nodes)", used / (pages * PAGE), "B", 6)


def growth(bed: Bed, quick: bool) -> Iterator[Figure]:
    """The same operations on trees of 1,000 and 100,000 leaves: the ratio is the cost of what is cached."""
    small, large = (500, 10_000) if quick else (1_000, 100_000)
    taken: dict[int, dict[str, float]] = {}
    for leaves in (small, large):
        cache = _forest(bed, leaves)
        keys = [
            np.full(PAGE, leaf, np.int32).tobytes()
            for leaf in random.Random(leaves).sample(range(leaves), 400)
        ]
        taken[leaves] = {
            "match one page": median_us([partial(cache.match, key) for key in keys]),
            "evict one page": median_us([partial(cache.evict, 1, 0)] * 400),
        }
        bed.check(cache)
    for name in taken[small]:
        ratio = taken[large][name] / taken[small][name]
        yield Figure(bed.topic, f"{name}: {large:,} leaves against {small:,}", ratio, "x", 2)


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


OPERATIONS: tuple[Callable[[Bed, bool], Iterator[Figure]], ...] = (
    lookups,
    inserts,
    allocations,
    lockings,
    evictions,
    decoding,
    memory,
    growth,
)
