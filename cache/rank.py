"""One rank's cache, ready to serve: the commands and the reads, each one call of a decider.

How a decision becomes events stands in `shell`; what the tree does is the rules of the rank's route, see `routes`.
Rule: arguments are checked for being arguments at all before a decider sees them.
"""

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.arguments import (
    key_given,
    name_space,
    number,
    packed,
    receipt_given,
    request_numbers,
    slice_given,
    text,
    token_counts,
)
from radixledger.cache.decide import eviction as decide_eviction
from radixledger.cache.decide import growth as decide_growth
from radixledger.cache.decide import locks as decide_locks
from radixledger.cache.decide import pages as decide_pages
from radixledger.cache.decide import requests as decide_requests
from radixledger.cache.decide import states as decide_states
from radixledger.cache.decide.eviction import Gain, StateGain
from radixledger.cache.decide.requests import Admission
from radixledger.cache.host_rank import HostCommands
from radixledger.cache.keys import KEY_MODES, Tokens
from radixledger.cache.match import Hit, hit_of
from radixledger.cache.slices import Inserted, Slice
from radixledger.cache.state import Receipt
from radixledger.journal.units import NodeId, Pages, TokenCount


class RankCache(HostCommands):
    """The cache of one rank: commands that decide, reads that do not.

    journal: where events go; None keeps no journal at all (J9). strict: a free of pages that the giver does not
    hold is refused (True), or told as `Violated` and skipped (False). seq: the number of `opened` in the journal,
    more than 1 where a run is resumed. snapshot_every: events between two snapshots of the state, None for none; one
    that the disk had no room for is told in `notices`, and the rank goes on.
    watched: how much of the law is asked while it serves, see `watch`. hashed: keys are hashes of pages, of the stride that
    `opened` names, as a replay has them.
    Raises Refusal (see `refusals`) for commands that are turned down, TypeError or ValueError for what is no argument
    at all (see `arguments`), RankPoisoned once a command has failed half-way.
    """

    # -- reads -----------------------------------------------------------------------------------------------

    def peek(self, key: bytes, namespace: bytes = b"", *, full_only: bool = False) -> Hit:
        """What a match would give; nothing is split, no recency moves (A19)."""
        key, namespace = key_given(self.state, key), name_space(namespace)
        with self._entry:
            found = self.route.tree.look(self.state, key, namespace, full_only=full_only)
            return hit_of(found, found.node, self.state.page_size)

    def key_of(self, tokens: Tokens) -> bytes:
        """The key of a token sequence, as this rank's tree knows it; the one way to make keys (B65)."""
        return KEY_MODES[self.state.config.key_mode].key_of(tokens)

    def translate(self, full: Pages, *, require_mapped: bool = True) -> Pages:
        """The SWA pages of FULL pages (R34-R37)."""
        full = packed(full, "full")
        with self._entry:
            return decide_pages.translate(self.state, full, require_mapped=require_mapped)

    # -- the tree --------------------------------------------------------------------------------------------

    def match(
        self,
        key: bytes,
        namespace: bytes = b"",
        *,
        rid: str = "",
        full_only: bool = False,
        force_miss: bool = False,
    ) -> Hit:
        """The usable prefix of `key`; its node is cut where the prefix ends, and its path becomes the youngest."""
        return self._run(
            self.route.tree.match(
                self.state,
                key_given(self.state, key),
                name_space(namespace),
                rid=text(rid, "rid"),
                full_only=full_only,
                force_miss=force_miss,
            )
        )

    def insert(self, key: bytes, namespace: bytes, brought: Slice) -> Inserted:
        """Give the tree the pages of a key (R83-R97)."""
        return self._run(
            self.route.tree.insert(
                self.state, key_given(self.state, key), name_space(namespace), slice_given(brought)
            )
        )

    def lock(self, node: NodeId) -> Receipt:
        """Shield a node's path from eviction, beside the locks that requests hold."""
        return self._run(decide_locks.lock(self.state, NodeId(number(node, "node"))))

    def unlock(self, receipt: Receipt) -> None:
        """Release a lock with its receipt."""
        self._run(decide_locks.unlock(self.state, receipt_given(receipt)))

    def evict(self, full_pages: int, swa_pages: int) -> Gain:
        """Ask the tree for free pages; the answer is what the pools gained."""
        full, swa = number(full_pages, "full_pages"), number(swa_pages, "swa_pages")
        return self._run(self.route.eviction.evict(self.state, full, swa))

    def evict_states(self, count: int, full_pages: int = 0) -> StateGain:
        """Ask the tree for state slots, and for FULL pages before; the leaves that have states go with their FULL pages."""
        count, full = number(count, "count"), number(full_pages, "full_pages")
        return self._run(decide_eviction.evict_states(self.state, count, full))

    def take_states(self, count: int) -> Pages:
        """State slots for whoever asks, to bring them to an insert or to give them back."""
        return self._run(decide_states.take(self.state, number(count, "count")))

    def free_states(self, slots: Pages) -> None:
        """Give back state slots that were taken so."""
        self._run(decide_states.give_back(self.state, packed(slots, "slots")))

    def flush(self) -> int:
        """Empty the tree of an idle rank; returns the number of nodes removed (R33, R177)."""
        return self._run(self.route.eviction.flush(self.state))

    # -- requests --------------------------------------------------------------------------------------------

    def admit(
        self, rid: str, key: bytes, prompt: int, namespace: bytes = b"", *, force_miss: bool = False,
        priority: int = 0,
    ) -> Admission:  # fmt: skip
        """Match a prompt, take a row, lock its prefix; `priority` counts where victims are chosen by it."""
        return self._run(
            decide_requests.admit(
                self.state, text(rid, "rid"), key_given(self.state, key), number(prompt, "prompt"),
                name_space(namespace), force_miss=force_miss, priority=number(priority, "priority"),
            )
        )  # fmt: skip

    def extend(self, requests: NDArray[np.int64], grown: NDArray[np.int32]) -> None:
        """Let requests grow, with pages where they need them; PoolShort if the pools cannot."""
        self._run(decide_growth.extend(self.state, request_numbers(requests), token_counts(grown, "grown")))

    def decode(self, requests: NDArray[np.int64]) -> NDArray[np.int32]:
        """Let each request grow by one token; returns their FULL slots, int32 [n]."""
        return self._run(decide_growth.decode(self.state, request_numbers(requests)))

    def reclaim(self, request: int, pre: int, in_flight: int = 0) -> TokenCount:
        """Give back a request's SWA below its window; returns its cursor."""
        return self._run(
            decide_growth.reclaim(
                self.state, number(request, "request"), number(pre, "pre"), number(in_flight, "in_flight")
            )
        )

    def reclaim_for(self, request: int, key: bytes) -> TokenCount:
        """`reclaim` before `key` is cached, which is then handed on as it is (R264); returns the cursor."""
        request, key = number(request, "request"), key_given(self.state, key)
        return self._run(decide_growth.reclaim_for(self.state, request, key))

    def reclaim_batch(self, requests: NDArray[np.int64], in_flight: int = 0) -> None:
        """`reclaim` for a decode batch; nothing is written unless a request crossed a page."""
        rows, requests, in_flight = self.state.rows, request_numbers(requests), number(in_flight, "in_flight")
        coded = requests.tobytes()
        at = rows.at(coded).at
        due_at = rows.reclaim_at[at] + in_flight if in_flight else rows.reclaim_at[at]
        if np.count_nonzero(rows.length[at] > due_at) or not rows.are_live(coded):
            self._run(decide_growth.reclaim_batch(self.state, requests, in_flight))

    def cache_unfinished(self, request: int, key: bytes, tokens: int | None = None) -> TokenCount:
        """Give the tree what a running request has computed, `tokens` of `key` or all; returns its protected length."""
        request, key = number(request, "request"), key_given(self.state, key)
        if tokens is not None:
            tokens = number(tokens, "tokens")
        return self._run(decide_requests.cache_unfinished(self.state, request, key, tokens))

    def finish(self, request: int, key: bytes | None) -> TokenCount:
        """End a request well and cache `key` (None: nothing); returns the cached length."""
        request, key = number(request, "request"), None if key is None else key_given(self.state, key)
        return self._run(decide_requests.finish(self.state, request, key))

    def retract(self, request: int) -> None:
        """Take everything back from a request that will be admitted again."""
        self._run(decide_requests.retract(self.state, number(request, "request")))

    def abort(self, request: int) -> None:
        """End a request without caching it."""
        self._run(decide_requests.abort(self.state, number(request, "request")))

    # -- pages -----------------------------------------------------------------------------------------------

    def alloc(self, count: int) -> tuple[Pages, Pages]:
        """`count` pages of each pool for whoever asks, mapped pairwise; PoolShort if there are not so many."""
        return self._run(decide_pages.alloc(self.state, number(count, "count")))

    def free(self, full: Pages, giver: int | None = None) -> None:
        """Free FULL pages with their SWA pages."""
        self._run(decide_pages.free(self.state, packed(full, "full"), _giver(giver), self.strict))

    def free_full(self, full: Pages, giver: int | None = None) -> None:
        """Free FULL pages only; `free_swa` of the same pages must follow."""
        self._run(decide_pages.free_full(self.state, packed(full, "full"), _giver(giver), self.strict))

    def free_swa(self, full: Pages, giver: int | None = None) -> None:
        """Free the SWA pages of FULL pages."""
        self._run(decide_pages.free_swa(self.state, packed(full, "full"), _giver(giver), self.strict))

    def remap(self, source: Pages, target: Pages) -> None:
        """Move mapping and SWA pages from `source` to `target`."""
        self._run(decide_pages.remap(self.state, packed(source, "source"), packed(target, "target")))

    def open_group(self) -> None:
        """Begin a free group."""
        self._run(decide_pages.open_group(self.state))

    def flush_group(self) -> None:
        """End the free group: what is pending becomes free."""
        self._run(decide_pages.flush_group(self.state))

    # -- steps and evidence ----------------------------------------------------------------------------------

    def step_began(
        self, step: int, requests: NDArray[np.int64], starts: NDArray[np.int32], stops: NDArray[np.int32]
    ) -> None:
        """A device step is about to be dispatched; the journal is made safe first."""
        step, requests = number(step, "step"), request_numbers(requests)
        starts, stops = token_counts(starts, "starts"), token_counts(stops, "stops")
        with self._turn():
            self._decided(decide_growth.step_began(self.state, step, requests, starts, stops))
            if self.journal is not None:
                with self._safe():
                    self.journal.end_step(step)

    def step_ended(self, step: int) -> None:
        """The step's results are here."""
        self._run(decide_growth.step_ended(self.state, number(step, "step")))


def _giver(giver: int | None) -> int | None:
    return None if giver is None else number(giver, "giver")
