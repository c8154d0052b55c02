"""Fixed pseudo-random odd weights: the coefficients of the digest.

The digest of a state is a sum of weight x value over everything it holds, modulo 2^64, so that a
change costs one multiplication and the order of changes does not matter. It tells states apart that
differ by accident; it is no defence against somebody who forges one. Nothing here is random: weights
come from a counter through splitmix64 (Steele, Lea, Flood 2014), the same on every machine.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

MASK = (1 << 64) - 1
MAPPING_LANE = 2
ROW_LANE = 3
NODE_LANE = 4
PLACE_LANE = 5
BOOK_LANES = (0, 1, 7, 8)
"""The lanes of the pools' pages, by the number of the pool."""

NODE_FIELDS_LANE = 6

_GOLDEN = 0x9E3779B97F4A7C15


def mix(number: int) -> int:
    """splitmix64's output function on one integer."""
    z = (number * _GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def weights_at(number: int, places: NDArray[np.intp]) -> NDArray[np.uint64]:
    """The odd weights of some places of a lane, uint64, as many as there are places."""
    with np.errstate(over="ignore"):
        z = (places.astype(np.uint64) + np.uint64((number << 40) + 1)) * np.uint64(_GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))) | np.uint64(1)


@lru_cache(maxsize=64)
def lane(number: int, length: int) -> NDArray[np.uint64]:
    """The weights of the first `length` places, read-only and kept: for what is short or often asked for."""
    weights = weights_at(number, np.arange(length))
    weights.flags.writeable = False
    return weights


def node_weight(node: int) -> int:
    """The odd weight of one node of the tree."""
    return mix(node + (NODE_LANE << 40)) | 1


(
    PARENT,
    END,
    PAGES,
    ANCHORS,
    LOCKS,
    BOUNDARY,
    TICK,
    SWA_TICK,
    LIVE,
    HITS,
    BACKUP,
    HOST,
    ASKED,
    ANSWERS,
    PRIORITY,
    RECURRENT,
    RECURRENT_TICK,
) = (int(weight) for weight in lane(NODE_FIELDS_LANE, 17))
"""The digest's coefficients of a node's fields, beside the node's own weight."""
