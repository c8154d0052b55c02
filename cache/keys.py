"""Radix keys: one `bytes` object, of a fixed number of bytes per page.

The tree knows nothing about keys but their stride: 4 bytes per token for raw keys (little-endian int32), 8 per pair
of neighbouring tokens for bigram keys, 8 bytes per page where a journal holds hashes. Rule: tokens become int32 once,
here at the door, and a namespace is never concatenated into them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radixledger.journal.units import TokenCount

TOKEN_BYTES = 4

Tokens = Sequence[int] | NDArray[np.int32]


def raw_key(tokens: Tokens) -> bytes:
    """The key of a token sequence, 4 bytes per token; an int32 array costs one copy of its bytes.

    Raises OverflowError for ids outside int32, TypeError for what are no integers, ValueError for anything but a flat
    sequence.
    """
    return _int32(tokens).tobytes()


def bigram_key(tokens: Tokens) -> bytes:
    """The key of a token sequence in pairs: unit i is (t[i], t[i + 1]), 8 bytes; `max(L - 1, 0)` units (R257).

    A draft model's KV of a token depends on the token behind it, so that token is part of what a page is known by.
    One copy, whatever the length: at every token the 8 bytes from there on are its pair (B144). Raises as `raw_key`.
    """
    array = np.ascontiguousarray(_int32(tokens))
    if array.size < 2:
        return b""
    return np.ndarray(array.size - 1, "<i8", array, 0, (4,)).tobytes()


class KeyMode(NamedTuple):
    """One way to make keys of tokens. lookahead: the tokens behind its own that a unit of the key says too."""

    key_of: Callable[[Tokens], bytes]
    unit_bytes: int
    lookahead: TokenCount


KEY_MODES = {
    "raw": KeyMode(raw_key, TOKEN_BYTES, TokenCount(0)),
    "bigram": KeyMode(bigram_key, 2 * TOKEN_BYTES, TokenCount(1)),
}
"""By what `Config.key_mode` says."""


def broken_pair(key: bytes) -> int:
    """The first pair of a bigram key that does not begin with the token that the pair before it ends with; -1: none.

    Raises ValueError for bytes that are no whole pairs.
    """
    pairs: NDArray[np.int32] = np.frombuffer(key, "<i4").reshape(-1, 2)
    broken = pairs[1:, 0] != pairs[:-1, 1]
    return int(broken.argmax()) + 1 if broken.any() else -1


def _int32(tokens: Tokens) -> NDArray[np.int32]:
    """Tokens as little-endian int32 [n]."""
    array = tokens if isinstance(tokens, np.ndarray) else _listed(tokens)
    if array.ndim != 1:
        raise ValueError(f"a key needs a flat sequence of token ids, not one of shape {array.shape}")
    if array.dtype != np.int32:
        if array.size and array.dtype.kind not in "iu":
            raise TypeError(f"token ids are integers, not {array.dtype}")
        if array.size and (int(array.min()) < -(1 << 31) or int(array.max()) >= 1 << 31):
            raise OverflowError(f"token ids reach from {array.min()} to {array.max()}; a key holds int32")
        array = array.astype("<i4")
    return array


def namespace(
    *, extra_key: str | None = None, lora_id: str | None = None, cache_salt: str | None = None
) -> bytes:
    """The namespace of a request, empty if none of the three is set.

    Each part is tagged and length-prefixed, so that a user's `extra_key` can never equal an internal id (B84). Raises
    TypeError for what is no string, ValueError for one that UTF-8 cannot hold.
    """
    parts = (("extra_key", extra_key), ("lora_id", lora_id), ("cache_salt", cache_salt))
    return b"".join(_tagged(name, text) for name, text in parts if text is not None)


_TAGS = {"extra_key": b"e", "lora_id": b"l", "cache_salt": b"s"}


def _tagged(name: str, text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"{name}: a string is needed, not {type(text).__name__}")
    try:
        coded = text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name}: {text[:80]!r} is no text: {error.reason}") from None
    return _TAGS[name] + len(coded).to_bytes(4, "little") + coded


def _listed(tokens: Sequence[int]) -> NDArray[Any]:
    """Tokens as an array of whatever they are."""
    if isinstance(tokens, str | bytes | dict) or not hasattr(tokens, "__getitem__"):
        raise TypeError(f"token ids are a sequence of integers, not {type(tokens).__name__}")
    if not len(tokens):
        return np.zeros(0, np.int64)
    array = np.array(tokens)
    if array.dtype.kind not in "iu" and all(isinstance(each, int) for each in tokens):
        raise OverflowError(f"token ids reach from {min(tokens)} to {max(tokens)}; a key holds int32")
    return array


def common_pages(key: bytes, start: int, other: bytes, stride: int) -> int:
    """How many whole pages `key` from byte `start` on and `other` have in common."""
    count = min(len(key) - start, len(other)) // 4
    if count <= 0:
        return 0
    left = np.frombuffer(key, "<u4", count, start)
    right = np.frombuffer(other, "<u4", count)
    unequal = left != right
    first = int(unequal.argmax())
    equal = first if unequal[first] else count
    return equal * 4 // stride
