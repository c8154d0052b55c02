"""What the witnesses of a rank say of its recurrent states: the live one is held against the imagined one."""

from radixledger.cache.state import State
from radixledger.journal.accounts import Kind
from radixledger.journal.causes import label
from radixledger.journal.events import AnyEvent, Removed, StateReplaced, StateTaken
from radixledger.journal.moves import pages_of

from .model import TREE
from .model_recurrent import RecurrentModel
from .model_tree import Prefix


def choices(events: list[AnyEvent]) -> tuple[list[tuple[int, ...]], list[int]]:
    """What the cache chose for itself in a command: leaves that went for their states, and slots that were handed out."""
    removed = [event for event in events if isinstance(event, Removed) and "state_leaf" in label(event.cause)]
    slots = [
        slot
        for event in events
        for slot in pages_of(
            event.slots
            if isinstance(event, StateTaken)
            else event.fresh
            if isinstance(event, StateReplaced)
            else b""
        ).tolist()
    ]
    return [tuple(pages_of(event.full).tolist()) for event in removed], slots


def agree_on_states(state: State, model: RecurrentModel, paths: dict[int, Prefix]) -> None:
    """Who has which slot, where states stand and in what order they go, what requests run on and track."""
    tree = model.tree
    owners = [
        TREE if account & 7 == Kind.TREE else account for account in state.recurrent.account[1:].tolist()
    ]
    assert owners == list(tree.slots.values()), "owners of slots"
    found = {
        paths[number]: pages_of(node.recurrent).tolist()
        for number, node in state.nodes.items()
        if node.recurrent
    }
    assert found == {end: [standing.slot] for end, standing in tree.states.items()}
    idle = tree.idle_states()
    assert state.recurrent_evictable == len(idle)
    order = sorted(
        (state.nodes[number].recurrent_tick, number) for number, path in paths.items() if path in idle
    )
    ages = [idle[paths[number]] for _, number in order]
    assert ages == sorted(ages), "order of states"
    for number, desk in model.desks.items():
        row = state.row_of(number)
        assert state.rows.states[row].tolist() == [desk.running, *(desk.track or [0, 0])], f"request {number}"
        assert state.rows.tracked[row].tolist() == (desk.ends or [0, 0]), f"request {number}"
        assert int.from_bytes(state.requests[number].source, "little") == desk.source, f"request {number}"
