"""Copies between two arrays in memory, and a thread that carries them: a host tier without a device.

For servers whose pools are numpy arrays, and for tests, which stamp pages and look for the stamps. A tier over device
arrays needs a `Copier` of its own; the thread can be the same.
"""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radixledger.cache.host_tier import Arrival
from radixledger.journal.moves import pages_of
from radixledger.journal.units import Pages, TransferId

Contents = NDArray[Any]
"""Contents of pages, [n, ...]: one row a page."""


class MemoryCopier:
    """A `Copier` between `device`, [full_pages + 1, ...], and `host`, [host_pages + 1, ...]; row i is page i."""

    def __init__(self, device: Contents, host: Contents) -> None:
        if device.shape[1:] != host.shape[1:] or device.dtype != host.dtype:
            raise ValueError(
                f"pages of {device.dtype}{device.shape[1:]} do not fit into {host.dtype}{host.shape[1:]}"
            )
        self.device = device
        self.host = host

    def gather(self, full: Pages, /) -> Contents:
        """A copy of FULL pages."""
        return np.take(self.device, pages_of(full), axis=0)

    def store(self, parcel: Contents, host: Pages, /) -> None:
        """HOST pages are the parcel's from now on."""
        self.host[pages_of(host)] = parcel

    def fetch(self, host: Pages, /) -> Contents:
        """A copy of HOST pages."""
        return np.take(self.host, pages_of(host), axis=0)

    def flush(self, parcel: Contents, full: Pages, /) -> None:
        """FULL pages are the parcel's from now on."""
        self.device[pages_of(full)] = parcel


class ThreadCarrier:
    """A `Carrier` on one thread of its own, which does one job after the other until it is closed."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[TransferId, Callable[[], object]] | None] = SimpleQueue()
        self._arrivals: SimpleQueue[Arrival] = SimpleQueue()
        self._under_way = 0
        self._thread = Thread(target=self._work, name="radixledger-host-copies", daemon=True)
        self._thread.start()

    def carry(self, transfer: TransferId, job: Callable[[], object], /) -> None:
        """Queue a job."""
        self._under_way += 1
        self._jobs.put((transfer, job))

    def arrived(self, *, wait: bool) -> list[Arrival]:
        """What is over since the last call."""
        found: list[Arrival] = []
        while self._under_way and (not self._arrivals.empty() or (wait and not found)):
            found.append(self._arrivals.get())
            self._under_way -= 1
        return found

    def close(self) -> None:
        """Let what is queued be done, and end the thread."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (order := self._jobs.get()) is not None:
            transfer, job = order
            try:
                self._arrivals.put(Arrival(transfer, job(), None))
            except Exception as error:  # noqa: BLE001 — it comes back with the job
                self._arrivals.put(Arrival(transfer, None, error))
