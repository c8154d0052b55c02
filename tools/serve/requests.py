"""Request lines in, result lines out: the only place where the text of an offline run is read or made.

A request is one JSON object a line, a result one too; there is a result for every request line, in the
order of the lines. Rule: what a request says is judged here, line by line, before anything is served; a
line that will not do is told with its number and its field, and costs the others nothing.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from radixledger.cache.arguments import TEXT_BYTES_MAX
from radixledger.cache.keys import namespace

FinishReason = Literal["stop", "length", "abort", "refused"]
"""`stop`: an end token; `length`: max_new_tokens; `abort`: on request; `refused`: never served."""

ARRIVAL_MS_MAX = 1 << 40
"""Thirty-four years; nanoseconds of it still fit 64 bits."""

TOKENS_MAX = (1 << 31) - 1
"""Positions travel as int32."""

_Count = Annotated[int, Meta(ge=1, le=TOKENS_MAX)]


class Request(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a caller asks for. Times are virtual milliseconds; a missing `dp_rank` means the least loaded."""

    rid: Annotated[str, Meta(min_length=1, max_length=256)]
    input_ids: Annotated[list[int], Meta(min_length=1)]
    max_new_tokens: _Count
    ignore_eos: bool = False
    arrival_ms: Annotated[int, Meta(ge=0, le=ARRIVAL_MS_MAX)] = 0
    dp_rank: Annotated[int, Meta(ge=0)] | None = None
    extra_key: str | None = None
    priority: Annotated[int, Meta(ge=-TOKENS_MAX, le=TOKENS_MAX)] = 0
    """How much its path counts against others where the server was started with `--eviction priority`."""
    abort_after: Annotated[int, Meta(ge=0)] | None = None
    """Abort once so many tokens came out; 0 aborts while it waits."""
    abort_at_ms: Annotated[int, Meta(ge=0, le=ARRIVAL_MS_MAX)] | None = None
    """Abort at this time, wherever it stands: in the queue, between chunks, in its answer; too late if it has ended."""

    @property
    def kv_tokens(self) -> int:
        """Positions whose K and V are computed at most: the last token that comes out needs none."""
        return len(self.input_ids) + self.max_new_tokens - 1


class Result(Struct, frozen=True, kw_only=True):
    """What became of one request line. `cached_tokens` is what its first admission found in the cache.

    `rid` and `dp_rank` are null where a refused line does not have them.
    """

    rid: str | None
    output_ids: list[int]
    finish_reason: FinishReason
    error: str | UnsetType = UNSET
    cached_tokens: int
    prompt_tokens: int
    dp_rank: int | None


class BadLine(Exception):
    """A request line that cannot be served: its number (from 1), the field (empty: the whole line), why."""

    def __init__(self, line: int, field: str, reason: str, *, rid: str | None = None) -> None:
        where = f"line {line}, {field}" if field else f"line {line}"
        super().__init__(f"{where}: {reason}")
        self.line, self.field, self.reason, self.rid = line, field, reason, rid


class TraceLine(BadLine):
    """A line in the Mooncake format: lengths and hashes, where a request has tokens."""

    def __init__(self, line: int) -> None:
        super().__init__(
            line, "", "a line of a trace, with hashes in the place of tokens: `radixledger drive` takes it"
        )


class Bounds(NamedTuple):
    """What this server's requests must keep to."""

    vocab_size: int
    ranks: int


def read_requests(lines: Iterable[bytes], bounds: Bounds) -> Iterator[Request | BadLine]:
    """Each line's request, or what is wrong with it; blank lines are passed over, and counted."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _read(number, line, bounds)


def encode_request(request: Request) -> bytes:
    """One request as its line, with the line end; what has its default is left out."""
    return msgspec.json.encode(request) + b"\n"


def encode_result(result: Result) -> bytes:
    """One result as its line, with the line end."""
    return msgspec.json.encode(result) + b"\n"


def refused(request: Request | BadLine, error: str, *, dp_rank: int | None = None) -> Result:
    """The result of a request that is not served."""
    return Result(
        rid=request.rid,
        output_ids=[],
        finish_reason="refused",
        error=error,
        cached_tokens=0,
        prompt_tokens=len(request.input_ids) if isinstance(request, Request) else 0,
        dp_rank=dp_rank,
    )


_decoder = msgspec.json.Decoder(Request)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a line that is no JSON, no text or nested beyond all bounds raises."""
_PLACE = re.compile(r" - at `\$\.?(.*)`$")
_NAMED = re.compile(r"field `([^`]*)`")


class _Named(Struct):
    rid: str


class _Hashes(Struct):
    input_length: int
    hash_ids: list[int]


def _is_trace_line(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=_Hashes)
    except _UNREADABLE:
        return False
    return True


def _read(number: int, line: bytes, bounds: Bounds) -> Request | BadLine:
    try:
        request = _decoder.decode(line)
    except msgspec.ValidationError as error:
        if _is_trace_line(line):
            return TraceLine(number)
        field, reason = _placed(str(error))
        return BadLine(number, field, reason, rid=_rid_of(line))
    except _UNREADABLE as error:
        return BadLine(number, "", f"not a JSON object: {error}")
    wrong = _out_of_bounds(request, bounds)
    return request if wrong is None else BadLine(number, *wrong, rid=request.rid)


def _out_of_bounds(request: Request, bounds: Bounds) -> tuple[str, str] | None:
    """The field and reason of a request that this server cannot take, if so."""
    ids = request.input_ids
    if min(ids) < 0 or max(ids) >= bounds.vocab_size:
        place, found = next((i, x) for i, x in enumerate(ids) if not 0 <= x < bounds.vocab_size)
        return (
            f"input_ids[{place}]",
            f"{found} is no token id; the vocabulary is 0 to {bounds.vocab_size - 1}",
        )
    if len(apart := namespace(extra_key=request.extra_key)) > TEXT_BYTES_MAX:
        return "extra_key", f"it makes a namespace of {len(apart)} bytes; {TEXT_BYTES_MAX} is the most"
    if request.dp_rank is not None and request.dp_rank >= bounds.ranks:
        return "dp_rank", f"{request.dp_rank} is no rank of this server; it has 0 to {bounds.ranks - 1}"
    if request.abort_at_ms is not None and request.abort_at_ms < request.arrival_ms:
        return "abort_at_ms", f"{request.abort_at_ms} is before it arrives, at {request.arrival_ms}"
    return None


def _placed(message: str) -> tuple[str, str]:
    """Split msgspec's message into the field and what is wrong with it."""
    place, named = _PLACE.search(message), _NAMED.search(message)
    reason = message[: place.start()] if place else message
    path = place[1] if place else ""
    return path or (named[1] if named else ""), reason


def _rid_of(line: bytes) -> str | None:
    """The id of a line that is otherwise wrong, so that its result can be told apart."""
    try:
        return msgspec.json.decode(line, type=_Named).rid
    except _UNREADABLE:
        return None
