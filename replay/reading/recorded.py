"""A journal's frames back to the commands that made them: what was asked, read off what was decided.

One frame is one command, or those of one step (`parting`). What an event does not say is made up so that nothing else
could have been decided: the part of a prompt that no tree ever knew gets letters that no other prompt has. Rules: a
command is read from its events, the state before them and the state behind them; what the writer did of its own accord
(digests, ledgers excepted, snapshots, refusals) is no command; where nobody can tell what was asked, there is none.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from radixledger.cache.components.table import components_of
from radixledger.cache.evolve import STRANGE, evolve
from radixledger.cache.routes import route_of
from radixledger.cache.state import Receipt, State
from radixledger.journal.events import AnyEvent, Matched, Stop, Unlocked
from radixledger.journal.frame import Frame
from radixledger.journal.units import ROOT, Seq
from radixledger.replay.reading.parting import parted
from radixledger.replay.reading.readings import reading_of
from radixledger.replay.reading.reads import Reading
from radixledger.replay.schedule import commands as c
from radixledger.replay.schedule.commands import AnyCommand
from radixledger.replay.schedule.letters import Letters
from radixledger.replay.schedule.named_event import NamedEvent
from radixledger.replay.schedule.names import NameBook, Unplayable
from radixledger.replay.schedule.naming import Naming
from radixledger.replay.schedule.paths import path_to
from radixledger.replay.schedule.texts import Texts

WAYS = 64
"""So many paths are tried for one that a match can have gone."""

_UNTOLD = (Unplayable, *STRANGE)
"""What a reading meets where events name what there is not."""


class Recorded(NamedTuple):
    """The events that one command decided, the first of which has number `seq`, and the same by names.

    command: None where nobody asked for them, or nobody can tell what was asked.
    """

    command: AnyCommand | None
    seq: int
    events: list[AnyEvent]
    told: list[NamedEvent]


class Reader:
    """Reads the commands of one epoch; `state` is the one right behind its `Opened`, and moves along."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.state.components = components_of(state.opened)
        self._route = route_of(state.opened)
        self.letters = Letters(state.stride)
        self.names = NameBook()
        self.naming = Naming(
            state, self.names, Texts(self.letters.spelled, self.letters.space, self.rid, lambda _: b"")
        )
        self._told: list[NamedEvent] = []
        self.titles: list[str] = []
        """The names that the command under way gave."""
        self._counts: dict[str, int] = {}
        self._rids: dict[str, str] = {}
        self._locks: dict[str, Receipt] = {}
        """Locks that nobody in particular holds."""
        self._prompts: dict[str, list[str]] = {}
        """What a prompt can have begun with, where there are several ways."""
        self._keys: dict[str, str] = {}
        """The longest key that a request was cached under."""

    def read(self, frame: Frame) -> Iterable[Recorded]:
        """The commands of a frame, in order, which is folded along."""
        seq = frame.seq_first
        for events in parted(frame.events):
            yield Recorded(self._read(events), seq, events, self._told)
            seq = Seq(seq + len(events))

    def follow(self, frame: Frame) -> None:
        """Fold a frame, and no more than name what it hands out."""
        for event in frame.events:
            self.titles.clear()
            self.names.hand_out(self.state, event, self._title)
            evolve(self.state, event)

    def completed(self, recorded: Iterable[Recorded]) -> list[Recorded]:
        """The same commands, with what later ones told of prompts: a request is cached under what it asked for."""
        return [each._replace(command=self._completed(each.command)) for each in recorded]

    def _completed(self, command: AnyCommand | None) -> AnyCommand | None:
        if not isinstance(command, c.Admit):
            return command
        known = self._keys.get(command.name, "")[: len(command.key)]
        ways = self._prompts.get(command.name, [command.key])
        way = next((way for way in ways if known.startswith(way[: len(known)])), ways[0])
        return replace(command, key=known + way[len(known) :] + command.key[max(len(known), len(way)) :])

    def _read(self, events: Sequence[AnyEvent]) -> AnyCommand | None:
        self.titles = []
        reading = self._looked(reading_of(self, events))
        self._told = []
        self.naming.begin()
        for event in events:
            self.names.introduce(event, self._title)
            self._told.append(self.naming.tell(event))
            self.names.hand_pages(self.state, event, self._title)
            evolve(self.state, event)
        self._locks |= {
            name: self.names.receipts[name] for name in self.titles if name in self.names.receipts
        }
        try:
            if reading is not None:
                next(reading)
        except StopIteration as stop:
            command: AnyCommand | None = stop.value
            return command
        except _UNTOLD:
            pass
        return None

    def _looked(self, reading: Reading) -> Reading | None:
        """The reading, which has seen the state before; None where that has not what it names."""
        try:
            next(reading)
        except _UNTOLD:
            return None
        return reading

    def _title(self, kind: str) -> str:
        number = self._counts[kind] = self._counts.get(kind, 0) + 1
        self.titles.append(f"{kind}{number}")
        return self.titles[-1]

    # -- what readings ask -----------------------------------------------------------------------------------

    def cached(self, name: str, key: str) -> str:
        """The key itself, remembered as what the request of this name was cached under."""
        if len(key) > len(self._keys.get(name, "")):
            self._keys[name] = key
        return key

    def path(self, node: int) -> str:
        """The letters of the path to a node, as far as it can be told."""
        return self.letters.spelled(path_to(self.state, node))

    def space_of(self, node: int) -> str:
        """The namespace of a node."""
        found = self.state.nodes.get(node)
        return self.letters.space(found.namespace if found is not None else b"")

    def padded(self, key: str, pages: int) -> str:
        """A key of so many pages that begins like `key` and goes on like no other."""
        missing = pages - len(key)
        if missing <= 0:
            return key[:pages]
        if self.state.lookahead:
            return key + "".join(self.letters.fresh() for _ in range(missing))
        return key + self.letters.fresh() * missing

    def asked(self, found: Matched, name: str = "", *, from_the_root: bool = False) -> str:
        """The letters of a key of which exactly that can be found: what the tree has of it, then what nobody has.

        Where several could have been meant, what the request of that name is cached under later decides (`completed`).
        """
        size, stride = self.state.page_size, self.state.stride
        far = ROOT if from_the_root else found.host_node or found.walked or found.node
        asked = found.asked // size * stride
        hit = max(found.full_hit, found.hit + found.host_hit) // size * stride
        longest = asked if found.stop == Stop.ON_HOST else hit
        path = (
            b"" if from_the_root else max(path_to(self.state, far), path_to(self.state, found.node), key=len)
        )
        ways = [path[:hit]] if hit <= len(path) else []
        if not ways or longest > hit:
            ways += islice(self._ways(far, path, hit, longest, found.namespace), WAYS)
        missing = b"\xff" * asked
        fits = [way for way in ways if self._leads_there((way + missing)[:asked], found)] or ways or [path]
        spelled = [self.letters.spelled(way) for way in fits]
        if name and len(spelled) > 1:
            self._prompts[name] = spelled
        return self.padded(spelled[0], found.asked // size)

    def _ways(self, node: int, path: bytes, least: int, most: int, namespace: bytes) -> Iterator[bytes]:
        """Paths of `least` key bytes, or of up to `most`, that begin with the one to a node."""
        stack = [(self.state.nodes.get(node, self.state.root), path)]
        while stack:
            each, way = stack.pop()
            if len(way) >= least:
                yield way[:most]
            if len(way) < most:
                children = [*(each.children or {}).values()]
                stack += [
                    (child, way + child.key)
                    for child in reversed(children)
                    if way or child.namespace == namespace
                ]

    def _leads_there(self, key: bytes, found: Matched) -> bool:
        """Whether a match of `key` ends where one did; asked of the state behind it, which differs by a cut at most."""
        walk = self._route.tree.look(self.state, key, found.namespace, full_only=found.full_only)
        size = self.state.page_size
        if found.stop == Stop.FORCED_MISS:
            return walk.full_hit * size == found.full_hit
        beyond = walk.beyond.hit * size if walk.beyond is not None else 0
        there = (walk.hit * size, walk.full_hit * size, beyond) == (found.hit, found.full_hit, found.host_hit)
        return there and (walk.stop == Stop.ON_HOST) == (found.stop == Stop.ON_HOST)

    def rid(self, rid: str, name: str = "") -> str:
        """What a request id is called here: by the first request that had it."""
        return self._rids.setdefault(rid, name or f"q{len(self._rids) + 1}")

    def lock_of(self, event: Unlocked) -> str:
        """The name of the lock whose receipt is given back; empty for none that is known."""
        given = (event.node, event.boundary)
        name = next((name for name, receipt in self._locks.items() if receipt[:2] == given), "")
        self._locks.pop(name, None)
        return name

    def page(self, number: int) -> str:
        """The name of a FULL page; its number where nobody was handed it."""
        return self.names.full.names.get(number, f"@{number}")

    def slot(self, number: int) -> str:
        """The name of a state slot."""
        return self.names.states.names.get(number, f"@{number}")
