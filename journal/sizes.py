"""The sizes that a journal may be opened with: what no state can have is refused before anything is on disk.

Rule: asked is what any server's journal owes to those who will fold it: numbers that fit, and a state that fits into memory.
What a route or a policy allows beside it is the cache's to say (`radixledger.cache.config`).
"""

from radixledger.journal.events import Opened

MAX_PAGES = (1 << 31) - 1
"""Page ids travel as int32 (B141)."""

MAX_STATE_BYTES = 1 << 33
"""What the state of one rank may take: who folds a journal builds it on that journal's word."""

MAX_BOOK_BYTES = 1 << 31
"""What of it may be books of pages, which are written from end to end where rows are touched as far as they are used."""

PAGE_BYTES, ROW_BYTES, POSITION_BYTES = 28, 120, 8
"""Of a state: for each page of any pool, for each row, and for each page that a row has room for."""


class BadConfig(ValueError):
    """A configuration value that no cache can be built with; `field` names it."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field


def check_sizes(opened: Opened) -> None:
    """Raise BadConfig for the first size that is out of bounds."""
    config = opened.config
    for field, value in (
        ("page_size", config.page_size),
        ("full_pages", config.full_pages),
        ("rows", config.rows),
        ("context_pages", config.context_pages),
        ("host_threshold", config.host_threshold),
        ("ranks", opened.ranks),
        ("stride", opened.stride),
    ):
        if not 1 <= value <= MAX_PAGES:
            raise BadConfig(field, f"{value} is not between 1 and {MAX_PAGES}")
    if config.rows & (config.rows - 1):
        raise BadConfig(
            "rows", f"{config.rows} is not a power of two; {1 << config.rows.bit_length()} would do"
        )
    for field, pages in (
        ("full_pages", config.full_pages),
        ("swa_pages", config.swa_pages),
        ("host_pages", config.host_pages),
    ):
        last_slot = (pages + 1) * config.page_size - 1  # page 0 comes on top
        if last_slot > MAX_PAGES:
            raise BadConfig(field, f"slot {last_slot} does not fit int32; take fewer or smaller pages")


def check_memory(opened: Opened) -> None:
    """Raise BadConfig where a state of these sizes takes more memory than who folds the journal would give it."""
    config = opened.config
    pages = config.full_pages + config.swa_pages + config.host_pages + config.recurrent_slots
    books = PAGE_BYTES * pages
    rows = (ROW_BYTES + POSITION_BYTES * config.context_pages) * config.rows
    if books > MAX_BOOK_BYTES:
        raise BadConfig(
            "full_pages",
            f"the books of {pages} pages of all pools {_more(books, MAX_BOOK_BYTES)}: take fewer pages",
        )
    if books + rows > MAX_STATE_BYTES:
        what = f"{config.rows} rows of {config.context_pages} pages beside {pages} pages"
        raise BadConfig(
            "rows",
            f"{what} {_more(books + rows, MAX_STATE_BYTES)}: take fewer rows, which are requests that run at once, or shorter ones",
        )


def _more(taken: int, most: int) -> str:
    return f"take {taken / (1 << 30):.1f} GiB of memory, more than the {most / (1 << 30):.0f} GiB that a replay would give them"
