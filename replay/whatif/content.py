"""What a recorded job's key is in pages of another size, and what stands in where nobody told.

A journal with hashes knows pages of one size: several of them side by side are a page of a multiple of it, and no finer
page can be made of them. A journal with token ids knows every whole page of the recorded size, so any size can be
cut from it. Rule: what is made up is different from everything else and the same in every configuration, so that it hits nothing.
"""

import hashlib

import numpy as np
from msgspec import Struct

from radixledger.cache.keys import KEY_MODES, bigram_key
from radixledger.cache.window import key_length
from radixledger.journal.events import Opened
from radixledger.journal.redact import PLAIN
from radixledger.journal.units import TokenCount
from radixledger.replay.whatif.schedule import Job


class NoFiner(ValueError):
    """Pages that cannot be made of the recorded hashes."""


class Content(Struct, frozen=True):
    """How the keys of one recorded rank are cut for a redrive.

    unit: bytes per recorded page (hashes) or per key unit (token ids). per: tokens that one unit stands for. stride: bytes per page
    of the redrive.
    """

    hashed: bool
    unit: int
    per: int
    recorded_page: int
    lookahead: TokenCount
    pairs: bool
    stride: int
    salt: bytes

    def units(self, tokens: int) -> int:
        """The units of the key of so many tokens."""
        return key_length(TokenCount(tokens), self.lookahead) // self.per

    def unknown_pages(self, job: Job) -> int:
        """Recorded pages of a job's key that nobody told."""
        known = len(job.key) // self.unit * self.per // self.recorded_page
        return key_length(TokenCount(job.tokens), self.lookahead) // self.recorded_page - known

    def whole(self, number: int, job: Job) -> bytes:
        """The key of all tokens that a job reached, or of its prompt where that is longer."""
        needed = self.units(max(job.tokens, job.prompt)) * self.unit
        if len(job.key) >= needed:
            return job.key[:needed]
        return job.key + self._made_up(number, job.key[-4:], needed - len(job.key))

    def upto(self, key: bytes, tokens: int) -> bytes:
        """The part of a key that is the key of its first tokens."""
        return key[: self.units(tokens) * self.unit]

    def given(self, key: bytes, job: Job) -> bytes:
        """The part of a job's key that the cache was given at its end: all of it, unless whole pages were kept back."""
        pages = key_length(TokenCount(job.tokens), self.lookahead) // self.recorded_page
        if job.given >= pages:
            return self.upto(key, job.tokens)
        return key[: job.given * self.recorded_page // self.per * self.unit]

    def _made_up(self, number: int, last_token: bytes, size: int) -> bytes:
        seed = hashlib.shake_256(self.salt + number.to_bytes(8, "little"))
        if not self.pairs:
            return seed.digest(size)
        tokens = np.frombuffer(seed.digest(size // 2 + 4), "<i4").copy()
        if last_token:
            tokens[0] = int.from_bytes(last_token, "little", signed=True)
        return bigram_key(tokens)


def content_for(recorded: Opened, page_size: int) -> Content:
    """How keys of a recorded rank become keys of pages of `page_size` tokens; raises NoFiner where they cannot."""
    mode, page = KEY_MODES[recorded.config.key_mode], recorded.config.page_size
    salt = f"{recorded.run}/{recorded.rank}/".encode()
    unit = mode.unit_bytes
    if recorded.redaction == PLAIN and recorded.stride == unit * page:
        return Content(False, unit, 1, page, mode.lookahead, bool(mode.lookahead), unit * page_size, salt)
    if page_size % page:
        raise NoFiner(
            f"{page_size} tokens are no multiple of {page}: this journal knows a page of {page} tokens by one number; a run "
            f"recorded with --tokens plain can be cut into pages of any size"
        )
    stride = recorded.stride * (page_size // page)
    return Content(True, recorded.stride, page, page, mode.lookahead, False, stride, salt)
