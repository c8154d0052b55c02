"""Belady's bound for a workload that is driven: what it asked for is listened to, and counted in prompt tokens.

What the bound assumes stands in `radixledger.replay.whatif.bound`.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.keys import TOKEN_BYTES, raw_key
from radixledger.replay.whatif.bound import Use, best_hits
from radixledger.tools.streams import Job, Stream

Tokens = NDArray[np.int32]


class Listened:
    """A stream as it was, and what was asked of it: prompts as they were handed out, answers as they came back."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._heard: list[tuple[Tokens, Tokens | None]] = []
        """Prompts as they were handed out, alone; and again when they ended, with the answer."""

    @property
    def asked(self) -> list[tuple[Tokens, bool]]:
        """Tokens, and whether they were a prompt; what is kept at the end of a request is asked for by nobody.

        The last token of an answer has no KV.
        """
        return [
            (prompt, True) if answer is None else (np.concatenate((prompt, answer[:-1])), False)
            for prompt, answer in self._heard
        ]

    def take(self) -> Job | None:
        """The next job of the stream."""
        job = self._stream.take()
        if job is not None:
            self._heard.append((job.prompt, None))
        return job

    def ended(self, job: Job, answer: Tokens) -> None:
        """Tell the stream, and remember prompt and answer."""
        self._heard.append((job.prompt, answer))
        self._stream.ended(job, answer)


def best_hit_rate(asked: list[tuple[Tokens, bool]], *, page_size: int, capacity: int) -> float:
    """Prompt tokens in pages that Belady's rule would have kept in `capacity` pages, per prompt token."""
    hits = best_hits(_uses(asked, page_size), stride=TOKEN_BYTES * page_size, capacity=capacity)
    tokens = sum(len(text) for text, is_prompt in asked if is_prompt)
    return hits * page_size / tokens if tokens else 0.0


def _uses(asked: list[tuple[Tokens, bool]], page_size: int) -> Iterator[Use]:
    """Keys in order; at least one token of a prompt is computed."""
    for text, is_prompt in asked:
        yield Use(raw_key(text), (len(text) - is_prompt) // page_size, is_prompt)
