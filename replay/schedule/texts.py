"""How a run's keys, namespaces and request ids are said in letters and names, and how they are made of them."""

from collections.abc import Callable
from typing import NamedTuple


class Texts(NamedTuple):
    """One way to say them."""

    spelled: Callable[[bytes], str]
    space: Callable[[bytes], str]
    rid: Callable[[str, str], str]
    """Of a request id and the name of whom it was given to now."""
    key: Callable[[str], bytes]
