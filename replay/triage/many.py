"""Many ranks: those that one verdict serves, so that the one that went wrong is not looked for among them.

Rule: only who is clean, was closed and has nothing else to be said of is one of many.
"""

from collections.abc import Sequence

from radixledger.journal.absent import spans
from radixledger.journal.units import Rank
from radixledger.replay.counted import counted
from radixledger.replay.triage.triage import RankTriage

APART = 8
"""Up to so many clean ranks are told each for itself."""


def by_verdict(told: Sequence[RankTriage]) -> tuple[list[RankTriage], list[RankTriage]]:
    """Those to be told each for itself, and those that are alike, in their order."""
    alike = [each for each in told if _is_quiet(each)]
    if len(alike) <= APART:
        return list(told), []
    return [each for each in told if not _is_quiet(each)], alike


def _is_quiet(told: RankTriage) -> bool:
    return told.kind == "clean" and told.ending.closed and not (told.damage or told.report.notices)


def verdict_of_many(alike: Sequence[RankTriage], *, others: bool, one_run: bool) -> str:
    """The one verdict. others: whether there are more ranks; one_run: whether their numbers tell them apart."""
    which = f" ({spans(sorted(Rank(each.rank) for each in alike))})" if one_run else ""
    events = sum(each.report.events for each in alike)
    return (
        f"{'the other' if others else 'all'} {len(alike)} ranks{which}: clean: no law is broken in {counted(events, 'event')};"
        " each was closed by its writer."
    )
