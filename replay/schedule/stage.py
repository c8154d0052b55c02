"""Performs commands on a rank, and keeps what it decided: a schedule becomes events again.

Names are resolved by what happened on this stage: `r1.3` is the FULL page that request `r1` was handed for its fourth
page, whatever number that is here (`names`). Rule: nothing of a recording is looked at; a name that means nothing here
raises Unplayable, before anything is asked of the rank.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from radixledger.cache.decide.faces import Written
from radixledger.cache.evolve import evolve
from radixledger.cache.image import image, restore
from radixledger.cache.slices import Slice
from radixledger.cache.state import Receipt, State
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation
from radixledger.journal.events import AnyEvent, Opened
from radixledger.journal.units import (
    FIRST,
    ROOT,
    TO_ROOT,
    UNBOUND,
    NodeId,
    Pages,
    RequestId,
    Seq,
    TransferId,
)
from radixledger.replay.schedule import commands as c
from radixledger.replay.schedule.commands import Command
from radixledger.replay.schedule.letters import Alphabet
from radixledger.replay.schedule.named_event import NamedEvent
from radixledger.replay.schedule.names import NameBook, Unplayable
from radixledger.replay.schedule.naming import Naming
from radixledger.replay.schedule.paths import node_at
from radixledger.replay.schedule.played_rank import PlayedRank
from radixledger.replay.schedule.texts import Texts

NEVER = 1 << 60


class Before(NamedTuple):
    """A stage as it was."""

    state: State
    names: NameBook


class Stage:
    """One rank and the names that commands call its things by."""

    def __init__(self, opened: Opened, alphabet: Alphabet, *, strict: bool = True, seq: Seq = FIRST) -> None:
        self.opened = opened
        self.alphabet = alphabet
        self.events: list[AnyEvent] = []
        """Those of the command under way, or of the last one."""
        self.told: list[NamedEvent] = []
        """The same by names."""
        self.names = NameBook()
        self._titles: list[str] = []
        self._unexpected = count()
        self.rank = PlayedRank(opened, self, strict=strict, digest_every=NEVER, seq=seq)
        texts = Texts(alphabet.spelled, bytes.decode, lambda rid, _: rid, alphabet.key_of)
        self.naming = Naming(self.rank.state, self.names, texts)

    # -- what a rank asks of its journal ---------------------------------------------------------------------

    def append(self, event: AnyEvent, /) -> None:
        """Take an event, and name what it hands out."""
        self.events.append(event)
        self.names.introduce(event, self._title)
        self.told.append(self.naming.tell(event))
        self.names.hand_pages(self.rank.state, event, self._title)

    def end_command(self) -> None:
        """Nothing is kept back."""

    def end_step(self, step: int) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """There is nothing to let go."""

    # -- the one way in --------------------------------------------------------------------------------------

    def perform(self, command: Command) -> list[AnyEvent]:
        """Ask the rank; what it decided. Raises Unplayable, Refusal and whatever a rank raises."""
        self.begin(command)
        _PERFORM[type(command)](self, command)
        return self.events

    def remembered(self) -> "Before":
        """What there is now, apart, to go back to."""
        return Before(restore(image(self.rank.state)), self.names.copy())

    def go_back(self, before: "Before") -> None:
        """As if nothing had happened since; names that were given since are known where nothing else is called so."""
        since = self.names.copy()
        self.names.become(before.names)
        self.names.foretold_by(since)
        self.rank.become(before.state)
        self.naming.state = before.state

    def take(self, command: Command | None, told: Iterable[NamedEvent]) -> list[AnyEvent]:
        """Fold what somebody else decided on this command; the events that are told so here. Raises Unplayable."""
        self.begin(command)
        for each in told:
            event = self.naming.untell(each)
            self.append(event)
            evolve(self.rank.state, event)
        return self.events

    def begin(self, command: Command | None) -> None:
        """What is appended from now on was decided on this command."""
        self.events, self.told, self._titles = [], [], titles_of(command)
        self.naming.begin()

    def _title(self, kind: str) -> str:
        return self._titles.pop(0) if self._titles else f"{kind}?{next(self._unexpected)}"

    # -- names -----------------------------------------------------------------------------------------------

    def number(self, name: str) -> RequestId:
        """The request of this name."""
        return RequestId(self.names.requests.numbers[name])

    def giver(self, name: str) -> int | None:
        """The account of a request that is told as giver; `@3` is the account of that code, nobody's."""
        if name[:1] == "@":
            return int(name[1:])
        return request_account(self.number(name)) if name else None

    def copy(self, name: str) -> TransferId:
        """The copy of this name."""
        return TransferId(self.names.copies.numbers[name])

    def packed(self, names: Sequence[str]) -> Pages:
        """FULL pages by their names; `@17` is page 17."""
        return _packed(
            [int(name[1:]) if name[:1] == "@" else self.names.full.numbers[name] for name in names]
        )

    def node(self, path: str, space: str = "") -> NodeId:
        """The node that ends a path. Raises Unplayable where none does."""
        found = node_at(self.rank.state, self.alphabet.key_of(path), space.encode())
        if found is None:
            raise Unplayable(f"no node ends the path {path!r}")
        return NodeId(found)


def _packed(numbers: Sequence[int]) -> Pages:
    return Pages(np.array(numbers, "<i4").tobytes())


def titles_of(command: Command | None) -> list[str]:
    """The names that a command gives to what it is handed."""
    if isinstance(command, c.WriteThrough):
        return list(command.names)
    return [command.name] if isinstance(command, _NAMING) else []


_NAMING = (c.Admit, c.Seat, c.Allocate, c.Lock, c.TakeStates, c.WriteBack, c.LoadBack)


def _admit(on: Stage, it: c.Admit) -> None:
    key = on.alphabet.key_of(it.key)
    on.rank.admit(
        it.rid or it.name, key, it.prompt, it.space.encode(), force_miss=it.miss, priority=it.priority
    )


def _seat(on: Stage, it: c.Seat) -> None:
    receipt = on.names.receipts[it.lock] if it.lock else Receipt(ROOT, TO_ROOT)
    node = on.node(it.node, it.space)
    on.rank.seat(it.rid or it.name, it.row, it.prompt, node, it.space.encode(), receipt, it.priority)


def _extend(on: Stage, it: c.Extend) -> None:
    numbers = np.array([on.number(name) for name in it.grown], np.int64)
    on.rank.extend(numbers, np.array([*it.grown.values()], np.int32))


def _write(on: Stage, it: c.Write) -> None:
    on.rank.write(
        [Written(on.number(row.name), row.start, row.stop, on.packed(row.pages)) for row in it.rows]
    )


def _finish(on: Stage, it: c.Finish) -> None:
    on.rank.finish(on.number(it.name), None if it.key is None else on.alphabet.key_of(it.key))


def _begin_step(on: Stage, it: c.BeginStep) -> None:
    starts, stops = (np.array([each[end] for each in it.ranges.values()], np.int32) for end in (0, 1))
    on.rank.step_began(it.step, np.array([on.number(name) for name in it.ranges], np.int64), starts, stops)


def _match(on: Stage, it: c.Match) -> None:
    on.rank.match(
        on.alphabet.key_of(it.key), it.space.encode(), rid=it.rid, full_only=it.full_only, force_miss=it.miss
    )


def _insert(on: Stage, it: c.Insert) -> None:
    states = _packed([on.names.states.numbers[name] for name in it.states])
    brought = Slice(
        on.packed(it.pages), it.prev, it.released, request_account(UNBOUND), UNBOUND, Operation.INSERT, recurrent=states
    )  # fmt: skip
    on.rank.insert(on.alphabet.key_of(it.key), it.space.encode(), brought)


_PERFORM: dict[type, Callable[[Stage, Any], object]] = {
    c.Admit: _admit,
    c.Seat: _seat,
    c.MakeRoom: lambda on, it: on.rank.make_room(on.node(it.node, it.space)),
    c.Extend: _extend,
    c.Decode: lambda on, it: on.rank.decode(np.array([on.number(name) for name in it.names], np.int64)),
    c.Write: _write,
    c.Reclaim: lambda on, it: on.rank.reclaim(on.number(it.name), it.pre, it.in_flight),
    c.Keep: lambda on, it: on.rank.cache_unfinished(on.number(it.name), on.alphabet.key_of(it.key)),
    c.Finish: _finish,
    c.Retract: lambda on, it: on.rank.retract(on.number(it.name)),
    c.Abort: lambda on, it: on.rank.abort(on.number(it.name)),
    c.BeginStep: _begin_step,
    c.EndStep: lambda on, it: on.rank.step_ended(it.step),
    c.Match: _match,
    c.Insert: _insert,
    c.Lock: lambda on, it: on.rank.lock(on.node(it.node, it.space)),
    c.Unlock: lambda on, it: on.rank.unlock(on.names.receipts[it.lock]),
    c.Evict: lambda on, it: on.rank.evict(it.full, it.swa),
    c.EvictStates: lambda on, it: on.rank.evict_states(it.count, it.full),
    c.Flush: lambda on, _: on.rank.flush(),
    c.Allocate: lambda on, it: on.rank.alloc(it.count),
    c.Free: lambda on, it: on.rank.free(on.packed(it.pages), on.giver(it.giver)),
    c.FreeFull: lambda on, it: on.rank.free_full(on.packed(it.pages), on.giver(it.giver)),
    c.FreeSwa: lambda on, it: on.rank.free_swa(on.packed(it.pages), on.giver(it.giver)),
    c.GiveUp: lambda on, it: on.rank.give_up(on.packed(it.pages), on.giver(it.giver)),
    c.Remap: lambda on, it: on.rank.remap(on.packed(it.source), on.packed(it.target)),
    c.OpenGroup: lambda on, _: on.rank.open_group(),
    c.FlushGroup: lambda on, _: on.rank.flush_group(),
    c.Clear: lambda on, _: on.rank.clear(),
    c.TakeStates: lambda on, it: on.rank.take_states(it.count),
    c.FreeStates: lambda on, it: on.rank.free_states(
        _packed([on.names.states.numbers[name] for name in it.states])
    ),
    c.TakeLedger: lambda on, it: on.rank.record_ledger(it.phase),
    c.WriteThrough: lambda on, it: on.rank.write_through(on.node(it.node, it.space)),
    c.WriteBack: lambda on, _: on.rank.write_back(),
    c.Gather: lambda on, it: on.rank.gathered(on.copy(it.copy)),
    c.EndBackup: lambda on, it: on.rank.end_backup(on.copy(it.copy), it.landed),
    c.EvictCopies: lambda on, it: on.rank.evict_copies(it.pages),
    c.LoadBack: lambda on, it: on.rank.load_back(on.node(it.node, it.space)),
    c.EndLoad: lambda on, it: on.rank.end_load(on.copy(it.copy), it.landed),
}
