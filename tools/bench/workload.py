"""`radixledger bench workload`: whole workloads at several memory settings, on every route and in every order of victims.

Each run is driven once with its journal on disk at policy `operation`. Hit rates, events and bytes are the same on every
machine; host seconds are CPU seconds of cache, journal and the loop that drives them, on this one. Rule: what is driven
is a row of a table, and every order of victims sees the same requests.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

from radixledger.cache.faces.routing import RouteName
from radixledger.cache.rank import RankCache
from radixledger.cache.sizing import split_pages
from radixledger.journal.events import Config
from radixledger.journal.writer import Policy
from radixledger.tools.bench.bound import Listened, best_hit_rate
from radixledger.tools.console import bytes_text, count_text, print_json, progress, seconds_text
from radixledger.tools.driver import Driver, StepClock
from radixledger.tools.opening import Recording, open_rank
from radixledger.tools.streams import ConversationStream, Shape, Stream, TraceStream, read_trace
from radixledger.tools.table import print_table

PAGE, WINDOW, CHUNK, RUNNING = 128, 1024, 2048, 32
TRACE_REQUESTS = 2000


class Memory(NamedTuple):
    """Pages of both pools, and what is short of them."""

    name: str
    full: int
    swa: int


class Cache(NamedTuple):
    """A route, and in which order its window pages go."""

    route: RouteName
    swa_victims: str = "lru"

    @property
    def name(self) -> str:
        """As the table calls it."""
        return f"{self.route}, {self.swa_victims}" if self.route == "unified" else self.route


class Load(NamedTuple):
    """Requests, and the memory and the caches that meet them."""

    name: str
    stream: Callable[[], Stream]
    memories: tuple[Memory, ...]
    caches: tuple[Cache, ...]


class Run(NamedTuple):
    """One workload, driven once. Rates are per prompt token; `best` is Belady's bound for FULL (`bound`)."""

    load: str
    memory: str
    cache: str
    full_pages: int
    swa_pages: int
    requests: int
    hit_rate: float
    full_hit_rate: float
    best: float
    host_seconds: float
    events: int
    journal_bytes: int
    hit_bar: float | None
    seconds_bar: float | None


BY_AGE, BY_USE = Cache("unified"), Cache("unified", "use")
ROUTES: tuple[Cache, ...] = (BY_AGE, BY_USE, Cache("legacy"), Cache("swa_chunk"))
SPLIT = split_pages(4096, window_tokens=WINDOW, page_size=PAGE, running=RUNNING, chunk_tokens=CHUNK)
MEMORIES = (
    Memory("FULL-bound", 2048, 2048),
    Memory("SWA-bound", 2048, 768),
    Memory("split by rule", *SPLIT),
)
TRACE_MEMORIES = (Memory("small", 4096, 1024), Memory("middle", 8192, 2048), Memory("large", 16384, 4096))
DROPPED = "answers without thoughts"
SHAPES = {
    "8 turns of 500": Shape(),
    "12 turns of 200": Shape(turns=12, user=200),
    "3 turns of 2,000": Shape(turns=3, user=2000),
    DROPPED: Shape(answer=1000, thoughts=800, user=300),
}
BARS = {
    ("FULL-bound", BY_AGE.name): (0.758, 1.2),
    ("SWA-bound", BY_USE.name): (0.74, 1.4),
    ("split by rule", BY_USE.name): (0.85, None),
}
"""What the first load is held to: hit rate at least, host seconds at most."""


def loads(*, quick: bool, trace: Path | None) -> list[Load]:
    """The base workload on every route, the other shapes by age and by use, three seeds of uneven ones, and a trace."""
    conversations = {"conversations": 40} if quick else {}
    orders = (BY_AGE, BY_USE)
    shapes = {name: shape._replace(**conversations) for name, shape in SHAPES.items()}
    first, *others = [Load(name, _talk(shape), MEMORIES, ROUTES) for name, shape in shapes.items()]
    found = [first, *(each._replace(memories=_short(each.name), caches=orders) for each in others)]
    uneven = shapes["8 turns of 500"]._replace(spread=0.5)
    found += [
        Load(f"uneven turns, seed {seed}", _talk(uneven, seed), MEMORIES[1:2], orders)
        for seed in range(1 if quick else 3)
    ]
    if trace is not None:
        limit = 200 if quick else TRACE_REQUESTS
        found.append(Load(trace.name, lambda: TraceStream(read_trace(trace, limit)), TRACE_MEMORIES, orders))
    return found


def _short(load: str) -> tuple[Memory, ...]:
    """The memory whose SWA is short of what is asked; an answer that is not repeated keeps two windows instead of one."""
    return (Memory("SWA-bound", 2048, 1024),) if load == DROPPED else MEMORIES[1:2]


def _talk(shape: Shape, seed: int = 0) -> Callable[[], Stream]:
    return lambda: ConversationStream(shape, seed)


def runs(folder: Path, found: list[Load], *, quick: bool) -> Iterator[Run]:
    """Every load in every memory with every cache; a journal is measured and thrown away."""
    for load in found:
        for memory in load.memories:
            for cache in load.caches:
                bars = BARS.get((memory.name, cache.name), (None, None))
                held = not quick and load is found[0]
                yield _driven(folder / "run", load, memory, cache, *(bars if held else (None, None)))


def _driven(
    run: Path, load: Load, memory: Memory, cache: Cache, hit_bar: float | None, seconds_bar: float | None
) -> Run:
    clock, heard = StepClock(), Listened(load.stream())
    config = Config(
        PAGE, memory.full, memory.swa, WINDOW, rows=64, context_pages=min(memory.full, 4096),
        swa_victims=cache.swa_victims,
    )  # fmt: skip
    rank = open_rank(RankCache, config, Recording(run, Policy.OPERATION), route=cache.route, clock=clock)
    driver = Driver(rank, heard, chunk_tokens=CHUNK, max_running=RUNNING, clock=clock)
    begun = time.process_time()
    while driver.step():
        pass
    rank.close()
    taken = time.process_time() - begun
    size = sum(entry.stat().st_size for entry in run.rglob("*") if entry.is_file())
    rmtree(run)
    counts = driver.counts
    return Run(
        load=load.name, memory=memory.name, cache=cache.name, full_pages=memory.full, swa_pages=memory.swa,
        requests=counts.admitted, hit_rate=counts.hit_tokens / counts.prompt_tokens,
        full_hit_rate=counts.full_hit_tokens / counts.prompt_tokens,
        best=best_hit_rate(heard.asked, page_size=PAGE, capacity=memory.full), host_seconds=taken,
        events=int(rank.state.seq), journal_bytes=size, hit_bar=hit_bar, seconds_bar=seconds_bar,
    )  # fmt: skip


def report(folder: Path, *, quick: bool, trace: Path | None, as_json: bool) -> None:
    """Drive all of it and print it, a table for each load, or one document."""
    found = loads(quick=quick, trace=trace)
    results: list[Run] = []
    with progress("driving", sum(len(load.memories) * len(load.caches) for load in found)) as advance:
        for run in runs(folder, found, quick=quick):
            results.append(run)
            advance(1)
    if as_json:
        print_json({"quick": quick, "runs": [run._asdict() for run in results]})
        return
    for load in found:
        rows = [_row(run) for run in results if run.load == load.name]
        print_table(COLUMNS, rows, title=f"\n{load.name}")


COLUMNS = (
    "memory",
    "pages",
    "cache",
    "hit rate",
    "",
    "FULL alone",
    "best",
    "host",
    "events",
    "journal",
    "bars",
)


def _row(run: Run) -> list[object]:
    return [
        run.memory,
        f"{run.full_pages} + {run.swa_pages}",
        run.cache,
        f"{run.hit_rate:.4f}",
        drawn(run.hit_rate, run.best),
        f"{run.full_hit_rate:.4f}",
        f"{run.best:.4f}",
        seconds_text(run.host_seconds),
        count_text(run.events),
        bytes_text(run.journal_bytes),
        _held(run),
    ]


def drawn(rate: float, best: float, width: int = 20) -> str:
    """A rate as a bar, and where the best possible one ends."""
    filled, end = round(rate * width), min(width, round(best * width))
    return "█" * filled + "·" * max(0, end - filled) + "▏"


def _held(run: Run) -> str:
    """Each bar with whether it is met."""
    bars = (
        (run.hit_bar, "≥ {:.3g}", run.hit_bar is not None and run.hit_rate >= run.hit_bar),
        (run.seconds_bar, "≤ {:.3g} s", run.seconds_bar is not None and run.host_seconds <= run.seconds_bar),
    )
    told = ((text.format(bar), "yes" if met else "no") for bar, text, met in bars if bar is not None)
    return ", ".join(f"{bar}: {met}" for bar, met in told)
