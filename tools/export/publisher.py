"""A ZeroMQ publisher of batches that can be asked for the past: the sockets that subscribers of vLLM and SGLang expect.

    PUB     topic, number, batch                              8 bytes, big-endian; batches are numbered from 0
    ROUTER  a number in: every batch from there on out, each as number, batch; then number -1 with nothing behind it

Rule: nothing is ever too old to be asked for. The last batches are kept; for older ones the journal is read again.
"""

from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

import zmq

KEPT = 10_000
END = (-1).to_bytes(8, "big", signed=True)
SUBSCRIBED = b"\x01"


class Publisher:
    """Bound to `endpoint`, and to `replay_endpoint` if given; `again` gives all batches from the first on.

    Raises zmq.ZMQError where an endpoint cannot be bound.
    """

    def __init__(
        self, endpoint: str, replay_endpoint: str | None, topic: str, again: Callable[[], Iterable[bytes]]
    ) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._topic = topic.encode()
        self._again = again
        self._kept: deque[bytes] = deque(maxlen=KEPT)
        self.published = 0
        """Batches so far: the number of the next one."""
        self.replayed = 0
        try:
            self._out = self._bound(zmq.XPUB, endpoint)
            self._replay = self._bound(zmq.ROUTER, replay_endpoint) if replay_endpoint else None
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._out.setsockopt(zmq.XPUB_NODROP, 1)

    def _bound(self, kind: int, endpoint: str) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 2000)
        socket.bind(endpoint)
        return socket

    @property
    def endpoints(self) -> tuple[str, str | None]:
        """Where they are bound: with the port that was chosen, where it was left open."""
        names = [each.getsockopt_string(zmq.LAST_ENDPOINT) for each in (self._out, self._replay) if each]
        return names[0], names[1] if len(names) > 1 else None

    def wait_for_subscriber(self, wait_ms: int) -> bool:
        """Whether somebody subscribed within that time; who comes later asks for what was before."""
        return bool(self._out.poll(wait_ms)) and self._out.recv().startswith(SUBSCRIBED)

    def publish(self, batch: bytes) -> None:
        """Send a batch to all who listen; waits for one who is slow."""
        number = self.published.to_bytes(8, "big")
        self._out.send_multipart((self._topic, number, batch))
        self._kept.append(batch)
        self.published += 1

    def answer(self, wait_ms: int) -> None:
        """Wait so long for questions about the past, and answer those that came."""
        if self._replay is None:
            self._out.poll(wait_ms, 0)
            return
        while self._replay.poll(wait_ms):
            self._answer(self._replay)
            wait_ms = 0

    def _answer(self, socket: zmq.Socket[bytes]) -> None:
        question = socket.recv_multipart()
        if len(question) < 2 or len(question[-1]) != 8:  # a stranger's; there is nothing to tell him
            return
        envelope, start = question[:-1], int.from_bytes(question[-1], "big")
        first_kept = self.published - len(self._kept)
        source: Iterable[bytes] = self._kept if start >= first_kept else self._again()
        first = first_kept if start >= first_kept else 0
        for number, batch in enumerate(source, first):
            if number >= self.published:
                break
            if number >= start:
                socket.send_multipart((*envelope, number.to_bytes(8, "big"), batch))
                self.replayed += 1
        socket.send_multipart((*envelope, END, b""))

    def close(self) -> None:
        """Send what is waiting, for two seconds at most, and let go."""
        self._context.destroy()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
