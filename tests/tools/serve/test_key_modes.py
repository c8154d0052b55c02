"""Tokens prove keys: whatever prefixes are looked up by, and whether windows are given back, the same ids come out."""

import json
from pathlib import Path

import pytest

from radixledger.analytics.load import load
from radixledger.analytics.queries import ask_checks
from radixledger.analytics.store import Database
from radixledger.cache.traits import TRAITS
from radixledger.journal.events import Healed, Opened, Reclaimed, Removed, Retracted, Tombstoned
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.verify import verify_rank
from radixledger.tools.cli import run as radixledger
from radixledger.tools.opening import Recording
from radixledger.tools.serve.capacity import Capacity, least_swa_pages
from radixledger.tools.serve.loader import Checkpoint
from radixledger.tools.serve.offline import Setup
from radixledger.tools.serve.requests import Request, encode_request

from .fake_runner import dense_ids
from .house import House, ask, prompt_of
from .test_routes import A, conversations
from .test_serving_is_exact import CROWDS, serve

WINDOW = 5
TREES = [name for name, traits in TRAITS.items() if traits.tree]


@pytest.mark.parametrize("frees", [True, False], ids=["giving back", "keeping"])
@pytest.mark.parametrize("route", TREES)
@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_keys_of_pairs_give_the_ids_of_the_model_alone(page_size: int, route: str, frees: bool) -> None:
    """R267, R269: crowded, with chunks, hits and retractions; a prefix of pairs is a page shorter at most."""
    found = {}
    for mode in ("raw", "bigram"):
        house = House(
            route=route, page_size=page_size, full_pages=160 // page_size, swa_pages=160 // page_size,
            window_tokens=WINDOW, chunk_tokens=24, running=5, key_mode=mode, free_out_of_window=frees,
        )  # fmt: skip
        requests = conversations()
        found[mode] = house.serve(*requests)
        window = WINDOW if TRAITS[route].windowed else 0
        for request, result in zip(requests, found[mode], strict=True):
            assert result.output_ids == dense_ids(request.input_ids, 24, window)
        assert sum(result.cached_tokens for result in found[mode]) > 0
        assert frees or not house.journals[0].of(Reclaimed)
        house.check_idle()


def test_a_whole_page_of_a_prompt_is_found_again_but_for_the_last_pair() -> None:
    """R257: 32 tokens in pages of 4: 28 of them, where raw keys give 28 too, since a token is left to compute."""
    for mode, again, longer in (("raw", 28, 32), ("bigram", 28, 28)):
        house = House(page_size=4, key_mode=mode, chunk_tokens=64)
        house.serve(ask("a", A[:32], 1))
        first, second = house.serve(ask("b", A[:32], 1), ask("c", [*A[:32], *prompt_of(9, 8)], 1, at=50))
        assert (first.cached_tokens, second.cached_tokens) == (again, longer)


def test_a_rank_that_keeps_its_windows_needs_all_pages_of_a_sequence() -> None:
    """R267, B109: so a request that could be served if windows were given back is refused with the number, and none hangs."""
    sizes = Capacity(4, 64, 8, 5, 256)
    assert least_swa_pages(60, sizes) == 4
    assert least_swa_pages(60, sizes._replace(free_out_of_window=False)) == 15
    for frees, reason in ((True, "length"), (False, "refused")):
        house = House(page_size=4, swa_pages=8, window_tokens=5, free_out_of_window=frees)
        long, short = house.serve(ask("long", A[:20], 41), ask("short", A[:20], 9))
        assert (long.finish_reason, short.finish_reason) == (reason, "length")
        house.check_idle()


@pytest.mark.parametrize("crowd", CROWDS[:2], ids=lambda crowd: f"page-{crowd.page_size}")
def test_a_crowded_run_with_pairs_says_what_a_quiet_cold_one_says(
    tiny: Checkpoint, tmp_path: Path, crowd: object
) -> None:
    """R267, R259, J22: evictions, tombstones, heals and retractions happen; `verify` and SQL are silent; the ids are those of raw keys."""
    page, full, swa, chunk = (
        getattr(crowd, name) for name in ("page_size", "full_pages", "swa_pages", "chunk")
    )
    requests: list[Request] = crowd.requests()  # type: ignore[attr-defined]
    setup = Setup(page, full, swa, chunk_tokens=chunk, running=6, key_mode="bigram")
    report, pairs = serve(tiny, setup, Recording(tmp_path / "pairs"), requests)
    _, raw = serve(tiny, setup._replace(key_mode="raw"), Recording(None), requests)
    longest = max(len(request.input_ids) for request in requests)
    quiet = Setup(page, chunk_tokens=longest, running=1, force_miss=True)
    _, cold = serve(tiny, quiet, Recording(None), requests[::2])
    said = [result.output_ids for result in pairs]
    assert said == [result.output_ids for result in raw]
    assert said[::2] == [result.output_ids for result in cold]
    assert report.cached_tokens > 0
    events = [
        event for frame in JournalReader(tmp_path / "pairs", Rank(0)).frames() for event in frame.events
    ]
    first = events[0]
    assert isinstance(first, Opened)
    assert (first.config.key_mode, first.stride, first.config.lifted) == ("bigram", 8, True)
    assert {Removed, Tombstoned, Healed, Retracted} <= {type(event) for event in events}
    verdict = verify_rank(tmp_path / "pairs", Rank(0))
    assert verdict.clean, verdict.findings
    database = Database()
    load(database, tmp_path / "pairs")
    answers = ask_checks(database.questioned())
    database.close()
    assert {name for name, answer in answers.items() if answer.rows} == set()


def test_serve_compares_giving_back_with_keeping(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """R267, R273: the same ids with it, without it and without pairs; cached tokens not lower, the peak lower, no leak."""
    requests, run = tmp_path / "requests.jsonl", tmp_path / "run"
    said = [[token + 3 for token in prompt_of(who, 40)] for who in range(3)]
    lines = [ask(f"{who}", said[who], 70, at=who) for who in range(3)]
    lines += [ask(f"{who} again", [*said[who], *said[0][:9]], 30, at=90 + who) for who in range(3)]
    requests.write_bytes(b"".join(map(encode_request, lines)))
    words = ["--offline", str(requests), "--output", str(tmp_path / "results.jsonl"), "--model-path", "tiny",
             "--journal", str(run), "--unified", "--key-mode", "bigram", "--free-out-of-window", "compare"]  # fmt: skip
    assert radixledger(["serve", *words]) == 2
    assert "--lift-bigram" in capfd.readouterr().err
    assert not run.exists()
    assert radixledger(["serve", *words, "--lift-bigram", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    levels = {each["claim"]: each["level"] for each in told["evidence"]}
    assert list(levels.values()) == ["holds"] * 5 + ["not looked at"] * 2
    on, off, raw = told["runs"]
    assert (on["key_mode"], raw["key_mode"], told["lifted"]) == ("bigram", "raw", True)
    assert on["peak_swa_tokens"] < off["peak_swa_tokens"]
    assert (on["given_back_tokens"] > 0, off["given_back_tokens"]) == (True, 0)
    assert len((tmp_path / "results.jsonl").read_bytes().splitlines()) == 6
    assert verify_rank(run / "raw-keys", Rank(0)).clean
    assert not list(run.rglob("*.key"))
