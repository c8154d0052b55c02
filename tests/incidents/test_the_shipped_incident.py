"""The broken run of the tutorial is what its script makes, and what the tutorial says of it."""

import re
from pathlib import Path

import pytest

from radixledger.analytics.load import load
from radixledger.analytics.queries import ask, find
from radixledger.analytics.store import Database
from radixledger.journal.accounts import FREE
from radixledger.journal.frame import Frame
from radixledger.journal.moves import moves, pages_of
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank, Seq
from radixledger.replay.reduce.incident import incident_of
from radixledger.replay.triage.sentences import verdict
from radixledger.replay.triage.triage import triage
from radixledger.replay.verify import verify_rank

from .make_incident import PATH, make


def told(run: Path, rank: int) -> tuple[list[Frame], list[str]]:
    """Every frame of a rank, and what a reader should know of its files."""
    reader = JournalReader(run, Rank(rank))
    return list(reader.frames()), reader.notices


@pytest.mark.parametrize("rank", [0, 1])
def test_the_script_makes_the_run_that_is_shipped(
    rank: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Event by event: compressed bytes may differ from one zlib to another. `python -m tests.incidents.make_incident` makes it anew."""
    made = tmp_path_factory.mktemp("made") / PATH.name
    make(made)
    assert told(made, rank) == told(PATH, rank)
    assert [path.name for path in sorted(made.rglob("*"))] == [path.name for path in sorted(PATH.rglob("*"))]


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in PATH.rglob("*") if path.is_file()) < 64 << 10


def test_one_rank_is_wrong_and_the_pages_are_read_at_that_moment() -> None:
    """The free of an aborted request names pages that the tree has, while a running step reads them."""
    clean, wrong = triage([PATH])
    assert (clean.kind, clean.report.closed) == ("clean", True)
    assert (wrong.kind, wrong.damage) == ("wrong", [])
    explained = wrong.explained
    assert explained is not None
    assert (explained.event, explained.cause) == ("Freed", "abort/tail")
    assert explained.first.law == "a_page_is_given_by_its_owner"
    (step,) = explained.steps
    assert any(use.startswith("reads FULL page") for use in step.uses)
    assert any("Device step 109 was running: it reads FULL page 50" in each for each in verdict(wrong))


def test_the_verdict_says_how_many_pages_it_is_about_and_who_got_each_of_them() -> None:
    """The totals agree with the events themselves, page by page: the first request that each was handed to behind the free, and when."""
    _, wrong = triage([PATH])
    explained = wrong.explained
    assert explained is not None
    gone = explained.astray
    assert {pool: len(pages) for pool, pages in gone.pages.items()} == {"FULL": 12, "SWA": 12}
    assert not gone.cut
    expected: dict[tuple[str, int], tuple[int, int]] = {}
    for frame in JournalReader(PATH, Rank(1)).frames(Seq(explained.first.seq + 1)):
        for seq, event in enumerate(frame.events, frame.seq_first):
            for move in (move for move in moves(event) if move.giver == FREE):
                for page in pages_of(move.pages).tolist():
                    expected.setdefault((move.pool.name, page), (move.taker >> 3, seq))
    told = {
        (pool, page): (each.request, handed.seq)
        for each in gone.got
        for handed in each.handed
        for pool, pages in handed.pages.items()
        for page in pages
    }
    assert told == {
        (pool, page): expected[pool, page] for pool, pages in gone.pages.items() for page in pages
    }
    text = " ".join(verdict(wrong))
    assert "In all that is 12 FULL and 12 SWA pages, which 7 nodes had." in text
    assert f"24 of its pages were handed out again, to {len(gone.got)} requests: " in text


def test_every_command_tells_the_wrong_event_by_the_same_finding() -> None:
    """The free gives up SWA pages first; it is told by its FULL pages, which outlive a window."""
    _, wrong = triage([PATH])
    assert wrong.explained is not None
    first = wrong.explained.first
    assert (first.seq, first.pool, first.pages) == (479, "FULL", [50, 51])
    reduced = incident_of(JournalReader(PATH, Rank(1)))
    assert reduced is not None
    assert [verify_rank(PATH, Rank(1)).findings[0], wrong.report.findings[0], reduced.first] == [first] * 3
    of_the_event = [each.pool for each in wrong.report.findings if each.seq == first.seq]
    assert of_the_event == ["FULL"] * 7 + ["SWA"] * 7


def test_sql_finds_it_by_a_question_that_the_table_of_symptoms_names() -> None:
    """To SQL the pages are free behind the foreign free, so handing them out again makes no row of `two_owners`."""
    database = Database()
    load(database, PATH)
    connection = database.questioned()
    symptoms = (PATH.parent / "triage.md").read_text()
    (row,) = [line for line in symptoms.splitlines() if line.startswith("| garbage in one answer, pieces of")]
    found = {
        name: rows for name in re.findall("`(.+?)`", row) if (rows := len(ask(connection, find(name)).rows))
    }
    assert found == {"foreign_free": 24}
