"""State slots of a recurrent model that no request has: taken, given back, counted. Used by the plays of pages and of states."""

from radixledger.journal.units import Pages

from .machine import Player, packed
from .model_recurrent import NOBODYS, RecurrentModel


def strays(model: RecurrentModel) -> list[int]:
    """State slots that somebody has and no request."""
    return [slot for slot, held in model.tree.slots.items() if held == NOBODYS]


def take_slots(player: Player, count: int) -> None:
    model = player.sides.model
    assert isinstance(model, RecurrentModel), "states are played where there are some"

    def imagine(slots: Pages | None) -> None:
        model.take_states(count)
        assert slots is not None
        assert len(slots) == 4 * count

    player.play(f"take {count} states", lambda: player.sides.live.take_states(count), imagine)


def give_states(player: Player, slots: list[int]) -> None:
    model = player.sides.model
    assert isinstance(model, RecurrentModel), "states are played where there are some"
    player.play(
        f"free states {slots}",
        lambda: player.sides.live.free_states(packed(slots)),
        lambda _: model.free_states(slots),
    )
