"""A rank that is asked by commands: one that can be taken back to a state it had.

Rule: what it decides is what any rank of its revision decides.
"""

from typing import Any

from radixledger.cache.decide import faces as decide_faces
from radixledger.cache.face_rank import FaceRank
from radixledger.cache.state import State
from radixledger.journal.units import RequestId


class PlayedRank(FaceRank):
    """A rank with rows of a server's own and requests of ours."""

    def seat(self, *arguments: Any) -> RequestId:
        """Admit a request in a row, behind a path that is locked."""
        return self._run(decide_faces.seat(self.state, *arguments))

    @property
    def stopped(self) -> bool:
        """Whether it takes no more commands."""
        return self._poison is not None

    def become(self, state: State) -> None:
        """Go on from another state of the same rank."""
        state.components = self.state.components
        self.state, self._poison = state, None
