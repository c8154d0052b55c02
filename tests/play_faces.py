"""What a server with rows of its own tells its rank: who sits where, what it wrote into rows, what it gives up. By chance."""

from radixledger.cache.decide.faces import Written
from radixledger.cache.state import Receipt
from radixledger.journal.accounts import request_account
from radixledger.journal.moves import pages_of
from radixledger.journal.units import ROOT, TO_ROOT, NodeId, Pages, RequestId

from .machine import Chance, Command, Player, one_of, packed, rarely, some
from .model_faces import Seat, Writing
from .play_pages import SPACES, evict_for, lock_node, look_up, some_pages, take, unbound
from .play_requests import NOBODY, drain, end_step, finish, stream
from .play_slots import take_slots


def seat(player: Player, chance: Chance) -> None:
    """As a server does: match, lock, choose a row, sit down; rarely something of it does not fit."""
    sides, shape = player.sides, player.shape
    if len(sides.model.guests) == shape.rows:
        finish(player, chance)
    space, letters = one_of(chance, SPACES), stream(player, chance)
    prompt = chance.number(1, shape.row_pages * shape.page)
    node: int = look_up(player, space, letters, prompt - 1)
    receipt = lock_node(player, node)
    player.arrivals += 1
    rid, row = f"s{player.arrivals}", _free_row(player)
    assert receipt is not None
    if rarely(chance, 15):
        fault = chance.number(0, 5)
        prompt = one_of(chance, (0, 1, (shape.row_pages + 1) * shape.page)) if fault == 0 else prompt
        row = one_of(chance, (-1, shape.rows, 0, 1)) if fault == 1 else row
        receipt = Receipt(ROOT, TO_ROOT) if fault == 2 else receipt
        node = one_of(chance, [*sides.live.state.nodes, 12345]) if fault == 3 else node
        receipt = one_of(chance, [pair[0] for pair in player.receipts]) if fault == 4 else receipt
        rid = next(iter([each.rid for each in sides.model.guests.values()] * (fault == 5)), rid)
    _sit(player, (space, letters), rid, row, prompt, NodeId(node), receipt)


def _free_row(player: Player) -> int:
    taken = {number % player.shape.rows for number in player.sides.model.guests}
    return next((row for row in range(player.shape.rows) if row not in taken), 0)


def _sit(
    player: Player, wanted: tuple[bytes, str], rid: str, row: int, prompt: int, node: NodeId, receipt: Receipt
) -> None:
    sides, space = player.sides, wanted[0]
    held = [pair for pair in player.receipts if pair[0][:2] == receipt[:2] and receipt.node == node != ROOT]
    path = sides.paths().get(node, (space,) if node == ROOT else None)
    place = Seat(rid, row, prompt, path, held[0][1] if held else None)

    def imagine(request: int | None) -> None:
        sides.model.sit(request or 0, place)
        if held:
            player.receipts.remove(held[0])

    request = player.play(
        f"seat {rid} in row {row}, prompt {prompt} of {wanted}, behind node {node} {path} with {receipt}",
        lambda: sides.live.seat(rid, row, prompt, node, space, receipt),
        imagine,
    )
    if request is not None:
        player.streams[request] = wanted


def write(player: Player, chance: Chance) -> None:
    """Rows grow by a few tokens, into pages that were handed out before; rarely into wrong ones."""
    sides, page = player.sides, player.shape.page
    guests = sides.model.guests
    requests = some(chance, list(guests), 2)
    writings: list[Writing] = []
    for request in requests:
        length = guests[request].length
        start = length if not rarely(chance, 20) else chance.number(0, length)
        stop = start + one_of(chance, (1, page, page + 1, 2 * page))
        needed = player.shape.pages(stop) - len(guests[request].row)
        if needed > 0:
            evict_for(player, needed)
            take(player, needed)
        named = {each for other in writings for each in other.pages}
        whole = [each for each in unbound(player) if each in sides.model.mapping or not player.shape.window]
        fresh = [each for each in whole if each not in named][: max(needed, 0)]
        row = guests[request].row[start // page : player.shape.pages(stop)]
        writings.append(Writing(request, start, stop, row + fresh))
    if writings and rarely(chance, 15):
        writings[-1] = _spoiled(player, chance, writings[-1])
    player.play(
        f"write {writings}",
        lambda: sides.live.write(
            [Written(RequestId(r), start, stop, packed(pages)) for r, start, stop, pages in writings]
        ),
        lambda _: sides.model.write(writings),
    )


def _spoiled(player: Player, chance: Chance, writing: Writing) -> Writing:
    any_page = chance.number(0, player.shape.full + 1)
    match chance.number(0, 4):
        case 0:
            return writing._replace(request=one_of(chance, NOBODY))
        case 1:
            return writing._replace(
                start=writing.start + player.shape.page, stop=writing.stop + player.shape.page
            )
        case 2:
            return writing._replace(pages=[*writing.pages[:-1], any_page])
        case 3:
            return writing._replace(pages=writing.pages[:-1])
        case _:
            return writing._replace(pages=[*writing.pages, any_page])


def give_up(player: Player, chance: Chance) -> None:
    """The last pages of a row, or nobody's; rarely some from the middle, or under a running step."""
    sides = player.sides
    pages, giver = some_pages(player, chance)
    guests = sides.model.guests
    if guests and not rarely(chance, 30):
        request = one_of(chance, list(guests))
        own = guests[request].row[guests[request].protected // player.shape.page :]
        pages = own[-chance.number(1, 3) :] if not rarely(chance, 15) else own[:1]
        giver = one_of(chance, (None, int(request_account(RequestId(request)))))
        for step in [step for step, each in sides.model.steps.items() if request in each.starts]:
            if not rarely(chance, 20):
                end_step(player, step)
    player.play(
        f"give up {pages} giver {giver}",
        lambda: sides.live.give_up(packed(pages), giver),
        lambda _: sides.model.give_up_pages(pages, giver),
    )


def clear(player: Player, chance: Chance) -> None:
    """Mostly of a rank that was drained before."""
    if not rarely(chance, 30):
        drain(player, chance)
    sides = player.sides
    player.play("check flush", sides.live.check_flush, lambda _: sides.model.judge_flush())
    take(player, 1)
    if player.shape.states:
        take_slots(player, 1)
    player.play("clear", sides.live.clear, lambda _: sides.model.clear())


def translate_recorded(player: Player, chance: Chance) -> None:
    sides, (pages, _) = player.sides, some_pages(player, chance)

    def imagine(swa: Pages | None) -> None:
        right = sides.model.translate(pages, True)
        assert swa is not None
        assert pages_of(swa).tolist() == right

    player.play(
        f"translate {pages} for the record", lambda: sides.live.translate_recorded(packed(pages)), imagine
    )


COMMANDS: dict[Command, int] = {seat: 6, write: 10, give_up: 5, clear: 1, translate_recorded: 1}
"""Each with its weight in a play by seed."""
