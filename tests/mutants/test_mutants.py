"""Every seeded fault is caught three times, at the event that was predicted; without the fault nobody says anything."""

from pathlib import Path

import pytest

from radixledger.analytics.queries import of_kind
from radixledger.cache.laws.invariants import LAWS
from radixledger.cache.laws.of_events import NAMES

from ..analytics.host_faults import FAULTS as FAULTS_OF_THE_HOST
from .caught import Caught
from .folded import Diverged, is_seen_by_the_model
from .of_the_fold import FOLDS
from .page import MARK, PATH, all_caught, all_diverged, all_lawful, generated
from .table import MUTANTS

CORPUS = {f"B{number}" for number in range(1, 27)}
BEYOND_METADATA = {
    "B19": "a host block under a zero-copy write: there is no host tier on this route",
    "B21": "slower, not wrong",
}
"""Entries of the corpus that no event of this route can show."""


HOST_LAWS = {
    "a_copy_is_made_when_it_is_due", "what_is_demoted_is_the_oldest_leaf", "what_is_dropped_is_the_oldest_copy",
    "a_full_tombstone_takes_what_a_request_brings", "a_load_holds_its_path", "a_match_reaches_copies_that_can_be_read",
    "what_was_not_loaded_goes_where_the_group_says",
}  # fmt: skip
"""Laws of the host tier: `tests/cache/test_host_laws.py` breaks each."""
FAULTS_ELSEWHERE = {
    "leak_at_end", "missing_events", "missing_ranks", "opening_out_of_bounds", "recorded_violations", "ledger_after_flush", "ledger_diagnostics", "ledger_pair_capacity",
    *(fault.__name__ for fault in FAULTS_OF_THE_HOST),
}  # fmt: skip
"""Checks of whole runs, of what a journal itself lacks, of the host tier: `tests/analytics` has a fault for each."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Caught]:
    return all_caught(tmp_path_factory.mktemp("mutants"))


@pytest.fixture(scope="module")
def diverged() -> dict[str, Diverged]:
    return all_diverged()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_decider_is_caught_three_times_at_its_first_wrong_event(
    name: str, found: dict[str, Caught]
) -> None:
    """J14, J22, J25, J28: live, by verify and in SQL; each blames the event that was written down beforehand."""
    mutant, caught = MUTANTS[name], found[name]
    assert caught.predicted is not None, "the schedule does not show the fault"
    assert caught.live is not None
    assert caught.verify is not None
    assert caught.distances[:2] == (0, 0), caught
    assert mutant.law in caught.live.by + caught.verify.by
    if mutant.check:
        assert caught.sql is not None
        assert caught.distances[2] == 0, caught
        assert mutant.check in caught.sql.by


def test_without_a_fault_the_same_schedules_are_lawful(tmp_path: Path) -> None:
    """What every detector says of a mutant it says because of the mutant."""
    lawful = all_lawful(tmp_path)
    said = {name: each for name, each in lawful.items() if each[1:] != (None, None, None)}
    assert said == {}


def test_forty_faults_and_more_are_caught_three_times() -> None:
    """J28."""
    assert sum(bool(mutant.check) for mutant in MUTANTS.values()) >= 60
    assert [name for name, mutant in MUTANTS.items() if not mutant.check and not mutant.unseen] == []


def test_every_law_of_an_event_has_a_fault_that_it_names(found: dict[str, Caught]) -> None:
    """J28: a law that no fault breaks might as well not be asked."""
    told = {
        law
        for each in found.values()
        for verdict in (each.live, each.verify)
        if verdict
        for law in verdict.by
    }
    assert sorted(set(NAMES) - told - HOST_LAWS) == []


def test_every_check_of_pages_tree_and_requests_has_a_fault_that_it_names(found: dict[str, Caught]) -> None:
    """J28."""
    told = {check for each in found.values() if each.sql for check in each.sql.by}
    assert sorted({check.name for check in of_kind("check")} - told - FAULTS_ELSEWHERE) == []


def test_the_corpus_is_seeded() -> None:
    """J25: every entry whose defect shows in metadata."""
    seeded = {bug for mutant in MUTANTS.values() for bug in mutant.bugs}
    assert sorted(CORPUS - seeded - set(BEYOND_METADATA)) == []


@pytest.mark.parametrize("mutant", FOLDS, ids=lambda mutant: mutant.name)
def test_a_wrong_fold_leaves_the_lawful_one_where_it_was_predicted(
    mutant: object, diverged: dict[str, Diverged]
) -> None:
    """J12, J28: the digests differ from the first event on that was folded wrongly."""
    told = diverged[mutant.name]  # type: ignore[attr-defined]
    assert told.predicted is not None
    assert told.found == told.predicted


@pytest.mark.parametrize("mutant", FOLDS, ids=lambda mutant: mutant.name)
def test_a_wrong_fold_is_noticed_by_the_naive_model(mutant: object) -> None:
    """J19, J28: in random plays, by the model alone; live and folded state agree, and no law is asked."""
    assert is_seen_by_the_model(mutant)  # type: ignore[arg-type]


def test_ten_faults_and_more_are_in_the_fold() -> None:
    assert len(FOLDS) >= 15
    assert len({law.__name__ for law in LAWS} | set(NAMES)) == len(LAWS) + len(NAMES), (
        "names of laws are told apart"
    )


def test_the_page_says_what_is_found(found: dict[str, Caught], diverged: dict[str, Diverged]) -> None:
    """J28: run `python -m tests.mutants.page`."""
    assert PATH.read_text("utf-8").partition(MARK)[2] == generated(found, diverged)
