"""What an account of reuse cannot know, in words: the same behind `replay lost-reuse` and beside an answer in SQL."""

from collections.abc import Iterator
from typing import Protocol

from radixledger.replay.known import unknown_words
from radixledger.replay.reuse.reuse import Reuse
from radixledger.tools.console import count_of, count_text


class Unknown(Protocol):
    """The counts of an account: a `Reuse` of replay has them, and a `Fold` of analytics."""

    @property
    def begins_at(self) -> int:
        """The event that reading began behind; 0 for the first."""

    @property
    def missing(self) -> int:
        """Events that are lost."""

    @property
    def forgotten(self) -> int:
        """Pages that were gone longest."""

    @property
    def unlooked(self) -> int:
        """Admissions without a match."""


def unknown(told: Unknown) -> Iterator[str]:
    """What an account of reuse cannot know, a sentence for each thing."""
    if told.begins_at:
        yield f"what was lost before event {told.begins_at} is counted as never_cached, for the journal begins behind it"
    if told.missing:
        yield (
            f"{count_of(told.missing, 'event')} {'is' if told.missing == 1 else 'are'} missing: what {'it' if told.missing == 1 else 'they'} took is not named, and of what was asked behind them, until the"
            " state is known again, nothing but hits: the rest is not_known"
        )
    if told.forgotten:
        yield f"{count_text(told.forgotten)} pages that were gone longest were forgotten"
    if told.unlooked:
        yield f"{count_of(told.unlooked, 'admission')} had no match in the journal, and are judged by their whole pages"


def blind(told: Reuse) -> Iterator[str]:
    """Where a fold did not know the state, a sentence for each stretch."""
    for seq in told.not_known_from:
        yield f"{unknown_words(seq)}; of what was asked there only hits are told"
