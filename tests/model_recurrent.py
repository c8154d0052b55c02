"""The naive model of a rank whose nodes keep states of a recurrent model: who has which slot, and what stands where.

A state stands at a prefix, as a whole and nowhere else. The tree keeps one where nothing goes on behind it, or where a
lock is anchored; every question is answered by looking at all of them. Which slot is handed out is the cache's choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from radixledger.journal.accounts import FREE, request_account
from radixledger.journal.units import UNBOUND, RequestId

from .model import TREE, Guest, turn_if
from .model_faces import FacesModel, Seat, Writing
from .model_tree import Lock, Prefix, Shape, Tree

NOBODYS = int(request_account(UNBOUND))


@dataclass
class Standing:
    """A state in the tree: its slot, and when it was used; larger is younger."""

    slot: int
    used: int


@dataclass
class Desk:
    """What a live request has: the slot that it runs on, those that track and the tokens after which they do."""

    running: int
    track: list[int]
    ends: list[int]
    source: int = 0
    """The slot that is yet to be copied to the running one."""


@dataclass(eq=False)
class StateTree(Tree):
    """A tree with states at some of its prefixes."""

    states: dict[Prefix, Standing] = field(default_factory=dict)
    slots: dict[int, int] = field(default_factory=dict)
    """Who has each slot."""

    def valid(self, path: Prefix) -> bool:
        return len(path) == 1 or path in self.states

    def touch(self, path: Prefix) -> None:
        super().touch(path)
        if path in self.states:
            self.states[path].used = self.now

    def grow(
        self, path: Prefix, full: Sequence[int], swa: Sequence[int | None], start: int, live: int
    ) -> None:
        super().grow(path, full, swa, start, live)
        self.drop_outgrown()

    def unlock(self, lock: Lock | None) -> None:
        super().unlock(lock)
        self.drop_outgrown()

    def anchored(self, end: Prefix) -> bool:
        return any(lock.end == end for lock in self.locks)

    def drop_outgrown(self) -> None:
        """What goes on behind a state takes its place, unless somebody still holds it."""
        for end in list(self.states):
            if self.children(end) and not self.anchored(end):
                self.drop(end)

    def drop(self, end: Prefix) -> None:
        if end in self.states:
            self.slots[self.states.pop(end).slot] = int(FREE)

    def idle_states(self) -> dict[Prefix, tuple[int, int]]:
        """Leaves that may go for their state, each with its stamp; nothing counts before recency."""
        return {
            end: (0, standing.used)
            for end, standing in self.states.items()
            if not self.children(end) and not self.holders(end)
        }


class RecurrentModel(FacesModel):
    """A whole rank with states."""

    def __init__(self, shape: Shape, strict: bool = True) -> None:
        super().__init__(shape, strict)
        self.tree: StateTree = StateTree(shape, slots=dict.fromkeys(range(1, shape.states + 1), int(FREE)))
        self.desks: dict[int, Desk] = {}
        self.victims: list[tuple[int, ...]] = []
        self.handed: list[int] = []
        self.carried = 0

    @property
    def each(self) -> int:
        """Slots of one request."""
        return 3 if self.shape.interval else 1

    def told(self, victims: Sequence[tuple[int, ...]], handed: Sequence[int]) -> None:
        self.victims, self.handed = list(victims), list(handed)

    # -- slots -----------------------------------------------------------------------------------------------

    def free_slots(self) -> int:
        return self.count(self.tree.slots, FREE)

    def has_room(self, needed: int, spared: Prefix = ()) -> bool:
        """Whether so many slots are free, or would be if the oldest leaves but `spared` went."""
        idle = 0 if self.group_open else len([end for end in self.tree.idle_states() if end != spared])
        return self.free_slots() >= needed or self.free_slots() + idle >= needed

    def make_room(self, needed: int) -> None:
        while self.free_slots() < needed:
            self._remove(self.tree.judge_victim(self.victims.pop(0), self.tree.idle_states()))

    def hand_out(self, count: int, taker: int) -> list[int]:
        """Whichever slots, as long as they were free."""
        assert len(self.handed) >= count, f"{count} slots are needed, {self.handed} were handed out"
        slots = [self.handed.pop(0) for _ in range(count)]
        for slot in slots:
            assert self.tree.slots[slot] == FREE, (
                f"slot {slot} was handed out while {self.tree.slots[slot]} had it"
            )
            self.tree.slots[slot] = taker
        return slots

    def take_states(self, count: int) -> None:
        turn_if(["refused"] * (count <= 0) + ["state_short"] * (count > self.free_slots() and count > 0))
        self.hand_out(count, NOBODYS)

    def free_states(self, slots: Sequence[int]) -> None:
        held = [self.tree.slots.get(slot, -1) for slot in slots]
        wrong = [held_by for held_by in held if held_by != NOBODYS]
        if wrong:
            turn_if(["double_free" if wrong[0] == FREE else "foreign_free"])
        turn_if(["refused"] * (len(set(slots)) < len(slots)))
        self.tree.slots.update(dict.fromkeys(slots, int(FREE)))

    def donate(self, end: Prefix, slot: int) -> bool:
        """A state goes to a leaf without one; any other is freed."""
        fits = len(end) > 1 and end not in self.tree.states and not self.tree.children(end)
        self.tree.slots[slot] = TREE if fits else int(FREE)
        if fits:
            self.tree.states[end] = Standing(slot, self.tree.places[end].used)
        return fits

    # -- the tree --------------------------------------------------------------------------------------------

    def _remove(self, end: Prefix) -> tuple[int, int]:
        gained = super()._remove(end)
        self.tree.drop(end)
        return gained

    def evict_states(self, count: int, victims: Sequence[tuple[int, ...]]) -> tuple[int, int]:
        turn_if(["busy"] * self.group_open)
        chosen, full, states = list(victims), 0, 0
        while states < count and (idle := self.tree.idle_states()):
            full += self._remove(self.tree.judge_victim(chosen.pop(0) if chosen else (), idle))[0]
            states += 1
        assert not chosen, f"{len(chosen)} victims more than were asked for"
        return full, states

    def judge_flush(self) -> None:
        super().judge_flush()
        turn_if(["busy"] * any(held not in (FREE, TREE) for held in self.tree.slots.values()))

    def flush(self) -> int:
        count = super().flush()
        for end in list(self.tree.states):
            self.tree.drop(end)
        return count

    def _judge_cuts(self, cuts: dict[int, list[int]]) -> list[str]:
        """A state cannot be cut back with its row."""
        return [*super()._judge_cuts(cuts), *["refused"] * bool(cuts)]

    def clear(self) -> None:
        super().clear()
        self.tree.slots.update({slot: int(FREE) for slot, held in self.tree.slots.items() if held == NOBODYS})

    def insert_state(
        self, space: bytes, key: Sequence[str], pages: Sequence[int], prev: int, giver: int, slot: int
    ) -> tuple[Prefix, int, bool]:
        """A stranger's insert that carries a state. Whether the tree took it comes last."""
        self.judge_slice(key, pages, prev, prev, giver)
        turn_if(["foreign_free"] * (self.tree.slots.get(slot) != giver))
        end, had = self.insert(space, key, pages, prev, prev, giver)
        return end, had, self.donate(end, slot)

    # -- requests --------------------------------------------------------------------------------------------

    def judge_admission(
        self, rid: str, prompt: int, space: bytes = b"", letters: Sequence[str] = (), force_miss: bool = False
    ) -> None:
        super().judge_admission(rid, prompt)
        path = (space, *letters[: (prompt - 1) // self.shape.page])
        hit = () if force_miss else path[: self.tree.hit(path) + 1]
        turn_if(["state_short"] * (not self.has_room(self.each, hit)))

    def admit(
        self, request: int, rid: str, space: bytes, letters: Sequence[str], prompt: int, force_miss: bool,
        priority: int = 0,
    ) -> tuple[int, int]:  # fmt: skip
        self.judge_admission(rid, prompt, space, letters, force_miss)
        found = super().admit(request, rid, space, letters, prompt, force_miss, priority)
        self._sit_down(request)
        return found

    def sit(self, request: int, seat: Seat) -> None:
        self.judge_seat(seat)
        assert seat.path is not None
        turn_if(["state_short"] * (not self.has_room(self.each, seat.path)))
        super().sit(request, seat)
        self._sit_down(request)

    def _sit_down(self, request: int) -> None:
        """Slots of its own; what it goes on from is copied, and stays where it is until then."""
        self.make_room(self.each)
        running, *track = self.hand_out(self.each, request_account(RequestId(request)))
        path = self.guests[request].path
        source = self.tree.states[path].slot if len(path) > 1 else 0
        self.desks[request] = Desk(running, track, [0] * len(track), source)

    def step_began(
        self, step: int, requests: Sequence[int], starts: Sequence[int], stops: Sequence[int]
    ) -> None:
        super().step_began(step, requests, starts, stops)
        for request in requests:
            self.desks[request].source = 0

    def extend(self, requests: Sequence[int], grown: Sequence[int], handed: object) -> None:
        before = {request: self.guests[request].length for request in requests if request in self.guests}
        super().extend(requests, grown, handed)  # type: ignore[arg-type]  # as it came
        self._track(before)

    def write(self, writings: Sequence[Writing]) -> None:
        before = {
            each.request: self.guests[each.request].length for each in writings if each.request in self.guests
        }
        super().write(writings)
        self._track(before)

    def _track(self, before: dict[int, int]) -> None:
        """The last two boundaries that were passed, each in the slot whose state is the older one."""
        interval = self.shape.interval
        for request, length in before.items() if interval else ():
            desk = self.desks[request]
            passed = [
                end for end in range(interval, self.guests[request].length + 1, interval) if end > length
            ]
            for end in passed[-2:]:
                desk.ends[desk.ends.index(min(desk.ends))] = end

    def capped(self, request: int, letters: Sequence[str]) -> Sequence[str]:
        """What of a key may be cached: up to the last boundary whose state is kept (R150)."""
        if not self.shape.interval:
            return letters
        ends = [end // self.shape.page for end in self.desks[request].ends]
        return letters[: max((end for end in ends if end <= len(letters)), default=0)]

    def cache_unfinished(self, request: int, letters: Sequence[str]) -> int:
        guest = self._judge_busy(request)
        letters = self.capped(request, letters)
        if self.shape.interval and not self.has_room(1):
            letters = ()
        count, desk = len(letters), self.desks[request]
        if self.shape.interval and count * self.shape.page > guest.protected:
            at = desk.ends.index(count * self.shape.page)
            self.make_room(1)
            self.carried = desk.track[at]
            (desk.track[at],) = self.hand_out(1, request_account(RequestId(request)))
            desk.ends[at] = 0
        before = guest.protected
        kept = super().cache_unfinished(request, letters)
        if kept > before:
            desk.source = 0
        return kept

    def _insert_own(self, request: int, guest: Guest, letters: Sequence[str]) -> Prefix:
        end = super()._insert_own(request, guest, letters)
        if self.carried:
            self.donate(end, self.carried)
            self.carried = 0
        return end

    def finish(self, request: int, letters: Sequence[str] | None) -> int:
        guest = self._judge_busy(request)
        page, desk = self.shape.page, self.desks[request]
        if letters is not None:
            letters = self.capped(request, letters)
            count = len(letters)
            turn_if(["refused"] * (count * page > max(guest.length, guest.protected)))
            if self.shape.interval:
                self.carried = (
                    desk.track[desk.ends.index(count * page)] if count * page in desk.ends[:] and count else 0
                )
            elif count * page == guest.length:
                self.carried = desk.running
            if count * page < guest.protected:
                self.carried = 0
            elif count * page == guest.protected and self.carried:
                self.donate(guest.path, self.carried)
                self.carried = 0
        return super().finish(request, letters)

    def _leave(self, request: int, kept: int) -> None:
        desk = self.desks.pop(request)
        own = request_account(RequestId(request))
        for slot in (desk.running, *desk.track):
            if self.tree.slots[slot] == own:
                self.tree.slots[slot] = int(FREE)
        super()._leave(request, kept)

    def ledger(self) -> dict[str, int | bool]:
        idle, slots = set(self.tree.idle_states()), self.tree.slots
        return super().ledger() | {
            "recurrent_capacity": len(slots),
            "recurrent_available": self.free_slots(),
            "recurrent_tree_evictable": len(idle),
            "recurrent_tree_protected": len(set(self.tree.states) - idle),
            "recurrent_request_running": len(self.desks),
            "recurrent_request_track": sum(len(desk.track) for desk in self.desks.values()),
        }
