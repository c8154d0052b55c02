"""Settings in words become what a rank is opened with, or are refused by name."""

import pytest
from msgspec.structs import replace

from radixledger.journal.events import Config, Opened
from radixledger.journal.units import Rank, TokenCount
from radixledger.replay.whatif.settings import (
    SETTINGS,
    BadSetting,
    can_be_sent_again,
    configured,
    is_recorded,
    settings_of,
)

CONFIG = Config(8, 40, 30, 20, rows=8, context_pages=64, swa_victims="use")
HASHED = Opened("run", Rank(0), 1, 0, "unified", CONFIG, TokenCount(24), 8, "hashed")
PLAIN = replace(HASHED, redaction="plain", stride=32)
RADIX = replace(PLAIN, route="radix", config=Config(8, 40, 0, 0), window_need=TokenCount(0))


def test_nothing_set_is_the_record_itself() -> None:
    for recorded in (HASHED, PLAIN, RADIX):
        assert configured(recorded, {}) == recorded
        assert is_recorded(recorded, configured(recorded, {}))


def test_pages_of_another_size_hold_the_same_tokens() -> None:
    """J17: a page size alone changes no capacity."""
    config = configured(HASHED, settings_of("page_size=16")).config
    assert (config.page_size, config.full_pages, config.swa_pages, config.context_pages) == (16, 20, 15, 32)
    both = configured(HASHED, settings_of("page_size=16,full_pages=40")).config
    assert (both.full_pages, both.swa_pages) == (40, 15)
    finer = configured(PLAIN, settings_of("page_size=2"))
    assert (finer.config.full_pages, finer.stride) == (160, 8)


def test_a_window_changes_what_a_boundary_needs_by_as_much() -> None:
    """A16: what is needed beyond the window stays."""
    assert configured(PLAIN, settings_of("window=12")).window_need == 16


def test_a_policy_names_both_orders() -> None:
    told = {
        text: configured(PLAIN, settings_of(f"policy={text}")).config for text in ("lru", "slru", "slru+use")
    }
    assert {text: (each.eviction, each.swa_victims) for text, each in told.items()} == {
        "lru": ("lru", "lru"), "slru": ("slru", "lru"), "slru+use": ("slru", "use"),
    }  # fmt: skip


def test_what_another_route_has_not_falls_away() -> None:
    legacy = configured(PLAIN, settings_of("route=legacy")).config
    assert (legacy.swa_victims, legacy.swa_pages) == ("lru", 30)
    radix = configured(PLAIN, settings_of("route=radix"))
    assert (radix.config.swa_pages, radix.config.window_tokens, radix.window_need) == (0, 0, 0)
    unified = configured(RADIX, settings_of("route=unified,window=16,swa_pages=20"))
    assert (unified.config.swa_pages, unified.window_need) == (20, 16)


def test_what_another_server_recorded_needs_a_route_of_ours() -> None:
    recorded = replace(PLAIN, route="recorded")
    assert not can_be_sent_again(recorded)
    assert configured(recorded, settings_of("route=unified")).route == "unified"


@pytest.mark.parametrize(
    ("recorded", "text", "name", "said"),
    [
        (PLAIN, "pages=3", "pages", "none of page_size"),
        (PLAIN, "full_pages", "full_pages", "NAME=VALUE"),
        (PLAIN, "full_pages=", "full_pages", "NAME=VALUE"),
        (PLAIN, "full_pages=1,full_pages=2", "full_pages", "twice"),
        (PLAIN, "full_pages=-1", "full_pages", "whole number"),
        (PLAIN, "full_pages=1e6", "full_pages", "whole number"),
        (PLAIN, "full_pages=\u0663", "full_pages", "whole number"),
        (PLAIN, "full_pages=0", "full_pages", "not between"),
        (PLAIN, "full_pages=9999999999", "full_pages", "not between"),
        (PLAIN, "full_pages=200000000", "full_pages", "of memory"),
        (PLAIN, "page_size=0", "page_size", "no page"),
        (HASHED, "page_size=12", "page_size", "--tokens plain"),
        (HASHED, "page_size=4", "page_size", "--tokens plain"),
        (PLAIN, "window=0", "window", "not between"),
        (PLAIN, "policy=mru", "policy", "'mru'"),
        (PLAIN, "route=legacy,policy=slru", "policy", "lru"),
        (PLAIN, "route=tree", "route", "'tree'"),
        (PLAIN, "route=recorded", "route", "another server's"),
        (RADIX, "route=unified", "route", "window=TOKENS,swa_pages=PAGES"),
        (RADIX, "route=legacy", "route", "or route=radix, which has none"),
        (RADIX, "swa_pages=3", "swa_pages", "no SWA pool"),
        (PLAIN, "formula=exact", "formula", "'exact'"),
        (PLAIN, "tombstone_leaf=drop", "tombstone_leaf", "'drop'"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_its_name(
    recorded: Opened, text: str, name: str, said: str
) -> None:
    with pytest.raises(BadSetting) as refused:
        configured(recorded, settings_of(text))
    assert refused.value.name == name
    assert said in str(refused.value)


def test_every_setting_has_a_meaning_and_is_taken() -> None:
    values = {
        "page_size": "4", "full_pages": "50", "swa_pages": "20", "window": "16", "policy": "slru", "route": "swa_chunk",
        "formula": "tight", "tombstone_leaf": "materialise",
    }  # fmt: skip
    assert values.keys() == SETTINGS.keys()
    for name, value in values.items():
        assert not is_recorded(PLAIN, configured(PLAIN, settings_of(f"{name}={value}")))
