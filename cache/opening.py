"""The first event of each rank's journal, from the sizes that a server gives.

Rule: a server counts slots over all ranks, a rank counts pages of its own; the step from one to the other stands
here and nowhere else.
"""

from pathlib import Path
from typing import Any, NamedTuple

from radixledger.cache.config import checked, key_stride
from radixledger.cache.traits import TRAITS, UNKNOWN
from radixledger.cache.window import pages_for
from radixledger.journal.events import Config, Opened
from radixledger.journal.units import Rank, TokenCount
from radixledger.journal.writer import JournalWriter


class StateMode(NamedTuple):
    """How states of a recurrent model are kept: `base` or `extra_buffer`, empty for none; tokens between two that are tracked."""

    name: str = ""
    track_interval: int = 0


NO_STATES = StateMode()


class HostCopies(NamedTuple):
    """The host tier for FULL slots: how many there are over all ranks, when a copy is written, after how many uses."""

    size: int = 0
    write: str = "through"
    threshold: int = 1


NO_HOST = HostCopies()


def opened_ranks(
    size: int,
    size_swa: int,
    page_size: int,
    dp_size: int,
    *,
    sliding_window_size: int,
    route: str = "unified",
    rows: int = 1,
    max_context_len: int = 1,
    key_mode: str = "raw",
    size_recurrent: int = 0,
    states: StateMode = NO_STATES,
    host: HostCopies = NO_HOST,
    run: str = "",
    redaction: str = "hashed",
) -> list[Opened]:
    """One `Opened` per rank of `dp_size`, for pools of `size` and `size_swa` slots over all ranks together.

    route: the rules that the ranks follow, see `routes`; where it has no window, `size_swa` and `sliding_window_size` are
    0. rows, max_context_len: as `ReqToTokenPool` has them. key_mode: `bigram` for caches that are built with `is_eagle`.
    size_recurrent: state slots over all ranks, which are kept as `states` says; 0 for a model that has no states.
    host: copies of FULL slots on the host; none beside a window (R8).
    redaction: `hashed`, or `plain` for owners who want token ids in their journals. Journals that are opened with these
    events can be handed to an allocator (`allocator`). Raises ValueError for sizes that make no page.
    """
    _check_sizes(size, size_swa, page_size, dp_size, windowed=TRAITS.get(route, UNKNOWN).windowed)
    if host.size and host.size // dp_size < page_size:
        raise ValueError(f"{host.size} host slots make no page of {page_size} for each of {dp_size} ranks")
    config = Config(
        page_size=page_size,
        full_pages=size // dp_size // page_size,
        swa_pages=size_swa // dp_size // page_size,
        window_tokens=sliding_window_size,
        rows=1 << (rows - 1).bit_length(),
        context_pages=pages_for(max_context_len, page_size),
        key_mode=key_mode,
        recurrent_slots=size_recurrent // dp_size,
        recurrent_mode=states.name,
        track_interval=states.track_interval,
        host_pages=host.size // dp_size // page_size,
        host_write=host.write,
        host_threshold=host.threshold,
    )
    need, stride = TokenCount(sliding_window_size), key_stride(config)
    return [
        Opened(run, Rank(rank), dp_size, 0, route, config, need, stride, redaction) for rank in range(dp_size)
    ]


def _check_sizes(size: int, size_swa: int, page_size: int, dp_size: int, *, windowed: bool) -> None:
    for name, value in (("page_size", page_size), ("dp_size", dp_size)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it is at least 1")
    for name, value in (("size", size), ("size_swa", size_swa)):
        if value // dp_size < page_size and (windowed or name == "size"):
            raise ValueError(
                f"{name} of {value} slots makes no page of {page_size} for each of {dp_size} ranks"
            )


def open_journal(run: Path, opened: Opened, **how: Any) -> JournalWriter:
    """A journal for a rank that is to be built with `opened`; what no rank can be built with leaves nothing on disk.

    how: as `JournalWriter.open` takes it. Raises BadConfig, and what that raises.
    """
    return JournalWriter.open(run, checked(opened), **how)
