"""`radixledger triage`: what it prints, in words and as JSON, what it takes, and the exit codes that scripts rely on."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import DoubleFree as FreedAlready
from radixledger.journal.events import Config
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.recorder import ROOT, Recorder
from radixledger.journal.units import Rank, Seq
from radixledger.journal.writer import JournalWriter
from radixledger.tools import triage as door
from radixledger.tools.cli import run as radixledger
from radixledger.tools.drill import DoubleFree, plant_double_free

from ..cache.driven import opened
from ..replay.runs import Clock, written
from ..test_docs import unknown_words

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to stand in: what is found leaves a page there."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture(scope="module")
def lawful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean run of two ranks."""
    run = tmp_path_factory.mktemp("runs") / "lawful"
    for rank in range(2):
        written(run, 110 + rank, seed=11, rank=rank, ranks=2)
    return run


@pytest.fixture(scope="module")
def wrong(lawful: Path) -> tuple[Path, DoubleFree]:
    """The same, with a page of rank 1 freed twice."""
    run = lawful.parent / "wrong"
    return run, plant_double_free(lawful, run, Rank(1))


def told(arguments: list[str], capsys: Capture) -> tuple[int, str]:
    """Exit code and output."""
    code = radixledger(["triage", *arguments])
    return code, capsys.readouterr().out


def test_the_verdict_comes_first_and_the_wrong_rank_before_the_others(
    wrong: tuple[Path, DoubleFree], capsys: Capture
) -> None:
    run, planted = wrong
    code, out = told([str(run)], capsys)
    assert code == 1
    first, second, *_ = out.splitlines()
    assert first.startswith(f"rank 1: event {planted.second:,}, step 0: ")
    assert f"freed FULL page {planted.page} again (drill)" in first
    assert second.startswith("rank 0: clean: ")


def test_everything_that_the_verdict_rests_on_is_there(
    wrong: tuple[Path, DoubleFree], capsys: Capture
) -> None:
    """J14: cause, slice, who had the page, requests, steps, pools, ranks by step, what to run next."""
    run, planted = wrong
    _, out = told([str(run)], capsys)
    for title in (
        "ranks, by step", "rank 1, first wrong event", "rank 1, what led to it, and what came of it",
        "rank 1, just before it: the pages", "rank 1, device steps in flight", "rank 1, pools, in pages",
        "rank 1, next",
    ):  # fmt: skip
        assert f"\n{title}\n" in out
    assert "\nrank 0, " not in out
    assert f"radixledger replay blame {run} --rank 1 --pool full --page {planted.page} " in out


def test_json_has_all_of_it(wrong: tuple[Path, DoubleFree], capsys: Capture) -> None:
    run, planted = wrong
    code, out = told([str(run), "--json"], capsys)
    document = json.loads(out)
    assert code == 1
    assert document["verdict"] == "wrong"
    assert [(each["rank"], each["kind"]) for each in document["ranks"]] == [(0, "clean"), (1, "wrong")]
    explained = document["ranks"][1]["explained"]
    assert explained["first"]["seq"] == planted.second
    assert [each["seq"] for each in explained["slice"]["events"] if each["moved"]][-2:] == [
        planted.first,
        planted.second,
    ]
    assert explained["holders"][0] == {
        "page": f"FULL page {planted.page}",
        "account": "free",
        "since": planted.first,
        "mapped_to": 0,
    }
    assert document["ranks"][1]["next"][0]["command"].startswith("radixledger replay blame")


def test_each_page_is_told_with_the_event_that_handed_it_out(tmp_path: Path, capsys: Capture) -> None:
    """J14: of a request that was given them one by one the first four, and how many came later."""
    config = Config(page_size=4, full_pages=9, swa_pages=0, window_tokens=0, rows=4)
    with Recorder.open(tmp_path / "run", config, code="toy", redaction="plain") as recorder:
        for rid in ("had", "gave", "slow", "quick"):
            recorder.admitted(rid, prompt=32, prefix=0, node=ROOT)
        recorder.extended(["had"], [32], takers=["had"], counts=[8], full=range(1, 9))
        recorder.freed(range(1, 9), rid="gave")
        for page in range(1, 7):
            recorder.extended(["slow"], [4], takers=["slow"], counts=[1], full=[page])
        recorder.extended(["quick"], [8], takers=["quick"], counts=[2], full=[7, 8])
    code, out = told([str(tmp_path / "run")], capsys)
    _, _, table = out.partition("requests that got its pages next\n")
    rows = [line.split() for line in table.partition("\n\n")[0].splitlines()[2:]]
    assert code == 1
    assert [row[1:] for row in rows] == [
        ["slow", "8", "0", "FULL", "1"],
        ["slow", "9", "0", "FULL", "2"],
        ["slow", "10", "0", "FULL", "3"],
        ["slow", "11", "0", "FULL", "4"],
        ["slow", "2", "more", "pages", "in", "2", "later", "events"],
        ["quick", "14", "0", "FULL", "7-8"],
    ]


def test_many_clean_ranks_have_one_verdict_behind_that_of_the_wrong_one(
    tmp_path: Path, capsys: Capture
) -> None:
    """Of 64 ranks the one that went wrong is looked for."""
    run = tmp_path / "run"
    for rank in range(11):
        written(run, 110, seed=11, rank=rank, ranks=11)
    code, out = told([str(run), "--no-report"], capsys)
    assert code == 0
    assert out.startswith("all 11 ranks (0-10): clean: no law is broken in ")
    assert len(out.splitlines()) == 1
    plant_double_free(run, tmp_path / "wrong", Rank(4))
    code, out = told([str(tmp_path / "wrong"), "--no-report"], capsys)
    lines = out.splitlines()
    assert code == 1
    assert lines[0].startswith("rank 4: event ")
    assert lines[1].startswith("the other 10 ranks (0-3, 5-10): clean: no law is broken in ")
    assert [line.split()[:2] for line in lines if line.startswith(("4 ", "10 others"))][-1] == [
        "10",
        "others",
    ]
    assert "rank 5" not in out


def test_on_a_narrow_terminal_each_row_of_the_ranks_is_a_line_that_says_who(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    for rank in range(11):
        written(tmp_path / "run", 110, seed=11, rank=rank, ranks=11)
    plant_double_free(tmp_path / "run", tmp_path / "wrong", Rank(4))
    monkeypatch.setenv("COLUMNS", "60")
    _, out = told([str(tmp_path / "wrong"), "--no-report"], capsys)
    section = " ".join(out.split("ranks, by step\n")[1].split("\n\n")[0].split())
    assert section.startswith("rank 4: wrong, first wrong: event ")
    assert " 10 other ranks: clean; " in section


def test_what_to_run_next_is_told_once_for_clean_ranks_and_only_what_has_an_answer(
    lawful: Path, tmp_path: Path, capsys: Capture
) -> None:
    _, out = told([str(lawful)], capsys)
    assert [line for line in out.splitlines() if line.endswith("next")] == ["next"]
    commands = [line.split("  # ")[0].strip() for line in out.splitlines() if "radixledger sql" in line]
    assert len(commands) == len(set(commands)) == 3
    with JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock()):
        pass
    _, out = told([str(tmp_path / "run")], capsys)
    assert "commands turned down  none" in out.replace("   ", "  ")
    assert "refusals_by_reason" not in out


def test_a_folder_that_nobody_may_read_is_one_rank_that_cannot_be_read(
    wrong: tuple[Path, DoubleFree], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The other ranks are triaged all the same."""
    reading = JournalReader.frames

    def refused(reader: JournalReader, from_seq: Seq | None = None) -> Iterator[Frame]:
        if reader.rank == 0:
            raise PermissionError(13, "Permission denied", str(reader.folder))
        return reading(reader, from_seq)

    monkeypatch.setattr(JournalReader, "frames", refused)
    code, out = told([str(wrong[0])], capsys)
    assert code == 1
    assert "rank 0: cannot be read: [Errno 13] Permission denied" in out


def test_a_clean_run_gives_0_and_says_what_else_to_look_at(lawful: Path, capsys: Capture) -> None:
    code, out = told([str(lawful)], capsys)
    assert code == 0
    assert out.startswith("rank 0: clean: no law is broken in ")
    assert "commands turned down" in out


def test_what_is_given_may_be_a_run_a_rank_or_a_folder_of_runs(
    lawful: Path,
    wrong: tuple[Path, DoubleFree],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    """Ranks of one job may lie in several places, each as its host wrote it."""
    run, _ = wrong

    def ranks(*arguments: str) -> list[tuple[str, int]]:
        _, out = told([*arguments, "--json"], capsys)
        return [(Path(each["folder"]).name, each["rank"]) for each in json.loads(out)["ranks"]]

    assert ranks(str(run)) == [("wrong", 0), ("wrong", 1)]
    assert ranks(str(run / "rank-0001")) == [("wrong", 1)]
    assert ranks(str(run / "rank-0001"), str(lawful / "rank-0000"), str(run)) == [
        ("wrong", 1),
        ("lawful", 0),
        ("wrong", 0),
    ]
    assert ranks(str(run), "--rank", "1") == [("wrong", 1)]
    monkeypatch.chdir(run / "rank-0001")
    assert ranks(".") == [("wrong", 1)]
    for host in range(2):
        shutil.copytree(run / f"rank-000{host}", tmp_path / f"host-{host}" / f"rank-000{host}")
    assert ranks(str(tmp_path)) == [("host-0", 0), ("host-1", 1)]


def test_segments_in_a_folder_of_another_name_are_refused_with_the_way_out(
    lawful: Path, tmp_path: Path, capsys: Capture
) -> None:
    shutil.copytree(lawful / "rank-0000", tmp_path / "of-monday")
    assert radixledger(["triage", str(tmp_path / "of-monday")]) == 3
    assert "call it rank-0000, in a folder for the run" in capsys.readouterr().err


def test_several_runs_are_told_apart(lawful: Path, wrong: tuple[Path, DoubleFree], capsys: Capture) -> None:
    _, out = told([str(lawful), str(wrong[0])], capsys)
    assert out.startswith("wrong, rank 1: event ")
    assert "these are journals of 2 runs" in out


def test_ranks_of_one_number_and_run_are_told_apart_by_their_folder(
    wrong: tuple[Path, DoubleFree], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Copies that were collected from several places."""
    monkeypatch.chdir(tmp_path)
    for copy in ("one", "two"):
        shutil.copytree(wrong[0] / "rank-0001", tmp_path / copy / "rank-0001")
    _, out = told(["one", "two"], capsys)
    assert out.startswith("rank 0 of 2 is not here: ")
    assert [line.partition(":")[0] for line in out.splitlines()[1:3]] == ["one, rank 1", "two, rank 1"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 2, "Missing argument 'RUNS...'"),
        (["nothing"], 3, "nothing: there is no such folder"),
        ([__file__], 3, "a run is a folder, and this is a file"),
        (["."], 3, "this folder holds no rank-NNNN folder"),
        ([""], 2, "it is empty, and names no place"),
        (["RUN", "--rank", "7"], 3, "there is no journal of rank 7"),
    ],
)
def test_what_is_no_run_is_refused_clearly(
    arguments: list[str],
    code: int,
    says: str,
    lawful: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [str(lawful) if each == "RUN" else each for each in arguments]
    assert radixledger(["triage", *given]) == code
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_rank_that_cannot_be_read_gives_3_unless_another_is_wrong(
    wrong: tuple[Path, DoubleFree], tmp_path: Path, capsys: Capture
) -> None:
    run = shutil.copytree(wrong[0], tmp_path / "run")
    for path in (run / "rank-0000").glob("*.sealed"):
        path.write_bytes(path.read_bytes()[:30])
    assert told([str(run), "--rank", "0"], capsys)[0] == 3
    code, out = told([str(run)], capsys)
    assert code == 1
    assert "rank 0: cannot be read: " in out


def test_every_command_that_is_proposed_exists(
    lawful: Path, wrong: tuple[Path, DoubleFree], tmp_path: Path, capsys: Capture
) -> None:
    """For each kind of verdict; and the first one runs."""
    damaged = shutil.copytree(wrong[0], tmp_path / "damaged")
    for path in (damaged / "rank-0001").glob("*.sealed"):
        path.write_bytes(path.read_bytes()[:-400])
    proposed = []
    for run in (lawful, wrong[0], damaged):
        _, out = told([str(run), "--json"], capsys)
        proposed += [each["command"] for rank in json.loads(out)["ranks"] for each in rank["next"]]
    assert len(proposed) >= 8
    assert [word for each in proposed for word in unknown_words(each.split()[1:])] == []
    assert radixledger(next(each for each in proposed if "blame" in each).split()[1:]) == 1
    capsys.readouterr()


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_no_line_but_a_command_is_wider_than_the_terminal(
    columns: int, wrong: tuple[Path, DoubleFree], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out = told([str(wrong[0])], capsys)
    wide = [line for line in out.splitlines() if len(line) > columns and "radixledger " not in line]
    assert wide == []


def test_a_caller_that_was_turned_down_is_named(tmp_path: Path, capsys: Capture) -> None:
    """A strict cache refuses a double free, so that no event is wrong: the fault is in the server, and the refusal says where."""
    run = tmp_path / "run"
    with JournalWriter.open(run, opened(redaction="plain"), clock=Clock()) as writer:
        cache = RankCache(writer.opened, writer, seq=writer.last_seq)
        pages, _ = cache.alloc(2)
        cache.free(pages)
        with pytest.raises(FreedAlready):
            cache.free(pages)
        seq = writer.last_seq
    code, out = told([str(run)], capsys)
    assert code == 1
    assert out.startswith(
        f"rank 0: no event is wrong, a caller was: event {seq}, step 0: double_free (free), turned down: FULL page 1, 2"
    )
    assert "The cache kept its books, so the fault is in the server that called" in out


def test_what_was_found_becomes_a_page_here_and_no_page_of_before_is_written_over(
    wrong: tuple[Path, DoubleFree], lawful: Path, here: Path, capfd: Capture
) -> None:
    run = str(wrong[0])
    assert radixledger(["triage", str(lawful)]) == 0
    assert radixledger(["triage", run, "--no-report"]) == 1
    assert radixledger(["triage", run, "--json"]) == 1
    assert list(here.iterdir()) == []
    for name in ("wrong-report.html", "wrong-report-2.html"):
        capfd.readouterr()
        assert radixledger(["triage", run]) == 1
        assert f"{name}: open it in a browser" in capfd.readouterr().err
    assert sorted(each.name for each in here.iterdir()) == ["wrong-report-2.html", "wrong-report.html"]
    assert "First wrong event" in (here / "wrong-report.html").read_text()


def test_a_page_that_cannot_be_written_takes_nothing_from_the_verdict(
    wrong: tuple[Path, DoubleFree], monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    """As in a folder that is mounted read-only."""

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(door, "write_page", refuse)
    assert radixledger(["triage", str(wrong[0])]) == 1
    told = capfd.readouterr()
    assert told.out.startswith("rank 1: event ")
    assert "wrong-report.html could not be written: Read-only file system; name another place" in told.err


def test_a_rank_of_which_nothing_can_be_read_is_one_of_its_run(
    lawful: Path, tmp_path: Path, capsys: Capture
) -> None:
    """A folder has the name that somebody gave it, the run the one that its other ranks know."""
    run = tmp_path / "collected"
    shutil.copytree(lawful, run)
    for file in (run / "rank-0001").iterdir():
        file.write_bytes(b"garbage " * 500)
    code, out = told([str(run), "--processes", "1"], capsys)
    assert code == 3
    assert out.startswith("rank 1: cannot be read: ")
    assert "these are journals of" not in out
    assert "the first events are lost, with what the rank was opened with" in " ".join(out.split())
    assert "the last events" not in out
