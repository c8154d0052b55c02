"""A small server whose prompts are letters, one page each: so that a schedule of misses reads like a sentence.

Requests do what a server's do: match, admit, one chunk, cached, finished. `misses` judges all of them from the journal alone.
"""

from collections.abc import Iterable

import numpy as np

from radixledger.cache.keys import raw_key
from radixledger.cache.rank import RankCache
from radixledger.journal.events import AnyEvent, Config, Opened
from radixledger.journal.frame import Frame
from radixledger.journal.units import Rank, TokenCount
from radixledger.replay.fold import moments
from radixledger.replay.reuse.judge import Judge
from radixledger.replay.reuse.memory import PAGES_REMEMBERED, STAYS_REMEMBERED, Memory
from radixledger.replay.reuse.misses import Miss

from ..cache.driven import FrameList

PAGE = 4


class Letters:
    """One rank. A window of one page, or none; a prompt is its letters and one token more, which is never asked for."""

    def __init__(self, *, route: str = "unified", full: int = 30, swa: int = 20, **settings: object) -> None:
        window = PAGE if route in ("unified", "legacy", "swa_chunk") else 0
        config = Config(PAGE, full, swa if window else 0, window, rows=8, context_pages=32, **settings)  # type: ignore[arg-type]
        opened = Opened(
            run="letters", rank=Rank(0), ranks=1, epoch=0, route=route, config=config,
            window_need=TokenCount(window), stride=4 * PAGE, redaction="plain",
        )  # fmt: skip
        self.journal = FrameList(opened)
        self.rank = RankCache(opened, self.journal)

    def admit(self, rid: str, text: str, *, force_miss: bool = False) -> int:
        """A request is there, and nothing of it is computed yet."""
        prompt = len(text) * PAGE + 1
        return self.rank.admit(rid, self.key(text), prompt, force_miss=force_miss).request

    def compute(self, request: int, text: str) -> None:
        """All of a prompt is computed and cached."""
        state = self.rank.state
        left = len(text) * PAGE + 1 - int(state.rows.length[state.row_of(request)])
        self.rank.extend(np.array([request], np.int64), np.array([left], np.int32))
        self.rank.cache_unfinished(request, self.key(text))

    def serve(self, rid: str, text: str, *, force_miss: bool = False) -> int:
        """A whole life; how many pages of its prompt hit."""
        request = self.admit(rid, text, force_miss=force_miss)
        hit = int(self.rank.state.requests[request].prefix)
        self.compute(request, text)
        self.rank.finish(request, self.key(text))
        return hit // PAGE

    def key(self, text: str) -> bytes:
        """The key of these letters."""
        return raw_key(np.repeat(np.frombuffer(text.encode(), np.uint8).astype(np.int32), PAGE))

    def last(self, kind: type[AnyEvent]) -> int:
        """The number of the latest event of a kind."""
        return max(seq for seq, event in enumerate(self.journal.events, 1) if type(event) is kind)

    def misses(self, *, pages: int = PAGES_REMEMBERED) -> dict[str, Miss]:
        """Every miss by its request id."""
        return {miss.rid: miss for miss in judged(self.journal.frames, pages=pages)}


def judged(
    frames: Iterable[Frame], *, pages: int = PAGES_REMEMBERED, stays: int = STAYS_REMEMBERED
) -> list[Miss]:
    """The misses of a journal, in the order in which they are judged."""
    remembered = Memory(pages=pages, stays=stays)
    judge, state = Judge(remembered, 0), None
    found: list[Miss] = []
    for moment in moments(frames):
        remembered.see(*moment)
        found += judge.take(*moment)
        state = moment.state
    return [*found, *(judge.finish(state) if state is not None else ())]


def kinds(miss: Miss) -> dict[str, int]:
    """Pages by kind; the token behind the last page counts as `too_short`, and is left out."""
    assert sum(miss.kinds.values()) == miss.prompt
    return {kind: tokens // PAGE for kind, tokens in miss.kinds.items() if tokens and kind != "too_short"}
