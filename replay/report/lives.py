"""When requests were admitted and how they ended, over a whole journal: the latest so many of them."""

from collections import OrderedDict

from msgspec import Struct

from radixledger.cache.state import State
from radixledger.journal.events import Aborted, Admitted, Finished, Retracted
from radixledger.journal.frame import Frame

TEXT_MAX = 400
"""What is longer is cut: a text of a hostile journal may be anything."""


class Life(Struct, array_like=True):
    """When a request was admitted and how it ended, by event; `end` is 0 for one that had not."""

    request: int
    rid: str
    begin: int
    prompt: int
    prefix: int
    end: int = 0
    how: str = ""


class Lives:
    """Collects lives, `most` at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lives: OrderedDict[int, Life] = OrderedDict()
        self.left_out = 0
        """How many earlier ones were given up."""

    @property
    def kept(self) -> list[Life]:
        """The lives that are kept, in the order of admission."""
        return list(self._lives.values())

    def begin(self, state: State) -> None:
        """The requests that were alive before the first event."""
        for request in state.requests.values():
            self._keep(Life(request.id, request.rid[:TEXT_MAX], 0, request.prompt, request.prefix))

    def take(self, frame: Frame) -> None:
        """Look at the events of a frame."""
        for seq, event in enumerate(frame.events, frame.seq_first):
            if isinstance(event, Admitted):
                self._keep(Life(event.request, event.rid[:TEXT_MAX], seq, event.prompt, event.prefix))
            elif isinstance(event, Finished | Retracted | Aborted):
                life = self._lives.get(event.request)
                if life is not None:
                    life.end, life.how = seq, type(event).__name__

    def _keep(self, life: Life) -> None:
        self._lives[life.request] = life
        self._lives.move_to_end(life.request)
        if len(self._lives) > self._most:
            self._lives.popitem(last=False)
            self.left_out += 1
