"""Which events of a rank a page tells one by one: all of a short journal; of a long one those that matter.

Around every finding that is kept, the steps of the first page's story, the beginning and the end. Rule: a range is
[first, last]; what a page says of its own detail is read off the packets that were made, not off the wish.
"""

from collections.abc import Iterable, Iterator

from radixledger.replay.verdict import RankReport

Range = tuple[int, int]

DETAIL_EVENTS = 40_000
"""Events at full detail, over all ranks of a page: about 20 bytes each in the file."""

BEFORE_THE_FIRST, BEHIND_THE_FIRST = 4_000, 1_000
BEFORE, BEHIND = 200, 100
AT_THE_BEGINNING, AT_THE_END = 1_000, 10_000
BESIDE_A_STEP = 5


def detail_ranges(report: RankReport, first: int, last: int, budget: int) -> list[Range]:
    """The ranges of a journal that holds events [first, last], in order and apart; `budget` events at most, or so."""
    if last - first < budget:
        return [(first, last)]
    chosen: list[Range] = []
    left = budget
    for begin, end in _wanted(report, first, last):
        begin, end = max(first, begin), min(last, end)
        if begin <= end and left > 0:
            chosen.append((max(begin, end - left), end))
            left -= end - begin + 1
    return _apart(chosen)


def _wanted(report: RankReport, first: int, last: int) -> Iterator[Range]:
    """Ranges, the most important first."""
    seqs = [told.seq for told in report.findings]
    if report.first_frame is not None:
        seqs.insert(0, report.first_frame[0])
    if seqs:
        yield seqs[0] - BEFORE_THE_FIRST, seqs[0] + BEHIND_THE_FIRST
    yield last - AT_THE_END, last
    for step in report.story:
        yield step.seq - BESIDE_A_STEP, step.seq + BESIDE_A_STEP
    for seq in seqs[1:]:
        yield seq - BEFORE, seq + BEHIND
    yield first, first + AT_THE_BEGINNING


def _apart(ranges: Iterable[Range]) -> list[Range]:
    apart: list[Range] = []
    for first, last in sorted(ranges):
        if apart and first <= apart[-1][1] + 1:
            apart[-1] = (apart[-1][0], max(last, apart[-1][1]))
        else:
            apart.append((first, last))
    return apart
