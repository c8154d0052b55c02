"""What the parts of a page share: texts made safe, counts in words, and the way to an event.

Rule: a text that a journal could have brought gets onto a page through `shown` alone.
"""

import unicodedata
from html import escape

from msgspec import Struct

from radixledger.replay.report.track import Track
from radixledger.replay.verdict import RankReport

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class Sheet(Struct):
    """One rank on a page: whose it is, what was collected and found, and its data for the browser (empty: there is none)."""

    label: str
    track: Track
    report: RankReport
    bundle: str


def shown(text: str) -> str:
    """A text of anybody's as HTML: nothing in it is markup, and what would change how it reads is made visible."""
    return escape("".join("\ufffd" if unicodedata.category(each) in _UNSEEN else each for each in text))


def law(name: str) -> str:
    """The name of a law, which may be broken into lines between its words."""
    return f"<code>{shown(name).replace('_', '_<wbr>')}</code>"


def count(number: int, noun: str) -> str:
    """A count with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def go(place: int, seq: int, text: str) -> str:
    """A way to an event, where scripts are on."""
    return f'<button type="button" class="link go" data-track="{place}" data-seq="{seq}">{text}</button>'
