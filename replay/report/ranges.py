"""Which events of a rank a page tells one by one: all of a short journal; of a long one those that matter.

Around every finding that is kept, what led to the first one and came of it, the beginning and the end. Rule: a range is
[first, last]; what a page says of its own detail is read off the packets that were made, not off the wish.
"""

from collections.abc import Iterable, Iterator

from radixledger.replay.triage.triage import RankTriage

Range = tuple[int, int]

BESIDE_A_STEP = 5


def detail_ranges(told: RankTriage, first: int, last: int, budget: int) -> list[Range]:
    """The ranges of a journal that holds events [first, last], in order and apart; `budget` events at most, or so."""
    if last - first < budget:
        return [(first, last)]
    chosen: list[Range] = []
    left = budget
    for begin, end in _wanted(told, first, last, budget):
        begin, end = max(first, begin), min(last, end)
        if end - begin < left:
            chosen.append((begin, end))
            left -= end - begin + 1
    return _apart(chosen)


def _wanted(told: RankTriage, first: int, last: int, budget: int) -> Iterator[Range]:
    """Ranges, the most important first; each a share of the budget, so that those of 32 findings fit."""
    seqs = [each.seq for each in told.report.findings]
    if told.report.first_frame is not None:
        seqs.insert(0, told.report.first_frame[0])
    seqs += [each.seq for each in told.ending.turned_down]
    explained = told.explained
    if explained is not None:
        seqs.insert(0, explained.first.seq)
    if seqs:
        yield seqs[0] - budget // 10, seqs[0] + budget // 40
    yield last - budget // 4, last
    if explained is not None:
        for step in (*explained.slice.events, *explained.after):
            yield step.seq - BESIDE_A_STEP, step.seq + BESIDE_A_STEP
    for seq in seqs[1:]:
        yield seq - budget // 200, seq + budget // 400
    yield first, first + budget // 40


def _apart(ranges: Iterable[Range]) -> list[Range]:
    apart: list[Range] = []
    for first, last in sorted(ranges):
        if apart and first <= apart[-1][1] + 1:
            apart[-1] = (apart[-1][0], max(last, apart[-1][1]))
        else:
            apart.append((first, last))
    return apart
