"""What the best order of FULL victims could have reached: Belady's bound for a workload, page by page.

Belady's rule evicts the page whose next use lies furthest ahead, which nobody can know who serves. It is a bound, not a
goal, and it assumes more than that: all of FULL is there for prefixes, and nothing is taken by what runs; a page may be
reused as soon as it was asked for, though it is computed later; pages count one by one, though a prefix without its
beginning is of no use; and the order of requests stays what it was. SWA is not asked: every window is there.
"""

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from radixledger.tools.streams import Job, Stream

NEVER = 1 << 62

Tokens = NDArray[np.int32]


class Listened:
    """A stream as it was, and what was asked of it: prompts as they were handed out, answers as they came back."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.asked: list[tuple[Tokens, bool]] = []
        """Tokens, and whether they were a prompt; what is kept at the end of a request is asked for by nobody."""

    def take(self) -> Job | None:
        """The next job of the stream."""
        job = self._stream.take()
        if job is not None:
            self.asked.append((job.prompt, True))
        return job

    def ended(self, job: Job, answer: Tokens) -> None:
        """Tell the stream, and remember the whole text; the last token has no KV."""
        self.asked.append((np.concatenate((job.prompt, answer[:-1])), False))
        self._stream.ended(job, answer)


def best_hit_rate(asked: list[tuple[Tokens, bool]], *, page_size: int, capacity: int) -> float:
    """Prompt tokens in pages that Belady's rule would have kept in `capacity` pages, per prompt token."""
    uses = list(_uses(asked, page_size))
    ahead = _next_uses([page for page, _ in uses])
    hits, kept, furthest = 0, dict[int, int](), list[tuple[int, int]]()
    for (page, is_prompt), again in zip(uses, ahead, strict=True):
        hits += page in kept and is_prompt
        if page not in kept and len(kept) >= capacity:
            while kept.get(-furthest[0][1]) != -furthest[0][0]:
                heappop(furthest)
            if -furthest[0][0] <= again:
                continue  # whoever is asked for later than all that is kept is not worth keeping
            del kept[-heappop(furthest)[1]]
        kept[page] = again
        heappush(furthest, (-again, -page))
    tokens = sum(len(text) for text, is_prompt in asked if is_prompt)
    return hits * page_size / tokens if tokens else 0.0


def _uses(asked: list[tuple[Tokens, bool]], page_size: int) -> Iterator[tuple[int, bool]]:
    """Every page that is asked for, in order, as the number of its prefix; at least one token of a prompt is computed."""
    numbers: dict[tuple[int, bytes], int] = {}
    for text, is_prompt in asked:
        before, coded = 0, text.astype("<i4").tobytes()
        for at in range((len(text) - is_prompt) // page_size):
            content = coded[at * page_size * 4 : (at + 1) * page_size * 4]
            before = numbers.setdefault((before, content), len(numbers) + 1)
            yield before, is_prompt


def _next_uses(pages: list[int]) -> list[int]:
    """When each page is asked for again."""
    seen: dict[int, int] = {}
    ahead = [NEVER] * len(pages)
    for place in range(len(pages) - 1, -1, -1):
        ahead[place] = seen.get(pages[place], NEVER)
        seen[pages[place]] = place
    return ahead
