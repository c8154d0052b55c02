"""What a cache may be built with: the checks of a configuration before anything exists.

Rule: a bad value is refused here, with its name and what would do, before a pool or a tree is made (R14, R56, R57).
"""

from radixledger.cache.keys import KEY_MODES
from radixledger.cache.standing import POLICIES
from radixledger.cache.traits import FOLDED, RECORDED, TRAITS
from radixledger.cache.window import FORMULAS
from radixledger.journal.events import Config, Opened
from radixledger.journal.redact import HASH_BYTES
from radixledger.journal.sizes import MAX_PAGES, BadConfig, check_memory, check_sizes


def checked(opened: Opened, *also_strides: int) -> Opened:
    """`opened` itself, if a cache can be built with it; raises BadConfig for the first value that is out of bounds.

    also_strides: of keys that are hashes, which a replay looks prefixes up by.
    """
    if opened.route in RECORDED:
        raise BadConfig(
            "route", f"{opened.route!r} is what other servers record; take one of {', '.join(TRAITS)}"
        )
    return _foldable(opened, *also_strides)


def _foldable(opened: Opened, *also_strides: int) -> Opened:
    """Also what nobody builds: journals of other servers, and (also_strides) keys that are hashes."""
    config = opened.config
    _check_route(opened)  # first: what else is wrong depends on it
    check_sizes(opened)
    for check in (_check_window, _check_states, _check_host):
        check(opened)
    for field, name, known in (
        ("formula", config.formula, FORMULAS),
        ("tombstone_leaf", config.tombstone_leaf, ("veto", "materialise")),
        ("host_write", config.host_write, ("through", "back")),
        ("swa_victims", config.swa_victims, ("lru", "use")),
        ("eviction", config.eviction, POLICIES),
    ):
        if name not in known:
            raise BadConfig(field, f"{name!r} is not one of {', '.join(known)}")
    _check_orders(opened)
    if not 0 <= opened.rank < opened.ranks:
        raise BadConfig("rank", f"{opened.rank} is not one of {opened.ranks} ranks")
    if opened.stride not in (key_stride(config), *also_strides) and opened.route not in RECORDED:
        raise BadConfig(
            "stride",
            f"{opened.stride} bytes; a page of {config.page_size} {config.key_mode} key units has {key_stride(config)}",
        )
    return opened


def _check_route(opened: Opened) -> None:
    if opened.route not in FOLDED:
        raise BadConfig("route", f"{opened.route!r} is not one of {', '.join(TRAITS)}")


def key_stride(config: Config) -> int:
    """Bytes of key per page, before anything is hashed; raises BadConfig for a key mode that there is not."""
    if config.key_mode not in KEY_MODES:
        raise BadConfig("key_mode", f"{config.key_mode!r} is not one of {', '.join(KEY_MODES)}")
    return KEY_MODES[config.key_mode].unit_bytes * config.page_size


def _check_orders(opened: Opened) -> None:
    """Victims are chosen in the order that is asked for, or the configuration is refused (R14)."""
    traits = FOLDED[opened.route]
    if opened.route == "legacy":
        _check_legacy(opened.config)
    for field, name, possible in (
        ("swa_victims", opened.config.swa_victims, traits.orders and traits.windowed),
        ("eviction", opened.config.eviction, traits.orders),
    ):
        if name != "lru" and not possible:
            raise BadConfig(
                field, f"{name!r} is an order that route {opened.route!r} does not know; give lru"
            )


def _check_window(opened: Opened) -> None:
    """Two pools have a window each of whose sizes is positive (R57); one pool has none of them."""
    config = opened.config
    for field, value in (
        ("swa_pages", config.swa_pages),
        ("window_tokens", config.window_tokens),
        ("window_need", opened.window_need),
    ):
        windowed = FOLDED[opened.route].windowed
        if not windowed and value:
            raise BadConfig(field, f"{value}, but route {opened.route!r} has no SWA pool: it has to be 0")
        if windowed and not 1 <= value <= MAX_PAGES:
            raise BadConfig(field, f"{value} is not between 1 and {MAX_PAGES}")


def _check_legacy(config: Config) -> None:
    """The rollback route has its own rules, and no policy changes them."""
    for field, name, ruled in (
        ("tombstone_leaf", config.tombstone_leaf, "veto"),
        ("swa_victims", config.swa_victims, "lru"),
        ("eviction", config.eviction, "lru"),
    ):
        if name != ruled:
            raise BadConfig(field, f"{name!r} is not the legacy route's rule; {ruled!r} is, and no other")


def _check_host(opened: Opened) -> None:
    """A host tier mirrors FULL pages of a tree that has nothing beside them (R8)."""
    pages = opened.config.host_pages
    if not 0 <= pages <= MAX_PAGES:
        raise BadConfig("host_pages", f"{pages} is not between 0 and {MAX_PAGES}")
    if pages and not FOLDED[opened.route].hosted:
        text = "cannot have a host tier, which mirrors FULL pages of a tree without SWA"
        raise BadConfig("host_pages", f"{pages}, but route {opened.route!r} {text}; take 0, or route 'radix'")


STATES_LEAST = {"base": 1, "extra_buffer": 3}
"""Modes of keeping states, and the state slots of one request in each."""

EXTRA_BUFFER_PAGE = 128
"""Track slots come with pages of so many tokens at least."""


def _check_states(opened: Opened) -> None:
    """State slots come with a mode, and each mode with its pages; nothing of it stands alone (R11)."""
    config = opened.config
    slots, mode, interval = config.recurrent_slots, config.recurrent_mode, config.track_interval
    if slots and not FOLDED[opened.route].recurrent:
        raise BadConfig("recurrent_slots", f"{slots}, but route {opened.route!r} keeps no states (R11)")
    if slots and config.host_pages:
        raise BadConfig("recurrent_slots", f"{slots} beside {config.host_pages} host pages is not served")
    if slots and config.key_mode != "raw":
        raise BadConfig(
            "recurrent_slots", f"{slots} with {config.key_mode} keys is not served: a state is of a token"
        )
    if not slots:
        for field, value in (("recurrent_mode", mode), ("track_interval", interval)):
            if value:
                raise BadConfig(field, f"{value!r}, but recurrent_slots is 0: there are no states")
        return
    if mode not in STATES_LEAST:
        raise BadConfig("recurrent_mode", f"{mode!r} is not one of {', '.join(STATES_LEAST)}")
    if not STATES_LEAST[mode] <= slots <= MAX_PAGES:
        raise BadConfig("recurrent_slots", f"{slots}; mode {mode} needs {STATES_LEAST[mode]} for one request")
    if mode == "base":
        if config.page_size != 1:
            raise BadConfig("page_size", f"{config.page_size}; states in mode base need pages of one token")
        if interval:
            raise BadConfig("track_interval", f"{interval}; nothing is tracked in mode base")
    elif config.page_size < EXTRA_BUFFER_PAGE:
        raise BadConfig("page_size", f"{config.page_size}; mode {mode} needs at least {EXTRA_BUFFER_PAGE}")
    elif not 0 < interval <= MAX_PAGES or interval % config.page_size:
        text = f"{interval} is no positive multiple of a page of {config.page_size} tokens"
        raise BadConfig("track_interval", f"{text} up to {MAX_PAGES}: lengths are int32")


def bounded(opened: Opened) -> Opened:
    """`opened` itself, if a state of it can be built on anybody's word; raises BadConfig.

    For journals and images that nobody vouches for, and before a journal is begun that has to be one of them.
    """
    _foldable(opened, HASH_BYTES)
    check_memory(opened)
    return opened
