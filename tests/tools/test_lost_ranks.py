"""A run of which a rank, or a part of one, was not collected: every command that judges it says so, and goes on with the rest."""

import json
import shutil
from pathlib import Path

import pytest

from radixledger.journal.seal import seal
from radixledger.journal.writer import Sealing
from radixledger.tools.cli import run as radixledger

from ..journal.written import some_commands, write
from ..replay.runs import written

Capture = pytest.CaptureFixture[str]
GONE = "rank 1 of 2 is not here: run driven has 2 ranks"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two ranks, clean, in several segments."""
    monkeypatch.chdir(tmp_path)
    for rank in range(2):
        written(tmp_path / "run", 60, seed=rank, rank=rank, ranks=2, rotate_bytes=4_000)
    return tmp_path / "run"


@pytest.fixture
def half(run: Path) -> Path:
    """The same, rank 1 left behind on its host."""
    shutil.rmtree(run / "rank-0001")
    return run


def told(words: str, capsys: Capture) -> tuple[int, str, str]:
    code = radixledger(words.split())
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    "command", ["triage run --no-report", "replay verify run", "journal doctor run", "report run"]
)
def test_a_rank_that_is_not_here_is_told_first_and_is_a_finding(
    command: str, half: Path, capsys: Capture
) -> None:
    """J14."""
    code, out, _ = told(command, capsys)
    assert (code, out.startswith(GONE)) == (1, True)


@pytest.mark.parametrize(
    "command", ["triage run --no-report", "replay verify run", "journal doctor run", "report run"]
)
def test_folders_that_were_exchanged_are_told_first(command: str, run: Path, capsys: Capture) -> None:
    """J14."""
    for old, new in (("rank-0000", "aside"), ("rank-0001", "rank-0000"), ("aside", "rank-0001")):
        (run / old).rename(run / new)
    _, out, _ = told(command, capsys)
    first = "run driven: rank 0's journal lies in the folder of rank 1, and the other way round"
    assert " ".join(out.split()).startswith(first)


def test_the_checks_in_sql_tell_of_it_from_a_journal_and_from_what_was_loaded(
    half: Path, capsys: Capture
) -> None:
    """J22."""
    code, out, err = told("sql run --checks", capsys)
    assert (code, err.startswith(GONE)) == (1, True)
    assert "missing_ranks: " in out
    told("load run --to run.duckdb", capsys)
    code, out, _ = told("sql run.duckdb --checks", capsys)
    assert (code, "missing_ranks: " in out) == (1, True)


def test_programs_are_told_which_rank_it_is(half: Path, capsys: Capture) -> None:
    absent = [{"run": "driven", "ranks": 2, "missing": [1], "misplaced": []}]
    triaged = json.loads(told("triage run --json", capsys)[1])
    assert (triaged["verdict"], triaged["absent"]) == ("incomplete", absent)
    verified = json.loads(told("replay verify run --json", capsys)[1])
    assert (verified["clean"], verified["absent"]) == (False, absent)
    examined = json.loads(told("journal doctor run --json", capsys)[1])
    assert [(each["rank"], each["findings"]) for each in examined] == [(1, True), (0, False)]
    assert json.loads(told("report run --json", capsys)[1])["absent"] == absent
    assert json.loads(told("sql run --checks --json", capsys)[1])["clean"] is False


def test_the_page_for_the_ticket_begins_with_it(half: Path, capsys: Capture) -> None:
    told("triage run", capsys)
    page = Path("run-report.html").read_text()
    assert page.index("Rank 1 of 2 is not here") < page.index("Clean")


@pytest.mark.parametrize(
    "command", ["triage run --rank 0 --no-report", "triage run/rank-0000 --no-report", "replay verify run --rank 0",
                "journal doctor run --rank 0", "report run --rank 0"]
)  # fmt: skip
def test_who_asks_for_single_ranks_is_told_of_no_other(command: str, half: Path, capsys: Capture) -> None:
    code, out, err = told(command, capsys)
    assert (code, "not here" in out + err) == (0, False)


def test_what_was_collected_from_two_hosts_is_one_run(run: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "there").mkdir()
    (run / "rank-0001").rename(tmp_path / "there" / "rank-0001")
    code, out, _ = told("triage run there --no-report", capsys)
    assert (code, "not here" in out) == (0, False)


def test_a_deleted_first_segment_is_told_by_recover_and_triage_judges_what_is_left(
    run: Path, capsys: Capture
) -> None:
    """J3, J14: exit 1, and a copy of which the same can be said."""
    first, *_ = sorted((run / "rank-0001").glob("*.sealed"))
    first.unlink()
    code, out, _ = told("journal recover run --to copy", capsys)
    assert code == 1
    assert "missing 1, next is" in out
    for place in ("run", "copy"):
        (_, one) = json.loads(told(f"triage {place} --json", capsys)[1])["ranks"]
        assert (one["kind"], one["report"]["gaps"], one["report"]["unreadable"]) == ("damaged", 1, "")


def test_a_segment_of_another_rank_does_not_hide_what_is_wrong_in_this_one(
    tmp_path: Path, capsys: Capture
) -> None:
    """J14: the incident of the tutorial, with a file of rank 0 copied between those of rank 1."""
    incident = tmp_path / "incident"
    shutil.copytree(Path(__file__).parents[2] / "docs" / "incident", incident)
    shutil.copy(next((incident / "rank-0000").glob("*466.sealed")), incident / "rank-0001")
    kinds = {each["rank"]: each for each in json.loads(told(f"triage {incident} --json", capsys)[1])["ranks"]}
    assert (kinds[1]["kind"], kinds[1]["explained"]["first"]["seq"]) == ("wrong", 479)
    assert any("set aside" in notice for notice in kinds[1]["report"]["notices"])


@pytest.fixture
def hollow(run: Path) -> Path:
    """Rank 0 whole, and of rank 1 a folder without a file."""
    shutil.rmtree(run / "rank-0001")
    (run / "rank-0001").mkdir()
    return run


def test_the_doctor_goes_on_with_the_others_where_a_folder_is_empty(hollow: Path, capsys: Capture) -> None:
    code, out, _ = told("journal doctor run", capsys)
    assert code == 3
    assert "rank 0 is sound" in out
    assert "rank 1 has findings" in out
    assert "its folder holds no segment" in out


def test_recover_copies_the_others_and_the_copy_is_not_called_clean(hollow: Path, capsys: Capture) -> None:
    code, out, _ = told("journal recover run --to copy", capsys)
    assert code == 1
    assert "rank 1: not copied: " in out
    assert sorted(each.name for each in Path("copy").iterdir()) == ["rank-0000"]
    assert json.loads(told("triage copy --json", capsys)[1])["verdict"] == "incomplete"
    assert told("triage copy --no-report", capsys)[0] == 1


def test_redact_copies_the_others_and_says_so_where_a_folder_is_empty(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J10: as `recover` does; a rank that was not collected keeps the tokens of no other from being hashed."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run", some_commands(20))
    (tmp_path / "run" / "rank-0001").mkdir()
    code, out, _ = told("journal redact run --to copy", capsys)
    assert (code, "rank 1: not copied: " in out) == (1, True)
    assert sorted(each.name for each in Path("copy").iterdir()) == ["rank-0000"]
    assert "redaction hashed" in told("journal cat copy --rank 0", capsys)[1]
    code, _, err = told("journal redact run --to again --rank 1", capsys)
    assert (code, "holds no segment" in err) == (3, True)
    shutil.rmtree("run/rank-0000")
    Path("run/rank-0000").mkdir()
    assert told("journal redact run --to again", capsys)[0] == 1
    assert not Path("again.redaction.key").exists(), "there was nothing to make a key for"


def test_recover_leaves_no_part_of_a_rank_where_it_cannot_end(
    run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up behind the first segment: no folder has the name of a rank that is not whole."""
    sealed: list[object] = []

    def seal_one(*arguments: object) -> None:
        if sealed:
            raise OSError(28, "No space left on device")
        sealed.append(seal(*arguments))  # type: ignore[arg-type]

    monkeypatch.setattr("radixledger.journal.recover.seal", seal_one)
    assert told("journal recover run --to copy", capsys)[0] == 3
    assert list(Path("copy").iterdir()) == []


def test_nobody_is_told_of_a_rank_that_was_asked_for_and_is_nowhere(run: Path, capsys: Capture) -> None:
    assert told("journal doctor run --rank 7", capsys)[0] == 3
    assert told("journal recover run --to copy --rank 7", capsys)[0] == 3
    assert not Path("copy").exists()


def test_a_sealed_end_without_closed_deserves_a_word(run: Path, capsys: Capture) -> None:
    """J14: the last segment was deleted; no finding, because others end so too."""
    assert "Closed: a" not in told("journal doctor run", capsys)[1]
    assert "; closed by its writer" in told("triage run --no-report", capsys)[1]
    *_, last = sorted((run / "rank-0001").glob("*.sealed"))
    last.unlink()
    code, out, _ = told("journal doctor run", capsys)
    assert code == 0
    assert "  - the last segment is sealed and does not end with Closed" in " ".join(out.split("\n"))
    code, out, _ = told("triage run --rank 1 --no-report", capsys)
    assert (code, "it ends with a sealed segment and without Closed" in out) == (0, True)


def test_a_live_end_without_closed_is_that_of_a_writer_at_work_or_killed(run: Path, capsys: Capture) -> None:
    shutil.rmtree(run)
    write(run, some_commands(20), sealing=Sealing.NEVER)
    assert "the last segment is sealed" not in told("journal doctor run", capsys)[1]


@pytest.mark.parametrize("command", ["replay verify", "journal doctor", "sql --checks"])
def test_the_folder_of_a_rank_is_told_from_a_run(command: str, run: Path, capsys: Capture) -> None:
    code, _, err = told(f"{command} run/rank-0001", capsys)
    assert (code, "name run, with --rank 1" in err) == (3, True)


def test_a_recovered_copy_is_not_sent_to_be_recovered_again(run: Path, capsys: Capture) -> None:
    """Its files are whole: the state just before the gap is what can still be asked."""
    middle = sorted((run / "rank-0001").glob("*.sealed"))[1]
    middle.write_bytes(b"")
    assert "journal recover" in told("triage run --rank 1 --no-report", capsys)[1]
    told("journal recover run --to copy", capsys)
    _, out, _ = told("triage copy --rank 1 --no-report", capsys)
    before = int(middle.stem) - 1
    assert "journal recover" not in out
    assert f"radixledger replay state copy --rank 1 --at {before}" in out
    code, out, _ = told(f"replay state copy --rank 1 --at {before}", capsys)
    assert (code, str(before) in out.replace(",", "")) == (0, True)


def test_what_may_not_be_read_is_sent_neither_to_the_doctor_nor_to_be_recovered(
    run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "run/rank-0001/first.sealed")

    monkeypatch.setattr("radixledger.replay.triage.triage.judge", refuse)
    code, out, _ = told("triage run --rank 1 --no-report", capsys)
    assert code == 3
    assert "ls -ld run/rank-0001/first.sealed" in out
    assert "chmod" in out
    assert "doctor" not in out
    assert "recover" not in out


def test_a_finding_of_one_rank_is_told_by_the_exit_code_though_another_cannot_be_read(
    tmp_path: Path, capsys: Capture
) -> None:
    """J14: `verify` and `triage` alike; what cannot be read alone is 3."""
    incident = tmp_path / "incident"
    shutil.copytree(Path(__file__).parents[2] / "docs" / "incident", incident)
    for segment in (incident / "rank-0000").glob("*.s*"):
        segment.write_bytes(b"spoiled")
    code, out, _ = told(f"replay verify {incident}", capsys)
    assert code == 1
    assert "rank 0: unreadable from here on" in out
    assert "rank 1, first wrong event" in out
    assert told(f"triage {incident} --no-report", capsys)[0] == 1
    assert told(f"replay verify {incident} --rank 0", capsys)[0] == 3


def test_the_help_of_verify_says_that_findings_win(capsys: Capture) -> None:
    assert "3: nothing was found, and not all could be read" in " ".join(
        told("replay verify --help", capsys)[1].split()
    )


@pytest.fixture
def exchanged(run: Path) -> Path:
    """Two ranks whose folders have each other's number, and a third in its place."""
    written(run, 60, seed=2, rank=2, ranks=3)
    (run / "rank-0000").rename(run / "other")
    (run / "rank-0001").rename(run / "rank-0000")
    (run / "other").rename(run / "rank-0001")
    return run


@pytest.mark.parametrize("command", ["recover", "redact"])
def test_folders_that_were_exchanged_are_not_copied_under_the_wrong_number(
    command: str, exchanged: Path, capsys: Capture
) -> None:
    """J3: the rank in its place is copied, and the copy can be read without a word."""
    code, out, err = told(f"journal {command} run --to copy", capsys)
    assert code == 1
    said = " ".join(f"{out} {err}".split())
    for rank, other in ((0, 1), (1, 0)):
        assert f"no segment in this folder of rank {rank} says that it is of that rank" in said
        assert f"they are of run driven, rank {other}" in said
    assert [each.name for each in Path("copy").iterdir() if each.is_dir()] == ["rank-0002"]
    assert told("replay verify copy --rank 2", capsys)[0] == 0


def test_a_folder_that_has_another_ranks_number_is_not_recovered_alone(
    exchanged: Path, capsys: Capture
) -> None:
    code, _, err = told("journal recover run --to copy --rank 1", capsys)
    assert code == 3
    assert "they are of run driven, rank 0" in err
    assert not Path("copy/rank-0001").exists()
