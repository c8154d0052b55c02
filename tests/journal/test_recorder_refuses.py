"""A recorder refuses what no reader could read back, before anything is told, and goes on."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from radixledger.cache.config import bounded
from radixledger.journal.event import HealMode
from radixledger.journal.events import Admitted, Config, Opened, Stepped
from radixledger.journal.reader import JournalReader
from radixledger.journal.recordable import recordable
from radixledger.journal.recorder import ROOT, Recorder
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import Rank, TokenCount
from radixledger.replay.verify import verify_rank

RANK = Rank(0)
SMALL = Config(page_size=4, full_pages=60, swa_pages=40, window_tokens=5, rows=512, context_pages=64)
KEY = bytes(range(32))

HOSTILE: list[Any] = [
    None, 1.5, -1, 1 << 63, 1 << 70, "\ud800", "ab", b"ab", [1.5], [-1], [1 << 31], [[1]], ["a"], {1}, {}, object(),
    True, np.float32(1.5), np.array(["a"]), np.array(3), ValueError("told"),
]  # fmt: skip

VERBS: dict[str, dict[str, Any]] = {
    "allocated": {"rid": "a", "full": [1, 2], "swa": [2]},
    "freed": {"full": [1], "swa": [1], "unmapped": [1], "rid": "a", "node": ROOT},
    "remapped": {"source": [1], "target": [2], "swa": [1], "giver": "a", "taker": "a"},
    "group_flushed": {"full": [1], "swa": [1]},
    "refused": {"reason": "full", "detail": "", "rid": "a", "pages": [1]},
    "admitted": {"rid": "b", "prompt": 8, "prefix": 0, "node": ROOT, "namespace": b"", "priority": 0},
    "extended": {"rids": ["a"], "grown": [8], "takers": ["a"], "counts": [2], "full": [1, 2], "swa": [1, 2]},
    "bound": {"rid": "a", "full": [1], "swa": [1], "start": 0, "row": [1], "length": 4},
    "reclaimed": {"rid": "a", "start": 0, "stop": 4, "full": [1], "swa": [1], "in_flight": 0, "pre": -1},
    "repointed": {"rid": "a", "protected": 4, "node": "leaf", "start": 0, "full": [1]},
    "finished": {"rid": "a", "tokens": 8, "cached": 8, "node": "leaf"},
    "retracted": {"rid": "a", "tokens": 8},
    "aborted": {"rid": "a", "tokens": 8},
    "step_began": {"step": 3, "rids": ["a"], "starts": [0], "stops": [8]},
    "step_ended": {"step": 3},
    "matched": {"rid": "a", "asked": 8, "full_hit": 8, "hit": 8, "node": "leaf", "stop": 0, "namespace": b"", "full_only": False},
    "transferred": {"node": "new", "parent": ROOT, "key": KEY, "full": [1, 2], "swa": [1, 2], "rid": "a", "namespace": b""},
    "split": {"node": "leaf", "upper": "new", "full": [3], "swa": [3]},
    "tombstoned": {"node": "leaf", "full": [3, 4], "swa": [3, 4]},
    "healed": {"node": "leaf", "mode": HealMode.REPLACE, "fresh": [5], "old": [3], "swa": [5], "rid": "a"},
    "removed": {"node": "leaf", "full": [3, 4], "swa": [3, 4]},
    "flushed": {"removed": 1},
    "locked": {"node": "leaf", "until": ROOT, "skipped": ["leaf"], "rid": "a"},
    "unlocked": {"held": None},
    "close": {"reason": "done"},
}  # fmt: skip


def begun(run: Path, **how: Any) -> Recorder:
    recorder = Recorder.open(run, SMALL, **how)
    recorder.admitted("a", 8)
    recorder.transferred("leaf", ROOT, KEY, [3, 4], [3, 4], rid="a")
    return recorder


@pytest.mark.parametrize("verb", VERBS)
def test_whatever_a_verb_is_given_the_journal_can_be_read_and_the_recorder_goes_on(
    tmp_path: Path, verb: str
) -> None:
    """An argument is told as it can be read back, or nothing is told; an event that cannot be encoded is not in the way of the next."""
    right, closed = VERBS[verb], False
    recorder = begun(tmp_path / "run")
    for name, value in itertools.product(right, HOSTILE):
        if closed:
            break
        before = recorder.last_seq
        try:
            getattr(recorder, verb)(**{**right, name: value})
            closed = verb == "close"
        except (ValueError, TypeError):
            assert recorder.last_seq == before, f"{name}={value!r} was refused, and told"
            recorder.admitted("a", 8)
    recorder.close()
    reader = JournalReader(tmp_path / "run", RANK)
    told = [event for frame in reader.frames() for event in frame.events]
    assert len(told) == reader.last_seq
    assert verify_rank(tmp_path / "run", RANK).unreadable == ""


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    with begun(tmp_path / "run", clock=lambda: 5) as recorder:
        recorder.admitted(str(np.str_("n")), prompt=np.int32(8), prefix=np.uint16(4))  # type: ignore[arg-type]
        recorder.step_began(np.int64(7), ["n"], np.array([0]), np.array([8]))  # type: ignore[arg-type]
    reader = JournalReader(tmp_path / "run", RANK)
    told = [event for frame in reader.frames() for event in frame.events]
    admitted = [event for event in told if isinstance(event, Admitted)][-1]
    stepped = [event for event in told if isinstance(event, Stepped)][-1]
    assert (admitted.rid, admitted.prompt, admitted.prefix, stepped.step) == ("n", 8, 4, 7)


def test_a_request_that_was_refused_takes_no_row(tmp_path: Path) -> None:
    with begun(tmp_path / "run") as recorder:
        for number in range(2 * SMALL.rows):
            with pytest.raises(ValueError, match="prompt: Expected `int`, got `float`"):
                recorder.admitted(f"bad-{number}", 1.5)  # type: ignore[arg-type]
        for number in range(SMALL.rows - 1):
            recorder.admitted(f"good-{number}", 4)


@pytest.mark.parametrize(("full", "swa", "key"), [
    ([1, 2], [1, 2], KEY[:31]), ([1, 2], [1, 2], KEY + b"x"), ([1, 2], [1], KEY), ([1], [], KEY), ([], [], KEY),
])  # fmt: skip
def test_a_leaf_whose_key_does_not_fit_its_pages_is_refused(
    tmp_path: Path, full: list[int], swa: list[int], key: bytes
) -> None:
    with begun(tmp_path / "run") as recorder:
        before = recorder.last_seq
        with pytest.raises(ValueError, match=r"SWA pages beside|a key of"):
            recorder.transferred("new", ROOT, key, full, swa, rid="a")
        assert recorder.last_seq == before


def test_pages_of_a_step_that_are_nobody_s_are_refused(tmp_path: Path) -> None:
    """SQL reads such columns as rows, one for each page of each taker: it could read none of the journal."""
    with begun(tmp_path / "run") as recorder:
        for counts, full, swa in ([3], [1, 2], []), ([1], [1, 2], []), ([2], [1, 2], [1]):
            with pytest.raises(ValueError, match="pages are given"):
                recorder.extended(["a"], [8], takers=["a"], counts=counts, full=full, swa=swa)
        with pytest.raises(ValueError, match="could be mapped from"):
            recorder.allocated(None, [1], [1, 2])


def test_an_error_that_is_no_text_ends_the_journal_all_the_same(tmp_path: Path) -> None:
    recorder = begun(tmp_path / "run")
    error = OSError("gone: \udcff" + "x" * 10_000)
    recorder.__exit__(OSError, error, None)
    report = verify_rank(tmp_path / "run", RANK)
    assert report.unreadable == ""
    with begun(tmp_path / "run", resume=True) as recorder:  # the lock was given back
        assert recorder.last_seq > 3


def opened(config: Config, **fields: Any) -> Opened:
    route = "recorded" if config.swa_pages > 0 else "recorded_full"
    return replace(
        Opened("run", RANK, 1, 1, route, config, TokenCount(5), stride=16, redaction="plain"), **fields
    )


NUMBERS = -1, 0, 1, 3, 8, 1 << 20, 1 << 27, (1 << 31) - 1, 1 << 31, 1 << 40
FIELDS = [
    *((name, value) for name in ("page_size", "full_pages", "swa_pages", "window_tokens", "rows", "context_pages",
      "recurrent_slots", "track_interval", "host_pages", "host_threshold") for value in NUMBERS),
    *((name, value) for name in ("formula", "tombstone_leaf", "key_mode", "swa_victims", "eviction", "host_write",
      "recurrent_mode") for value in ("", "rfc", "tight", "veto", "materialise", "raw", "bigram", "lru", "use", "slru",
      "priority", "through", "back", "base", "foo")),
]  # fmt: skip


def test_a_run_is_refused_exactly_where_no_state_could_be_built_of_it() -> None:
    tried = [opened(replace(SMALL, **{name: value})) for name, value in FIELDS]
    tried += [
        opened(SMALL, **{name: value}) for name in ("rank", "ranks", "window_need") for value in NUMBERS
    ]
    agreed = {True: 0, False: 0}
    for each in tried:
        answers = []
        for check in (recordable, bounded):
            try:
                answers.append(check(each) is each)
            except (BadConfig, ValueError):
                answers.append(False)
        assert answers[0] == answers[1], each
        agreed[answers[0]] += 1
    assert agreed[True] > 30
    assert agreed[False] > 100
