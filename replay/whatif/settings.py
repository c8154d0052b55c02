"""Settings of a what-if, as words, made into what a rank would have been opened with.

What is not set stays as recorded: sizes of pools in tokens, not in pages, so that another page size alone changes no
capacity. Rule: everything that can be wrong with a setting is found here, before anything is read, and named.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from radixledger.cache.config import bounded, checked
from radixledger.cache.standing import POLICIES
from radixledger.cache.traits import FOLDED, RECORDED, TRAITS
from radixledger.cache.window import pages_for
from radixledger.journal.events import Config, Opened
from radixledger.journal.redact import HASH_BYTES
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import TokenCount
from radixledger.replay.whatif.content import NoFiner, content_for


class BadSetting(ValueError):
    """A setting that no redrive can have; `name` is that of the setting."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name


def _policy(words: str) -> dict[str, str]:
    """`slru`, `use`, `slru+use`: the order of FULL victims, that of window pages, or both; what is not named is lru."""
    fields = {"eviction": "lru", "swa_victims": "lru"}
    for word in words.split("+"):
        if word == "use":
            fields["swa_victims"] = word
        elif word in POLICIES:
            fields["eviction"] = word
        else:
            raise BadSetting(
                "policy", f"{word!r} is not one of {', '.join(POLICIES)}, use, or two with a plus"
            )
    return fields


SETTINGS: dict[str, str] = {
    "page_size": "tokens per page; pools keep their tokens",
    "full_pages": "FULL pages of each rank",
    "swa_pages": "SWA pages of each rank",
    "window": "sliding window in tokens",
    "policy": "lru, slru, priority (FULL victims), use (window pages), or two: slru+use",
    "route": f"{', '.join(TRAITS)}",
    "formula": "rfc or tight: how much of its window a request gives back",
    "tombstone_leaf": "veto or materialise: whether a leaf without a live window is kept",
}
"""What may be set, and what it means."""

_NUMBERS = ("page_size", "full_pages", "swa_pages", "window")


def settings_of(text: str) -> dict[str, str]:
    """`page_size=256,policy=use` as a mapping; raises BadSetting."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if name not in SETTINGS:
            raise BadSetting(name or text, f"is none of {', '.join(SETTINGS)}")
        if not equals or not value:
            raise BadSetting(name, "needs a value: NAME=VALUE")
        if name in found:
            raise BadSetting(name, "is set twice")
        if name in _NUMBERS and not (value.isascii() and value.isdigit() and len(value) <= 10):
            raise BadSetting(name, f"{value!r} is no whole number")
        found[name] = value
    return found


def _route(route: str) -> str:
    """A route that a redrive can have."""
    if route in RECORDED:
        raise BadSetting(
            "route",
            f"{route!r} is another server's, which nobody here can run: set one of {', '.join(TRAITS)}",
        )
    if route not in TRAITS:
        raise BadSetting("route", f"{route!r} is not one of {', '.join(TRAITS)}")
    return route


def configured(recorded: Opened, settings: Mapping[str, str]) -> Opened:
    """What a recorded rank would have been opened with, its stride that of the redrive's keys; raises BadSetting."""
    config, route = recorded.config, _route(settings.get("route", recorded.route))
    page_size = int(settings.get("page_size", config.page_size))
    if page_size < 1:
        raise BadSetting("page_size", f"{page_size} tokens are no page")
    changes = {
        "host_pages": 0,
        **_resized(config, page_size),
        **_rerouted(recorded, route, settings),
        **(_policy(settings["policy"]) if "policy" in settings else {}),
        **{name: settings[name] for name in ("formula", "tombstone_leaf") if name in settings},
        **{name: int(settings[name]) for name in ("full_pages", "swa_pages") if name in settings},
    }
    if "window" in settings:
        changes["window_tokens"] = int(settings["window"])
    changed: Config = replace(config, **changes)
    need = recorded.window_need - config.window_tokens + changed.window_tokens if changed.window_tokens else 0
    try:
        stride = content_for(recorded, page_size).stride
        opened = replace(recorded, config=changed, route=route, window_need=TokenCount(need), stride=stride)
        bounded(replace(opened, stride=HASH_BYTES))
        return checked(opened, stride)
    except NoFiner as error:
        raise BadSetting("page_size", str(error)) from None
    except BadConfig as error:
        name = {"window_tokens": "window", "eviction": "policy", "swa_victims": "policy"}.get(
            error.field, error.field
        )
        raise BadSetting(name, str(error).partition(": ")[2]) from None


def _resized(config: Config, page_size: int) -> dict[str, Any]:
    """The same tokens in pages of another size."""
    if page_size == config.page_size:
        return {}
    return {
        "page_size": page_size,
        "full_pages": max(1, config.full_pages * config.page_size // page_size),
        "swa_pages": max(1, config.swa_pages * config.page_size // page_size) if config.swa_pages else 0,
        "context_pages": pages_for(config.context_pages * config.page_size, page_size),
    }


def _rerouted(recorded: Opened, route: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """What another route has not, or has no choice of, falls away."""
    if route == recorded.route:
        return {}
    old, new = FOLDED[recorded.route], TRAITS[route]
    changes: dict[str, Any] = {}
    if not new.windowed:
        changes |= {"swa_pages": 0, "window_tokens": 0}
    elif not old.windowed and not {"window", "swa_pages"} <= settings.keys():
        raise BadSetting(
            "route",
            f"{route!r} has windows, which the record has not: set window=TOKENS,swa_pages=PAGES with it, or "
            f"route=radix, which has none",
        )
    if not (new.orders and new.windowed):
        changes |= {"swa_victims": "lru", "tombstone_leaf": "veto"}
    if not new.orders:
        changes |= {"eviction": "lru"}
    if not new.recurrent:
        changes |= {"recurrent_slots": 0, "recurrent_mode": "", "track_interval": 0}
    return changes


def can_be_sent_again(recorded: Opened) -> bool:
    """Whether there is a cache here of the recorded configuration itself."""
    return recorded.route in TRAITS


def is_recorded(recorded: Opened, opened: Opened) -> bool:
    """Whether a redrive is of the recorded configuration itself."""
    return opened.route == recorded.route and opened.config == replace(recorded.config, host_pages=0)
