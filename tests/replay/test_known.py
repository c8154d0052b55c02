"""Where events are missing a healthy rank is accused of nothing, and what is not known is said (J11, J14)."""

import json
import shutil
from pathlib import Path

import pytest

from radixledger.journal.events import Gap
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.known import reached
from radixledger.replay.laws import OF_STATES
from radixledger.replay.locks.lock_report import locks_at
from radixledger.replay.search.bisect import turned
from radixledger.replay.search.found import of_laws
from radixledger.replay.seek import state_at
from radixledger.replay.triage.align import span_of_step
from radixledger.replay.triage.sentences import verdict
from radixledger.replay.triage.triage import triage_rank
from radixledger.tools.cli import run as radixledger

from .runs import RANK

INCIDENT = Path(__file__).parents[2] / "docs" / "incident"
LOST = 905
"""The gap stands in the last place of the segment that is removed."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rank 0 of the shipped incident, which is healthy, without its middle segment."""
    run = tmp_path_factory.mktemp("gap") / "incident"
    shutil.copytree(INCIDENT / "rank-0000", run / "rank-0000")
    (run / "rank-0000" / "00000000000000000466.sealed").unlink()
    return run


@pytest.fixture
def reader(run: Path) -> JournalReader:
    return JournalReader(run, RANK, salvage=True)


def test_the_state_before_a_gap_is_known_and_behind_it_no_finding_is_told(reader: JournalReader) -> None:
    """J11, J12."""
    for seq in (1, 2, 465):
        state, lost_at = reached(reader, seq)
        assert (state.seq, lost_at, state.findings) == (seq, 0, [])
    assert state_at(reader, reader.last_seq).findings, "told without knowing, laws were broken"
    state, lost_at = reached(reader, reader.last_seq)
    assert (state.seq, lost_at, state.findings) == (reader.last_seq, LOST, [])


def test_no_law_is_said_to_be_broken_where_the_state_is_not_known(reader: JournalReader) -> None:
    """J14, J15: every law of states, by halves; what is asked of states is asked before the gap."""
    found = turned(reader, of_laws([*OF_STATES.values()]))
    assert (found.first, found.no_at, found.every_command) == (0, 465, True)
    assert any(f"missing at event {LOST}" in notice for notice in found.notices)


def test_the_locks_behind_a_gap_are_those_just_before_it(reader: JournalReader) -> None:
    """N15."""
    report, before = locks_at(reader, reader.last_seq), locks_at(reader, 465)
    assert (report.fault_count, report.lost_at, before.lost_at) == (0, LOST, 0)
    assert (report.seq, report.holds) == (before.seq, before.holds)
    assert report.holds, "somebody holds a lock there"


def test_the_commands_say_so_and_blame_nobody(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("state", "locks", "bisect --law every_page_has_one_owner"):
        assert radixledger(["replay", *words.split(), str(run), "--salvage"]) == 0
        said = " ".join("".join(capsys.readouterr()).split())
        assert f"events are missing at event {LOST}: behind it the state is not known" in said, words


def test_triage_says_of_the_end_what_is_known_of_it_and_counts_no_gap(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """J14: the last event is there and closes; who was live then is not known."""
    found = triage_rank(run, RANK)
    report, ending = found.report, found.ending
    assert (report.closed, ending.closed, ending.known, ending.live) == (True, True, False, [])
    assert (report.events, report.gaps, report.lost, report.unjudged) == (751, 1, 440, 285)
    assert verdict(found) == [
        "damaged: 440 events are missing, 285 behind the damage can be judged by their pages alone; nothing is wrong in those, nor in the 465 others."
    ]
    assert radixledger(["triage", str(run), "--no-report"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "live at the end not known behind the damage" in said
    assert "closed yes" in said


def test_the_events_of_a_step_are_found_whatever_is_missing_behind_or_before_them(tmp_path: Path) -> None:
    """J14: a gap is of no step, and is not taken for an early one. A bit of the shipped incident's last segment is turned."""
    run, one = Path(shutil.copytree(INCIDENT, tmp_path / "run")), Rank(1)
    whole = [span_of_step(run, one, step) for step in range(90, 130)]
    segment = run / "rank-0001" / "00000000000000000872.seg"
    packed = bytearray(segment.read_bytes())
    packed[12000] ^= 1
    segment.write_bytes(packed)
    frames = list(JournalReader(run, one, salvage=True).frames())
    here = {seq for frame in frames if type(frame.events[0]) is not Gap for seq in range(frame.seq_first, frame.seq_last + 1)}  # fmt: skip
    assert len(here) < frames[-1].seq_last, "something is lost"
    compared = 0
    for step, span in enumerate(whole, 90):
        if span is not None and here.issuperset(told := range(span.seq_first, span.seq_last + 1)) and told:
            assert span_of_step(run, one, step) == span
            compared += 1
    assert compared > 20


def test_the_report_names_every_damaged_rank_and_no_owner_at_an_end_that_is_not_known(
    run: Path, tmp_path: Path
) -> None:
    """J14: each of two ranks lost its middle segment."""
    two = tmp_path / "two"
    shutil.copytree(INCIDENT, two)
    for rank, segment in ((0, 466), (1, 452)):
        (two / f"rank-{rank:04d}" / f"{segment:020d}.sealed").unlink()
    assert radixledger(["report", str(two), "--output", str(tmp_path / "page.html")]) == 1
    page = (tmp_path / "page.html").read_text("utf-8")
    banner = page[page.index('class="banner bad"') :].partition("</div>")[0]
    assert banner.count("damaged: ") + banner.count("Damaged: ") == 2
    assert f"at the end: not known behind the gap of event {LOST}" in page


@pytest.mark.parametrize(
    ("words", "row"),
    [
        ("--pool full --page 50", ["request(136)", "not known"]),
        ("--node 20", ["not known"]),
        ("--request chat-19", ["not known from here on"]),
    ],
)
def test_a_life_says_where_it_has_a_hole(
    run: Path, words: str, row: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """J14: of a page, a node and a request; what stands behind it is what events say."""
    assert radixledger(["replay", "blame", *words.split(), str(run), "--salvage", "--json"]) == 1
    out, err = capsys.readouterr()
    (hole,) = [step for step in json.loads(out) if step["event"] == "Gap"]
    assert (hole["seq"], hole["wrong"]) == (LOST, "440 events missing here")
    assert f"events are missing at event {LOST}: behind it the state is not known" in " ".join(err.split())
    assert radixledger(["replay", "blame", *words.split(), str(run), "--salvage"]) == 1
    told = " ".join(capsys.readouterr().out.split())  # lines end where the name of the run lets them
    assert all(each in told for each in row)


def test_what_a_journal_with_a_hole_tells_nothing_of_may_be_in_the_hole(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """J11: so it is no wrong usage to ask for it."""
    assert radixledger(["replay", "blame", "--node", "999999", str(run), "--salvage"]) == 1
    assert "it may be among the events that are missing" in " ".join(capsys.readouterr().err.split())
    assert radixledger(["replay", "blame", "--node", "999999", str(INCIDENT), "--rank", "0"]) == 2
