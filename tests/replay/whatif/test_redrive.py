"""A recorded run sent again as it was, and through other configurations."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict

from radixledger.replay.whatif.outcome import why_estimated
from radixledger.replay.whatif.schedule import End, Grow, Leave, Restart
from radixledger.replay.whatif.settings import settings_of
from radixledger.replay.whatif.strayed import Strayed
from radixledger.tools.opening import Recording
from radixledger.tools.streams import Job as Asked

from ...cache.driven import CHUNK_SHAPES, FULL_SHAPES, SHAPES, STATE_SHAPES
from ..runs import written
from .recorded import Sequenced, drive, sent, taken, without

ROUTES: dict[str, dict[str, Any]] = {
    "unified": {},
    "unified, roomy": {"full": 200, "swa": 120},
    "unified, use and slru": {"swa_victims": "use", "eviction": "slru"},
    "unified, materialise and tight": {"swa": 40, "tombstone_leaf": "materialise", "formula": "tight"},
    "unified, pairs": {"swa": 40, "key_mode": "bigram"},
    "legacy": {"route": "legacy"},
    "radix": {"route": "radix", "swa": 0, "window": 0},
    "radix, pairs": {"route": "radix", "swa": 0, "window": 0, "key_mode": "bigram"},
    "chunk": {"route": "chunk", "full": 40, "swa": 0, "window": 0},
    "swa_chunk": {"route": "swa_chunk", "full": 60, "swa": 16},
}


def strayed(redrive: Any) -> dict[str, int]:
    """What a redrive counted beside the schedule."""
    return {name: count for name, count in asdict(redrive.strayed).items() if count}


@pytest.mark.parametrize("tokens", ["hashed", "plain"])
@pytest.mark.parametrize("name", ROUTES)
def test_a_run_that_is_sent_again_as_it_was_has_every_figure_and_the_state_of_the_record(
    name: str, tokens: str, tmp_path: Path
) -> None:
    """J17, N7: under pressure, with retractions, on every route, from hashes alone."""
    driver = drive(tmp_path / "run", tokens=tokens, **ROUTES[name])
    record = taken(tmp_path / "run", tmp_path / "taken")
    redrive, end = sent(record)
    assert end == driver.cache.digest() == record.digest
    assert redrive.figures == record.figures
    assert (redrive.broken, strayed(redrive)) == ([], {})
    counts = driver.counts
    assert record.figures.admissions == counts.admitted
    assert record.figures.hit_tokens == counts.hit_tokens
    assert record.figures.prompt_tokens == counts.prompt_tokens
    assert record.figures.retractions == counts.retracted


def test_the_record_under_pressure_has_what_makes_it_hard(tmp_path: Path) -> None:
    drive(tmp_path / "run")
    figures = taken(tmp_path / "run", tmp_path / "taken").figures
    assert min(figures.retractions, figures.tombstones, figures.full_evicted, figures.hit_tokens) > 0


def prompts() -> Sequenced:
    """Seven prompts that begin alike, again and again."""
    texts = [np.concatenate((np.arange(40), 1000 * (1 + at % 7) + np.arange(32))) for at in range(40)]
    return Sequenced([Asked(f"r{at}", text.astype(np.int32), 3 + at % 4) for at, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("settings", "config"),
    [
        ("policy=slru+use", {"eviction": "slru", "swa_victims": "use"}),
        ("formula=tight", {"formula": "tight"}),
        ("tombstone_leaf=materialise", {"tombstone_leaf": "materialise"}),
        ("window=12", {"window": 12}),
        ("full_pages=120", {"full": 120}),
        ("swa_pages=80", {"swa": 80}),
        ("full_pages=30,swa_pages=19", {"full": 30, "swa": 19}),
        ("route=legacy", {"route": "legacy"}),
        ("route=radix", {"route": "radix", "swa": 0, "window": 0}),
        ("route=swa_chunk", {"route": "swa_chunk"}),
        ("page_size=16", {"page": 16, "full": 17, "swa": 10}),
        ("page_size=4", {"page": 4, "full": 68, "swa": 40}),
    ],
)  # fmt: skip
def test_another_configuration_ends_in_the_state_of_a_run_of_it(
    settings: str, config: dict[str, Any], tmp_path: Path
) -> None:
    """N7: where one request runs at a time, nothing but the cache depends on the configuration; so all of it is exact."""
    sizes: dict[str, Any] = {"full": 34, "swa": 20, "tokens": "plain", "running": 1}
    drive(tmp_path / "run", stream=prompts(), **sizes)
    there = drive(tmp_path / "there", stream=prompts(), **(sizes | config))
    redrive, end = sent(taken(tmp_path / "run", tmp_path / "taken"), **settings_of(settings))
    assert end == there.cache.digest()
    assert redrive.figures.hit_tokens == there.counts.hit_tokens
    assert redrive.figures.steps == there.counts.prefill_steps + there.counts.decode_steps
    assert redrive.figures.tombstones == there.cache.state.totals.tombstones
    assert set(strayed(redrive)) <= {"hit_otherwise"}


def test_a_coarser_page_is_made_of_hashes_side_by_side(tmp_path: Path) -> None:
    """J10: what a run with token ids gives, a run with hashes gives too."""
    for tokens in ("plain", "hashed"):
        drive(tmp_path / tokens, tokens=tokens)
    ends = [
        sent(taken(tmp_path / tokens, tmp_path / f"{tokens} taken"), page_size="24")
        for tokens in ("plain", "hashed")
    ]
    assert ends[0][1] == ends[1][1]
    assert ends[0][0].figures == ends[1][0].figures
    assert ends[0][0].figures.hit_tokens > 0


def test_who_was_retracted_for_want_of_pages_goes_on_where_there_are_enough(tmp_path: Path) -> None:
    """J17: a recorded retraction is a consequence, not a wish."""
    drive(tmp_path / "run")
    record = taken(tmp_path / "run", tmp_path / "taken")
    redrive, _ = sent(record, full_pages="200", swa_pages="120")
    assert record.figures.retractions > 0 == redrive.figures.retractions
    assert redrive.strayed.spared == record.figures.retractions
    assert redrive.figures.finished == record.schedule.jobs == redrive.figures.admissions
    assert redrive.broken == []


@pytest.mark.parametrize("route", ["unified", "legacy", "swa_chunk"])
def test_who_does_not_fit_waits_and_everybody_is_served(route: str, tmp_path: Path) -> None:
    """J17, B112: in half the pages requests come in later, some yield, and all that can be served are."""
    drive(tmp_path / "run", full=120, swa=60, route=route)
    redrive, _ = sent(taken(tmp_path / "run", tmp_path / "taken"), full_pages="40", swa_pages="17")
    counts = redrive.strayed
    assert counts.waited > 0
    assert redrive.figures.finished + counts.refused == 30
    assert counts.unended == 0
    assert redrive.figures.retractions == counts.pushed_out
    assert redrive.broken == []


def test_who_can_never_fit_is_left_out(tmp_path: Path) -> None:
    """B116: the others are served."""
    drive(tmp_path / "run", full=120, swa=60)
    redrive, _ = sent(taken(tmp_path / "run", tmp_path / "taken"), full_pages="18")
    assert redrive.strayed.refused > 0 < redrive.figures.finished
    assert redrive.strayed.refused + redrive.figures.finished == 30


def test_who_was_live_at_the_end_of_the_record_is_live_at_the_end(tmp_path: Path) -> None:
    driver = drive(tmp_path / "run", steps=60)
    record = taken(tmp_path / "run", tmp_path / "taken")
    redrive, end = sent(record)
    assert driver.cache.state.requests
    assert end == record.digest
    assert redrive.figures == record.figures


def test_who_is_aborted_while_he_waits_never_comes_in(tmp_path: Path) -> None:
    """J17: a client that went away in the record goes away here, wherever its request is."""
    drive(tmp_path / "run", full=120, swa=60)
    record = taken(tmp_path / "run", tmp_path / "taken")
    acts = [
        Leave(act.job, End.ABORTED) if isinstance(act, Leave) and act.job % 2 else act for act in record.acts
    ]
    aborted = without(record, acts=acts, room=tmp_path / "aborted")
    redrive, _ = sent(aborted, full_pages="40", swa_pages="17")
    assert redrive.figures.finished + redrive.figures.aborted < 30
    assert redrive.figures.finished == 15
    assert redrive.strayed.unended == 0
    assert redrive.broken == []


def test_a_run_that_was_opened_again_begins_again(tmp_path: Path) -> None:
    drive(tmp_path / "run", steps=40)
    again = Recording(tmp_path / "run", resume=True)
    driver = drive(tmp_path / "run", recording=again, steps=70)
    record = taken(tmp_path / "run", tmp_path / "taken")
    redrive, end = sent(record)
    assert end == record.digest == driver.cache.digest()
    assert redrive.figures == record.figures
    assert len([act for act in record.acts if isinstance(act, Restart)]) == 1


def test_a_job_whose_key_nobody_told_is_an_estimate(tmp_path: Path) -> None:
    """J17: on a route without a tree the key of a request that did not end is not in the journal."""
    drive(tmp_path / "run", route="chunk", full=60, swa=0, window=0, steps=30)
    record = taken(tmp_path / "run", tmp_path / "taken")
    redrive, _ = sent(record, route="radix")
    counts = redrive.strayed
    assert counts.unknown_jobs > 0 < counts.unknown_pages
    opened = record.schedule.opened
    (why,) = [why for why in why_estimated(opened, opened, (), counts, (1, 1)) if "not in the journal" in why]
    assert f"{counts.unknown_pages:,} page" in why


def test_what_never_strayed_is_no_estimate(tmp_path: Path) -> None:
    """J17: and everything that did has its reason."""
    drive(tmp_path / "run")
    opened = taken(tmp_path / "run", tmp_path / "taken").schedule.opened
    assert list(why_estimated(opened, opened, (), Strayed(), (5, 5))) == []
    for field in Strayed.__struct_fields__:
        one = Strayed(**{field: 1})
        told = list(why_estimated(opened, opened, (), one, (5, 5)))
        assert len(told) == (field != "unknown_pages"), field


def test_steps_are_evidence_only_where_they_differ_from_the_recorded_ones(tmp_path: Path) -> None:
    drive(tmp_path / "run")
    opened = taken(tmp_path / "run", tmp_path / "taken").schedule.opened
    one = Strayed(hit_otherwise=1)
    (alike,) = why_estimated(opened, opened, (), one, (123, 123))
    assert alike.endswith(
        "so a server would have had other batches; they were sent in the 123 recorded steps"
    )
    (other,) = why_estimated(opened, opened, (), one, (123, 120))
    assert other.endswith("120 steps were sent, 123 were recorded")


@pytest.mark.parametrize(
    ("shape", "route"),
    [(SHAPES[1], None), (SHAPES[3], "legacy"), (FULL_SHAPES[1], None), *((s, r) for r, s in CHUNK_SHAPES.items()),
     *((shape, None) for shape in STATE_SHAPES)],
)  # fmt: skip
def test_whatever_was_done_to_a_rank_its_requests_go_through(
    shape: tuple[int, ...], route: str | None, tmp_path: Path
) -> None:
    """N7: beside locks, evictions, frees and inserts of strangers, with states of recurrent layers too; no law is broken."""
    written(tmp_path / "run", 250, shape=shape, route=route, redaction="hashed")
    record = taken(tmp_path / "run", tmp_path / "taken")
    for settings in ({}, {"full_pages": "25"}, {"route": "radix"}):
        redrive, _ = sent(record, **settings)
        assert redrive.broken == []
        assert redrive.figures.finished + redrive.strayed.unended >= record.figures.finished > 10
        assert redrive.strayed.turned_down == 0


def test_a_request_that_decodes_what_its_server_computes_as_a_prompt_catches_up(tmp_path: Path) -> None:
    """J17: the last token of a prompt may be computed as a step of decoding, behind a hit of all the others."""
    drive(tmp_path / "run", stream=prompts(), running=1, full=34, swa=20)
    record = taken(tmp_path / "run", tmp_path / "taken")
    acts = [act for act in record.acts if not (isinstance(act, Grow) and not act.decode)]
    redrive, _ = sent(without(record, acts=acts, room=tmp_path / "decoding"))
    assert redrive.figures.finished == 40
    assert redrive.figures.computed_tokens == record.figures.computed_tokens
    assert redrive.broken == []
