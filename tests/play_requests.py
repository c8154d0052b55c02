"""What a server does with requests: admit, grow, reclaim, cache, end; steps of the device. Chosen by chance."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.decide.requests import Admission

from .machine import LETTERS, Chance, Command, Player, one_of, rarely, some
from .model import Guest
from .play_pages import evict_for, flush, hand_back, same

SPACES = (b"", b"e\x01\0\0\0x")
BEATEN = "aaab"
"""The path that most prompts begin with."""
NOBODY = (0, 5, 1 << 40, -1)
"""Numbers that no request has."""


def stream(player: Player, chance: Chance) -> str:
    """Contents for a whole row and more: a beaten path, left at some page."""
    length = player.shape.row_pages + 2
    stay = max(chance.number(0, length), chance.number(0, length))
    wild = "".join(LETTERS[chance.number(0, len(LETTERS) - 1)] for _ in range(min(3, length - stay)))
    return ((BEATEN * length)[:stay] + wild + "b" * length)[:length]


def ids(requests: list[int]) -> NDArray[np.int64]:
    return np.array(requests, np.int64)


def lengths(numbers: list[int]) -> NDArray[np.int32]:
    return np.array(numbers, np.int32)


def pick(player: Player, chance: Chance, *, at_rest: bool = False) -> int:
    """A live request, rarely one that is none. at_rest: mostly after the steps that run it have ended."""
    model = player.sides.model
    if not model.guests:
        admit(player, chance)
    if not model.guests or rarely(chance, 3):
        return one_of(chance, NOBODY)
    request = one_of(chance, list(model.guests))
    if at_rest and not rarely(chance, 15):
        for step in [step for step, each in model.steps.items() if request in each.starts]:
            end_step(player, step)
    return request


def admit(player: Player, chance: Chance) -> None:
    sides, shape = player.sides, player.shape
    if len(sides.model.guests) == shape.rows and not rarely(chance, 10):
        finish(player, chance)
    space, letters = one_of(chance, SPACES), stream(player, chance)
    prompt = chance.number(1, min(shape.row_pages, shape.full // 2)) * shape.page + one_of(
        chance, (0, 1, -1, shape.page // 2)
    )
    prompt = min(max(prompt, 1), shape.row_pages * shape.page)
    if rarely(chance, 3):
        never = min(shape.full, shape.row_pages)
        prompt = one_of(chance, (0, -5, never * shape.page + 1))
    player.arrivals += 1
    rid = f"r{player.arrivals}"
    if player.sides.model.guests and rarely(chance, 3):
        rid = next(iter(player.sides.model.guests.values())).rid
    told = shape.page * chance.number(0, 2) if rarely(chance, 5) else max(prompt, 0)
    force_miss = rarely(chance, 8)
    priority = one_of(chance, (0, 0, 1, -1, 5)) if shape.eviction == "priority" else 0

    def imagine(result: Admission | None) -> None:
        if result is None:
            sides.model.judge_admission(rid, prompt, space, letters[: told // shape.page], force_miss)
            return
        known = player.known(letters, told)
        hit, full_hit = sides.model.admit(result.request, rid, space, known, prompt, force_miss, priority)
        assert (result.hit.tokens, result.hit.full_tokens) == (hit * shape.page, full_hit * shape.page)

    admission = player.play(
        f"admit {rid} {letters} prompt {prompt} told {told} in {space!r} force_miss {force_miss} priority {priority}",
        lambda: sides.live.admit(
            rid, player.key(letters, told), prompt, space, force_miss=force_miss, priority=priority
        ),
        imagine,
    )
    if admission is not None:
        player.streams[admission.request] = space, letters


def handed(player: Player, requests: list[int], grown: list[int]) -> dict[int, tuple[list[int], list[int]]]:
    """The pages that each request's row shows behind those it had."""
    state, guests = player.sides.live.state, player.sides.model.guests
    if any(request not in guests for request in requests):
        return {}
    found = {}
    for request, count in player.sides.model.crossings(requests, grown).items():
        first = len(guests[request].row)
        row = state.rows.full_table[state.row_of(request), first : first + max(count, 0)]
        found[request] = row.tolist(), state.mapping.swa_of[row].tolist()
    return found


def begin_step(player: Player, requests: list[int], starts: list[int], stops: list[int]) -> None:
    sides, number = player.sides, player.steps
    player.play(
        f"step {number} began: {requests} {starts} {stops}",
        lambda: sides.live.step_began(number, ids(requests), lengths(starts), lengths(stops)),
        lambda _: sides.model.step_began(number, requests, starts, stops),
    )
    player.steps += 1


def grow(player: Player, chance: Chance, choose: Callable[[Guest], int], *, decode: bool) -> None:
    """Let some requests grow; make room first, mostly, and send the step to the device, sometimes."""
    sides = player.sides
    guests, page = sides.model.guests, player.shape.page
    requests = some(chance, list(guests), 3)
    if not requests or rarely(chance, 3):
        requests.append(one_of(chance, [*NOBODY, *requests]))
    grown = [choose(guests[request]) if request in guests else 1 for request in requests]
    lawful = all(request in guests for request in requests) and min(grown) > 0
    if lawful and not rarely(chance, 30):
        evict_for(player, sum(sides.model.crossings(requests, grown).values()))
    before = {request: guests[request].length for request in requests if request in guests}

    def act() -> NDArray[np.int32] | None:
        if decode:
            return sides.live.decode(ids(requests))
        sides.live.extend(ids(requests), lengths(grown))
        return None

    def imagine(slots: NDArray[np.int32] | None) -> None:
        sides.model.extend(requests, grown, handed(player, requests, grown))
        if slots is not None:
            tokens = [guests[request].length - 1 for request in requests]
            rows = [guests[request].row for request in requests]
            assert slots.tolist() == [
                row[at // page] * page + at % page for row, at in zip(rows, tokens, strict=True)
            ]

    player.play(f"{'decode' if decode else 'extend'} {requests} {grown}", act, imagine)
    grew = len(before) == len(requests) and all(
        guests[each].length > length for each, length in before.items()
    )
    if requests and grew and rarely(chance, 15):
        starts = [before[request] for request in requests]
        begin_step(player, requests, starts, [guests[request].length for request in requests])


def extend(player: Player, chance: Chance) -> None:
    """Prefill chunks, some of them mixed with requests that are past their prompt."""
    page = player.shape.page

    def chunk(guest: Guest) -> int:
        if rarely(chance, 2):
            return one_of(chance, (0, -1))
        rest = guest.prompt - guest.length
        whole = page - guest.length % page
        most = rest if rest > 0 else 2 * page
        return min(
            one_of(chance, (most, whole, whole + page, whole + 1, chance.number(1, 2 * page))), max(most, 1)
        )

    grow(player, chance, chunk, decode=False)


def decode(player: Player, chance: Chance) -> None:
    grow(player, chance, lambda _: 1, decode=True)


def reclaim(player: Player, chance: Chance) -> None:
    """Mostly as decode does; some with other positions and margins."""
    sides = player.sides
    request, guests = pick(player, chance), sides.model.guests
    if guests and not rarely(chance, 30):
        request = max(guests, key=lambda number: guests[number].length - guests[number].protected)
    length = guests[request].length if request in guests else 9
    pre = length - 1
    if rarely(chance, 25):
        pre = one_of(
            chance, (length, length + 1, length + 9 * player.shape.page, 0, -3, chance.number(0, length))
        )
    in_flight = one_of(chance, (0, 0, 0, 1, player.shape.page, -1))
    player.play(
        f"reclaim {request} pre {pre} in flight {in_flight}",
        lambda: sides.live.reclaim(request, pre, in_flight),
        lambda cursor: same(cursor, sides.model.reclaim(request, pre, in_flight)),
    )


def reclaim_for(player: Player, chance: Chance) -> None:
    """Before something is cached, by the key that will be cached; rarely one that is longer than what is computed."""
    sides = player.sides
    request = pick(player, chance)
    _, letters = player.streams.get(request, (b"", "aaaa"))
    tokens = sides.model.guests[request].length if request in sides.model.guests else 9
    if rarely(chance, 20):
        tokens = chance.number(0, tokens + 2)
    key = player.key(letters, tokens)
    assert key == sides.live.key_of(np.frombuffer(player.tokens(letters, tokens), "<i4"))
    units = len(key) // (4 * (1 + player.shape.ahead))
    player.play(
        f"reclaim {request} for a key of {units} units",
        lambda: sides.live.reclaim_for(request, key),
        lambda cursor: same(cursor, sides.model.reclaim_for(request, units)),
    )


def reclaim_batch(player: Player, chance: Chance) -> None:
    sides = player.sides
    requests = some(chance, list(sides.model.guests), 4)
    if rarely(chance, 3):
        requests.append(one_of(chance, NOBODY[1:]))
    in_flight = one_of(chance, (0, 0, 1, player.shape.page))
    player.play(
        f"reclaim batch {requests} in flight {in_flight}",
        lambda: sides.live.reclaim_batch(ids(requests), in_flight),
        lambda _: sides.model.reclaim_batch(requests, in_flight),
    )


def cache_unfinished(player: Player, chance: Chance) -> None:
    """After a chunk: all that is computed, named by its own key or by that of the whole prompt."""
    sides, page = player.sides, player.shape.page
    request = pick(player, chance, at_rest=True)
    _, letters = player.streams.get(request, (b"", "aaaa"))
    length = sides.model.guests[request].length if request in sides.model.guests else page
    tokens = length
    if rarely(chance, 10):
        tokens = one_of(chance, (length + 2 * page, chance.number(0, length), 0))
    whole = rarely(chance, 50)
    key = player.key(letters, None if whole else tokens)
    player.play(
        f"cache unfinished {request}: {tokens} of {length} tokens of {letters}, whole key {whole}",
        lambda: sides.live.cache_unfinished(request, key, tokens if whole else None),
        lambda kept: same(kept, sides.model.cache_unfinished(request, player.known(letters, tokens))),
    )


def finish(player: Player, chance: Chance) -> None:
    sides, page = player.sides, player.shape.page
    request = pick(player, chance, at_rest=True)
    _, letters = player.streams.get(request, (b"", "aaaa"))
    length = sides.model.guests[request].length if request in sides.model.guests else page
    tokens: int | None = length
    if rarely(chance, 25):
        less = chance.number(0, length)
        tokens = one_of(chance, (max(0, length - 1), None, length + 2 * page, less, less, length // 2))
    key = None if tokens is None else player.key(letters, tokens)
    known = None if tokens is None else player.known(letters, tokens)
    player.play(
        f"finish {request}: {tokens} of {length} tokens of {letters}",
        lambda: sides.live.finish(request, key),
        lambda cached: same(cached, sides.model.finish(request, known)),
    )


def retract(player: Player, chance: Chance) -> None:
    request = pick(player, chance, at_rest=True)
    surrender = player.sides.model.surrender
    player.play(
        f"retract {request}", lambda: player.sides.live.retract(request), lambda _: surrender(request)
    )


def abort(player: Player, chance: Chance) -> None:
    request = pick(player, chance, at_rest=True)
    surrender = player.sides.model.surrender
    player.play(f"abort {request}", lambda: player.sides.live.abort(request), lambda _: surrender(request))


def step_began(player: Player, chance: Chance) -> None:
    """A step by itself; rarely one that cannot be."""
    guests = player.sides.model.guests
    requests = some(chance, list(guests), 2)
    starts = [guests[request].length for request in requests]
    if rarely(chance, 30):
        fault = chance.number(0, 2)
        player.steps -= fault == 0 and player.steps > 0
        requests = [*requests, one_of(chance, NOBODY)] if fault == 1 else requests
        starts = [*starts, 0] if fault else starts
    begin_step(player, requests, starts, list(starts))


def step_ended(player: Player, chance: Chance) -> None:
    running = list(player.sides.model.steps)
    if running or rarely(chance, 20):
        end_step(player, 99 if not running or rarely(chance, 5) else one_of(chance, running))


def end_step(player: Player, step: int) -> None:
    sides = player.sides
    player.play(
        f"step {step} ended", lambda: sides.live.step_ended(step), lambda _: sides.model.step_ended(step)
    )


def drain(player: Player, chance: Chance) -> None:
    """Everybody leaves and gives back what is his, so that the rank can be flushed, mostly."""
    model = player.sides.model
    for step in list(model.steps):
        end_step(player, step)
    while model.guests and not rarely(chance, 5):
        abort(player, chance)
    hand_back(player, chance)
    flush(player, chance)


COMMANDS: dict[Command, int] = {
    admit: 16, extend: 22, decode: 12, reclaim: 9, reclaim_for: 2, reclaim_batch: 6, cache_unfinished: 10, finish: 8, retract: 3, abort: 2,
    step_began: 1, step_ended: 6, drain: 1,
}  # fmt: skip
"""Each with its weight in a play by seed."""
