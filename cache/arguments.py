"""What callers hand to a rank, made into what an event can hold.

An event holds int64, text and bytes. Anything else in one is a frame that nobody can write, which stops the rank, or a
frame that is written and that no reader takes. Rule: what means the same in another form (a numpy integer, a list, an
array of another width) is taken as what it means; everything else raises TypeError or ValueError before anything is
decided, and the rank goes on.
"""

from collections.abc import Sequence
from operator import index
from typing import Any, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.keys import broken_pair
from radixledger.cache.slices import Slice
from radixledger.cache.state import Receipt, State
from radixledger.journal.units import BoundaryId, NodeId, Pages, RequestId

TEXT_BYTES_MAX = 1 << 16
"""Longer request ids, namespaces and remarks are nobody's: one of them could fill a frame."""

T = TypeVar("T")

_INT64, _INT32 = np.dtype("<i8"), np.dtype("<i4")
_LIMIT = 1 << 63


def number(value: SupportsIndex, name: str) -> int:
    """An integer that fits int64."""
    if type(value) is not int:
        try:
            value = int(index(value))
        except TypeError:
            raise TypeError(f"{name}: an integer is needed, not {type(value).__name__}") from None
    if not -_LIMIT <= value < _LIMIT:
        raise ValueError(f"{name}: {value} does not fit int64")
    return value


def text(value: str, name: str) -> str:
    """A string that UTF-8 can hold: no halves of surrogate pairs."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: a string is needed, not {type(value).__name__}")
    try:
        size = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"{name}: {value[:80]!r} is no text: {error.reason}") from None
    if size > TEXT_BYTES_MAX:
        raise ValueError(f"{name}: {size} bytes of text are over the limit of {TEXT_BYTES_MAX}")
    return value


def told(value: T, name: str, *fields: str) -> T:
    """An object that says these, whatever its class is: servers bring requests, keys and parameters of their own."""
    for field in fields:
        if not hasattr(value, field):
            raise TypeError(f"{name}: {type(value).__name__} has no `{field}`")
    return value


def sequence(value: T, name: str) -> T:
    """What has a length and can be cut: a list, a tuple, an array."""
    try:
        len(value), value[:0]  # type: ignore[arg-type,index]  # this is the question
    except (TypeError, IndexError, KeyError):
        raise TypeError(f"{name}: a sequence is needed, not {type(value).__name__}") from None
    return value


def octets(value: bytes, name: str) -> bytes:
    """A `bytes` object, and nothing that could still change: keys and pages are kept, not copied."""
    if type(value) is not bytes:
        raise TypeError(f"{name}: bytes are needed, not {type(value).__name__}")
    return value


def key_given(state: State, value: bytes) -> bytes:
    """A key of this rank's kind. A bigram key is recognised by its pairs, which follow from each other (B65, R271)."""
    if type(value) is not bytes:
        raise TypeError(f"key: bytes are needed, not {type(value).__name__}")
    if state.lookahead and value and not state.hashed_keys:
        _check_pairs(value)
    return value


def _check_pairs(key: bytes) -> None:
    if len(key) % 8:
        raise ValueError(f"key: {len(key)} bytes are no whole pairs of tokens; `key_of` makes keys of tokens")
    broken = broken_pair(key)
    if broken >= 0:
        raise ValueError(
            f"key: pair {broken} does not begin with the token that pair {broken - 1} ends with, so this is no bigram "
            f"key; `key_of` makes keys of tokens"
        )


def name_space(value: bytes) -> bytes:
    """A namespace as `keys.namespace` makes it."""
    if type(value) is not bytes or len(value) > TEXT_BYTES_MAX:
        octets(value, "namespace")
        raise ValueError(f"namespace: {len(value)} bytes are over the limit of {TEXT_BYTES_MAX}")
    return value


def packed(value: Pages, name: str) -> Pages:
    """Page ids, 4 bytes each."""
    if len(octets(value, name)) % 4:
        raise ValueError(f"{name}: {len(value)} bytes are no whole number of int32 pages")
    return value


def request_numbers(values: NDArray[np.int64] | Sequence[int]) -> NDArray[np.int64]:
    """Request numbers, int64 [n]."""
    if type(values) is np.ndarray and values.dtype == _INT64 and values.ndim == 1:
        return values
    return _flat(values, _INT64, "requests")


def token_counts(values: NDArray[np.int32] | Sequence[int], name: str) -> NDArray[np.int32]:
    """Lengths or positions in tokens, int32 [n]."""
    if type(values) is np.ndarray and values.dtype == _INT32 and values.ndim == 1:
        return values
    return _flat(values, _INT32, name)


def receipt_given(value: Receipt) -> Receipt:
    """A receipt of a lock."""
    if not isinstance(value, Receipt):
        raise TypeError(f"receipt: what `lock` returned is needed, not {type(value).__name__}")
    node, boundary = number(value.node, "receipt.node"), number(value.boundary, "receipt.boundary")
    if node is value.node and boundary is value.boundary:
        return value
    return value._replace(node=NodeId(node), boundary=BoundaryId(boundary))


def slice_given(value: Slice) -> Slice:
    """A slice that somebody without a row brings to an insert."""
    if not isinstance(value, Slice):
        raise TypeError(f"brought: a Slice is needed, not {type(value).__name__}")
    return value._replace(
        pages=packed(value.pages, "pages"),
        prev=number(value.prev, "prev"),
        released=number(value.released, "released"),
        giver=number(value.giver, "giver"),
        request=RequestId(number(value.request, "request")),
    )


def _flat(values: object, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            f"{name}: a flat {dtype} array is needed, not {array.dtype} of shape {list(array.shape)}"
        )
    taken = array.astype(dtype)
    if array.size and not (taken == array).all():
        raise ValueError(f"{name}: {array[taken != array].tolist()[:8]} do not fit {dtype}")
    return taken
