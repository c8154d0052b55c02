"""What the parts of a page share: texts made safe, and the way to an event.

Rule: a text that a journal could have brought gets onto a page through `shown` alone.
"""

import unicodedata
from html import escape

from msgspec import Struct

from radixledger.replay.report.track import Track
from radixledger.replay.triage.triage import RankTriage
from radixledger.replay.verdict import RankReport

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class Sheet(Struct):
    """One rank on a page: whose it is, what was collected and found, and its data for the browser (empty: there is none)."""

    label: str
    track: Track
    told: RankTriage
    bundle: str

    @property
    def report(self) -> RankReport:
        """What was found, event by event."""
        return self.told.report

    @property
    def first_seq(self) -> int:
        """The event to begin with; 0 where none stands out."""
        return first_seq_of(self.told)


def first_seq_of(told: RankTriage) -> int:
    """The event that a verdict is about: the first wrong one, or the first that was turned down; 0 for none."""
    if told.explained is not None:
        return told.explained.first.seq
    return told.ending.turned_down[0].seq if told.kind == "turned down" else 0


def shown(text: str) -> str:
    """A text of anybody's as HTML: nothing in it is markup, and what would change how it reads is made visible."""
    return escape("".join("\ufffd" if unicodedata.category(each) in _UNSEEN else each for each in text))


def law(name: str) -> str:
    """The name of a law, which may be broken into lines between its words."""
    return f"<code>{shown(name).replace('_', '_<wbr>')}</code>"


def go(place: int, seq: int, text: str) -> str:
    """A way to an event, where scripts are on."""
    return f'<button type="button" class="link go" data-track="{place}" data-seq="{seq}">{text}</button>'
