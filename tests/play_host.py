"""What a server with a host tier does: copies begun and ended, loads, host pressure; well or badly. Chosen by chance."""

from radixledger.cache.decide.host import Copy
from radixledger.journal.accounts import FREE
from radixledger.journal.events import HostDropped
from radixledger.journal.moves import pages_of
from radixledger.journal.units import ROOT, NodeId, TransferId

from .machine import Chance, Command, Play, Player, one_of, rarely
from .model_host import HostModel
from .model_tree import Prefix
from .play_pages import any_key, evict, evict_pages, look_up, same
from .play_requests import drain, end_step

Begun = tuple[int, list[int], list[int]]


def model_of(player: Player) -> HostModel:
    model = player.sides.model
    assert isinstance(model, HostModel)
    return model


def told(copy: Copy | None) -> Begun | None:
    """A copy as the model hears of it."""
    return None if copy is None else (copy.transfer, *(pages_of(each).tolist() for each in copy[1:]))


def drops(player: Player, begun: int) -> list[list[int]]:
    """The copies that were dropped since."""
    return [pages_of(event.host).tolist() for event in player.events(begun) if isinstance(event, HostDropped)]


def copy_victim(player: Player, end: Prefix) -> None:
    """The next victim has a copy, or it could not get one."""
    if player.shape.write == "back":
        copy = back_up_victim(player)
        if copy is not None:
            gathered(player, copy.transfer)
    else:
        ends = {path: number for number, path in player.sides.paths().items()}
        back_up_path(player, ends[end], end, chosen=None)


def save(player: Player) -> None:
    """Victims get copies as long as there is room, are read at once, and wait for their end."""
    sides = player.sides
    while sides.model.count(sides.model.full, FREE) < 4 and (leaves := model_of(player).tree.idle_leaves()):
        copy_victim(player, min(leaves, key=lambda end: leaves[end]))
        evict_pages(player, 1, 0)


def prepare(play: Play) -> Play:
    """Servers with a host tier save what they evict."""
    for player in play.players:
        if player.shape.host:
            player.save = save
    return play


def write_through(player: Player, chance: Chance) -> None:
    """After a path was used, mostly one that has no copy; some nodes are not there."""
    sides = player.sides
    space, letters = any_key(player, chance)
    tokens = len(letters) * player.shape.page
    plain = [number for number, node in sides.live.state.nodes.items() if node.full and not node.host]
    node: int = one_of(chance, plain or [*sides.live.state.nodes])
    if rarely(chance, 40):
        node = look_up(player, space, letters, tokens)
    node = node if not rarely(chance, 4) else 4321
    path = sides.paths().get(node, (space,) if node == ROOT else None)
    back_up_path(player, node, path, chosen=chance)


def back_up_path(player: Player, node: int, path: Prefix | None, *, chosen: Chance | None) -> None:
    """Whatever of a path is due; with a chance, some of it is gathered later."""
    sides, begun = player.sides, len(player.sides.tape.events)

    def imagine(copies: list[Copy] | None) -> None:
        given = [each for each in map(told, copies or []) if each is not None]
        model_of(player).write_through(path, given, drops(player, begun))

    copies = player.play(
        f"write through {node} {path}", lambda: sides.live.write_through(NodeId(node)), imagine
    )
    for copy in copies or []:
        if chosen is None or not rarely(chosen, 15):
            gathered(player, copy.transfer)


def write_back(player: Player, chance: Chance) -> None:
    """The next victim, which is read and goes, mostly."""
    sides, copy = player.sides, back_up_victim(player)
    if copy is not None and not rarely(chance, 15):
        gathered(player, copy.transfer)
        if not rarely(chance, 30) and not sides.model.group_open:
            evict_pages(player, 1, 0)


def back_up_victim(player: Player) -> Copy | None:
    sides, begun = player.sides, len(player.sides.tape.events)
    return player.play(
        "write back",
        sides.live.write_back,
        lambda copy: model_of(player).write_back(told(copy), drops(player, begun)),
    )


def gathered(player: Player, transfer: int) -> None:
    sides = player.sides
    player.play(
        f"gathered {transfer}",
        lambda: sides.live.gathered(TransferId(transfer)),
        lambda _: model_of(player).gathered(transfer),
    )


def gather(player: Player, chance: Chance) -> None:
    """A backup that waits for it; rarely one that does not."""
    trips = model_of(player).trips
    waiting = [number for number, trip in trips.items() if not trip.loads and not trip.gathered]
    if waiting or rarely(chance, 10):
        gathered(player, one_of(chance, waiting if waiting and not rarely(chance, 5) else [*trips, 999]))


def end_backup(player: Player, chance: Chance) -> None:
    """In any order, mostly well; rarely one that is not under way, or too early."""
    trips = model_of(player).trips
    under_way = [number for number, trip in trips.items() if not trip.loads]
    if under_way or rarely(chance, 10):
        transfer = one_of(chance, under_way if under_way and not rarely(chance, 4) else [*trips, 999])
        end_of_backup(player, transfer, landed=not rarely(chance, 25))


def end_of_backup(player: Player, transfer: int, *, landed: bool) -> None:
    sides = player.sides
    player.play(
        f"end backup {transfer} {'well' if landed else 'badly'}",
        lambda: sides.live.end_backup(TransferId(transfer), landed),
        lambda _: model_of(player).end_backup(transfer, landed),
    )


def evict_copies(player: Player, chance: Chance) -> None:
    sides, begun, pages = player.sides, len(player.sides.tape.events), one_of(chance, (1, 0, 1, 2, 5))
    player.play(
        f"evict copies {pages}",
        lambda: sides.live.evict_copies(pages),
        lambda gain: same(gain, model_of(player).evict_copies(pages, drops(player, begun))),
    )


def load_back(player: Player, chance: Chance) -> None:
    """Mostly what a match finds on the host, after room was made; else any node."""
    sides, model = player.sides, model_of(player)
    bare = [prefix for prefix, place in model.tree.places.items() if not place.full]
    if bare and not rarely(chance, 20):
        space, *letters = one_of(chance, bare)
        assert isinstance(space, bytes)
        look_up(player, space, "".join(map(str, letters)), len(letters) * player.shape.page)
        ends = {path: number for number, path in sides.paths().items()}
        path = (space, *letters)
        node = NodeId(ends.get(path[: model.tree.depth(path) + model.host_hit + 1], ROOT))
    else:
        node = one_of(chance, [NodeId(number) for number in (*sides.live.state.nodes, 4321)])
    path = sides.paths().get(node, (b"",) if node == ROOT else None)  # type: ignore[assignment]
    player.play(
        f"load back {node} {path}",
        lambda: sides.live.load_back(node),
        lambda copy: model.load_back(path, told(copy)),
    )


def end_load(player: Player, chance: Chance) -> None:
    """Mostly well and between two steps; rarely one that is not under way."""
    trips = model_of(player).trips
    under_way = [number for number, trip in trips.items() if trip.loads]
    if under_way or rarely(chance, 10):
        transfer = one_of(chance, under_way if under_way and not rarely(chance, 4) else [*trips, 999])
        if not rarely(chance, 40):
            for step in list(player.sides.model.steps):
                end_step(player, step)
        end_of_load(player, transfer, landed=not rarely(chance, 25))


def end_of_load(player: Player, transfer: int, *, landed: bool) -> None:
    sides = player.sides
    player.play(
        f"end load {transfer} {'well' if landed else 'badly'}",
        lambda: sides.live.end_load(TransferId(transfer), landed),
        lambda _: model_of(player).end_load(transfer, landed),
    )


def demote(player: Player, chance: Chance) -> None:
    """FULL pressure; what has no copy gets one before it goes, mostly."""
    if rarely(chance, 10):
        evict_pages(player, one_of(chance, (1, 2, 4)), 0)
        return
    for _ in range(one_of(chance, (1, 2, 3, 4))):
        leaves = model_of(player).tree.idle_leaves()
        if not leaves or player.sides.model.group_open:
            return
        copy_victim(player, min(leaves, key=lambda end: leaves[end]))
        evict_pages(player, 1, 0)


def drain_copies(player: Player, chance: Chance) -> None:
    """Everything under way ends, everybody leaves, and the rank can be flushed, mostly."""
    for number, trip in list(model_of(player).trips.items()):
        if not trip.loads:
            if not trip.gathered:
                gathered(player, number)
            end_of_backup(player, number, landed=not rarely(chance, 30))
        elif not rarely(chance, 5):
            end_of_load(player, number, landed=False)
    drain(player, chance)


OF_COPIES: dict[Command, int] = {
    gather: 6, end_backup: 24, evict_copies: 6, load_back: 18, end_load: 16, demote: 10, drain_copies: 1, drain: 0, evict: 2,
}  # fmt: skip


def commands(write: str) -> dict[Command, int]:
    """Each with its weight in a play by seed; the other way to write is asked for now and then, and refused.

    Trees have to grow, so that copies stand beside each other: there is less pressure than elsewhere.
    """
    own, other = (write_through, write_back) if write == "through" else (write_back, write_through)
    return OF_COPIES | {own: 20, other: 1}
