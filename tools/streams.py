"""Streams of requests without a model: seeded conversations and recorded traces.

A stream hands out jobs in order and may be told that one ended, because the next turn of a conversation
waits for the last one. Rule: every token is a function of the seed or of the trace, so that a stream is the
same on every machine; nothing here touches a cache.
"""

import zlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from radixledger.tools.lines import LineTooLong, lines_of

BLOCK_TOKENS = 512
"""Tokens per hash id of the Mooncake trace format."""

PRIORITY_MAX = (1 << 31) - 1

MAX_BLOCKS = (1 << 31) // BLOCK_TOKENS


class Job(NamedTuple):
    """One request: prompt int32 [n], and how many tokens the model will sample."""

    rid: str
    prompt: NDArray[np.int32]
    outputs: int
    conversation: int = -1
    priority: int = 0
    frugal: bool = False
    """Its own prefix left it no room, and nobody else was there to yield: it matches nothing and caches nothing."""


class Stream(Protocol):
    """Where jobs come from."""

    def take(self) -> Job | None:
        """The next job that may start now; None while there is none."""

    def ended(self, job: Job, answer: NDArray[np.int32]) -> None:
        """`job` sampled `answer`, int32 [outputs]."""


class BadTrace(ValueError):
    """A line of a trace that cannot be a request; names the file, the line and the field."""


class _TraceLine(msgspec.Struct):
    input_length: int
    output_length: int
    hash_ids: list[int]
    timestamp: float = 0
    priority: Annotated[int, msgspec.Meta(ge=-PRIORITY_MAX, le=PRIORITY_MAX)] = 0
    """No part of the published format: how much the path counts under `--eviction priority`."""


def read_trace(path: Path, limit: int | None = None) -> Iterator[Job]:
    """The requests of a trace in the Mooncake format, in order.

    Each distinct hash id becomes 512 tokens of its own, so equal blocks have equal tokens and no others do; the
    last block is cut to the input's length. Raises BadTrace.
    """
    dense: dict[int, int] = {}
    decode = msgspec.json.Decoder(_TraceLine).decode
    for number, line in _numbered(path):
        if limit is not None and number > limit:
            return
        try:
            row = decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            why = f"this is a request with its tokens: {OF_SERVE} takes it" if _is_request(line) else error
            raise BadTrace(f"{path}, line {number}: {why}") from None
        if row.input_length < 1 or row.output_length < 1:
            raise BadTrace(f"{path}, line {number}: input_length and output_length must be at least 1")
        if -(-row.input_length // BLOCK_TOKENS) != len(row.hash_ids):
            raise BadTrace(
                f"{path}, line {number}: hash_ids has {len(row.hash_ids)} ids; an input of {row.input_length} tokens "
                f"has {-(-row.input_length // BLOCK_TOKENS)} blocks of {BLOCK_TOKENS}"
            )
        ids = [dense.setdefault(block, len(dense)) for block in row.hash_ids]
        if len(dense) > MAX_BLOCKS:
            raise BadTrace(
                f"{path}, line {number}: more than {MAX_BLOCKS} distinct blocks; token ids are int32"
            )
        blocks = np.array(ids, np.int32)[:, None] * np.int32(BLOCK_TOKENS) + _OFFSETS
        yield Job(
            f"trace-{number}",
            blocks.ravel()[: row.input_length],
            row.output_length,
            priority=row.priority,
        )


OF_SERVE = "`radixledger serve --offline`"


class _Tokens(msgspec.Struct):
    """What a request of `serve` has, and no line of a trace."""

    input_ids: list[int]


def _is_request(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=_Tokens)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _numbered(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        yield from enumerate(lines_of(path), 1)
    except LineTooLong as error:
        raise BadTrace(str(error)) from None


_OFFSETS = np.arange(BLOCK_TOKENS, dtype=np.int32)


class TraceStream:
    """The jobs of a trace, all of them ready from the start, in trace order."""

    def __init__(self, jobs: Iterator[Job]) -> None:
        self._jobs = jobs

    def take(self) -> Job | None:
        """The next job of the trace."""
        return next(self._jobs, None)

    def ended(self, job: Job, answer: NDArray[np.int32]) -> None:
        """Nothing waits for a job of a trace."""


class Shape(NamedTuple):
    """A multi-turn workload; lengths in tokens."""

    conversations: int = 250
    turns: int = 8
    system: int = 1000
    user: int = 500
    answer: int = 200
    active: int = 64
    thoughts: int = 0
    """The first tokens of an answer, which the next turn leaves out."""
    spread: float = 0.0
    """How far user turns and answers vary around their lengths: 0.5 for half as long to half as long again."""


class ConversationStream:
    """Conversations that share one system prompt; `active` of them take turns, in the order in which turns ended.

    A conversation that is through is replaced by a new one. The order of first turns is that of the conversations.
    """

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        self.shape = shape
        self._random = np.random.Generator(np.random.PCG64(zlib.crc32(f"{shape}-{seed}".encode())))
        self._system = self._tokens(shape.system)
        self._begun = min(shape.active, shape.conversations)
        self._turn = [0] * shape.conversations
        self._ready: deque[int] = deque(range(self._begun))
        self._history: dict[int, NDArray[np.int32]] = {}

    def _tokens(self, count: int) -> NDArray[np.int32]:
        return self._random.integers(0, 1 << 30, count, dtype=np.int32)

    def _length(self, around: int) -> int:
        """A length of its own for each turn, where the shape has a spread."""
        spread = self.shape.spread
        return max(1, round(around * self._random.uniform(1 - spread, 1 + spread))) if spread else around

    def take(self) -> Job | None:
        """The next turn of the conversation that has waited longest."""
        if not self._ready:
            return None
        which = self._ready.popleft()
        history = self._history.get(which, self._system)
        prompt = np.concatenate((history, self._tokens(self._length(self.shape.user))))
        return Job(f"c{which}-t{self._turn[which]}", prompt, self._length(self.shape.answer), which)

    def ended(self, job: Job, answer: NDArray[np.int32]) -> None:
        """The conversation's next turn waits in the queue, or a new conversation does."""
        which = job.conversation
        self._turn[which] += 1
        if self._turn[which] < self.shape.turns:
            self._history[which] = np.concatenate((job.prompt, answer[self.shape.thoughts :]))
            self._ready.append(which)
            return
        self._history.pop(which, None)
        if self._begun < self.shape.conversations:
            self._ready.append(self._begun)
            self._begun += 1
