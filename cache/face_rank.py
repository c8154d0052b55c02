"""One rank behind the faces: the rank's cache, with the commands that a server with rows of its own needs.

Rule: here a server's words become ours, slots pages and a request its number; what is decided stands in
`decide.faces` and the deciders of the rank.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from radixledger.cache.arguments import number, sequence, text, told
from radixledger.cache.decide import faces as decide_faces
from radixledger.cache.decide.faces import Written
from radixledger.cache.keys import namespace
from radixledger.cache.prefix_cache import ComponentType, DecLockRefParams, Ended, Req, Slots
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Refusal
from radixledger.cache.state import Receipt
from radixledger.journal.accounts import Account, request_account
from radixledger.journal.moves import pages_of
from radixledger.journal.units import NO_PAGES, ROOT, TO_ROOT, BoundaryId, NodeId, Pages, RequestId

MAX_SLOT = (1 << 31) - 1
"""Slots travel as int32 (B141)."""


class FaceRank(RankCache):
    """A `RankCache` that a server's faces share."""

    @property
    def dp_rank(self) -> int:
        """The number of the rank."""
        return self.state.opened.rank

    def number_of(self, req: Req) -> RequestId | None:
        """The number of a server's request, None while it sits in no row of this rank."""
        told_row = told(req, "req", "rid", "req_pool_idx").req_pool_idx
        rid, row = text(req.rid, "rid"), -1 if told_row is None else number(told_row, "req_pool_idx")
        if not 0 <= row <= self.state.rows.mask:
            return None
        live = self.state.requests.get(int(self.state.rows.request[row]))
        return live.id if live is not None and live.rid == rid else None

    def seated(self, req: Req) -> RequestId:
        """The number of a server's request, which sits down in its row if it did not before.

        It starts behind `last_node`, whose lock it makes its own: `cache_lock_params` is the request's receipt
        from now on. Raises Refusal if the request and the tree do not agree.
        """
        seated = self.number_of(req)
        if seated is not None:
            return seated
        if req.req_pool_idx is None:
            raise Refusal(f"request {req.rid!r} has no row: ReqToTokenPool.alloc hands them out")
        row = number(req.req_pool_idx, "req_pool_idx")
        node = self._start_of(req)
        self._check_protected(req, node)
        prompt = sum(
            len(sequence(getattr(req, field), field)) for field in ("origin_input_ids", "output_ids")
        )
        name = namespace(extra_key=req.extra_key)
        seated = self._run(
            decide_faces.seat(
                self.state, text(req.rid, "rid"), row, prompt, node, name, _receipt(req, node),
                number(getattr(req, "priority", None) or 0, "priority"),
            )
        )  # fmt: skip
        req.swa_evicted_seqlen = int(self.state.rows.cursor[row])
        self.hand_receipt(req, seated)
        return seated

    def _start_of(self, req: Req) -> NodeId:
        """The node that a request starts behind."""
        if req.last_node is None:
            return ROOT
        last = told(req.last_node, "last_node", "id", "dp_rank")
        if last.dp_rank != self.dp_rank:
            raise Refusal(f"request {req.rid!r} is on rank {self.dp_rank}, its node on {last.dp_rank}")
        return self.node_named(last)

    def node_named(self, node: Any) -> NodeId:
        """The number of a handle of this rank's tree; Refusal for one of another cache."""
        if getattr(node, "rank", self) is not self:
            raise Refusal(f"node {node.id} is of another cache's rank {node.dp_rank}")
        return NodeId(number(node.id, "node.id"))

    def _check_protected(self, req: Req, node: NodeId) -> None:
        found = self.state.nodes.get(node)
        protected = number(req.cache_protected_len, "cache_protected_len")
        if found is not None and found.end * self.state.page_size != protected:
            raise Refusal(
                f"request {req.rid!r} protects {req.cache_protected_len} tokens, the path to its node {node} has "
                f"{found.end * self.state.page_size}"
            )

    def check_told(self, req: Req, request: RequestId, tokens: int) -> None:
        """Refuse a request that came without the receipt that it was given (R137), or with tokens never written into its row."""
        held = self.state.requests[request].receipt or Receipt(ROOT, TO_ROOT)
        params = req.cache_lock_params
        if params is None or boundary_receipt(held.node, params).boundary != held.boundary:
            raise Refusal(
                f"request {req.rid!r} came with the receipt {params}, it was given {self.params_of(held)}",
                request=request,
            )
        length = int(self.state.rows.length[self.state.row_of(request)])
        if tokens > length:
            raise Refusal(
                f"request {req.rid!r} says that {tokens} tokens are computed, its row has {length}",
                request=request,
            )

    def hand_receipt(self, req: Req, number: RequestId) -> None:
        """Leave the receipt of a live request with its server's object, and the boundary in its mirror (R137)."""
        params = self.params_of(self.state.requests[number].receipt or Receipt(ROOT, TO_ROOT))
        req.cache_lock_params, req.swa_uuid_for_lock = params, params.swa_uuid_for_lock

    def params_of(self, receipt: Receipt) -> DecLockRefParams:
        """A receipt as the server keeps it; what was passed over is of the one component that there is beside FULL."""
        beside = ComponentType.RECURRENT if self.state.states_each else ComponentType.SWA
        skipped = {beside: list(receipt.skipped)} if receipt.skipped else {}
        return DecLockRefParams(int(receipt.boundary) or None, skipped)

    def account_of(self, req: Req | None) -> Account | None:
        """The account of a request that is named as giver; None for nobody in particular."""
        if req is None:
            return None
        number = self.number_of(req)
        if number is None:
            raise Refusal(f"request {req.rid!r} sits in no row of rank {self.dp_rank}, so it holds nothing")
        return request_account(number)

    # -- commands --------------------------------------------------------------------------------------------

    def write(self, written: Sequence[Written]) -> None:
        """Tell what a server wrote into rows."""
        self._run(decide_faces.write(self.state, written))

    def state_brought(self, value: Any, tokens: int) -> Pages:
        """The state slot that comes with a key of so many tokens, of whose last it has to be the state; ValueError if not."""
        if value is None:
            return NO_PAGES
        slots, page_size = as_slots(np.ravel(value)), self.state.page_size
        if not self.state.states_each:
            raise ValueError(f"state slot {slots.tolist()} was brought, and nothing here keeps states")
        if slots.size != 1 or tokens % page_size:
            raise ValueError(
                f"{slots.size} state slots came with {tokens} tokens; one does, with whole pages of {page_size} tokens"
            )
        return Pages(slots.astype("<i4").tobytes())

    def end(self, request: RequestId, key: bytes | None, ended: Ended) -> None:
        """Cache `key` if there is one, and end a request as `ended` says."""
        if ended is Ended.FINISHED:
            self.finish(request, key)
            return
        if key is not None:
            self.cache_unfinished(request, key)
        if ended is Ended.RETRACTED:
            self.retract(request)
        else:
            self.abort(request)

    def make_room(self, node: NodeId) -> None:
        """Free state slots for a request that is going to start at `node`; StateShort if there cannot be so many."""
        self._run(decide_faces.make_room(self.state, node))

    def evict_each(self, full: int, swa: int, states: int) -> tuple[int, int, int]:
        """Pages of FULL and SWA, and state slots, from the oldest of the tree: what the pools gained."""
        if not self.state.states_each:
            return (*self.evict(full, swa), 0)
        gained_full, gained = self.evict_states(states, full)
        return gained_full, 0, gained

    def give_up(self, full: Pages, giver: int | None = None) -> None:
        """Free FULL pages with their SWA pages; a live row that ended with them is shorter then."""
        self._run(decide_faces.give_up(self.state, full, giver, self.strict))

    def translate_recorded(self, full: Pages) -> Pages:
        """The SWA pages of FULL pages; a missing one is refused, and that is recorded."""
        return self._run(decide_faces.translate(self.state, full))

    def check_flush(self) -> None:
        """Refuse, as a flush would, if anything but the tree holds pages or a lock (R33)."""
        self._run(decide_faces.flushable(self.state))

    def clear(self) -> None:
        """Take back what was handed out to nobody, and what is pending."""
        self._run(decide_faces.clear(self.state))

    def row_slots(self, number: RequestId, start: int, stop: int) -> Slots:
        """The FULL slots of tokens [start, stop) of a request's row."""
        page_size = self.state.page_size
        tokens = np.arange(start, stop, dtype=np.int32)
        pages = self.state.rows.full_table[self.state.row_of(number)].take(tokens // page_size)
        slots: Slots = pages * np.int32(page_size) + tokens % np.int32(page_size)
        return slots


def rank_of(ranks: Sequence[FaceRank], dp_rank: int | None) -> FaceRank:
    """The rank that a call names; without a name it must be the only one (A29). Raises ValueError."""
    if dp_rank is None:
        if len(ranks) > 1:
            raise ValueError(f"dp_rank is not given, and there are {len(ranks)} ranks (R98)")
        return ranks[0]
    if not 0 <= number(dp_rank, "dp_rank") < len(ranks):
        raise ValueError(f"dp_rank {dp_rank} is not one of {len(ranks)} ranks")
    return ranks[dp_rank]


def _receipt(req: Req, node: NodeId) -> Receipt:
    """The receipt that a request brings along: its parameters, or their older mirror."""
    return boundary_receipt(node, req if req.cache_lock_params is None else req.cache_lock_params)


def boundary_receipt(node: NodeId, params: Any) -> Receipt:
    """The receipt of a path's lock, from the parameters that a server kept of it; without any it reaches to the root."""
    boundary = None if params is None else told(params, "params", "swa_uuid_for_lock").swa_uuid_for_lock
    return Receipt(node, TO_ROOT if boundary is None else BoundaryId(number(boundary, "swa_uuid_for_lock")))


def as_slots(values: ArrayLike) -> NDArray[np.int64]:
    """Token slots as int64 [n]; raises ValueError for anything but a flat list of integers that fit int32 (B141)."""
    slots = np.asarray(values)
    if slots.size == 0:
        return np.zeros(0, np.int64)
    if slots.ndim != 1 or slots.dtype.kind not in "iu":
        raise ValueError(f"slots are a flat array of integers, not {slots.dtype} of shape {slots.shape}")
    if int(slots.max()) > MAX_SLOT or int(slots.min()) < -1:
        raise ValueError(f"slots reach from {slots.min()} to {slots.max()}; a pool ends at {MAX_SLOT}")
    return slots.astype(np.int64)


def pages_of_slots(values: ArrayLike, page_size: int) -> Pages:
    """The pages that token slots lie in, each once, in order of mention; one slot stands for its page (B01)."""
    pages = as_slots(values) // page_size
    _, first = np.unique(pages, return_index=True)
    return Pages(pages[np.sort(first)].astype("<i4").tobytes())


def slots_of_pages(pages: Pages, page_size: int) -> Slots:
    """All token slots of pages, in order, int32 [n * page_size]."""
    firsts: Slots = pages_of(pages).astype(np.int32) * page_size
    offsets: Slots = np.arange(page_size, dtype=np.int32)
    slots: Slots = np.add.outer(firsts, offsets).ravel()
    return slots
