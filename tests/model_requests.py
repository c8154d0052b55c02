"""The naive model, continued: what a request's life does to the pages.

Rule: a request owns the pages of [protected, length) of its row, the tree those below; whatever it gives up, it gives
up once.
"""

from collections.abc import Mapping, Sequence

from radixledger.journal.accounts import FREE, PENDING, request_account
from radixledger.journal.units import RequestId

from .model import Guest, Model, Step, turn_if
from .model_tree import Prefix


class RankModel(Model):
    """A whole rank. `letters` are the contents of pages, from the start of a sequence; a content may say a token more."""

    def match(self, space: bytes, letters: Sequence[str], force_miss: bool = False) -> tuple[int, int]:
        """Pages of the usable prefix, and pages that FULL alone would give."""
        path = (space, *letters)
        hit = 0 if force_miss else self.tree.hit(path)
        self.tree.cut(path[: hit + 1])
        self.tree.touch(path[: hit + 1])
        for at in range(hit):
            self.tree.places[path[: at + 2]].hits += 1
        return hit, self.tree.depth(path)

    def judge_admission(
        self, rid: str, prompt: int, space: bytes = b"", letters: Sequence[str] = (), force_miss: bool = False
    ) -> None:
        rows_left = len(self.guests) < self.shape.rows
        fits = prompt > 0 and self.shape.pages(prompt) <= self.shape.row_pages
        read = {at // self.shape.page for at in range(max(0, prompt - self.shape.window), prompt)}
        never = self.shape.pages(prompt) > self.shape.full or (
            self.shape.window and len(read) > self.shape.swa
        )
        twice = any(rid == guest.rid for guest in self.guests.values())
        turn_if(["refused"] * (not rows_left or not fits or twice) + ["never_fits"] * bool(fits and never))

    def admit(
        self, request: int, rid: str, space: bytes, letters: Sequence[str], prompt: int, force_miss: bool,
        priority: int = 0,
    ) -> tuple[int, int]:  # fmt: skip
        """At least one token of the prompt is left to compute."""
        self.judge_admission(rid, prompt)
        letters = letters[: (prompt - 1) // self.shape.page]
        hit, full_hit = self.match(space, letters, force_miss)
        path = (space, *letters[:hit])
        tokens = hit * self.shape.page
        row = [self.tree.places[path[: at + 2]].full for at in range(hit)]
        guest = Guest(rid, prompt, path, self.tree.lock(path), row, tokens, tokens, tokens, priority)
        self.tree.used_by(path, priority, len(path))
        self.show_window(guest)
        self.guests[request] = guest
        self.tree.ask(request, path, prompt)
        return hit, full_hit

    def show_window(self, guest: Guest) -> None:
        """Of the tree's pages a row shows the SWA of the last window, as it was when the row began to name them."""
        stop = guest.protected // self.shape.page
        first = max(0, stop - self.shape.tail)
        guest.shown = [0] * first + [self.mapping.get(page, 0) for page in guest.row[first:stop]]

    def window_row(self, guest: Guest) -> list[int]:
        """What the SWA page table must say for a request."""
        stop, cursor = guest.protected // self.shape.page, guest.cursor // self.shape.page
        own = [self.mapping.get(page, 0) if at >= cursor else 0 for at, page in enumerate(guest.row)]
        return guest.shown + own[stop:]

    def crossings(self, requests: Sequence[int], grown: Sequence[int]) -> dict[int, int]:
        """How many pages each request needs to grow so far."""
        pages, length = self.shape.pages, {request: self.guests[request].length for request in requests}
        return {
            request: pages(length[request] + more) - pages(length[request])
            for request, more in zip(requests, grown, strict=True)
        }

    def extend(
        self,
        requests: Sequence[int],
        grown: Sequence[int],
        handed: Mapping[int, tuple[Sequence[int], Sequence[int]]],
    ) -> None:
        """`handed`: the pages that each request got, as its row shows them."""
        self.judge_batch(requests, any(more <= 0 for more in grown))
        needed = self.crossings(requests, grown)
        if any(needed.values()):
            over = any(
                len(self.guests[request].row) + more > self.shape.row_pages
                for request, more in needed.items()
            )
            turn_if(["refused"] * over)
            self.judge_taking(sum(needed.values()))
        for request, more in zip(requests, grown, strict=True):
            full, swa = handed[request]
            self.take(request, full, swa, needed[request])
            self.guests[request].row += full
            self.guests[request].length += more

    def reclaim(self, request: int, pre: int, in_flight: int) -> int:
        turn_if(["unknown_request"] * (request not in self.guests))
        guest = self.guests[request]
        turn_if(["refused"] * (in_flight < 0 or pre > guest.length))
        if not self.shape.frees:
            return guest.cursor
        pre = min(
            [
                pre,
                self.shape.units(guest.length),
                *(step.starts[request] for step in self.steps.values() if request in step.starts),
            ]
        )
        stop = self.shape.frontier(guest.cursor, pre - in_flight)
        gone = guest.row[guest.cursor // self.shape.page : stop // self.shape.page]
        self.give_up(gone, keep_full=True)
        self.swa_evicted += len(gone)
        guest.cursor = stop
        return stop

    def reclaim_for(self, request: int, units: int) -> int:
        """Before a key of so many units is cached."""
        turn_if(["unknown_request"] * (request not in self.guests))
        turn_if(["refused"] * (units > self.shape.units(self.guests[request].length)))
        return self.reclaim(request, units - 1, 0)

    def judge_batch(self, requests: Sequence[int], wrong: bool = False) -> None:
        """Live requests, each named once, and whatever else may be wrong with a step."""
        turn_if(
            ["unknown_request"] * any(request not in self.guests for request in requests)
            + ["refused"] * (wrong or len(set(requests)) < len(requests))
        )

    def reclaim_batch(self, requests: Sequence[int], in_flight: int) -> None:
        self.judge_batch(requests)
        for request in requests:
            self.reclaim(request, self.guests[request].length - 1, in_flight)

    def _judge_busy(self, request: int) -> Guest:
        turn_if(["unknown_request"] * (request not in self.guests))
        turn_if(["busy"] * any(request in step.starts for step in self.steps.values()))
        return self.guests[request]

    def _insert_own(self, request: int, guest: Guest, letters: Sequence[str]) -> Prefix:
        """The path of a request is the tree's already; what its key says of it is not read."""
        kept = guest.protected // self.shape.page
        path, pages = (*guest.path, *letters[kept:]), guest.row[: len(letters)]
        self.judge_slice(
            letters, pages, kept, guest.cursor // self.shape.page, request_account(RequestId(request))
        )
        end, had = self.settle(path, pages, kept, guest.cursor // self.shape.page)
        self.tree.used_by(end, guest.priority, had)
        return end

    def cache_unfinished(self, request: int, letters: Sequence[str]) -> int:
        guest = self._judge_busy(request)
        if not self.shape.keeps:
            return 0
        page, count, released = self.shape.page, len(letters), guest.cursor // self.shape.page
        if count * page <= guest.protected:
            return guest.protected
        without_window = released * page > guest.protected and count - released < self.shape.tail
        turn_if(["refused"] * (count * page > self.shape.units(guest.length) or without_window))
        path = self._insert_own(request, guest, letters)
        assert len(path) == count + 1, "what runs on is in the tree as a whole"
        guest.row[:count] = [self.tree.places[path[: at + 2]].full for at in range(count)]
        guest.path, guest.protected = path, count * page
        guest.cursor = max(guest.cursor, guest.protected)
        self.tree.touch(path)
        self.tree.ask(request, path, guest.prompt)
        self.show_window(guest)
        before, guest.lock = guest.lock, self.tree.lock(path)
        self.tree.unlock(before)
        return guest.protected

    def finish(self, request: int, letters: Sequence[str] | None) -> int:
        guest = self._judge_busy(request)
        page, count = self.shape.page, len(letters or ()) if self.shape.keeps else 0
        end, kept = guest.path, guest.protected // page
        if letters is not None and count > kept:
            turn_if(["refused"] * (count * page > self.shape.units(guest.length)))
            end, kept = self._insert_own(request, guest, letters), count
        self.tree.answer(request, end)
        self._leave(request, kept)
        self.tree.touch(end)
        return (len(end) - 1) * page

    def surrender(self, request: int) -> None:
        """Retracted or aborted: all of its own goes, nothing is cached."""
        guest = self._judge_busy(request)
        self._leave(request, guest.protected // self.shape.page)

    def _leave(self, request: int, kept: int) -> None:
        guest = self.guests.pop(request)
        self.tree.prompts.pop(request, None)
        self.give_up(guest.row[kept:])
        self.tree.unlock(guest.lock)

    def step_began(
        self, step: int, requests: Sequence[int], starts: Sequence[int], stops: Sequence[int]
    ) -> None:
        self.judge_batch(requests, step in self.steps or not len(requests) == len(starts) == len(stops))
        reads = {}
        for request, start, stop in zip(requests, starts, stops, strict=True):
            guest = self.guests[request]
            first = max(0, start - self.shape.window + 1) // self.shape.page if self.shape.window else 0
            pages = guest.row[first : self.shape.pages(stop)]
            reads[request] = (first, pages, [self.mapping.get(page) for page in pages])
        self.steps[step] = Step(dict(zip(requests, starts, strict=True)), reads)

    def step_ended(self, step: int) -> None:
        turn_if(["refused"] * (step not in self.steps))
        del self.steps[step]

    def what_runs_is_still_there(self) -> bool:
        """No page that a running step reads or writes has moved since it began (R151)."""
        return all(
            self.guests[request].row[first : first + len(pages)] == pages
            and [self.mapping.get(page) for page in pages] == windows
            for step in self.steps.values()
            for request, (first, pages, windows) in step.reads.items()
        )

    def ledger(self) -> dict[str, int | bool]:
        """The numbers of a ledger row, counted from the owners of pages and from live rows (R153-R171)."""
        page, tree = self.shape.page, self.tree
        held = [
            [key for key, place in tree.places.items()],
            [key for key, place in tree.places.items() if place.swa],
        ]
        locked = [
            sum(map(bool, map(tree.holders, held[0]))),
            sum(map(bool, map(tree.window_holders, held[1]))),
        ]
        starts = [
            [guest.protected for guest in self.guests.values()],
            [guest.cursor if self.swa else len(guest.row) * page for guest in self.guests.values()],
        ]
        row: dict[str, int | bool] = {"idle": not (self.guests or self.group_open or self.steps)}
        for name, book, at in (("full", self.full, 0), ("swa", self.swa, 1)):
            ends = [(guest.length, len(guest.row) * page) for guest in self.guests.values()]
            own = sum(max(0, length - start) for start, (length, _) in zip(starts[at], ends, strict=True))
            pages = sum(max(0, end - start) for start, (_, end) in zip(starts[at], ends, strict=True))
            row |= {
                f"{name}_capacity": len(book) * page,
                f"{name}_available": self.count(book, FREE) * page,
                f"{name}_pending_free": self.count(book, PENDING) * page,
                f"{name}_tree_evictable": (len(held[at]) - locked[at]) * page,
                f"{name}_tree_protected": locked[at] * page,
                f"{name}_request_owned": own,
                f"{name}_reserved_page_slack": pages - own,
                f"{name}_duplicate_request_owner_count": 0,
                f"{name}_request_tree_overlap_count": 0,
            }
        return row | {
            "mapping_nonzero_count": len(self.mapping) * page,
            "mapping_invalid_count": 0,
            "mapping_duplicate_count": 0,
            "full_evicted_total": self.full_evicted * page,
            "swa_evicted_total": self.swa_evicted * page,
            "tombstone_created_total": self.tombstones,
            "tombstone_healed_total": self.healed,
        }
