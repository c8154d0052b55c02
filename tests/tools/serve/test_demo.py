"""The demo: the whole of it once, the same run again from the requests it leaves, and what makes it fail."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from radixledger.cache.traits import TRAITS
from radixledger.journal.events import Freed, Opened
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import NO_PAGES, Rank, Seq
from radixledger.replay.verdict import RankReport
from radixledger.tools.cli import run as run_command
from radixledger.tools.console import CommandFailure
from radixledger.tools.drill import DoubleFree
from radixledger.tools.serve import demo, demo_routes
from radixledger.tools.serve.conversations import Conversations, Talk
from radixledger.tools.serve.engine import Outcome
from radixledger.tools.serve.offline import Report
from radixledger.tools.serve.requests import Request, Result
from radixledger.tools.serve.tiny import load_tiny

SMALL = Talk(conversations=4, turns=1, ranks=2, system=40, question=8, answer=3, pause_ms=5, stagger_ms=9)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that one whole demo left, with what it said in `said.txt`."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        said: list[str] = []
        patch.setattr("radixledger.tools.serve.demo.print_facts", lambda facts, **_: said.append(str(facts)))
        patch.setattr("radixledger.tools.serve.demo.click.echo", lambda text="", **_: said.append(text))
        assert run_command(["demo"]) == 0
    (folder / "said.txt").write_text("\n".join(said))
    return folder


def said(left: Path) -> str:
    return (left / "said.txt").read_text()


def events(run: Path, rank: int) -> list[Any]:
    frames = JournalReader(run, Rank(rank)).frames()
    return [event for frame in frames for event in frame.events if not isinstance(event, Opened)]


def test_it_shows_what_it_promises_and_leaves_it_behind(left: Path) -> None:
    assert "'answers that are the same': '40 of 40'" in said(left)
    assert "no findings" in said(left)
    assert "(finish/tail), freed again in" in said(left)
    assert "(drill)" in said(left)
    found = sorted(path.name for path in (left / "demo-run").iterdir())
    routes = ["route-chunk", "route-legacy", "route-radix", "route-swa_chunk"]
    assert found == [
        "cold",
        "cold.jsonl",
        "planted",
        "redaction.key",
        "requests.jsonl",
        *routes,
        "warm",
        "warm.jsonl",
    ]


def test_every_route_but_the_unified_one_has_a_run_of_its_own(left: Path) -> None:
    opened = {
        path.name: next(iter(JournalReader(path, Rank(0)).frames())).events[0]
        for path in (left / "demo-run").iterdir()
        if path.is_dir()
    }
    routes = {name: event.route for name, event in opened.items() if isinstance(event, Opened)}
    assert {f"route-{route}" for route in TRAITS if route != "unified"} <= set(routes)
    assert all(
        route == name.removeprefix("route-") for name, route in routes.items() if name.startswith("route-")
    )
    assert {routes["warm"], routes["cold"]} == {"unified"}


def test_it_fails_when_a_route_answers_otherwise_or_keeps_what_it_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answering(ids: list[int], cached: int) -> list[Result]:
        return [
            Result(
                rid="a",
                output_ids=ids,
                finish_reason="length",
                cached_tokens=cached,
                prompt_tokens=9,
                dp_rank=0,
            )
        ]

    report = Report(
        route="", requests=1, finish_reasons={}, prompt_tokens=9, cached_tokens=0, output_tokens=3, steps=1,
        full_pages_evicted=0, swa_pages_released=0, tombstones=0, heals=0, retractions=0, journal_events=1,
        journal_bytes=1, serve_s=0.1,
    )  # fmt: skip
    requests = [Request(rid="a", input_ids=[1] * 9, max_new_tokens=3)]
    monkeypatch.setattr(demo_routes, "load_tiny", lambda _: None)
    monkeypatch.setattr(demo_routes, "ranks_in", lambda _: [])
    for said, cached, message in (
        ([1, 2, 4], 4, "are not those of the others"),
        ([1, 2, 3], 0, "in its tree"),
    ):
        monkeypatch.setattr(
            demo_routes, "serve", lambda *_, said=said, cached=cached: (report, answering(said, cached))
        )
        with pytest.raises(CommandFailure, match=message):
            demo_routes.other_routes(tmp_path, load_tiny(), requests, answering([1, 2, 3], 4), demo.WARM)


def test_the_commands_it_names_work(
    left: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(left)
    monkeypatch.setenv("COLUMNS", "200")
    named = re.findall(r"""["'](radixledger (?:replay|journal|sql)[^\n]*?)["'](?:, ["']|})""", said(left))
    assert len(named) >= 4
    codes = [run_command(shlex.split(command)[1:]) for command in named]
    assert set(codes) <= {0, 1}
    assert "talk-0-turn-1" in capfd.readouterr().out


def test_served_again_its_requests_make_the_same_journals_event_by_event(
    left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(left)
    (named,) = re.findall(r"(radixledger serve [^'\"]*)", said(left))
    assert run_command(shlex.split(named)[1:]) == 0
    for rank in range(2):
        assert events(left / "again", rank) == events(left / "demo-run" / "warm", rank)
    assert (left / "again.jsonl").read_bytes() == (left / "demo-run" / "warm.jsonl").read_bytes()


def test_an_earlier_demo_is_replaced_on_demand_only_and_nothing_else_ever(
    left: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["demo", "--to", str(left / "demo-run")]) == 2
    assert "--force replaces it" in capfd.readouterr().err
    (tmp_path / "mine.txt").write_text("keep")
    for force in ([], ["--force"]):
        assert run_command(["demo", "--to", str(tmp_path), *force]) == 2
        assert "is not what a demo leaves" in capfd.readouterr().err
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_it_says_how_to_get_at_the_command_line_where_the_shell_would_not_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    again = Freed(0, NO_PAGES, NO_PAGES, NO_PAGES)
    planted = DoubleFree(Rank(0), page=1, first=Seq(2), second=Seq(3), again=again)
    monkeypatch.setattr("sys.prefix", str(tmp_path / ".venv"))
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "bin" / "radixledger"
    script.parent.mkdir()
    monkeypatch.setenv("PATH", str(script.parent))
    demo.close(Path("demo-run"), planted, 1.0)
    assert "on your path: . .venv/bin/activate\n" in capfd.readouterr().out
    script.touch(0o755)
    demo.close(Path("demo-run"), planted, 1.0)
    assert "activate" not in capfd.readouterr().out


def test_it_fails_when_there_was_no_pressure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "TALK", SMALL)
    assert run_command(["demo", "--to", str(tmp_path / "to")]) == 1
    assert "did not happen: there was not enough pressure" in capfd.readouterr().err


def test_it_fails_when_an_answer_depends_on_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def result(ids: list[int], cached: int) -> Result:
        return Result(
            rid="a", output_ids=ids, finish_reason="length", cached_tokens=cached, prompt_tokens=9, dp_rank=0
        )

    monkeypatch.setattr(demo, "serve", lambda *_: (None, [result([1, 2, 4], 0)]))
    with pytest.raises(CommandFailure, match="the answers depend on the cache") as failure:
        demo.compare(tmp_path, load_tiny(), [], [result([1, 2, 3], 4)])
    assert failure.value.exit_code == 1
    demo.compare(tmp_path, load_tiny(), [], [result([1, 2, 4], 4)])


def test_it_fails_when_a_witness_does_not_see_the_planted_event(
    left: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "warm").symlink_to(left / "demo-run" / "warm")
    monkeypatch.setattr(demo, "verify_rank", lambda _run, rank: RankReport("planted", rank))
    with pytest.raises(CommandFailure, match="do not name the planted event"):
        demo.drill(tmp_path)


def answered(talk: Conversations, answers: Sequence[int]) -> list[Request]:
    """The requests of a workload whose answers are `answers`, whoever ends first."""
    open_turns = list(enumerate(talk.openings))
    while open_turns:
        place, request = open_turns.pop(0)
        result = Result(rid=request.rid, output_ids=[*answers, place], finish_reason="length", cached_tokens=0,
                        prompt_tokens=1, dp_rank=request.dp_rank)  # fmt: skip
        open_turns += talk.then(Outcome(place, result, request.arrival_ms + 10))
    return talk.requests


def test_each_turn_repeats_what_was_said_and_comes_after_a_pause() -> None:
    talk = Talk(conversations=3, turns=3, ranks=2, system=20, question=8, answer=2, pause_ms=5, stagger_ms=2)
    requests = answered(Conversations(talk), [7, 8])
    assert len(requests) == 9
    assert requests == answered(Conversations(talk), [7, 8])
    assert {tuple(request.input_ids[:20]) for request in requests} == {tuple(requests[0].input_ids[:20])}
    assert [request.dp_rank for request in requests[:3]] == [0, 1, 0]
    first, second, third = (request for request in requests if request.rid.startswith("talk-1-"))
    assert second.input_ids[: len(first.input_ids) + 3] == [*first.input_ids, 7, 8, 1]
    assert third.input_ids[: len(second.input_ids)] == second.input_ids
    assert [request.arrival_ms for request in (first, second, third)] == [2, 17, 32]
    questions = [len(request.input_ids) - 20 for request in requests[:3]]
    assert all(4 <= length <= 12 for length in questions)
