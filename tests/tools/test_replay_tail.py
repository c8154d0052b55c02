"""`radixledger replay tail`: a line per event, an alarm behind the one that broke a law, an end when the writer closes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from radixledger.cache.rank import RankCache
from radixledger.journal.accounts import request_account
from radixledger.journal.events import Freed
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import NO_PAGES, RequestId
from radixledger.journal.writer import JournalWriter
from radixledger.tools import event_lines
from radixledger.tools.cli import run as radixledger

from ..cache.driven import Driven, opened
from ..replay.runs import RANK, Clock, damage, written

Capture = pytest.CaptureFixture[str]


def told(capfd: Capture, *words: object, code: int = 0) -> tuple[str, str]:
    """What the command prints on stdout and stderr, leaving with `code`."""
    found = radixledger(["replay", "tail", *map(str, words)])
    out, err = capfd.readouterr()
    assert found == code, out + err
    return out, err


def free_twice(cache: RankCache, writer: JournalWriter) -> None:
    """What a server with a bug would write; the second free is the last event."""
    page, _ = cache.alloc(1)
    cache.free(page)
    writer.append(Freed(request_account(RequestId(0)), page, NO_PAGES, NO_PAGES))
    writer.end_command()


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What happens while the command waits for more, one after the other; nothing sleeps."""
    todo: list[Callable[[], object]] = []
    monkeypatch.setattr(event_lines, "sleep", lambda _: todo.pop(0)())
    return todo


@pytest.fixture
def live(tmp_path: Path) -> tuple[Path, Driven, JournalWriter]:
    """A run whose writer is at work."""
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    return tmp_path / "run", Driven(7, recorder=writer).run(40), writer


def interrupted() -> None:
    raise KeyboardInterrupt


def test_events_come_one_a_line_until_the_writer_closes(
    live: tuple[Path, Driven, JournalWriter], naps: list[Callable[[], object]], capfd: Capture
) -> None:
    run, driven, writer = live
    there = int(writer.last_seq)
    naps += [driven.step, driven.step, driven.cache.close]
    out, err = told(capfd, run, "--laws", "--last", 3)
    lines = out.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(there - 2, int(writer.last_seq) + 1))
    assert "Closed" in lines[-1]
    assert "0 violations" in err
    assert naps == []


def test_an_alarm_stands_behind_the_violating_event(
    live: tuple[Path, Driven, JournalWriter], naps: list[Callable[[], object]], capfd: Capture
) -> None:
    """J29: event, page and slots, owner, call site; and the exit code says that there was one."""
    run, driven, writer = live
    naps += [lambda: free_twice(driven.cache, writer), interrupted]
    out, err = told(capfd, run, "--laws", code=1)
    wrong = int(writer.last_seq)
    lines = out.splitlines()
    place = next(at for at, line in enumerate(lines) if line.startswith("!!! event"))
    assert lines[place - 1].split()[0] == str(wrong)
    assert f"!!! event {wrong}, " in lines[place]
    assert "a_page_is_freed_once" in lines[place]
    assert "slots " in out
    assert "!!! owner     request(unbound); found free" in lines
    assert "1 violation" in err


def test_ctrl_c_ends_it_cleanly(
    live: tuple[Path, Driven, JournalWriter], naps: list[Callable[[], object]], capfd: Capture
) -> None:
    """A healthy run that somebody stopped looking at is no failure."""
    run, _, _ = live
    naps.append(interrupted)
    out, err = told(capfd, run, "--laws")
    assert len(out.splitlines()) == 10
    assert "Traceback" not in err


def test_it_can_end_at_the_first_violation(
    live: tuple[Path, Driven, JournalWriter], naps: list[Callable[[], object]], capfd: Capture
) -> None:
    run, driven, writer = live
    naps.append(lambda: free_twice(driven.cache, writer))
    out, _ = told(capfd, run, "--until-violation", "--alarms", "--json", code=1)
    alarms = [json.loads(line) for line in out.splitlines()]
    assert {alarm["type"] for alarm in alarms} == {"ALARM"}
    assert alarms[0]["seq"] == writer.last_seq
    assert (alarms[0]["law"], alarms[0]["event"], alarms[0]["found"]) == (
        "a_page_is_freed_once",
        "Freed",
        "free",
    )


def test_what_was_broken_long_ago_is_told_too(tmp_path: Path, capfd: Capture) -> None:
    """Events before the first one that is printed are judged, and shown where they are wrong."""
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    driven = Driven(7, recorder=writer).run(40)
    free_twice(driven.cache, writer)
    wrong = int(writer.last_seq)
    driven.run(20)
    writer.close()
    out, _ = told(capfd, tmp_path / "run", "--laws", "--last", 2, "--once", code=1)
    shown = [int(line.split()[0]) for line in out.splitlines() if not line.startswith("!!!")]
    assert shown[0] == wrong
    assert shown[-2:] == [writer.last_seq - 1, writer.last_seq]


def test_without_laws_it_shows_what_journal_cat_does(tmp_path: Path, capfd: Capture) -> None:
    written(tmp_path / "run", 60)
    first = int(JournalReader(tmp_path / "run", RANK).last_seq) - 20
    out, _ = told(capfd, tmp_path / "run", "--from", first, "--once")
    assert radixledger(["journal", "cat", str(tmp_path / "run"), "--from", str(first)]) == 0
    assert out == capfd.readouterr().out
    out, _ = told(capfd, tmp_path / "run", "--from", first, "--once", "--json")
    assert radixledger(["journal", "cat", str(tmp_path / "run"), "--from", str(first), "--json"]) == 0
    assert out == capfd.readouterr().out


def test_a_url_needs_once(tmp_path: Path, capfd: Capture) -> None:
    for rank in range(2):
        written(tmp_path / "run", 20, rank=rank, ranks=2)
    url = f"file://{tmp_path / 'run'}"
    assert "--once" in told(capfd, url, "--rank", 1, code=2)[1]
    out, _ = told(capfd, url, "--rank", 1, "--once", "--laws", "--last", 1)
    assert "Closed" in out


def test_all_ranks_are_followed_and_each_line_says_whose_it_is(
    tmp_path: Path, naps: list[Callable[[], object]], capfd: Capture
) -> None:
    """An alarm of either rank is told where it happens, though the other one goes on; it ends when both are closed."""
    writers = [
        JournalWriter.open(tmp_path / "run", opened(redaction="plain", rank=rank, ranks=2), clock=Clock())
        for rank in (0, 1)
    ]
    one, two = (Driven(7 + rank, recorder=writer).run(20) for rank, writer in enumerate(writers))
    naps += [one.step, lambda: free_twice(two.cache, writers[1]), one.cache.close, two.step, two.cache.close]
    out, err = told(capfd, tmp_path / "run", "--laws", "--last", 1, code=1)
    lines = out.splitlines()
    assert {line.split("  ")[0] for line in lines if not line.startswith("!!!")} == {"rank 0", "rank 1"}
    (alarm,) = (line for line in lines if "a_page_is_freed_once" in line)
    assert alarm.startswith("!!! rank 1, event ")
    assert [line.split()[1] for line in lines if "Closed" in line] == ["0", "1"]
    assert "of 2 ranks, " in err
    assert naps == []
    out, _ = told(capfd, tmp_path / "run", "--alarms", "--once", "--json", code=1)
    assert {json.loads(line)["rank"] for line in out.splitlines()} == {1}
    assert (
        "each rank has numbers of its own" in told(capfd, tmp_path / "run", "--from", 3, "--once", code=2)[1]
    )


def test_damage_ends_it_and_salvage_rings_for_it(tmp_path: Path, capfd: Capture) -> None:
    """J11, B104."""
    written(tmp_path / "run", 400, rotate_bytes=4096)
    damage(tmp_path / "run")
    assert "Traceback" not in told(capfd, tmp_path / "run", "--laws", "--once", code=3)[1]
    out, _ = told(capfd, tmp_path / "run", "--alarms", "--once", "--salvage", "--json", code=1)
    assert {json.loads(line)["law"] for line in out.splitlines()} == {"no_event_is_missing"}
