"""A scheduler that rolls dice, and page tables that forget: the worst day of a runner, in forty lines.

Rule: a page is spoilt the moment it is freed and may be given out again in the same step.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .desk import ROWS, Desk, Ints


@dataclass
class Work:
    """One request: its prompt, and how many ids it wants."""

    prompt: Ints
    new_tokens: int
    made: list[int] = field(default_factory=list)
    done: int = 0
    """Positions whose K and V are written."""

    @property
    def ids(self) -> Ints:
        return np.concatenate([self.prompt, np.array(self.made, np.int32)])

    @property
    def finished(self) -> bool:
        return len(self.made) == self.new_tokens


def play(desk: Desk, work: Sequence[Work], seed: int) -> list[list[int]]:
    """Run all of `work` in mixed steps, each of some rows and some tokens of each; return what each made."""
    dice = np.random.default_rng(seed)
    waiting, rows = deque(work), dict[int, Work]()
    free = {"full": deque(desk.full.ravel().tolist()), "swa": deque(desk.swa.ravel().tolist())}
    desk.full[:], desk.swa[:] = 0, 0
    while waiting or rows:
        for row in {*range(ROWS)} - rows.keys():
            if waiting:
                rows[row] = waiting.popleft()
        taken = [row for row in rows if dice.random() < 0.8] or [next(iter(rows))]
        spans = []
        for row in dice.permutation(taken).tolist():
            item = rows[row]
            end = min(item.done + int(dice.integers(1, 60)), len(item.ids))
            _hold(desk, free, row, item.done, end)
            spans.append((row, item.done, item.ids[item.done : end]))
        for (row, start, ids), made in zip(spans, desk.step(*spans).tolist(), strict=True):
            item = rows[row]
            item.done = start + len(ids)
            if item.done == len(item.ids):
                item.made.append(made)
            _forget(desk, free, row, 10**6 if item.finished else item.done)
            if item.finished:
                del rows[row]
    return [item.made for item in work]


def _hold(desk: Desk, free: dict[str, deque[int]], row: int, start: int, end: int) -> None:
    """Give a row the pages of [start, end) that it does not have."""
    size = desk.runner.sizes.page_size
    for page in range(start // size, (end - 1) // size + 1):
        if not desk.full[row, page]:
            desk.full[row, page], desk.swa[row, page] = free["full"].popleft(), free["swa"].popleft()


def _forget(desk: Desk, free: dict[str, deque[int]], row: int, position: int) -> None:
    """Take from a row the SWA pages that no window from `position` on reaches; from one past all, every page."""
    size, window = desk.runner.sizes.page_size, desk.runner.spec.window_tokens or 1
    dead = max(0, position - window + 1) // size
    swa = [int(x) for x in desk.swa[row, :dead] if x]
    full = [int(x) for x in desk.full[row] if x] if dead > desk.full.shape[1] else []
    desk.runner.poison(full, swa)
    free["full"].extendleft(full)
    free["swa"].extendleft(swa)
    desk.swa[row, :dead] = 0
    if full:
        desk.full[row] = 0
