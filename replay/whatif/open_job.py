"""A recorded request whose end has not been seen, and where its key is read.

Rule: of several attempts at one request, what the longest one told counts.
"""

from radixledger.cache.state import State
from radixledger.journal.events import Admitted
from radixledger.replay.schedule.paths import path_to
from radixledger.replay.whatif.believable import longest
from radixledger.replay.whatif.schedule import Job


class OpenJob:
    """A job whose end has not been seen."""

    __slots__ = ("key", "namespace", "number", "owed", "priority", "prompt", "prompt_now", "rid", "tokens")

    def __init__(self, number: int, event: Admitted) -> None:
        self.number, self.rid, self.namespace = number, event.rid, event.namespace
        self.priority, self.prompt, self.prompt_now = event.priority, event.prompt, event.prompt
        self.tokens, self.key = 0, b""
        self.owed = False
        """Whether its last chunk has not been given to the cache as far as anybody told."""

    def reached(self, tokens: int, key: bytes) -> None:
        """It was so long, and this much of its key was known then."""
        self.tokens = max(self.tokens, tokens)
        if len(key) > len(self.key):
            self.key = key

    def job(self, given: int) -> Job:
        """What stands in the schedule; `given` pages of its key were given to the cache at its end, -1 for no such end."""
        return Job(self.rid, self.namespace, self.priority, self.prompt, self.tokens, self.key, given)


def known_length(state: State, request: int) -> int:
    """The tokens of a live request, and no more than its row holds."""
    return min(int(state.rows.length[state.row_of(request)]), longest(state))


def known_key(state: State, request: int) -> bytes:
    """The key of what the tree holds of a live request."""
    found = state.requests.get(request)
    return path_to(state, found.node) if found is not None else b""


def one(number: int) -> bytes:
    """A packed int32 column of one number."""
    return number.to_bytes(4, "little")
