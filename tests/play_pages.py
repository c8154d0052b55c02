"""What may be done to pages and to the tree without a request: match, insert, lock, evict, allocate, free. By chance."""

from collections.abc import Sequence

from radixledger.cache.match import Hit
from radixledger.cache.slices import Inserted, Slice
from radixledger.cache.state import Receipt
from radixledger.journal.accounts import FREE, request_account, tree_account
from radixledger.journal.causes import Operation
from radixledger.journal.events import Demoted, LedgerTaken, Removed, Stop, Tombstoned
from radixledger.journal.moves import pages_of
from radixledger.journal.units import ROOT, UNBOUND, BoundaryId, NodeId, Pages, RequestId

from .machine import LETTERS, Chance, Command, Player, one_of, packed, rarely, some
from .model import turn_if
from .model_host import HostModel
from .model_recurrent import RecurrentModel, StateTree
from .model_tree import Prefix
from .play_slots import give_states, strays

SPACES = (b"", b"e\x01\0\0\0x")
NOBODYS = int(request_account(UNBOUND))
"""The account of pages that were handed out and that no request has named."""


def same(live: int | None, imagined: int) -> None:
    assert live == imagined, f"{live} is the answer, {imagined} is right"


def unbound(player: Player) -> list[int]:
    """The FULL pages that somebody has and nobody has named."""
    return [page for page, held in player.sides.model.full.items() if held == NOBODYS]


def any_key(player: Player, chance: Chance) -> tuple[bytes, str]:
    """Mostly a path that is there or begins like one."""
    places = list(player.sides.model.tree.places)
    space, letters = one_of(chance, SPACES), ""
    if places and not rarely(chance, 10):
        space, *path = one_of(chance, places)  # type: ignore[assignment]
        letters = "".join(str(name)[0] for name in path)
        letters += str(path[-1])[1:] if path else ""
    more = "".join(LETTERS[chance.number(0, len(LETTERS) - 1)] for _ in range(chance.number(0, 3)))
    return space, letters + more


# -- the tree ------------------------------------------------------------------------------------------------


def match(player: Player, chance: Chance) -> None:
    """Keys end within a page too; rarely the answer is forced to be nothing."""
    space, letters = any_key(player, chance)
    tokens = len(letters) * player.shape.page + chance.number(0, player.shape.page - 1)
    look_up(player, space, letters + "b", tokens, force_miss=rarely(chance, 5))


def look_up(player: Player, space: bytes, letters: str, tokens: int, *, force_miss: bool = False) -> NodeId:
    """Match a key of the first tokens of these pages; `peek` first says the same and moves nothing."""
    sides, page = player.sides, player.shape.page
    key, known = player.key(letters, tokens), player.known(letters, tokens)
    seen = sides.live.peek(key, space)

    def imagine(hit: Hit | None) -> None:
        path = (space, *known)
        depth = sides.model.tree.depth(path)
        inside = sides.model.tree.inside(path[: depth + 1])
        on_host = sides.model.tree.stored(path) > depth
        right = [pages * page for pages in sides.model.match(space, known, force_miss)]
        assert hit is not None
        assert [hit.tokens, hit.full_tokens] == right
        end = sides.paths()[hit.node] if hit.node != ROOT else path[:1]
        assert end == path[: hit.tokens // page + 1]
        if not force_miss:
            assert (seen.tokens, seen.full_tokens) == (hit.tokens, hit.full_tokens)
            assert (seen.host_tokens, hit.stop == Stop.ON_HOST) == (hit.host_tokens, on_host)
            assert on_host or hit.stop == why(hit, len(known) * page, inside, states=player.shape.states > 0)
        check_host_part(player, hit, path)

    found = player.play(
        f"match {tokens} tokens of {letters} in {space!r} force_miss {force_miss}",
        lambda: sides.live.match(key, space, force_miss=force_miss),
        imagine,
    )
    assert found is not None
    return found.node


def check_host_part(player: Player, hit: Hit, path: Prefix) -> None:
    """What a match says of copies behind the part on the device is what the model found."""
    model, page = player.sides.model, player.shape.page
    found = model.host_hit if isinstance(model, HostModel) else 0
    assert hit.host_tokens == found * page
    end = player.sides.paths().get(hit.host_node, path[:1])
    assert end == path[: (hit.tokens + hit.host_tokens) // page + 1] or not found


def why(hit: Hit, asked: int, inside: bool, *, states: bool) -> Stop:
    """Why a match must have ended where it did."""
    if hit.tokens < hit.full_tokens:
        return Stop.NO_STATE if states else Stop.WINDOW_DEAD
    if hit.full_tokens == asked:
        return Stop.END_OF_KEY
    return Stop.DIVERGED if inside else Stop.NO_CHILD


def insert(player: Player, chance: Chance) -> None:
    """Pages that nobody has named become the tree's; the part of them that is `released` may have lost its SWA."""
    sides, mapping = player.sides, player.sides.model.mapping
    space, letters = any_key(player, chance)
    own = sorted(some(chance, unbound(player), player.shape.row_pages), key=lambda page: page in mapping)
    prev = 0
    path = (space, *player.known(letters))
    if rarely(chance, 25):
        prev = chance.number(0, sides.model.tree.depth(path))
    pages = [sides.model.tree.places[path[: at + 2]].full for at in range(prev)] + own
    letters = (letters + "ab" * (len(pages) + 1))[: max(len(pages), 1) + player.shape.ahead]
    gone = sum(page not in mapping for page in own) if player.shape.window else 0
    released = prev + gone + chance.number(0, 2) * rarely(chance, 30)
    giver = NOBODYS
    if rarely(chance, 12):
        fault = chance.number(0, 6)
        prev = -1 if fault == 0 else prev + 1 if fault == 1 else prev
        released = -1 if fault == 2 else 0 if fault == 3 else released
        pages = [*pages[:-1], chance.number(1, player.shape.full)] if fault == 4 else pages
        giver = (
            one_of(chance, (int(FREE), int(tree_account(NodeId(1))), NOBODYS + 8)) if fault == 5 else giver
        )
        letters = letters[:-1] if fault == 6 else letters

    def imagine(result: Inserted | None) -> None:
        end, had = sides.model.insert(space, player.known(letters), pages, prev, released, giver)
        assert result is not None
        assert result.prefix == had
        assert sides.paths().get(result.node.id, end[:1]) == end

    brought = Slice(packed(pages), prev, released, giver, RequestId(0), Operation.INSERT)
    player.play(
        f"insert {letters} in {space!r}: {pages} prev {prev} released {released} giver {giver}",
        lambda: sides.live.insert(player.key(letters), space, brought),
        imagine,
    )


def lock(player: Player, chance: Chance) -> None:
    sides = player.sides
    if len(player.receipts) > 3:
        unlock(player, chance)
    lock_node(player, one_of(chance, [*sides.paths(), ROOT, *([12345] * rarely(chance, 5))]))


def lock_node(player: Player, node: int) -> Receipt | None:
    sides, paths = player.sides, player.sides.paths()

    def imagine(receipt: Receipt | None) -> None:
        turn_if(["refused"] * (node != ROOT and node not in paths))
        tree = sides.model.tree
        mine = tree.lock(paths[node] if node != ROOT else (b"",))
        assert receipt is not None
        player.receipts.append((receipt, mine))
        if mine is not None:
            segment = [span for span in tree.spans_of(mine.end) if span[0] >= mine.start]
            dead = [stop for _, stop in segment if tree.places[mine.end[: stop + 1]].swa is None]
            bare = isinstance(tree, StateTree) and mine.end not in tree.states
            assert len(receipt.skipped) == len(dead) + bare, "tombstones passed, or no state"
            assert (receipt.boundary == 0) == mine.to_root

    return player.play(f"lock {node} {paths.get(node)}", lambda: sides.live.lock(NodeId(node)), imagine)


def unlock(player: Player, chance: Chance) -> None:
    """A receipt that is held; rarely one that was given back before, is forged, or is a request's own."""
    sides = player.sides
    receipts = [receipt for receipt, _ in player.receipts]
    if not receipts or rarely(chance, 12):
        own = [sides.live.state.requests[number].receipt for number in sides.model.guests]
        held = {each.node for each in receipts}
        forged = [Receipt(each.node, BoundaryId(each.boundary + 999)) for each in receipts]
        others = [each for each in (*player.spent, *own) if each is not None and each.node not in held]
        receipts = [*others, *forged]
    receipt = one_of(chance, receipts or [Receipt(NodeId(4321), BoundaryId(0))])

    def imagine(_: None) -> None:
        held = [pair for pair in player.receipts if pair[0][:2] == receipt[:2]]
        turn_if(["refused"] * (not held and receipt.node != ROOT))
        if held:
            player.receipts.remove(held[0])
            player.spent = [*player.spent, receipt][-4:]
            sides.model.tree.unlock(held[0][1])

    player.play(f"unlock {receipt}", lambda: sides.live.unlock(receipt), imagine)


def evict_pages(player: Player, full: int, swa: int) -> None:
    sides, begun = player.sides, len(player.sides.tape.events)

    def imagine(gain: tuple[int, int] | None) -> None:
        victims = [
            tuple(pages_of(event.full).tolist())
            for event in player.events(begun)
            if isinstance(event, Removed | Tombstoned | Demoted) and event.full
        ]
        imagined = sides.model.evict(full, swa, victims)
        assert gain == imagined, f"{gain} is told, {imagined} was gained"

    player.play(f"evict {full} {swa}", lambda: sides.live.evict(full, swa), imagine)


def evict(player: Player, chance: Chance) -> None:
    full, swa = one_of(chance, (0, 0, 0, 1, 2, 5)), one_of(chance, (1, 0, 1, 2, 3, 5))
    evict_pages(player, full, -1 if rarely(chance, 3) else swa)


def evict_for(player: Player, needed: int) -> None:
    """Make room as a server does: ask for what is missing, unless a group is open."""
    model = player.sides.model
    full, swa = (max(0, needed - model.count(book, FREE)) if book else 0 for book in (model.full, model.swa))
    if (full or swa) and not model.group_open:
        if player.save is not None:
            player.save(player)
        evict_pages(player, full, swa)


def hand_back(player: Player, chance: Chance) -> None:
    """Give back every receipt, every page that nobody has named and every state that no request has; end the group."""
    sides = player.sides
    while player.receipts:
        unlock(player, chance)
    if sides.model.group_open:
        player.play("flush group", sides.live.flush_group, lambda _: sides.model.flush_group())
    give_swa(player, sorted(sides.model.dangling()), None)
    pages = unbound(player)
    player.play(
        f"free {pages}", lambda: sides.live.free(packed(pages)), lambda _: sides.model.free(pages, None)
    )
    if isinstance(sides.model, RecurrentModel):
        give_states(player, strays(sides.model))


def flush(player: Player, _: Chance) -> None:
    sides = player.sides

    def imagine(removed: int | None) -> None:
        same(removed, sides.model.flush())

    player.play("flush", sides.live.flush, imagine)


# -- pages ---------------------------------------------------------------------------------------------------


def alloc(player: Player, chance: Chance) -> None:
    count = (
        one_of(chance, (1, 1, 2, 3, 5))
        if not rarely(chance, 4)
        else one_of(chance, (0, -2, player.shape.full + 1))
    )
    if not rarely(chance, 40):
        evict_for(player, count)
    take(player, count)


def take(player: Player, count: int) -> None:
    sides = player.sides

    def imagine(result: tuple[Pages, Pages] | None) -> None:
        got = None if result is None else (pages_of(result[0]).tolist(), pages_of(result[1]).tolist())
        sides.model.alloc(count, got)

    player.play(f"alloc {count}", lambda: sides.live.alloc(count), imagine)


def some_pages(player: Player, chance: Chance) -> tuple[list[int], int | None]:
    """FULL pages to give up, and who says so: mostly nobody's pages; rarely others', twice, or none at all."""
    pages = some(chance, unbound(player), 3)
    giver = one_of(chance, (None, None, NOBODYS))
    if rarely(chance, 30):
        kind = chance.number(0, 3)
        if kind == 0:
            rows = [page for guest in player.sides.model.guests.values() for page in guest.row]
            pages = [*pages, one_of(chance, [*rows, chance.number(1, player.shape.full)])]
        elif kind == 1:
            pages = [*pages, *pages[:1]]
        elif kind == 2:
            giver = one_of(chance, [NOBODYS + 8, int(FREE), *(int(request_account(RequestId(number)))
                                                             for number in player.sides.model.guests)])  # fmt: skip
        else:
            pages = [*pages, one_of(chance, (0, -1, player.shape.full + 1))]
    return pages, giver


def free(player: Player, chance: Chance) -> None:
    sides, (pages, giver) = player.sides, some_pages(player, chance)
    player.play(
        f"free {pages} giver {giver}",
        lambda: sides.live.free(packed(pages), giver),
        lambda _: sides.model.free(pages, giver),
    )


def free_full(player: Player, chance: Chance) -> None:
    """Mostly followed by the SWA of the same pages, as it must be before the next allocation."""
    sides, (pages, giver) = player.sides, some_pages(player, chance)
    player.play(
        f"free full {pages} giver {giver}",
        lambda: sides.live.free_full(packed(pages), giver),
        lambda _: sides.model.free_full(pages, giver),
    )
    dangling = sorted(sides.model.dangling())
    if dangling and not rarely(chance, 40):
        give_swa(player, dangling, None)


def free_swa(player: Player, chance: Chance) -> None:
    pages, giver = some_pages(player, chance)
    dangling = sorted(player.sides.model.dangling())
    give_swa(player, dangling if dangling and not rarely(chance, 20) else pages, giver)


def give_swa(player: Player, pages: Sequence[int], giver: int | None) -> None:
    sides = player.sides
    player.play(
        f"free swa {pages} giver {giver}",
        lambda: sides.live.free_swa(packed(pages), giver),
        lambda _: sides.model.free_swa(pages, giver),
    )


def remap(player: Player, chance: Chance) -> None:
    """The mapping of some of nobody's pages to others that have none; rarely to or from the wrong ones."""
    sides, mapping = player.sides, player.sides.model.mapping
    targets = some(chance, [page for page in unbound(player) if page not in mapping], 2)
    sources = some(chance, [page for page in unbound(player) if page in mapping], 2)
    if not rarely(chance, 10):
        count = min(len(sources), len(targets))
        sources, targets = sources[:count], targets[:count]
    elif rarely(chance, 60):
        sources = [*sources, chance.number(0, player.shape.full)]
        targets = [*targets, chance.number(1, player.shape.full + 1)]
    player.play(
        f"remap {sources} to {targets}",
        lambda: sides.live.remap(packed(sources), packed(targets)),
        lambda _: sides.model.remap(sources, targets),
    )


def group(player: Player, chance: Chance) -> None:
    """Open one, or flush the open one; rarely the other way round."""
    sides = player.sides
    if sides.model.group_open == rarely(chance, 10):
        if rarely(chance, 50):
            player.play("open group", sides.live.open_group, lambda _: sides.model.open_group())
    else:
        player.play("flush group", sides.live.flush_group, lambda _: sides.model.flush_group())


def translate(player: Player, chance: Chance) -> None:
    sides, (pages, _) = player.sides, some_pages(player, chance)
    required = rarely(chance, 50)

    def imagine(swa: Pages | None) -> None:
        right = sides.model.translate(pages, required)
        assert swa is not None
        assert pages_of(swa).tolist() == right

    player.told.append(f"translate {pages} required {required}")
    sides.read(lambda: sides.live.translate(packed(pages), require_mapped=required), imagine)


def record_ledger(player: Player, _: Chance) -> None:
    sides = player.sides

    def imagine(row: LedgerTaken | None) -> None:
        assert row is not None
        for name, right in sides.model.ledger().items():
            assert getattr(row, name) == right, name

    sides.read(lambda: sides.live.ledger("machine"), imagine)
    player.play("record ledger", lambda: sides.live.record_ledger("machine"), imagine)


def snapshot(player: Player, _: Chance) -> None:
    sides = player.sides
    number = sides.live.state.seq
    player.play("snapshot", sides.live.snapshot, lambda taken: same(taken, number))


COMMANDS: dict[Command, int] = {
    match: 6, insert: 9, lock: 5, unlock: 5, evict: 8, flush: 1, alloc: 8, free: 4, free_full: 3, free_swa: 4, remap: 3,
    group: 3, translate: 2, record_ledger: 2, snapshot: 1,
}  # fmt: skip
"""Each with its weight in a play by seed."""
