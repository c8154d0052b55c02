"""What no state can have is refused before a journal of it is begun, and leaves nothing behind."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from radixledger.cache.config import bounded
from radixledger.cache.opening import open_journal
from radixledger.cache.rank import RankCache
from radixledger.journal.events import Config, Opened
from radixledger.journal.recorder import Recorder
from radixledger.journal.sizes import MAX_PAGES, BadConfig
from radixledger.journal.units import Rank, TokenCount
from radixledger.journal.writer import JournalWriter, Policy

CONFIG = Config(page_size=4, full_pages=60, swa_pages=40, window_tokens=8, rows=8, context_pages=64)
OPENED = Opened("", Rank(0), 1, 0, "unified", CONFIG, TokenCount(8), 16, "plain")

TOO_MUCH: list[tuple[str, dict[str, Any]]] = [
    ("page_size", {"page_size": 0}),
    ("full_pages", {"full_pages": MAX_PAGES}),
    ("rows", {"rows": 6}),
    ("context_pages", {"context_pages": 0}),
    ("swa_pages", {"swa_pages": 1 << 30}),
    ("rows", {"rows": 1 << 16, "context_pages": 1 << 16}),
    ("full_pages", {"full_pages": 1 << 28, "page_size": 1}),
]
"""Sizes that no state has, or none that a replay would build."""

NO_CACHE: list[tuple[str, dict[str, Any]]] = [
    ("window_tokens", {"window_tokens": 0}),
    ("formula", {"formula": "generous"}),
    ("eviction", {"eviction": "random"}),
    ("key_mode", {"key_mode": "words"}),
    ("host_pages", {"host_pages": 8}),
]
"""What a cache of this route does not know."""


@pytest.mark.parametrize(("field", "sizes"), TOO_MUCH)
def test_a_journal_that_no_state_could_be_built_from_is_not_begun(
    field: str, sizes: dict[str, Any], tmp_path: Path
) -> None:
    config = replace(CONFIG, **sizes)
    told = replace(OPENED, config=config, stride=4 * max(1, config.page_size))
    with pytest.raises(BadConfig) as refused:
        JournalWriter.open(tmp_path / "run", told)
    assert refused.value.field == field
    with pytest.raises(BadConfig):
        Recorder.open(tmp_path / "run", config)
    with pytest.raises(BadConfig):
        bounded(told)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("field", "values"), TOO_MUCH + NO_CACHE)
def test_a_journal_for_a_rank_that_cannot_be_built_is_not_begun(
    field: str, values: dict[str, Any], tmp_path: Path
) -> None:
    config = replace(CONFIG, **values)
    with pytest.raises(BadConfig) as refused:
        open_journal(tmp_path / "run", replace(OPENED, config=config, stride=4 * max(1, config.page_size)))
    assert refused.value.field == field
    assert list(tmp_path.iterdir()) == []


def test_a_journal_for_a_rank_goes_on_as_any_other(tmp_path: Path) -> None:
    with open_journal(tmp_path / "run", OPENED) as writer:
        cache = RankCache(writer.opened, writer, seq=writer.last_seq)
        assert cache.state.opened == writer.opened
    with open_journal(tmp_path / "run", OPENED, resume=True) as writer:
        assert (writer.opened.run, writer.opened.epoch) == ("run", 2)


def test_the_sentence_says_what_a_state_would_take(tmp_path: Path) -> None:
    told = replace(OPENED, config=replace(CONFIG, rows=1 << 16, context_pages=1 << 16))
    with pytest.raises(
        BadConfig,
        match=r"65536 rows of 65536 pages beside 100 pages take 32\.0 GiB of memory, more than the 8 GiB",
    ):
        JournalWriter.open(tmp_path / "run", told)
    without = JournalWriter.open(tmp_path / "run", told, policy=Policy.OFF)
    without.close()
    assert list(tmp_path.iterdir()) == [], "what is not written is nobody's to fold"
