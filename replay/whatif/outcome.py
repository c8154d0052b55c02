"""What a what-if comes to: the recorded run and its redrives beside each other, and why their figures are estimates (J17).

Rule: data, and words about data; nothing here reads or drives.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from radixledger.cache.traits import FOLDED, TRAITS
from radixledger.journal.events import Opened
from radixledger.replay.counted import counted
from radixledger.replay.whatif.meter import Figures
from radixledger.replay.whatif.strayed import Strayed


class Outcome(Struct):
    """One configuration, all ranks together.

    opened: of the first rank. bound_tokens: prompt tokens that Belady's rule would have found in its FULL pages, of
    `asked_tokens`: of the requests that came in, as they came in. estimated: why its figures are no more than an
    estimate; empty where the schedule would have been the same. cpu_seconds: what sending it took; peak_bytes: of the largest of its processes.
    """

    name: str
    settings: dict[str, str]
    opened: Opened
    figures: Figures
    strayed: Strayed
    estimated: list[str]
    broken: list[str]
    same_state: bool | None = None
    """Whether each rank ended in the recorded state; None where the configuration is another one."""
    bound_tokens: int = 0
    asked_tokens: int = 0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0

    @property
    def bound_rate(self) -> float:
        """The hit rate that no order of FULL victims can pass."""
        return self.bound_tokens / self.asked_tokens if self.asked_tokens else 0.0


class Comparison(Struct):
    """A recorded run, the same sent again as it was, and what else was asked for."""

    run: str
    ranks: list[int]
    requests: int
    recorded: Figures
    again: Outcome | None
    """The recorded configuration sent again; None for one that only other servers have."""
    outcomes: list[Outcome]
    notices: list[str]

    @property
    def violations(self) -> int:
        """Of the record and of all redrives together."""
        return self.recorded.violations + sum(each.figures.violations for each in self.sent)

    @property
    def sent(self) -> list[Outcome]:
        """All redrives, the recorded configuration first."""
        return [each for each in (self.again, *self.outcomes) if each is not None]


def why_estimated(
    recorded: Opened, opened: Opened, odd: Sequence[str], strayed: Strayed, steps: tuple[int, int]
) -> Iterator[str]:
    """Each reason in a sentence without its full stop. steps: of the record, and of the redrive."""
    yield from odd
    page, before = opened.config.page_size, recorded.config.page_size
    if page % before:
        yield f"tokens behind the last whole page of {before} are not in the journal, so they are taken for unique"
    if not FOLDED[recorded.route].tree and TRAITS[opened.route].tree:
        yield f"route {recorded.route} does not tell when chunks were kept, so each is taken for kept"
    if is_roomier(recorded, opened):
        yield "there is more room, so a server might have let requests in earlier: when they came is not in the journal"
    if strayed.hit_otherwise:
        differs = f"{counted(strayed.hit_otherwise, 'admission')} found more or less than in the record"
        if steps[0] == steps[1]:
            yield f"{differs}, so a server would have had other batches; they were sent in the {steps[0]:,} recorded steps"
        else:
            yield f"{differs}, so a server would have batched otherwise: {steps[1]:,} steps were sent, {steps[0]:,} were recorded"
    for count, what in (
        (strayed.waited, "came in later than in the record"),
        (strayed.pushed_out, "went back to the queue where the record has no retraction"),
        (strayed.spared, "went on where the record has a retraction"),
        (strayed.refused, "can never fit, and had to be left out"),
        (strayed.unended, "still waited when the schedule was through"),
    ):
        if count:
            yield f"{counted(count, 'request')} {what}"
    if strayed.turned_down:
        yield f"{counted(strayed.turned_down, 'recorded command')} had to be refused"
    if strayed.unkept:
        yield f"{counted(strayed.unkept, 'chunk')} could not be kept for want of state slots"
    if strayed.unknown_jobs:
        yield (
            f"the keys of {counted(strayed.unknown_pages, 'page')} of {counted(strayed.unknown_jobs, 'request')} are not in the "
            f"journal, so they are taken for unique"
        )


def is_roomier(recorded: Opened, opened: Opened) -> bool:
    """Whether somebody who had to wait for pages in the record might not have had to."""
    old, new = recorded.config, opened.config
    return (
        new.full_pages * new.page_size > old.full_pages * old.page_size
        or (old.swa_pages > 0 and new.swa_pages == 0)
        or new.swa_pages * new.page_size > old.swa_pages * old.page_size
        or opened.window_need < recorded.window_need
        or (old.formula, new.formula) == ("rfc", "tight")
    )
