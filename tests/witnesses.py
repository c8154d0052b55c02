"""Three witnesses of one rank: the live state, the state folded from its journal, and the naive model.

`Witnesses` runs one command on all three and compares them afterwards, and asks every law. The rank is watched on the
way: a decider that changes anything between two of its events is caught at that event (J2). Rule: nothing here decides
what a command means; that is the cache's word against the model's.
"""

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from radixledger.cache.decide.faces import seat
from radixledger.cache.decide.pages import Decision
from radixledger.cache.digest import digest, recount
from radixledger.cache.evolve import begin, evolve
from radixledger.cache.face_rank import FaceRank
from radixledger.cache.image import restore
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.refusals import Refusal
from radixledger.cache.standing import age
from radixledger.cache.state import Node, Receipt, State
from radixledger.cache.watch import Watched
from radixledger.journal.accounts import FREE, PENDING, Kind
from radixledger.journal.causes import label
from radixledger.journal.codec import Encoder, decoder_for
from radixledger.journal.events import (
    SCHEMA_VERSION,
    AnyEvent,
    Closed,
    Digested,
    Freed,
    Healed,
    HealMode,
    LedgerTaken,
    Opened,
    Refused,
    Snapshotted,
    Violated,
)
from radixledger.journal.moves import moves, pages_of
from radixledger.journal.redact import KEY_BYTES, Redactor
from radixledger.journal.units import ROOT, NodeId, RequestId

from .model import TREE, Turned
from .model_faces import FacesModel
from .model_host import HostModel
from .model_legacy import LegacyModel
from .model_recurrent import RecurrentModel
from .model_requests import RankModel
from .model_tree import Prefix, Shape
from .model_use import asked
from .state_witness import agree_on_states, choices
from .witness_of_copies import agree_on_copies, image_of_copies

T = TypeVar("T")

DIGEST_EVERY = 16

MODELS: dict[str, type[FacesModel]] = {"legacy": LegacyModel}
"""Who imagines a route that has rules of its own."""


class Tape:
    """A journal in memory: `events` are what its bytes say. Frames, files and their faults are tested elsewhere."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.events: list[AnyEvent] = []
        self.open: list[AnyEvent] = []
        """Events of a command that has not ended."""
        self.append = self.open.append
        self.redactor: Redactor | None = None
        self.snapshot = (b"", b"", 0)
        """Image and digest of the last snapshot, and how many events it has seen."""

    def end_command(self) -> None:
        assert self.open, "a command without events ends nothing"
        self.events += written(self.open)
        self.open.clear()

    def end_step(self, step: int) -> None:
        assert not self.open, f"step {step} would be dispatched before its events are safe"

    def write_snapshot(self, image: bytes, digest: bytes, /) -> None:
        assert not self.open, "a snapshot is taken between two commands"
        self.snapshot = image, digest, len(self.events)

    def close(self) -> None:
        assert not self.open, "the last command did not end"


def written(events: list[AnyEvent], redactor: Redactor | None = None) -> list[AnyEvent]:
    """Events as they are read back from their bytes, keys and namespaces hashed or plain."""
    return decoder_for(SCHEMA_VERSION).decode(Encoder(redactor).encode(events), len(events))


def hashed(tape: Tape) -> State:
    """The state that a journal with hashed keys gives (N18)."""
    redactor = Redactor(bytes(range(KEY_BYTES)), tape.opened.stride)
    first, *events = written([tape.opened, *tape.events], redactor)
    assert isinstance(first, Opened)
    state = begin(first)
    for event in events:
        evolve(state, event)
    return state


def from_snapshot(tape: Tape) -> State:
    """The state that the last snapshot and the events behind it give (J13)."""
    packed, taken, seen = tape.snapshot
    state = restore(packed) if packed else begin(tape.opened)
    assert not packed or digest(state) == taken, "a snapshot is not the state it was taken of"
    for event in tape.events[seen:]:
        evolve(state, event)
    return state


def image(state: State) -> tuple[object, ...]:
    """Everything a state holds, as plain values, but for `seq`; orders of victims as what they answer."""
    rows = state.rows
    books = [
        (book.account.tobytes(), book.since.tobytes(), bytes(book.free), bytes(book.pending), tuple(book.held), book.digest)
        for book in (state.full, state.swa, state.recurrent)
    ]  # fmt: skip
    nodes = [
        (node.id, node.parent.id if node.parent else -1, node.key, node.full, node.swa, node.namespace, node.pages, node.end,
         node.anchors, node.holds, node.swa_locks, node.boundary, node.tick, node.swa_tick,
         node.asked, node.answers, node.priority, node.recurrent, node.recurrent_tick,
         tuple((key, child.id) for key, child in (node.children or {}).items()))
        for node in state.nodes.values()
    ]  # fmt: skip
    requests = [
        tuple(getattr(request, name) for name in request.__slots__) for request in state.requests.values()
    ]
    tables = [
        getattr(rows, name).tobytes()
        for name in rows.__slots__
        if name not in ("_asked", "free", "full_at", "length_at", "living", "mask", "swa_at", "width")
    ]
    counters = (state.clock, state.next_node, state.next_boundary, state.next_request, state.full_protected,
                state.swa_protected, state.recurrent_protected, state.dangling, state.group_open, digest(state), state.closed)  # fmt: skip
    return (
        books, state.mapping.swa_of.tobytes(), state.mapping.nonzero, state.mapping.digest, nodes, requests, tables,
        list(rows.free), dict(state.rids), counters, dict(state.running), list(state.findings),
        tuple(getattr(state.totals, name) for name in state.totals.__slots__), image_of_copies(state),
    )  # fmt: skip


class WatchedRank(FaceRank):
    """A rank whose deciders are watched: deciding reads and never writes."""

    def seat(
        self, rid: str, row: int, prompt: int, node: NodeId, namespace: bytes, receipt: Receipt
    ) -> RequestId:
        """Let a request sit in the row that its server chose."""
        return self._run(seat(self.state, rid, row, prompt, node, namespace, receipt))

    def _decided(self, decision: Decision[T]) -> T:
        return super()._decided(self._watched(decision))

    def _watched(self, decision: Decision[T]) -> Decision[T]:
        while True:
            before = image(self.state)
            try:
                event = next(decision)
            except StopIteration as stop:
                self._untouched(before)
                result: T = stop.value
                return result
            except Refusal:
                self._untouched(before)
                raise
            self._untouched(before)
            yield event

    def _untouched(self, before: tuple[object, ...]) -> None:
        assert image(self.state) == before, "the decider wrote to the state"


def transition(event: AnyEvent) -> list[str]:
    """What kinds of ownership transition an event is: `pool giver→taker: cause`, and how a tombstone was healed."""
    kinds = []
    why = label(getattr(event, "cause", 0))
    if isinstance(event, Healed):
        why = f"{why} by {HealMode(event.mode).name.lower()}"
    if isinstance(event, Freed) and not event.full and not event.swa:
        kinds.append(f"nothing: {why}")
    for move in moves(event):
        giver, taker = (Kind(account & 7).name.lower() for account in (move.giver, move.taker))
        kinds.append(f"{move.pool.name} {giver}→{taker}: {type(event).__name__} {why}")
    return kinds or [type(event).__name__]


class Witnesses:
    """One rank: live, folded and imagined. `seen` counts kinds of transitions and refusals."""

    def __init__(self, opened: Opened, shape: Shape, *, strict: bool = True) -> None:
        self.tape = Tape(opened)
        self.live = WatchedRank(
            opened, self.tape, strict=strict, digest_every=DIGEST_EVERY, watched=Watched.EVENTS
        )
        self.folded = begin(opened)
        kind = (
            RecurrentModel
            if shape.states
            else HostModel
            if shape.host
            else MODELS.get(shape.route, FacesModel)
        )
        self.model = kind(shape, strict)
        self.seen: Counter[str] = Counter()
        self.letters: dict[bytes, str] = {}
        """What the machine calls the content of a page, by the bytes of its key."""

    def command(self, act: Callable[[], T], imagine: Callable[[T | None], object]) -> T | None:
        """Run a command on the live rank, then let the model judge what came of it; None if it was refused.

        imagine: given the live result, does the same to the model, or raises Turned; its result is for the caller.
        """
        before, begun = image(self.live.state), len(self.tape.events)
        result, refusal = self._judged(act, imagine, begun)
        if refusal is not None:
            self._refused(before, begun, refusal)
        self.agree(begun)
        return result

    def read(self, act: Callable[[], T], imagine: Callable[[T | None], object]) -> None:
        """Ask the live rank and the model; asking leaves no trace, and a question that is refused neither."""
        before, begun = image(self.live.state), len(self.tape.events)
        _, refusal = self._judged(act, imagine, begun)
        assert image(self.live.state) == before, "a read changed the state"
        assert len(self.tape.events) == begun, "a read wrote events"
        self.seen["refused: " + refusal.reason if refusal else "read"] += 1

    def _judged(
        self, act: Callable[[], T], imagine: Callable[[T | None], object], begun: int
    ) -> tuple[T | None, Refusal | None]:
        refusal: Refusal | None = None
        result: T | None = None
        try:
            result = act()
        except Refusal as found:
            refusal = found
        lawful = frozenset[str]()
        if isinstance(self.model, RecurrentModel):
            self.model.told(*choices(self.tape.events[begun:]))
        try:
            imagine(result)
        except Turned as turned:
            lawful = turned.reasons
        said = refusal.reason if refusal else "done"
        assert said in (lawful or {"done"}), f"{said}, lawful: {set(lawful) or 'done'} ({refusal})"
        return result, refusal

    def _refused(self, before: tuple[object, ...], begun: int, refusal: Refusal) -> None:
        """A refusal left everything as it was, and wrote one event that tells of it."""
        assert image(self.live.state) == before, "a refused command changed the state"
        told = [event for event in self.tape.events[begun:] if not isinstance(event, Digested)]
        assert [type(event) for event in told] == [Refused], told
        assert told[0] == refusal.event()
        self.seen[f"refused: {refusal.reason}"] += 1

    def agree(self, begun: int) -> None:
        """All three say the same, and every law holds. `begun`: where the events of this command begin."""
        state = self.live.state
        for event in self.tape.events[begun:]:
            if isinstance(event, Digested | LedgerTaken | Snapshotted | Closed):
                assert event.digest == digest(self.folded), "the recorded digest is not the folded state's"
            evolve(self.folded, event)
            self.seen.update(transition(event))
            if isinstance(event, Violated):
                self.seen[f"violated: {event.law}"] += 1
        assert not self.tape.open, "events of a command stayed outside its frame"
        assert state.seq == self.folded.seq == len(self.tape.events) + 1
        assert image(state) == image(self.folded), "live and folded state differ"
        assert self.live.digest() == digest(self.folded) == recount(state)
        broken = list(broken_laws(state))
        assert not broken, broken
        agree_on_pages(state, self.model)
        agree_on_the_tree(state, self.model, self.paths())
        agree_on_requests(state, self.model, self.paths())
        if isinstance(self.model, RecurrentModel):
            agree_on_states(state, self.model, self.paths())
        if isinstance(self.model, HostModel):
            agree_on_copies(state, self.model, self.paths())

    def end(self) -> None:
        """Close the rank, and fold its journal from the first event into fresh states, with plain keys and hashed."""
        begun = len(self.tape.events)
        self.live.close()
        self.agree(begun)
        again = begin(self.tape.opened)
        for event in self.tape.events:
            evolve(again, event)
        assert image(again) == image(self.live.state)
        for other in (hashed(self.tape), from_snapshot(self.tape)):
            assert digest(other) == recount(other) == digest(again)
            broken = list(broken_laws(other))
            assert not broken, broken

    def paths(self) -> dict[int, Prefix]:
        """The prefix that each node ends, in the machine's letters."""
        return {number: self._path(node) for number, node in self.live.state.nodes.items() if number != ROOT}

    def _path(self, node: Node) -> Prefix:
        letters, space = list[str](), b""
        stride = self.live.state.stride
        while node.parent is not None:
            own = [self.letters[node.key[at : at + stride]] for at in range(0, len(node.key), stride)]
            letters[:0] = own
            space, node = node.namespace, node.parent
        return (space, *letters)


def agree_on_pages(state: State, model: RankModel) -> None:
    """Owners, mapping, queues and totals."""
    for book, imagined in ((state.full, model.full), (state.swa, model.swa)):
        owners = [TREE if account & 7 == Kind.TREE else account for account in book.account[1:].tolist()]
        assert owners == list(imagined.values()), f"{book.pool.name} owners"
        for queue, account in ((book.free, FREE), (book.pending, PENDING)):
            pages = pages_of(bytes(queue)).tolist()
            assert sorted(pages) == [page for page, held in imagined.items() if held == account], (
                f"{book.pool.name} queue"
            )
    assert {page: swa for page, swa in enumerate(state.mapping.swa_of.tolist()) if swa} == model.mapping
    assert (state.group_open, state.dangling) == (model.group_open, len(model.dangling()))
    totals = (model.full_evicted, model.swa_evicted, model.tombstones, model.healed)
    assert tuple(getattr(state.totals, name) for name in state.totals.__slots__) == totals


def agree_on_the_tree(state: State, model: RankModel, paths: dict[int, Prefix]) -> None:
    """Prefixes, their pages, where nodes end, locks, and who is older than whom."""
    tree, found = model.tree, {}
    for number, path in paths.items():
        node = state.nodes[number]
        full = pages_of(node.full).tolist() or [0] * node.pages
        swa = pages_of(node.swa).tolist() or [None] * node.pages
        for at, page in enumerate(full):
            prefix = path[: node.end - node.pages + at + 2]
            found[prefix] = (page, swa[at], at == node.pages - 1)
            assert (node.holds > 0) == (tree.holders(prefix) > 0), f"FULL lock of node {number}"
            assert node.swa_locks == tree.window_holders(prefix), f"window locks of node {number}"
        assert node.anchors == sum(lock.end == path for lock in tree.locks), f"receipts of node {number}"
    assert found == {prefix: (place.full, place.swa, place.ends) for prefix, place in tree.places.items()}
    resident = [prefix for prefix, place in tree.places.items() if place.full]
    assert state.full_protected == sum(tree.holders(prefix) > 0 for prefix in resident)
    for number, path in paths.items():
        node = state.nodes[number]
        assert node.asked == asked(tree, path), f"prompts that wait at node {number}"
        answered = paths[node.answers] if node.answers != ROOT else None
        assert answered == tree.answers.get(path), f"whose answer node {number} ends"
    live = [prefix for prefix, place in tree.places.items() if place.swa is not None]
    assert state.swa_protected == sum(tree.window_holders(prefix) > 0 for prefix in live)
    for number, path in paths.items():
        node, place = state.nodes[number], tree.places[path]
        if tree.shape.eviction == "priority" and not node.children:
            assert node.priority == place.priority, (
                f"priority of leaf {number} {path}: {node.priority}, {place.priority} is right"
            )
        if tree.shape.eviction == "slru":
            assert node.hits == min(place.hits + 1, 3), f"uses of node {number}"
    leaves = {number: age(state, node) for number, node in state.nodes.items()}
    windows = {number: node.swa_tick for number, node in state.nodes.items()}
    for stamps, ages in ((tree.idle_leaves(), leaves), (tree.idle_windows(), windows)):
        order = sorted((ages[number], number) for number, path in paths.items() if path in stamps)
        imagined = [stamps[paths[number]] for _, number in order]
        assert imagined == sorted(imagined), f"order of victims: {order}"


def agree_on_requests(state: State, model: RankModel, paths: dict[int, Prefix]) -> None:
    """Rows, lengths, cursors, and that a running step finds what it began with."""
    rows = state.rows
    assert list(state.requests) == list(model.guests)
    for number, guest in model.guests.items():
        request = state.requests[number]
        row = state.row_of(number)
        assert (request.rid, request.prompt, request.row) == (guest.rid, guest.prompt, row)
        lengths = int(rows.length[row]), int(rows.cursor[row]), int(rows.protected[row])
        assert lengths == (guest.length, guest.cursor, guest.protected), f"request {number}"
        empty = [0] * (model.shape.row_pages - len(guest.row))
        assert rows.full_table[row].tolist() == guest.row + empty, f"request {number}"
        assert rows.swa_table[row].tolist() == model.window_row(guest) + empty, f"request {number}"
        assert request.node == ROOT or paths[request.node] == guest.path, f"request {number}"
        assert (request.receipt is None) == (guest.lock is None), f"request {number}"
        if request.receipt is not None and guest.lock is not None:
            assert (request.receipt.boundary == 0) == guest.lock.to_root, f"request {number}"
    assert set(state.running) == set(model.steps)
    assert model.what_runs_is_still_there(), "a running step lost a page"
