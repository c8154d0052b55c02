"""What another server's pools may be, for its record to be judged later.

Not the configuration of a cache of ours, which is checked where caches are made. Rule: a run is refused here exactly
where no state could be built of its first event; hours of a record that nobody can fold are told too late.
"""

from radixledger.journal.events import Opened

INT32_MAX = (1 << 31) - 1
BOOKS_BYTES_MAX = 1 << 31
"""What a replay spends on the books of pages at most, at `PAGE_BYTES` each."""

STATE_BYTES_MAX = 1 << 33
"""And on those and the rows together, at `ROW_BYTES` each and `ENTRY_BYTES` for each page of a row."""

PAGE_BYTES, ROW_BYTES, ENTRY_BYTES = 28, 120, 8

ONE_OF = {
    "formula": ("rfc", "tight"),
    "tombstone_leaf": ("veto", "materialise"),
    "key_mode": ("raw", "bigram"),
    "swa_victims": ("lru",),
    "eviction": ("lru",),
    "host_write": ("through", "back"),
}
"""Words of a configuration; orders of victims are rules of our routes, and a server of another kind has its own."""


def recordable(opened: Opened) -> Opened:
    """`opened` itself, if what is told behind it can be folded; raises ValueError for the first field that is out of bounds."""
    config = opened.config
    window = {
        "swa_pages": config.swa_pages,
        "window_tokens": config.window_tokens,
        "window_need": opened.window_need,
    }
    windowed = config.swa_pages > 0
    for field, value in {
        "page_size": config.page_size,
        "full_pages": config.full_pages,
        "rows": config.rows,
        "context_pages": config.context_pages,
        "host_threshold": config.host_threshold,
        "ranks": opened.ranks,
        "key_bytes": opened.stride,
        **(window if windowed else {}),
    }.items():
        if not 1 <= value <= INT32_MAX:
            raise ValueError(f"{field}: {value} is not between 1 and {INT32_MAX}")
    nothing = {
        **({} if windowed else window),
        "recurrent_slots": config.recurrent_slots,
        "recurrent_mode": config.recurrent_mode,
        "track_interval": config.track_interval,
        "host_pages": config.host_pages,
    }
    for field, unused in nothing.items():
        if unused:
            raise ValueError(f"{field}: {unused!r} has no meaning in such a recording; leave it out")
    for field, words in ONE_OF.items():
        if getattr(config, field) not in words:
            raise ValueError(f"{field}: {getattr(config, field)!r} is not {' or '.join(words)}")
    _check_sizes(opened)
    return opened


def _check_sizes(opened: Opened) -> None:
    config = opened.config
    if config.rows & (config.rows - 1):
        raise ValueError(
            f"rows: {config.rows} is not a power of two; {1 << config.rows.bit_length()} would do"
        )
    if (max(config.full_pages, config.swa_pages) + 1) * config.page_size - 1 > INT32_MAX:
        raise ValueError(f"full_pages: slots of pages of {config.page_size} tokens do not fit int32")
    books = PAGE_BYTES * (config.full_pages + config.swa_pages)
    if books > BOOKS_BYTES_MAX:
        raise ValueError(f"full_pages: {books} bytes of books of pages are more than {BOOKS_BYTES_MAX}")
    if books + config.rows * (ROW_BYTES + ENTRY_BYTES * config.context_pages) > STATE_BYTES_MAX:
        raise ValueError(
            f"rows: {config.rows} rows of {config.context_pages} pages take more than {STATE_BYTES_MAX} bytes"
        )
    if not 0 <= opened.rank < opened.ranks:
        raise ValueError(f"rank: {opened.rank} is not one of {opened.ranks} ranks")
