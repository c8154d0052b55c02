"""The whole cache at work: the multi-turn workload at the memory settings that are compared in the field.

CPU seconds are of cache, journal and the loop that drives them, on one core; making prompts is part of the loop.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from radixledger.cache.rank import RankCache
from radixledger.cache.sizing import split_pages
from radixledger.journal.events import Config
from radixledger.journal.writer import Policy
from radixledger.tools.bench.harness import Figure
from radixledger.tools.driver import Driver, StepClock
from radixledger.tools.opening import Recording, open_rank
from radixledger.tools.streams import ConversationStream, Shape

TOPIC = "whole system: 2,000 requests, 400,000 sampled tokens"

SPLIT = split_pages(4096, window_tokens=1024, page_size=128, running=32, chunk_tokens=2048)

SETTINGS = (
    ("FULL-bound, 262,144 + 262,144 tokens", 2048, 2048, "lru", 1.2, 0.758),
    ("SWA-bound, 262,144 + 98,304 tokens, by recency", 2048, 768, "lru", None, None),
    ("SWA-bound, 262,144 + 98,304 tokens, by use", 2048, 768, "use", 1.4, 0.74),
    (
        f"524,288 tokens, split {SPLIT.full * 128:,} + {SPLIT.swa * 128:,} by rule, by use",
        SPLIT.full,
        SPLIT.swa,
        "use",
        None,
        0.85,
    ),
)
"""Name, FULL pages, SWA pages, order of SWA victims, bar of CPU seconds, bar of the hit rate."""


def system_figures(folder: Path, quick: bool) -> Iterator[Figure]:
    """CPU seconds and prefix hit rate of each memory setting, journal on at policy `operation`."""
    shape = Shape(conversations=40) if quick else Shape()
    for name, full_pages, swa_pages, victims, seconds_bar, hit_bar in SETTINGS:
        clock = StepClock()
        config = Config(
            128, full_pages, swa_pages, 1024, rows=64, context_pages=512, swa_victims=victims
        )  # fmt: skip
        recording = Recording(folder / f"system-{full_pages}-{swa_pages}-{victims}", Policy.OPERATION)
        cache = open_rank(RankCache, config, recording, clock=clock)
        driver = Driver(cache, ConversationStream(shape), chunk_tokens=2048, max_running=32, clock=clock)
        begun = time.process_time()
        while driver.step():
            pass
        cache.close()
        taken = time.process_time() - begun
        counts = driver.counts
        yield Figure(TOPIC, f"{name}: host CPU", taken, "s", None if quick else seconds_bar)
        rate = counts.hit_tokens / counts.prompt_tokens
        yield Figure(TOPIC, f"{name}: prefix hit rate", rate, "", None if quick else hit_bar, more=True)
