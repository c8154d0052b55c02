"""A copy of a plain journal whose tokens are keyed hashes, to hand to somebody who must not read prompts.

Ownership stays as it was: numbers, times, pages, locks and recorded digests are the same, and replay comes to the same verdict
(N18). Not hidden: request ids, labels, lengths and times. Rule: what a hash hides is never left beside it: the snapshots' images
are rewritten like the events, or left out.
"""

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from radixledger.cache.image import image, restore
from radixledger.journal.errors import ReaderError
from radixledger.journal.events import AnyEvent, Opened
from radixledger.journal.frame import BODY_BYTES_MAX
from radixledger.journal.reader import JournalReader
from radixledger.journal.recover import Recovered, Rewrite, demand_absent, recover
from radixledger.journal.redact import HASHED, Redactor
from radixledger.journal.units import Rank


class NotToRedact(ReaderError):
    """The journal of a rank can be read, and there are no tokens in it that hashes could be made of."""


class AlreadyHashed(NotToRedact):
    """The journal holds no tokens: its keys are hashes already."""

    def __init__(self, run: Path, rank: Rank, key_id: str) -> None:
        super().__init__(
            f"{run}, rank {rank}: keys are hashes already, under the key {key_id or 'that nobody named'}"
        )
        self.rank, self.key_id = rank, key_id


class NoKeys(NotToRedact):
    """No server has pages of keys that are so long, so there is nothing that hashes could be made of."""

    def __init__(self, run: Path, rank: Rank, stride: int) -> None:
        super().__init__(
            f"{run}, rank {rank}: a page of key is said to be {stride} bytes; whole int32 words are needed"
        )
        self.rank, self.stride = rank, stride


def demand_tokens(run: Path, rank: Rank, to: Path) -> Opened:
    """What a rank was opened with that holds tokens, and may be copied into `to`; before anything, a key too, is made.

    Raises RunExists, AlreadyHashed, NoKeys and whatever reading raises.
    """
    demand_absent(to, rank)
    opened = JournalReader(run, rank, salvage=True).opened
    if opened.redaction == HASHED:
        raise AlreadyHashed(run, rank, opened.key_id)
    if opened.stride <= 0 or opened.stride % 4 or opened.stride > BODY_BYTES_MAX:
        raise NoKeys(run, rank, opened.stride)
    return opened


def redact(
    run: Path, rank: Rank, to: Path, key: bytes, advance: Callable[[int], None] = lambda _: None
) -> Recovered:
    """Copy one rank of `run` into the run `to` with its keys and namespaces hashed under `key`.

    Raises AlreadyHashed, and as `journal.recover.recover`. What is damaged is a `Gap` in the copy.
    """
    opened = demand_tokens(run, rank, to)
    redactor = Redactor(key, opened.stride)

    def event(each: AnyEvent) -> AnyEvent:
        hashed = redactor.redact(each)
        if isinstance(hashed, Opened):
            return replace(hashed, redaction=HASHED, key_id=redactor.key_id)
        return hashed

    def rewritten(old: bytes) -> bytes:
        state = restore(old)
        state.opened = replace(state.opened, redaction=HASHED, key_id=redactor.key_id)
        return image(state, redactor)

    return recover(run, rank, to, advance, rewrite=Rewrite(event, rewritten))
