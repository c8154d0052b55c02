"""The naive model, continued: what a server with rows of its own tells.

Its requests are like all others once they sit in a row; their pages were handed out to nobody and became theirs when the
server wrote them down.
"""

from collections.abc import Sequence
from typing import NamedTuple

from radixledger.journal.accounts import FREE, PENDING, Kind, request_account
from radixledger.journal.units import UNBOUND, RequestId

from .model import Guest, turn_if
from .model_requests import RankModel
from .model_tree import Lock, Prefix

NOBODYS = int(request_account(UNBOUND))


class Seat(NamedTuple):
    """Who wants to sit where: `path` leads to the node that it starts behind, None if there is no such node."""

    rid: str
    row: int
    prompt: int
    path: Prefix | None
    lock: Lock | None
    """The lock that comes with it; None if its receipt is not held, or of another node."""


class Writing(NamedTuple):
    """Tokens [start, stop) were written, and these pages stand at the positions that they touch."""

    request: int
    start: int
    stop: int
    pages: list[int]


class FacesModel(RankModel):
    """A rank whose server keeps rows."""

    def judge_seat(self, seat: Seat) -> None:
        """A path that a request can start from, locked, in a row that is free."""
        page, path = self.shape.page, seat.path
        taken = {number % self.shape.rows for number in self.guests}
        turn_if(["refused"] * (path is None))
        assert path is not None
        tokens = (len(path) - 1) * page
        turn_if(
            ["refused"]
            * (
                tokens >= seat.prompt
                or not self.tree.valid(path)
                or (seat.lock is None and tokens > 0)
                or seat.row in taken
                or not 0 <= seat.row < self.shape.rows
                or self.shape.pages(seat.prompt) > self.shape.row_pages
                or any(seat.rid == guest.rid for guest in self.guests.values())
            )
        )

    def sit(self, request: int, seat: Seat) -> None:
        """The lock that comes with it becomes the request's own."""
        self.judge_seat(seat)
        path = seat.path
        assert path is not None
        tokens = (len(path) - 1) * self.shape.page
        row = [self.tree.places[path[: at + 2]].full for at in range(len(path) - 1)]
        guest = Guest(seat.rid, seat.prompt, path, self.tree.lock(path), row, tokens, tokens, tokens)
        self.tree.unlock(seat.lock)
        self.show_window(guest)
        self.guests[request] = guest
        self.tree.ask(request, path, seat.prompt)
        self.tree.used_by(path, 0, len(path))

    def write(self, writings: Sequence[Writing]) -> None:
        """Pages behind those that a row names become its request's; those that it names must be named again."""
        known = [each for each in writings if each.request in self.guests]
        fresh = {each.request: self._fresh(each) for each in known}
        pages = [page for each in fresh.values() for page in each]
        lawful = len(set(pages)) == len(pages) and all(self.full.get(page) == NOBODYS for page in pages)
        turn_if(
            ["unknown_request"] * (len(known) < len(writings))
            + ["refused"] * (len(fresh) < len(known) or not all(map(self._fits, known)))
            + ["foreign_free"] * (not lawful)
            + ["refused"] * (self.shape.window > 0 and any(page not in self.mapping for page in pages))
        )
        for each in writings:
            guest = self.guests[each.request]
            guest.row += fresh[each.request]
            guest.length = max(guest.length, each.stop)
            for page in fresh[each.request]:
                self.full[page] = request_account(RequestId(each.request))
                if page in self.mapping:
                    self.swa[self.mapping[page]] = self.full[page]

    def _fresh(self, writing: Writing) -> list[int]:
        """The pages behind those that the row names."""
        named = self.guests[writing.request].row[max(0, writing.start) // self.shape.page :]
        return writing.pages[len(named) :]

    def _fits(self, writing: Writing) -> bool:
        """No hole, as many pages as positions, the same pages where the row names some, and room in the row."""
        _, start, stop, pages = writing
        guest, page = self.guests[writing.request], self.shape.page
        named = guest.row[max(0, start) // page :][: len(pages)]
        positions = self.shape.pages(stop) - start // page
        return (
            0 <= start <= min(stop, guest.length)
            and len(pages) == positions
            and self.shape.pages(stop) <= self.shape.row_pages
            and named == pages[: len(named)]
        )

    def give_up_pages(self, full: Sequence[int], giver: int | None) -> set[str]:
        """Both pools' part of pages that are nobody's, or of the last ones of a row, which ends before them then."""
        turn_if(["refused"] * self.unknown(full))
        lawful, reasons = self._judge_givers(self.full, full, giver)
        cuts = {
            number: [page for page in lawful if self.full[page] == request_account(RequestId(number))]
            for number in self.guests
        }
        cuts = {number: pages for number, pages in cuts.items() if pages}
        turn_if([*(reasons if self.strict else ()), *self._judge_cuts(cuts)])
        self.give_up(lawful)
        for number, pages in cuts.items():
            guest = self.guests[number]
            del guest.row[-len(pages) :]
            guest.length = len(guest.row) * self.shape.page
            guest.cursor = min(guest.cursor, guest.length)
        return reasons

    def _judge_cuts(self, cuts: dict[int, list[int]]) -> list[str]:
        """Only the last pages of a row that rests, and no fewer than leave it a window to go on from."""
        reasons = []
        for number, pages in cuts.items():
            guest, page = self.guests[number], self.shape.page
            length = (len(guest.row) - len(pages)) * page
            stop = self.shape.units(length) // page * page
            reads = range(max(0, stop - self.shape.window) // page, len(guest.row) - len(pages))
            gone = [at for at in reads if self.window_row(guest)[at] == 0] if self.shape.window else []
            hole = set(guest.row[-len(pages) :]) != set(pages)
            reasons += ["refused"] * (hole or bool(gone and length > guest.protected))
            reasons += ["busy"] * any(number in step.starts for step in self.steps.values())
        return reasons

    def clear(self) -> None:
        """What was handed out to nobody, and what is pending, is free again; an open group stays open."""
        turn_if(["busy"] * bool(self.guests or self.tree.places))
        for page, held in self.full.items():
            if held in (NOBODYS, PENDING):
                self.full[page] = int(FREE)
        self.swa.update(
            {page: int(FREE) for page, held in self.swa.items() if held & 7 in (Kind.REQUEST, PENDING)}
        )
        self.mapping.clear()
