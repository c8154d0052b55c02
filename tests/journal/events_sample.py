"""A seeded stream of events as a busy rank writes them, for tests and for measuring files.

A small model of a server keeps the books of two pools, so the stream is legal: pages are handed out
once, given back by whoever holds them, and never lost. It is no cache: it decides by dice, and it
shares no code with the cache. Rule: the same seed gives the same stream on every machine.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import (
    Aborted,
    Admitted,
    Allocated,
    AnyEvent,
    Bound,
    Config,
    Digested,
    Evicted,
    Extended,
    Finished,
    Freed,
    GroupFlushed,
    GroupOpened,
    Healed,
    HealMode,
    LedgerTaken,
    Locked,
    Matched,
    Opened,
    Phase,
    Reclaimed,
    Refused,
    Removed,
    Repointed,
    Retracted,
    Split,
    Stepped,
    Stop,
    Tombstoned,
    Transferred,
    Unlocked,
)
from radixledger.journal.units import (
    ROOT,
    UNBOUND,
    BoundaryId,
    NodeId,
    Pages,
    Rank,
    RequestId,
    TokenCount,
)

PAGE = 128
WINDOW_PAGES = 8
CHUNK_PAGES = 16
BATCH = 32


def opened(run: str = "sample", rank: int = 0, *, redaction: str = "plain", page_size: int = PAGE) -> Opened:
    """The first event of a sample journal."""
    return Opened(
        run=run,
        rank=Rank(rank),
        ranks=2,
        epoch=1,
        route="unified",
        config=Config(page_size, 2048, 768, WINDOW_PAGES * page_size),
        window_need=TokenCount(WINDOW_PAGES * page_size),
        stride=4 * page_size,
        redaction=redaction,
        labels={"model": "sample"},
        seed=7,
    )


def events(seed: int, count: int) -> list[AnyEvent]:
    """The first `count` events of the stream, without `Opened`."""
    return list(islice((event for command in commands(seed) for event in command), count))


def commands(seed: int) -> Iterator[list[AnyEvent]]:
    """The stream without end, the events of one command at a time."""
    server = _Server(random.Random(seed))
    while True:
        yield from server.turn()


def packed(pages: list[int]) -> Pages:
    """Page numbers as events carry them."""
    return Pages(np.array(pages, "<i4").tobytes())


def packed_ids(ids: list[int]) -> bytes:
    """Request or node numbers as events carry them."""
    return np.array(ids, "<i8").tobytes()


@dataclass
class _Node:
    parent: int
    full: list[int]
    swa: list[int]
    key: bytes
    children: int = 0
    locks: int = 0


@dataclass
class _Request:
    node: int
    prompt: int
    target: int
    row: list[int]
    swa: dict[int, int] = field(default_factory=dict)
    tokens: int = 0
    kept: int = 0
    cursor: int = 0


class _Server:
    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.full = list(range(2048, 0, -1))
        self.swa = list(range(768, 0, -1))
        self.nodes: dict[int, _Node] = {0: _Node(0, [], [], b"", locks=1)}
        self.requests: dict[int, _Request] = {}
        self.next_node, self.next_request, self.next_boundary, self.step = 1, 1, 1, 0

    def turn(self) -> Iterator[list[AnyEvent]]:
        """One device step and what goes with it: an arrival and its chunks, or a decode step."""
        if len(self.requests) < BATCH and self.dice.random() < 0.3:
            yield from self._arrive()
        if self.requests:
            yield from self._decode()
        for number in [n for n, r in self.requests.items() if r.tokens >= r.target]:
            yield from self._leave(number)
        if self.step % 40 == 0:
            yield [Digested(self.dice.randbytes(16))]
        if self.step % 200 == 0:
            yield [self._ledger()]

    def _arrive(self) -> Iterator[list[AnyEvent]]:
        number, self.next_request = self.next_request, self.next_request + 1
        rid = f"chat-{number % 250}/{number // 250}"
        prefix = self._path(self.dice.choice(list(self.nodes)))
        node = prefix[-1] if prefix else 0
        held = [page for each in prefix for page in self.nodes[each].full]
        prompt = len(held) * PAGE + self.dice.randint(1, 40 * PAGE)
        request = _Request(node, prompt, prompt + self.dice.randint(20, 260), held, kept=len(held))
        request.tokens = len(held) * PAGE
        self.requests[number] = request
        hit = TokenCount(request.tokens)
        stop = self.dice.choice((Stop.NO_CHILD, Stop.NO_CHILD, Stop.DIVERGED, Stop.WINDOW_DEAD))
        yield [
            Matched(rid, RequestId(number), TokenCount(prompt), hit, hit, NodeId(node), stop, b"", _MATCH),
            Admitted(RequestId(number), rid, TokenCount(prompt), hit, NodeId(node), b"", _ADMIT),
            self._lock(node, number),
        ]
        while request.tokens < prompt and number in self.requests:
            yield from self._chunk(number, request)

    def _chunk(self, number: int, request: _Request) -> Iterator[list[AnyEvent]]:
        stop = min(request.prompt, request.tokens + CHUNK_PAGES * PAGE)
        need = -(-stop // PAGE) - len(request.row)
        yield from self._make_room(need)
        if need > min(len(self.full), len(self.swa)):
            yield [Refused("pool_short", f"{need} pages", RequestId(number), cause=_ALLOC)]
            yield self._give_back(number, Retracted(RequestId(number), TokenCount(request.tokens), _RETRACT))
            return
        unbound = self.dice.random() < 0.05
        full, swa = self._take(need)
        owner = UNBOUND if unbound else RequestId(number)
        yield [Allocated(owner, packed(full), packed(swa), _ALLOC)]
        if unbound:
            yield [Bound(RequestId(number), packed(full), packed(swa))]
        request.row += full
        request.swa.update(zip(full, swa, strict=True))
        yield self._step_began([(number, request.tokens, stop)])
        request.tokens = stop
        yield [Stepped(self.step, Phase.ENDED)]
        if stop < request.prompt:
            yield self._cache(number, request)
            yield self._reclaim(number, request)

    def _decode(self) -> Iterator[list[AnyEvent]]:
        running = list(self.requests.items())
        takers = [n for n, r in running if r.tokens % PAGE == 0]
        yield from self._make_room(len(takers))
        takers = takers[: min(len(self.full), len(self.swa))]
        running = [(n, r) for n, r in running if n in takers or r.tokens % PAGE]
        if not running:
            number = self.dice.choice(list(self.requests))
            tokens = TokenCount(self.requests[number].tokens)
            yield self._give_back(number, Aborted(RequestId(number), tokens, _ABORT))
            return
        full, swa = self._take(len(takers))
        for number, page, window in zip(takers, full, swa, strict=True):
            self.requests[number].row.append(page)
            self.requests[number].swa[page] = window
        yield [
            Extended(
                packed_ids([n for n, _ in running]),
                packed([1] * len(running)),
                packed_ids(takers),
                packed([1] * len(takers)),
                packed(full),
                packed(swa),
                _DECODE,
            )
        ]
        yield self._step_began([(n, r.tokens, r.tokens + 1) for n, r in running])
        for _, request in running:
            request.tokens += 1
        yield [Stepped(self.step, Phase.ENDED)]
        for number in takers:
            yield self._reclaim(number, self.requests[number])

    def _step_began(self, rows: list[tuple[int, int, int]]) -> list[AnyEvent]:
        self.step += 1
        requests, starts, stops = (list(column) for column in zip(*rows, strict=True))
        return [Stepped(self.step, Phase.BEGAN, packed_ids(requests), packed(starts), packed(stops))]

    def _leave(self, number: int) -> Iterator[list[AnyEvent]]:
        request = self.requests[number]
        out: list[AnyEvent] = [GroupOpened()]
        whole = request.tokens // PAGE
        tail = request.row[whole:]
        del request.row[whole:]
        out += self._cache(number, request)
        surrendered = [request.swa.pop(page) for page in tail]
        if tail:
            out.append(
                Freed(
                    request_account(RequestId(number)),
                    packed(tail),
                    packed(tail),
                    packed(surrendered),
                    1,
                    RequestId(number),
                    _TAIL,
                )
            )
        out.append(Unlocked(NodeId(request.node), BoundaryId(0), RequestId(number), _FINISH))
        self._hold(request.node, -1)
        tokens = TokenCount(request.tokens)
        out.append(
            Finished(RequestId(number), tokens, TokenCount(whole * PAGE), NodeId(request.node), _FINISH)
        )
        out.append(GroupFlushed(packed(tail), packed(surrendered)))
        self.full += tail
        self.swa += surrendered
        del self.requests[number]
        yield out

    def _cache(self, number: int, request: _Request) -> list[AnyEvent]:
        """Give the request's whole pages to the tree as one new leaf, and move its lock there."""
        fresh = request.row[request.kept : request.tokens // PAGE]
        if not fresh:
            return []
        alive = [request.swa.pop(page) for page in fresh if page in request.swa]
        dead = fresh[: len(fresh) - len(alive)] if alive else []
        out = [self._leaf(number, request, dead, [])] if dead else []
        out.append(self._leaf(number, request, fresh[len(dead) :], alive))
        request.kept += len(fresh)
        tokens = TokenCount(request.kept * PAGE)
        start = TokenCount(tokens - len(fresh) * PAGE)
        number_, node = RequestId(number), NodeId(request.node)
        out.append(Repointed(number_, start, packed(fresh), tokens, node, _UNFINISHED))
        return out

    def _leaf(self, number: int, request: _Request, full: list[int], swa: list[int]) -> AnyEvent:
        node, self.next_node = self.next_node, self.next_node + 1
        tokens = np.frombuffer(self.dice.randbytes(4 * PAGE * len(full)), "<u4") % 200_000
        key = tokens.astype("<i4").tobytes()
        self.nodes[node] = _Node(request.node, full, swa, key)
        self.nodes[request.node].children += 1
        self.nodes[node].locks = 1  # the path above it is held by this request already
        parent, request.node = request.node, node
        giver = request_account(RequestId(number))
        return Transferred(
            NodeId(node),
            NodeId(parent),
            giver,
            key,
            packed(full),
            packed(swa),
            b"",
            RequestId(number),
            _UNFINISHED,
        )

    def _reclaim(self, number: int, request: _Request) -> list[AnyEvent]:
        stop = max(0, request.tokens // PAGE - WINDOW_PAGES - 1)
        if stop <= request.cursor:
            return []
        full = [page for page in request.row[request.cursor : stop] if page in request.swa]
        swa = [request.swa.pop(page) for page in full]
        start, request.cursor = request.cursor, stop
        self.swa += swa
        return [
            Reclaimed(
                RequestId(number),
                TokenCount(start * PAGE),
                TokenCount(stop * PAGE),
                packed(full),
                packed(swa),
                0,
                TokenCount(0),
                _RECLAIM,
            )
        ]

    def _give_back(self, number: int, end: AnyEvent) -> list[AnyEvent]:
        request = self.requests.pop(number)
        own = request.row[request.kept :]
        mapped = [page for page in own if page in request.swa]
        swa = [request.swa[page] for page in mapped]
        self.full += own
        self.swa += swa
        giver = request_account(RequestId(number))
        self._hold(request.node, -1)
        return [
            Freed(giver, packed(own), packed(mapped), packed(swa), 0, RequestId(number), _ABORT),
            Unlocked(NodeId(request.node), BoundaryId(0), RequestId(number), _ABORT),
            end,
        ]

    def _make_room(self, need: int) -> Iterator[list[AnyEvent]]:
        short_full, short_swa = need - len(self.full), need - len(self.swa)
        if short_full <= 0 and short_swa <= 0:
            return
        out: list[AnyEvent] = []
        before = len(self.full), len(self.swa)
        for node, each in list(self.nodes.items()):
            if len(self.full) >= need and len(self.swa) >= need:
                break
            if each.locks or node == ROOT:
                continue
            if not each.children:
                out.append(self._remove(node, each))
            elif each.swa and len(self.swa) < need:
                out.append(self._tombstone(node, each))
        gained = len(self.full) - before[0], len(self.swa) - before[1]
        yield [*out, Evicted(max(0, short_full), max(0, short_swa), *gained, len(out), _EVICT)]
        yield from self._heal_or_split()

    def _remove(self, node: int, each: _Node) -> AnyEvent:
        self.full += each.full
        self.swa += each.swa
        del self.nodes[node]
        self.nodes[each.parent].children -= 1
        return Removed(NodeId(node), NodeId(each.parent), packed(each.full), packed(each.swa), 0, _LEAF)

    def _tombstone(self, node: int, each: _Node) -> AnyEvent:
        swa, each.swa = each.swa, []
        self.swa += swa
        return Tombstoned(NodeId(node), packed(each.full), packed(swa), 0, _INTERNAL)

    def _heal_or_split(self) -> Iterator[list[AnyEvent]]:
        """What a matching insert does now and then: it cuts a node, or gives a tombstone its window back."""
        node = self.dice.choice(list(self.nodes))
        each = self.nodes[node]
        if node == ROOT:
            return
        if len(each.full) > 1:
            yield [self._split(node, each)]
        elif not each.swa and min(len(self.full), len(self.swa)) > len(each.full):
            yield self._heal(node, each)

    def _split(self, node: int, each: _Node) -> AnyEvent:
        upper, self.next_node = self.next_node, self.next_node + 1
        cut = len(each.full) // 2
        full, swa = each.full[:cut], each.swa[:cut]
        self.nodes[upper] = _Node(each.parent, full, swa, each.key[: cut * 4 * PAGE], 1, each.locks)
        event = Split(NodeId(node), NodeId(upper), NodeId(each.parent), packed(full), packed(swa))
        each.parent, each.full, each.swa = upper, each.full[cut:], each.swa[cut:]
        return event

    def _heal(self, node: int, each: _Node) -> list[AnyEvent]:
        fresh, swa = self._take(len(each.full))
        old, to = each.full, 0
        mode = HealMode.TRANSFER if each.locks else HealMode.REPLACE
        event = Healed(
            NodeId(node),
            mode,
            request_account(UNBOUND),
            packed(fresh),
            packed(old),
            packed(swa),
            to,
            UNBOUND,
            _HEAL,
        )
        taken = Allocated(UNBOUND, packed(fresh), packed(swa), _ALLOC)
        each.swa = swa
        if mode is HealMode.REPLACE:
            each.full, fresh = fresh, old
        self.full += fresh
        return [taken, event]

    def _take(self, count: int) -> tuple[list[int], list[int]]:
        return [self.full.pop() for _ in range(count)], [self.swa.pop() for _ in range(count)]

    def _path(self, node: int) -> list[int]:
        path = []
        while node != ROOT:
            path.append(node)
            node = self.nodes[node].parent
        return path[::-1]

    def _hold(self, node: int, count: int) -> None:
        for each in self._path(node):
            self.nodes[each].locks += count

    def _lock(self, node: int, number: int) -> AnyEvent:
        self._hold(node, 1)
        boundary, self.next_boundary = self.next_boundary, self.next_boundary + 1
        skipped = packed_ids([n for n in self._path(node) if not self.nodes[n].swa])
        return Locked(NodeId(node), BoundaryId(boundary), skipped, NodeId(node), RequestId(number), _LOCK)

    def _ledger(self) -> AnyEvent:
        counts = dict.fromkeys((field for field in LedgerTaken.__struct_fields__ if field.count("_")), 0)
        counts |= {"full_capacity": 2048, "full_available": len(self.full)}
        counts |= {"swa_capacity": 768, "swa_available": len(self.swa)}
        return LedgerTaken(phase="busy", idle=False, digest=self.dice.randbytes(16), **counts)


_MATCH = cause(Operation.MATCH)
_ADMIT = cause(Operation.ADMIT)
_ALLOC = cause(Operation.ALLOC, Site.PREFILL)
_DECODE = cause(Operation.EXTEND, Site.DECODE)
_UNFINISHED = cause(Operation.UNFINISHED)
_FINISH = cause(Operation.FINISH)
_TAIL = cause(Operation.FINISH, Site.TAIL)
_RECLAIM = cause(Operation.RECLAIM, Site.DECODE)
_RETRACT = cause(Operation.RETRACT)
_ABORT = cause(Operation.ABORT)
_EVICT = cause(Operation.EVICT)
_LEAF = cause(Operation.EVICT, Site.FULL_LEAF)
_INTERNAL = cause(Operation.EVICT, Site.SWA_INTERNAL)
_HEAL = cause(Operation.INSERT, Site.HEAL)
_LOCK = cause(Operation.LOCK)
