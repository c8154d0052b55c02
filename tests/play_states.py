"""What may be done to states of a recurrent model without a request: take slots, give them back, bring one, evict."""

from radixledger.cache.slices import Inserted, Slice
from radixledger.journal.causes import Operation
from radixledger.journal.events import Removed
from radixledger.journal.moves import pages_of
from radixledger.journal.units import Pages, RequestId

from .machine import Chance, Command, Player, one_of, packed, rarely, some
from .model_recurrent import NOBODYS, RecurrentModel
from .play_pages import any_key, unbound
from .play_slots import give_states, strays, take_slots


def states_of(player: Player) -> RecurrentModel:
    model = player.sides.model
    assert isinstance(model, RecurrentModel), "these are played where there are states"
    return model


def take_states(player: Player, chance: Chance) -> None:
    if len(strays(states_of(player))) > 1:
        free_states(player, chance)
    count = 1 if not rarely(chance, 10) else one_of(chance, (0, -1, player.shape.states + 1, 2))
    take_slots(player, count)


def free_states(player: Player, chance: Chance) -> None:
    """Mostly those that nobody's are; rarely others', twice, or none at all."""
    slots = some(chance, strays(states_of(player)), 2)
    if rarely(chance, 15):
        slots = [*slots, one_of(chance, (0, 1, player.shape.states, player.shape.states + 1, -1, *slots))]
    give_states(player, slots)


def evict_states(player: Player, chance: Chance) -> None:
    sides, begun = player.sides, len(player.sides.tape.events)
    count = one_of(chance, (1, 1, 2, 3, 0, -1))

    def imagine(gain: tuple[int, int] | None) -> None:
        victims = [
            tuple(pages_of(event.full).tolist())
            for event in player.events(begun)
            if isinstance(event, Removed)
        ]
        imagined = states_of(player).evict_states(count, victims)
        assert gain == imagined, f"{gain} is told, {imagined} was gained"

    player.play(f"evict {count} states", lambda: sides.live.evict_states(count), imagine)


def insert_state(player: Player, chance: Chance) -> None:
    """A stranger brings pages and the state after them; what the tree has of the pages stays his."""
    sides, model = player.sides, states_of(player)
    if not strays(states_of(player)):
        take_states(player, chance)
    space, letters = any_key(player, chance)
    own = some(chance, unbound(player), player.shape.row_pages)
    prev = min(model.tree.depth((space, *letters)), chance.number(0, 3))
    pages = [model.tree.places[(space, *letters[: at + 1])].full for at in range(prev)] + own
    letters = (letters + "ab" * len(pages))[: len(pages)]
    slot = one_of(chance, strays(states_of(player)) or [1])
    if rarely(chance, 8):
        slot = one_of(chance, (0, player.shape.states, player.shape.states + 1))

    def imagine(result: Inserted | None) -> None:
        end, had, donated = model.insert_state(space, letters, pages, prev, NOBODYS, slot)
        assert result is not None
        assert (result.prefix, result.donated) == (had, donated)
        assert sides.paths().get(result.node.id, end[:1]) == end

    state = Pages(slot.to_bytes(4, "little"))
    brought = Slice(packed(pages), prev, prev, NOBODYS, RequestId(0), Operation.INSERT, recurrent=state)
    player.play(
        f"insert {letters} in {space!r}: {pages} prev {prev} with state {slot}",
        lambda: sides.live.insert(player.key(letters), space, brought),
        imagine,
    )


COMMANDS: dict[Command, int] = {take_states: 3, free_states: 2, evict_states: 5, insert_state: 5}
"""Each with its weight in a play by seed."""
