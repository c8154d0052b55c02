"""Progress over the frames of a journal, rank by rank."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from radixledger.journal.errors import JournalError
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.seek import Watch
from radixledger.tools.console import progress

WHOLE = ("", "reading", "collecting")
"""Work that goes over a whole journal, so that it is known how far it is."""


@contextmanager
def watched(run: Path, rank: Rank, what: str = "") -> Iterator[Watch]:
    """A progress bar over the frames of a rank, whose events it counts; `what` the library does with them."""
    try:
        total: int | None = JournalReader(run, rank).last_seq if what in WHOLE else None
    except JournalError:
        total = None
    with progress(f"rank {rank}, {what}" if what else f"rank {rank}", total) as advance:

        def watch(frames: Iterable[Frame]) -> Iterator[Frame]:
            for frame in frames:
                yield frame
                advance(len(frame.events))

        yield watch
