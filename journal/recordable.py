"""What another server's pools may be, for its record to be judged later.

Not the configuration of a cache of ours, which is checked where caches are made. Rule: a run is refused here exactly
where no state could be built of its first event; hours of a record that nobody can fold are told too late.
"""

from radixledger.journal.events import Opened
from radixledger.journal.sizes import MAX_PAGES, BadConfig, check_memory, check_sizes

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
    """`opened` itself, if what is told behind it can be folded; raises BadConfig for the first field that is out of bounds."""
    config = opened.config
    window = {
        "swa_pages": config.swa_pages,
        "window_tokens": config.window_tokens,
        "window_need": opened.window_need,
    }
    windowed = config.swa_pages > 0
    if not 1 <= opened.stride <= MAX_PAGES:
        raise BadConfig("key_bytes", f"{opened.stride} is not between 1 and {MAX_PAGES}")
    check_sizes(opened)
    for field, value in window.items() if windowed else ():
        if not 1 <= value <= MAX_PAGES:
            raise BadConfig(field, f"{value} is not between 1 and {MAX_PAGES}")
    nothing = {
        **({} if windowed else window),
        "recurrent_slots": config.recurrent_slots,
        "recurrent_mode": config.recurrent_mode,
        "track_interval": config.track_interval,
        "host_pages": config.host_pages,
    }
    for field, unused in nothing.items():
        if unused:
            raise BadConfig(field, f"{unused!r} has no meaning in such a recording; leave it out")
    for field, words in ONE_OF.items():
        if getattr(config, field) not in words:
            raise BadConfig(field, f"{getattr(config, field)!r} is not {' or '.join(words)}")
    if not 0 <= opened.rank < opened.ranks:
        raise BadConfig("rank", f"{opened.rank} is not one of {opened.ranks} ranks")
    check_memory(opened)
    return opened
