"""What a verification found, as data: for a table, for JSON, for the exit code.

Bounded whatever the journal holds: findings are counted by law, the first ones are kept. Rule: they stand in the order
of `in_order`, and the first of an event is what everybody tells of that event.
"""

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from radixledger.cache.state import Finding
from radixledger.journal.accounts import Pool
from radixledger.journal.frame import Frame
from radixledger.journal.packed import whole_pages
from radixledger.replay.counted import counted
from radixledger.replay.story.blame import LifeStep

KEPT = 32
MISSING = "no_event_is_missing"
"""The name of a gap among findings: they leave half of the places to what an event broke."""
PAGES_KEPT = 64
TEXT_KEPT = 400

FULL_OR_NONE = (Pool.FULL, Pool.FULL.name, "")


class Told(Struct, frozen=True):
    """One finding, with where it stands.

    `lawful_at`: the last event at which what is broken (a law of the whole state, a digest) was seen to hold; None for
    what the event broke on its own account.
    """

    seq: int
    time_ns: int
    step: int
    law: str
    detail: str
    pool: str = ""
    pages: list[int] = []
    expected: int = 0
    found: int = 0
    lawful_at: int | None = None
    by_pages: bool = False
    """It was told behind a gap, by what events say of one page: who else had what is not known there."""
    page_count: int = 0
    """How many pages it is about: `pages` are the first `PAGES_KEPT` of them."""


class RankReport(Struct):
    """The verdict on one rank's journal; counts are of what was compared or checked, not of what failed."""

    run: str
    rank: int
    route: str = ""
    """Whose rules decided; empty where that cannot be read."""
    from_snapshot: int | None = None
    """The event that the folding began behind; None for the first."""
    seq_first: int = 0
    seq_last: int = 0
    time_first_ns: int = 0
    time_last_ns: int = 0
    events: int = 0
    frames: int = 0
    epochs: int = 0
    closed: bool = False
    digests: int = 0
    ledgers: int = 0
    snapshots: int = 0
    whole_checks: int = 0
    """How often every law was asked of the whole state."""
    gaps: int = 0
    lost: int = 0
    lost_at_least: bool = False
    """Whether there may have been more of them: the end of a journal says nothing of what stood behind it."""
    """Events that gaps say are missing."""
    whole_until: int | None = None
    """The last event before the first gap; None where there is none."""
    unjudged: int = 0
    """Events behind a gap, before anything was there again to judge them by."""
    refusals: dict[str, int] = {}
    broken: dict[str, int] = {}
    """Findings by law."""
    findings: list[Told] = []
    first_frame: tuple[int, int] | None = None
    """Where the first finding is of the whole state: the first and last event of the first frame that broke it."""
    story: list[LifeStep] = []
    """What happened to the first page concerned, up to the first finding."""
    notices: list[str] = []
    unreadable: str = ""
    """Why reading ended early; empty where it did not."""

    @property
    def lost_words(self) -> str:
        """How many events are missing, in words: `3 events`, or `at least 1 event`."""
        return f"{'at least ' * self.lost_at_least}{counted(self.lost, 'event')}"

    @property
    def clean(self) -> bool:
        """Whether nothing was found, nothing is missing, and everything could be read (J11)."""
        return not (self.has_findings or self.unreadable)

    @property
    def has_findings(self) -> bool:
        """Whether something was found or is missing in what could be read, however far that was."""
        return bool(self.broken or self.gaps)

    def tell(
        self, finding: Finding, frame: Frame, lawful_at: int | None = None, *, by_pages: bool = False
    ) -> None:
        """Add a finding, in its place; what stands too far behind is not kept."""
        self.broken[finding.law] = self.broken.get(finding.law, 0) + 1
        room = len(self.findings) < (KEPT // 2 if finding.law == MISSING else KEPT)
        if room or (finding.law != MISSING and finding.seq <= self.findings[-1].seq):
            new = replace(told(finding, frame, lawful_at), by_pages=by_pages)
            self.findings = in_order([*self.findings, new])[:KEPT]


Found = TypeVar("Found", Finding, Told)


def in_order(findings: Sequence[Found]) -> list[Found]:
    """Event by event; of one event law by law as they were told, and of one law what is about FULL pages first."""
    laws: dict[tuple[int, str], int] = {}
    for each in findings:
        laws.setdefault((each.seq, each.law), len(laws))
    return sorted(
        findings, key=lambda each: (each.seq, laws[each.seq, each.law], each.pool not in FULL_OR_NONE)
    )


def told(finding: Finding, frame: Frame, lawful_at: int | None = None) -> Told:
    """A finding as a report keeps it: what a hostile journal can make long is cut."""
    pages = whole_pages(finding.pages, PAGES_KEPT)
    count = len(finding.pages) >> 2 if pages else 0
    return Told(
        seq=finding.seq,
        time_ns=frame.time_ns,
        step=frame.step,
        law=finding.law,
        detail=finding.detail[:TEXT_KEPT],
        pool=Pool(finding.pool).name if finding.pages and finding.pool in list(Pool) else "",
        pages=pages,
        expected=finding.expected,
        found=finding.found,
        lawful_at=lawful_at,
        page_count=count,
    )
