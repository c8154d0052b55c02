"""Incidents are reduced to few commands, and the fixture fails on the wrong cache and passes on the lawful one."""

import re
from pathlib import Path

import pytest

from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.reduce.counterfactual import counterfactual
from radixledger.replay.reduce.fixture import fixture
from radixledger.replay.reduce.incident import Incident, NoSuchLaw, incident_of, laws
from radixledger.replay.reduce.reduce import reduced
from radixledger.replay.schedule.elsewhere import OtherRevisionFailed, decided_here, performed_elsewhere
from radixledger.replay.schedule.played_rank import PlayedRank
from radixledger.replay.schedule.redriven import redriven
from radixledger.replay.schedule.stage import Stage

from ..mutants.caught import spoiled, write
from ..mutants.seeded import Mutant
from ..mutants.table import MUTANTS
from .make_incident import PATH as SHIPPED
from .make_incident import from_the_prefix
from .reductions import FEW, MARK, PATH, failure_of, reduction, row


def journaled(folder: Path, mutant: Mutant) -> Incident:
    """What a mutant wrote, as an incident."""
    with spoiled(mutant):
        write(folder / mutant.name, mutant)
    incident = incident_of(JournalReader(folder / mutant.name, Rank(0)))
    assert incident is not None
    return incident


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=[*MUTANTS])
def test_an_incident_is_reduced_as_the_page_says(mutant: Mutant, tmp_path: Path) -> None:
    """J18, N8: from the journal alone; what its fixture does on the wrong cache and on the lawful one."""
    told = reduction(tmp_path, mutant)
    assert told.counts, told
    assert row(told) in PATH.read_text("utf-8").partition(MARK)[2].splitlines()


def test_nine_in_ten_of_all_incidents_are_reduced_to_few_events() -> None:
    """J18: the page has every incident, and each is held against it."""
    rows = [
        line
        for line in PATH.read_text("utf-8").splitlines()
        if line.partition("|")[2].strip().partition(" ")[0] in MUTANTS
    ]
    assert len(rows) == len(MUTANTS)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]
    good = [each for each in cells if each[4:] == ["yes", "yes"] and int(each[2]) <= FEW]
    assert len(good) * 10 >= len(rows) * 9


def test_the_shipped_incident_is_reduced_to_the_bug_and_what_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """J18: out of the traffic of a server; with the bug in the cache the fixture fails by the same law."""
    incident = incident_of(JournalReader(SHIPPED, Rank(1)))
    assert incident is not None
    least = reduced(incident, 60.0)
    assert len(least.deeds) * 10 < least.at_first
    text = fixture(least)
    assert failure_of(text) == ""
    monkeypatch.setattr("radixledger.cache.decide.requests._surrender", from_the_prefix)
    assert incident.first.law in failure_of(text)


def test_of_a_long_journal_the_end_is_enough_if_it_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """J18: what is asked of requests that came before is left out, and the rest begins on an empty rank."""
    monkeypatch.setattr("radixledger.replay.reduce.incident.MOST_EVENTS", 250)
    incident = incident_of(JournalReader(SHIPPED, Rank(1)))
    assert incident is not None
    assert not incident.whole
    least = reduced(incident, 60.0)
    assert 0 < len(least.deeds) < least.at_first < len(incident.recorded)
    text = fixture(least)
    assert failure_of(text) == ""
    monkeypatch.setattr("radixledger.cache.decide.requests._surrender", from_the_prefix)
    assert incident.first.law in failure_of(text)


def test_the_same_journal_gives_the_same_fixture_and_no_text_of_anybody(tmp_path: Path) -> None:
    incident = journaled(tmp_path, MUTANTS["a_heal_takes_pages_from_under_a_request"])
    texts = {fixture(reduced(incident, 60.0)) for _ in range(2)}
    assert len(texts) == 1
    assert str(tmp_path) not in texts.pop()


def test_without_time_all_that_was_found_is_kept(tmp_path: Path) -> None:
    """What there is when time runs out is still the incident."""
    mutant = MUTANTS["duplicates_are_freed_twice"]
    least = reduced(journaled(tmp_path, mutant), 0.0)
    assert not least.finished
    text = fixture(least)
    assert failure_of(text) == ""
    with spoiled(mutant):
        assert least.incident.first.law in failure_of(text)


def test_another_law_can_be_asked_for_and_one_that_there_is_not_is_told(tmp_path: Path) -> None:
    mutant = MUTANTS["duplicates_are_freed_twice"]
    with spoiled(mutant):
        write(tmp_path / "run", mutant)
    reader = JournalReader(tmp_path / "run", Rank(0))
    found = incident_of(reader, "a_page_is_freed_once")
    assert found is not None
    assert found.first.law == "a_page_is_freed_once"
    with pytest.raises(NoSuchLaw) as refused:
        incident_of(reader, "a_page_is_freed_never")
    assert refused.value.known == laws()


def test_the_mended_cache_makes_the_violation_go_away_and_the_wrong_one_does_not(tmp_path: Path) -> None:
    """N20: in this process, where another revision is a seeded fault."""
    mutant = MUTANTS["a_heal_takes_pages_from_under_a_request"]
    incident = journaled(tmp_path, mutant)
    mended = counterfactual(incident, decided_here)
    assert mended.mends
    assert mended.difference is not None
    assert mended.difference.seq <= incident.first.seq
    with spoiled(mutant):
        answers = decided_here(incident.opened, [each.command for each in incident.recorded if each.command])
    same = counterfactual(incident, lambda _, __: answers)
    assert not same.gone
    assert same.difference is None or same.difference.seq == incident.recorded[-1].seq


def test_another_revision_decides_in_a_process_of_its_own(tmp_path: Path) -> None:
    """N20: a folder with the package is all that is needed; here it is this very revision."""
    incident = journaled(tmp_path, MUTANTS["a_heal_takes_pages_from_under_a_request"])
    source = Path(__file__).parents[2] / "src"
    found = counterfactual(incident, lambda opened, commands: performed_elsewhere(source, opened, commands))
    assert found == counterfactual(incident, decided_here)


def test_memory_that_runs_out_while_commands_are_performed_is_nobodys_violation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says something of this machine, and nothing of the cache: no verdict is built on it."""
    incident = journaled(tmp_path, MUTANTS["a_heal_takes_pages_from_under_a_request"])
    commands = [each.command for each in incident.recorded if each.command]

    def hungry(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Stage, "perform", hungry)
    with pytest.raises(MemoryError):
        decided_here(incident.opened, commands)
    with pytest.raises(MemoryError):
        redriven(incident.opened.route, incident.opened.config, commands)


HOSTILE = {
    "it prints": ('print("{}" * 9)', ""),
    "it raises": ('raise RuntimeError("not today")', "RuntimeError: not today"),
    "it leaves with 0": ("import os; os._exit(0)", "it left behind 0 of"),
    "it leaves": ("import os; os._exit(5)", "it said nothing and left with 5"),
    "its words are no text": (r'import os; os.write(2, b"\xff\n"); os._exit(5)', "\ufffd"),
    "its events are none of ours": (
        "from radixledger.journal import codec\ncodec.Encoder.encode = lambda *_: b'\\x91\\x93\\x63\\x01\\x02'",
        "its answer cannot be read",
    ),
}
"""What a revision does when it is imported, and what is told of it; nothing where its deciders answer all the same."""


@pytest.mark.parametrize("behaviour", HOSTILE)
def test_a_revision_that_gives_no_whole_answer_has_mended_nothing(behaviour: str, tmp_path: Path) -> None:
    """N20: nothing that it prints is an answer, and leaving with 0 is none either."""
    does, told = HOSTILE[behaviour]
    source = Path(__file__).parents[2] / "src" / "radixledger"
    package = tmp_path / "src" / "radixledger"
    package.mkdir(parents=True)
    for each in source.iterdir():
        (package / each.name).symlink_to(each.resolve())
    (package / "replay").unlink()
    (package / "replay").mkdir()
    (package / "replay" / "__init__.py").write_text(does + "\n")
    incident = journaled(tmp_path, MUTANTS["a_heal_takes_pages_from_under_a_request"])
    commands = [each.command for each in incident.recorded if each.command]
    if not told:
        assert performed_elsewhere(tmp_path / "src", incident.opened, commands) == decided_here(
            incident.opened, commands
        )
        return
    with pytest.raises(OtherRevisionFailed, match=re.escape(told)):
        performed_elsewhere(tmp_path / "src", incident.opened, commands)


def test_a_folder_without_the_package_is_not_answered_for_by_the_one_that_is_installed(
    tmp_path: Path,
) -> None:
    incident = journaled(tmp_path, MUTANTS["a_heal_takes_pages_from_under_a_request"])
    commands = [each.command for each in incident.recorded if each.command]
    with pytest.raises(OtherRevisionFailed, match="it has no package radixledger"):
        performed_elsewhere(tmp_path, incident.opened, commands)


def test_a_rank_that_stops_has_failed_and_mended_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    incident = journaled(tmp_path, MUTANTS["a_heal_takes_pages_from_under_a_request"])
    monkeypatch.setattr(PlayedRank, "stopped", True)
    found = counterfactual(incident, decided_here)
    assert (found.performed, found.failed[:16], found.mends) == (1, "the rank stopped", False)
