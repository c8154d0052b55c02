"""`radixledger replay`: what it prints, in words and as JSON, and the exit codes that scripts rely on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from radixledger.journal.accounts import request_account
from radixledger.journal.events import Digested, Freed
from radixledger.journal.folder import listing, rank_folder
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import NO_PAGES, RequestId
from radixledger.journal.writer import JournalWriter
from radixledger.replay.seek import state_at
from radixledger.tools.cli import run as radixledger
from radixledger.tools.drill import plant_double_free

from ..cache.driven import Driven, opened
from ..incidents.make_incident import PATH as SHIPPED
from ..replay.runs import RANK, Clock, written

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A clean run of one rank with a snapshot."""
    written(tmp_path / "run", 120, snapshots=(60,))
    return tmp_path / "run"


@pytest.fixture
def wrong_run(tmp_path: Path) -> tuple[Path, int]:
    """A run in which a page was freed twice, and that page."""
    writer = JournalWriter.open(tmp_path / "wrong", opened(redaction="plain"), clock=Clock())
    cache = Driven(7, recorder=writer).run(60).cache
    page, _ = cache.alloc(1)
    cache.free(page)
    writer.append(Freed(request_account(RequestId(0)), page, NO_PAGES, NO_PAGES))
    writer.append(Digested(cache.digest()))
    writer.end_command()
    writer.close()
    return tmp_path / "wrong", int.from_bytes(page, "little")


def told(capfd: Capture, *arguments: object, code: int = 0) -> str:
    """What the command prints on stdout, leaving with `code`."""
    found = radixledger(["replay", *map(str, arguments)])
    out, err = capfd.readouterr()
    assert found == code, out + err
    return out


def test_a_clean_run_leaves_with_0_and_a_table(run: Path, capfd: Capture) -> None:
    out = told(capfd, "verify", run)
    assert "clean" in out
    assert "\nrank 0: commands refused: " in out
    assert "events in" in out


def test_the_ranks_that_refused_commands_are_named_while_they_are_few(tmp_path: Path, capfd: Capture) -> None:
    run = tmp_path / "ranks"
    for rank in range(9):
        written(run, 120 if rank in (2, 5) else 1, rank=rank, ranks=9)
    assert "\nranks 2, 5: commands refused: " in told(capfd, "verify", run)
    for rank in range(9):
        written(tmp_path / "all", 120, rank=rank, ranks=9)
    assert "\n9 of 9 ranks: commands refused: " in told(capfd, "verify", tmp_path / "all")


def test_a_clean_run_as_json(run: Path, capfd: Capture) -> None:
    found = json.loads(told(capfd, "verify", run, "--json"))
    assert found["clean"] is True
    (rank,) = found["ranks"]
    assert (rank["rank"], rank["findings"], rank["snapshots"], rank["closed"]) == (0, [], 1, True)
    assert rank["events"] == JournalReader(run, RANK).last_seq


def test_verify_from_the_snapshot_folds_the_rest_only(run: Path, capfd: Capture) -> None:
    found = json.loads(told(capfd, "verify", run, "--from-snapshot", "--json"))
    assert found["ranks"][0]["from_snapshot"] == JournalReader(run, RANK).snapshots()[0].seq
    assert "began at the snapshot of event" in told(capfd, "verify", run, "--from-snapshot")


def test_findings_leave_with_1_and_name_the_first_wrong_event(
    wrong_run: tuple[Path, int], capfd: Capture
) -> None:
    """The law, the event, the page's story, and the command that tells all of it."""
    run, page = wrong_run
    first = JournalReader(run, RANK).last_seq - 1
    out = told(capfd, "verify", run, code=1)
    assert f"first wrong event: event {first}, " in out
    assert "a_page_is_freed_once" in out
    assert f"radixledger replay blame {run} --rank 0 --pool full --page {page}" in out
    assert "Allocated" in out
    found = json.loads(told(capfd, "verify", run, "--json", code=1))["ranks"][0]
    assert found["findings"][0]["seq"] == first
    assert found["findings"][0]["pages"] == [page]
    assert [step["event"] for step in found["story"][-3:]] == ["Allocated", "Freed", "Freed"]


def test_a_law_that_was_seen_broken_late_is_told_with_what_narrows_it_down(capfd: Capture) -> None:
    out = told(capfd, "verify", SHIPPED, "--rank", 1, code=1)
    assert (
        "FULL pages 51, 52, 54, 55, 56, 57, 62, 64 have two owners (one of events 1 to 1211 broke it)" in out
    )
    asked = "--rank 1 --law every_page_has_one_owner"
    assert "which command broke " in out
    assert f"\n  radixledger replay bisect {SHIPPED} {asked}\n" in out
    assert "event 604," in told(capfd, "bisect", SHIPPED, *asked.split(), code=1)


def test_every_rank_is_verified_and_one_can_be_chosen(tmp_path: Path, capfd: Capture) -> None:
    for rank in range(2):
        written(tmp_path / "run", 40, seed=rank, rank=rank, ranks=2)
    both = json.loads(told(capfd, "verify", tmp_path / "run", "--json"))["ranks"]
    assert [each["rank"] for each in both] == [0, 1]
    one = json.loads(told(capfd, "verify", tmp_path / "run", "--rank", 1, "--json"))["ranks"]
    assert one == both[1:]
    assert radixledger(["replay", "state", str(tmp_path / "run")]) == 2
    assert "say which with --rank" in capfd.readouterr().err


def test_what_cannot_be_read_leaves_with_3(run: Path, capfd: Capture) -> None:
    segment = next((run / "rank-0000").glob("*.sealed"))
    packed = bytearray(segment.read_bytes())
    packed[len(packed) // 2] ^= 0xFF
    segment.write_bytes(packed)
    assert "unreadable from here on" in told(capfd, "verify", run, code=3)
    out = told(capfd, "verify", run, "--salvage", code=1)
    assert "events are missing" in out
    assert "behind them can be judged by their pages alone" in out
    told(capfd, "verify", run / "nowhere", code=3)
    told(capfd, "verify", run, "--rank", 7, code=3)


def test_a_state_as_json_is_the_folded_state(run: Path, capfd: Capture) -> None:
    reader = JournalReader(run, RANK)
    seq = reader.last_seq // 2
    state = state_at(reader, seq)
    found = json.loads(told(capfd, "state", run, "--rank", 0, "--at", seq, "--json"))
    assert found["event"] == seq
    assert {each["node"]: each["full"] for each in found["nodes"]} == {
        node.id: [int.from_bytes(node.full[at : at + 4], "little") for at in range(0, len(node.full), 4)]
        for node in state.nodes.values()
        if node.parent
    }
    assert [each["rid"] for each in found["requests"]] == [each.rid for each in state.requests.values()]
    full, swa = found["pools"]
    assert [full["capacity"], full["free"], full["pending"], full["requests"]] == [
        60,
        *state.full.held[:2],
        state.full.held[3],
    ]
    assert swa["tree_evictable"] + swa["tree_protected"] == state.swa.held[4]
    assert sum(each["receipts"] for each in found["nodes"]) == sum(
        node.anchors for node in state.nodes.values()
    )


def test_a_state_in_words_draws_the_tree(run: Path, capfd: Capture) -> None:
    reader = JournalReader(run, RANK)
    state = state_at(reader, reader.last_seq)
    out = told(capfd, "state", run)
    lines = out[out.index("\nroot\n") :].splitlines()[2:]
    assert len(lines) == len(state.nodes) - 1
    for line in lines:
        node = state.nodes[int(line.split()[1])]
        depth, walk = 0, node
        while walk.parent is not None:
            depth, walk = depth + 1, walk.parent
        assert line.startswith("  " * depth + "node")
        assert f"[{(node.end - node.pages) * 4}, {node.end * 4})" in line
        assert ("tombstone" in line) == (not node.swa)
        assert ("locked" in line) == bool(node.holds or node.swa_locks)
    for request in state.requests.values():
        assert request.rid in out


@pytest.mark.parametrize(
    "form", ["+40", "+40ms", "+0.04s", "1970-01-01T00:00:00.040Z", "1970-01-01 00:00:00.04"]
)
def test_a_time_is_iso_or_milliseconds_since_the_beginning(run: Path, capfd: Capture, form: str) -> None:
    frame = next(frame for frame in JournalReader(run, RANK).frames() if frame.time_ns == 40_000_000)
    found = json.loads(told(capfd, "state", run, "--at", form, "--json"))
    assert found["event"] == frame.seq_first + len(frame.events) - 1
    assert found["time"] == "+0.040000s"


@pytest.mark.parametrize("form", ["soon", "+", "+ms", "+-", "12x", "2026-99-99", "0", "999999", "-5ms"])
def test_a_place_that_is_none_is_a_usage_error(run: Path, capfd: Capture, form: str) -> None:
    assert radixledger(["replay", "state", str(run), f"--at={form}"]) == 2
    assert capfd.readouterr().err


def test_parts_of_a_state_can_be_chosen(run: Path, capfd: Capture) -> None:
    """Each part has its table, its lines or its key in JSON, and only those that were asked for are there."""
    titles = {"pools": "pools, in pages", "accounts": "accounts of requests", "requests": "requests, in tokens", "locks": "locks",
              "tree": "tree: positions"}  # fmt: skip
    whole = told(capfd, "state", run)
    as_json = json.loads(told(capfd, "state", run, "--json"))
    for part, title in titles.items():
        out = told(capfd, "state", run, "--show", part)
        assert [each for each in titles.values() if f"\n{each}" in out] == [title]
        assert out.splitlines()[-1] in whole
        key = {"tree": "nodes"}.get(part, part)
        chosen = json.loads(told(capfd, "state", run, "--show", part, "--json"))
        assert chosen[key] == as_json[key]
        assert not (titles.keys() - {part, "tree"}) & chosen.keys() - {part}
    both = told(capfd, "state", run, "--show", "pools", "--show", "locks")
    assert [each for each in titles.values() if f"\n{each}" in both] == [titles["pools"], titles["locks"]]


@pytest.mark.parametrize("at", ["+10s", "2099-01-01"])
def test_a_time_behind_the_end_shows_the_end_and_says_so(run: Path, at: str, capfd: Capture) -> None:
    last = JournalReader(run, RANK).last_seq
    assert radixledger(["replay", "state", str(run), "--at", at, "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["event"] == last
    assert f"--at {at} is later than the last event, {last}, of " in err.replace("\n", " ")
    assert radixledger(["replay", "state", str(run), "--at", str(last)]) == 0
    assert "is later than" not in capfd.readouterr().err


def test_a_state_behind_a_broken_law_leaves_with_1(wrong_run: tuple[Path, int], capfd: Capture) -> None:
    told(capfd, "state", wrong_run[0], code=1)
    first = JournalReader(wrong_run[0], RANK).last_seq - 1
    told(capfd, "state", wrong_run[0], "--at", first - 1)


def test_the_story_of_a_page_is_told_by_page_or_slot(wrong_run: tuple[Path, int], capfd: Capture) -> None:
    """J16; exit code 1 where somebody gave up what was not theirs."""
    run, page = wrong_run
    by_page = told(capfd, "blame", run, "--pool", "full", "--page", page, code=1)
    assert "did not have it" in by_page
    by_slot = told(capfd, "blame", run, "--pool", "full", "--slot", page * 4 + 3, code=1)
    assert by_slot == by_page
    steps = json.loads(
        told(capfd, "blame", run, "--pool", "full", "--page", page, "--last", 2, "--json", code=1)
    )
    assert [(step["event"], step["from"], step["to"]) for step in steps] == [
        ("Freed", "request(unbound)", "free"),
        ("Freed", "request(unbound)", "free"),
    ]


def test_a_page_that_nobody_ever_had_has_no_story(tmp_path: Path, capfd: Capture) -> None:
    written(tmp_path / "run", 3)
    out = told(capfd, "blame", tmp_path / "run", "--pool", "swa", "--page", 40)
    assert out == "nothing ever happened to SWA page 40\n"


def test_the_story_of_a_node_is_told(run: Path, capfd: Capture) -> None:
    out = told(capfd, "blame", run, "--node", 1)
    assert "node 1" in out
    assert "new" in out
    steps = json.loads(told(capfd, "blame", run, "--node", 1, "--last", 1, "--json"))
    assert [step["seq"] for step in steps] == [steps[0]["seq"]]
    assert f"{steps[0]['seq']} " in out.splitlines()[-1]


def test_the_story_of_a_request_is_told_by_its_name_or_number(run: Path, capfd: Capture) -> None:
    """Steps in which it only grew stand together in the table, and each for itself in JSON."""
    requests = json.loads(told(capfd, "state", run, "--json"))["requests"]
    rid, number = requests[0]["rid"], requests[0]["request"]
    steps = json.loads(told(capfd, "blame", run, "--request", number, "--json"))
    assert json.loads(told(capfd, "blame", run, "--request", rid, "--json")) == steps
    assert {step["rid"] for step in steps} == {rid}
    lines = told(capfd, "blame", run, "--request", rid).splitlines()
    assert lines[0] == f"request {rid}"
    assert len(lines) <= len(steps) + 3
    assert "Admitted" in lines[3] + lines[4]


def test_a_request_or_node_that_never_was_is_wrong_usage_with_those_that_are_alike(
    run: Path, capfd: Capture
) -> None:
    """As in `why-miss`: nobody is told that a name which is none has no story."""
    rid = json.loads(told(capfd, "state", run, "--json"))["requests"][0]["rid"]
    for words, why in (
        (["--request", f"{rid}x"], f"rank 0 tells of no request {rid}x; did you mean "),
        (["--request", "999999999"], "rank 0 tells of no request 999999999"),
        (["--node", 1 << 40, "--json"], f"rank 0 tells of no node {1 << 40}"),
    ):
        assert radixledger(["replay", "blame", str(run), *map(str, words)]) == 2
        said = capfd.readouterr()
        assert (why in said.err, said.out) == (True, "")


def test_who_was_there_when_the_journal_begins_is_known_though_nothing_happened_to_him(
    tmp_path: Path, capfd: Capture
) -> None:
    """Where the oldest segments are dropped, what a snapshot holds is there."""
    run = tmp_path / "run"
    written(run, 120, snapshots=(119,), rotate_bytes=2000)
    reader = JournalReader(run, RANK)
    (snapshot,) = reader.snapshots()
    base = state_at(reader, snapshot.seq)
    firsts = [each.seq_first for each in listing(rank_folder(run, RANK)).segments]
    for segment in listing(rank_folder(run, RANK)).segments:
        if segment.seq_first < max(first for first in firsts if first <= snapshot.seq):
            segment.path.unlink()
    said = [told(capfd, "blame", run, "--node", node) for node in list(base.nodes)[1:]]
    assert any(text.startswith("nothing ever happened to node ") for text in said)
    for request in base.requests.values():
        told(capfd, "blame", run, "--request", request.rid)


def test_a_wrong_step_of_a_request_leaves_with_1(tmp_path: Path, capfd: Capture) -> None:
    """B01: its second free of a page stands in its story, with the law that it broke."""
    written(tmp_path / "long", 300)
    planted = plant_double_free(tmp_path / "long", tmp_path / "incident", RANK)
    request = planted.again.request
    steps = json.loads(told(capfd, "blame", tmp_path / "incident", "--request", request, "--json", code=1))
    wrong = [step for step in steps if step["wrong"]]
    assert [step["seq"] for step in wrong] == [planted.second]
    assert wrong[0]["gave"] == {"FULL": [planted.page]}
    assert f"FULL page {planted.page}: expected request({request}), found free" in wrong[0]["wrong"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--pool", "full"], "give one of --page, --slot, --node and --request"),
        (
            ["--pool", "full", "--page", "1", "--slot", "4"],
            "give one of --page, --slot, --node and --request",
        ),
        (["--node", "1", "--request", "trace-1"], "give one of --page, --slot, --node and --request"),
        (["--node", "1", "--pool", "full"], "--pool says where a --page or a --slot is"),
        (["--node", "0"], "'0' is not a whole number of at least 1"),
        (["--pool", "full", "--page", "61"], "pages 1 to 60 of 4 slots, not page 61"),
        (["--pool", "swa", "--slot", "3"], "page 0 is the padding sink"),
        (["--pool", "swa", "--page", "-1"], "'-1' is not a whole number of at least 0"),
        (["--pool", "swa", "--page", "41"], "pages 1 to 40"),
        (["--page", "1"], "give --pool full or swa or recurrent or host with --page 1"),
        (["--slot", "7"], "give --pool full or swa or recurrent or host with --slot 7"),
    ],
)
def test_a_page_that_is_none_is_a_usage_error(
    run: Path, capfd: Capture, arguments: list[str], why: str
) -> None:
    assert radixledger(["replay", "blame", str(run), *arguments]) == 2
    assert why in capfd.readouterr().err


def test_replay_needs_no_device_and_no_jax(run: Path) -> None:
    """J20: with its import blocked, every command does its work."""
    program = f"""
import sys
sys.modules["jax"] = sys.modules["jaxlib"] = None
from radixledger.tools.cli import run
codes = [run(["replay", *words.split(), {str(run)!r}, *rest]) for words, rest in
         (("verify", ()), ("state", ()), ("blame", ("--pool", "full", "--page", "1")))]
sys.exit(codes != [0, 0, 0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
