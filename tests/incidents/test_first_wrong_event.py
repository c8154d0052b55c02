"""Triage names the first wrong event of every incident, with a small slice of what led to it."""

from pathlib import Path

import pytest

from radixledger.replay.triage.sentences import verdict
from radixledger.replay.triage.triage import RankTriage, triage

from ..cache.test_host_laws import told
from ..mutants.caught import write
from ..mutants.table import MUTANTS
from .journals import NAMES, Incident, put_down


@pytest.fixture(scope="module")
def triaged(incidents: dict[str, Incident]) -> dict[str, RankTriage]:
    """What triage says of each incident."""
    return {name: triage([incident.run])[0] for name, incident in incidents.items()}


@pytest.mark.parametrize("name", NAMES)
def test_the_first_wrong_event_of_an_incident_is_named(
    name: str, incidents: dict[str, Incident], triaged: dict[str, RankTriage]
) -> None:
    """J14, N4: nothing stopped the writer, and the journal tells of no violation."""
    incident, told_of_it = incidents[name], triaged[name]
    assert told_of_it.kind == "wrong"
    explained = told_of_it.explained
    assert explained is not None
    assert explained.first.seq == incident.seq
    assert verdict(told_of_it)[0].startswith(f"event {incident.seq:,}, step ")
    laws = {each.law for each in told_of_it.report.findings if each.seq == incident.seq}
    assert incident.law in laws


@pytest.mark.parametrize("name", NAMES)
def test_a_slice_is_small_and_ends_in_the_wrong_event(name: str, triaged: dict[str, RankTriage]) -> None:
    """J14: the events that matter, not all: in order, none after the wrong one, each about something that is followed."""
    explained = triaged[name].explained
    assert explained is not None
    events = explained.slice.events
    assert [each.seq for each in events] == sorted({each.seq for each in events})
    assert [each.wrong for each in events] == [False] * (len(events) - 1) + [True]
    assert events[-1].seq == explained.first.seq
    assert all(each.what for each in events[:-1])
    assert len(events) <= 16
    assert not explained.slice.unfinished


def test_the_same_schedules_without_a_fault_are_clean(tmp_path: Path) -> None:
    """What triage says of an incident it says because of the fault; some callers of faces still hold pages at the end."""
    kinds = set()
    for name, mutant in MUTANTS.items():
        write(tmp_path / name, mutant)
        (found,) = triage([tmp_path / name])
        kinds.add(found.kind)
        assert found.explained is None, verdict(found)
    put_down(tmp_path / "host", [told()])
    assert triage([tmp_path / "host"])[0].explained is None
    assert kinds <= {"clean", "turned down", "leak"}
