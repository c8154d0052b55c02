"""`replay state` and `replay blame` where there is more than FULL and SWA: states of a recurrent model, copies on the host."""

import json
from pathlib import Path

import pytest

from radixledger.cache.rank import RankCache
from radixledger.journal.moves import pages_of
from radixledger.journal.reader import JournalReader
from radixledger.journal.writer import JournalWriter
from radixledger.replay.seek import state_at
from radixledger.tools import state_text
from radixledger.tools.cli import run as radixledger
from radixledger.tools.event_text import as_json, line

from ..cache.driven import STATE_SHAPES
from ..cache.hosted import Hosted, demoted_chain, hosted
from ..cache.state_rank import buffered
from ..replay.runs import RANK, Clock, written

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def states(tmp_path: Path) -> Path:
    written(tmp_path / "states", 160, shape=STATE_SHAPES[1])
    return tmp_path / "states"


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """A path of two pages whose copy landed, a second one behind it whose copy is under way."""
    writer = JournalWriter.open(tmp_path / "copies", hosted(), clock=Clock())
    rank = Hosted(writer.opened)
    rank.rank = RankCache(writer.opened, writer)
    rank.state = rank.rank.state
    rank.insert("ab")
    rank.back_up("ab")
    rank.insert("abc")
    rank.rank.write_through(rank.node("abc").id)
    rank.rank.close()
    return tmp_path / "copies"


def told(capfd: Capture, *arguments: object, code: int = 0) -> str:
    found = radixledger(["replay", *map(str, arguments)])
    out, err = capfd.readouterr()
    assert found == code, out + err
    return out


def test_a_state_shows_who_runs_on_which_slot_and_which_node_has_which(states: Path, capfd: Capture) -> None:
    state = state_at(reader := JournalReader(states, RANK), reader.last_seq)
    found = json.loads(told(capfd, "state", states, "--json"))
    assert [pool["pool"] for pool in found["pools"]] == ["FULL", "RECURRENT"]
    pool = found["pools"][1]
    assert (
        pool["capacity"]
        == pool["free"] + pool["requests"] + pool["tree_evictable"] + pool["tree_protected"]
        == 16
    )
    assert {each["node"]: each["recurrent"] for each in found["nodes"]} == {
        node.id: pages_of(node.recurrent).tolist() for node in state.nodes.values() if node.parent
    }
    assert any(each["recurrent"] for each in found["nodes"])
    slots = [[each["runs_on"], *(track["slot"] for track in each["tracks"])] for each in found["requests"]]
    assert slots == [state.rows.states[each.row].tolist() for each in state.requests.values()]
    assert slots
    assert all(account["recurrent"] for account in found["accounts"] if account["request_id"])
    out = told(capfd, "state", states)
    shown = [int(text.split("state ")[1].split()[0]) for text in out.splitlines() if "  state " in text]
    assert sorted(shown) == sorted(
        int(pages_of(node.recurrent)[0]) for node in state.nodes.values() if node.recurrent
    )
    assert "tracks (slot: tokens)" in out
    assert "tombstone" not in out[out.index("\nroot\n") :]


def test_a_request_that_has_not_begun_shows_what_it_copies_from() -> None:
    rank = buffered()
    rank.serve("abcd")
    admission = rank.admit("abcdef")
    (slot,) = pages_of(rank.state.requests[admission.request].source).tolist()
    (row,) = state_text.requests(rank.state)
    shown = dict(zip(state_text.request_columns(rank.state), row, strict=True))
    running, *track = rank.slots_of(admission.request)
    assert (shown["runs on"], shown["copies from"]) == (running, str(slot))
    assert shown["tracks (slot: tokens)"] == f"{track[0]}: 0, {track[1]}: 0"


def test_a_state_shows_copies_and_what_is_under_way(copies: Path, capfd: Capture) -> None:
    found = json.loads(told(capfd, "state", copies, "--json"))
    upper, lower = found["nodes"]
    assert (len(upper["host"]), upper["backup"]) == (2, 0)
    assert (len(lower["host"]), lower["backup"]) == (1, found["transfers"][0]["transfer"])
    assert (found["transfers"][0]["what"], found["transfers"][0]["left"]) == ("backup", 1)
    host = found["pools"][1]
    assert (host["pool"], host["in_flight"], host["tree_protected"]) == ("HOST", 1, 2)
    out = told(capfd, "state", copies)
    assert "copies under way" in out
    assert f"HOST {lower['host'][0]} (transfer {lower['backup']} is writing)" in out


def test_a_full_tombstone_is_drawn_as_one() -> None:
    rank = demoted_chain()
    lines = list(state_text.tree_lines(rank.state))
    assert [line.count("FULL tombstone") for line in lines] == [0, 0, 1, 1]
    assert all("HOST" in line for line in lines[1:])


def test_the_story_of_a_state_slot_is_told(states: Path, capfd: Capture) -> None:
    """J16: taken, donated, freed; a slot of a state is its own page."""
    state = state_at(reader := JournalReader(states, RANK), reader.last_seq)
    slot = int(pages_of(next(node.recurrent for node in state.nodes.values() if node.recurrent))[0])
    by_page = told(capfd, "blame", states, "--pool", "recurrent", "--page", slot)
    assert told(capfd, "blame", states, "--pool", "recurrent", "--slot", slot) == by_page
    steps = json.loads(told(capfd, "blame", states, "--pool", "recurrent", "--slot", slot, "--json"))
    assert steps[0]["from"] == "free"
    assert (steps[-1]["event"], steps[-1]["taker"]) == ("StateDonated", int(state.recurrent.account[slot]))
    assert {"StateTaken", "StateDonated"} <= {step["event"] for step in steps}
    assert not any(step["wrong"] for step in steps)


def test_the_story_of_a_host_page_is_told(copies: Path, capfd: Capture) -> None:
    """J16: from free to the copy under way, and to its node when it landed."""
    steps = json.loads(told(capfd, "blame", copies, "--pool", "host", "--page", 1, "--json"))
    assert [step["event"] for step in steps] == ["BackupBegun", "BackupEnded"]
    assert steps[0]["from"] == "free"
    assert steps[1]["from"] == steps[0]["to"]
    assert steps[1]["to"].startswith("tree(")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--pool", "host", "--page", "1"], "this run has no HOST pool"),
        (["--pool", "swa", "--page", "1"], "this run has no SWA pool"),
        (["--pool", "recurrent", "--slot", "17"], "has slots 1 to 16, not slot 17"),
        (["--pool", "recurrent", "--page", "0"], "slot 0 is the padding sink"),
    ],
)
def test_a_slot_that_is_none_is_a_usage_error(
    states: Path, capfd: Capture, arguments: list[str], why: str
) -> None:
    assert radixledger(["replay", "blame", str(states), *arguments]) == 2
    assert why in capfd.readouterr().err


def test_events_of_states_are_told_in_slots(states: Path) -> None:
    """Packed columns are lists in both forms, never hex."""
    told = set()
    for frame in JournalReader(states, RANK).frames():
        for event in frame.events:
            kind = type(event).__name__
            if kind.startswith("State") and kind not in told:
                told.add(kind)
                shown = as_json(event)
                packed = {
                    name: value
                    for name, value in shown.items()
                    if name in ("slots", "slot", "ends", "former", "fresh")
                }
                assert all(isinstance(value, list) for value in packed.values())
                assert all(f"{name} " in line(event) and "bytes)" not in line(event) for name in packed)
    assert {"StateTaken", "StateTracked", "StateDonated", "StateReplaced", "StateFreed"} <= told
