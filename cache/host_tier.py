"""The host tier at work: what the rank decides about copies is carried out here, on two threads.

Gathering from and flushing to the device happens on the caller's thread, in the order of the caller's device work; the
slow way to and from host memory on a carrier's. Rules: no decision stands here, and none is made on the carrier's
thread; a copy's end is told to the rank by the caller's thread alone, once (B150); pages that a carrier may still touch
stay in flight until it has said that it is done, wanted or not (B19).
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from radixledger.cache.decide.eviction import Gain
from radixledger.cache.decide.host import Copy
from radixledger.cache.locks import resident_end
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import Busy
from radixledger.journal.units import NodeId, Pages, TransferId

Parcel = TypeVar("Parcel")


class Copier(Protocol[Parcel]):
    """Moves contents of pages; knows their layout and nothing of who holds them. A parcel is contents on their way."""

    def gather(self, full: Pages, /) -> Parcel:
        """Read FULL pages on the device; what is written to them later is not in the parcel. Caller's thread."""

    def store(self, parcel: Parcel, host: Pages, /) -> None:
        """Write a parcel to HOST pages; slow. Carrier's thread."""

    def fetch(self, host: Pages, /) -> Parcel:
        """Read HOST pages; slow. Carrier's thread."""

    def flush(self, parcel: Parcel, full: Pages, /) -> None:
        """Write a parcel to FULL pages on the device, while no step runs. Caller's thread."""


class Arrival(NamedTuple):
    """A job that is over: what it returned, or why it failed."""

    transfer: TransferId
    result: object
    error: Exception | None


class Carrier(Protocol):
    """Carries out jobs elsewhere, in any order; whatever they raise comes back with them."""

    def carry(self, transfer: TransferId, job: Callable[[], object], /) -> None:
        """Take a job; returns at once."""

    def arrived(self, *, wait: bool) -> list[Arrival]:
        """The jobs that are over since the last call; with `wait`, at least one if any is not."""


class Ended(NamedTuple):
    """A copy whose end was told to the rank."""

    transfer: TransferId
    landed: bool
    error: Exception | None


class HostTier(Generic[Parcel]):
    """Copies of one rank's FULL pages: written through or back, loaded again. Calls come from one thread.

    Raises what the rank raises; a copy that fails is no exception but an `Ended`.
    """

    def __init__(self, rank: RankCache, copier: Copier[Parcel], carrier: Carrier) -> None:
        self.rank = rank
        self._copier = copier
        self._carrier = carrier
        self._loads: dict[TransferId, Copy] = {}
        self._waiting: list[Arrival] = []
        self._unwanted: set[TransferId] = set()

    def used(self, node: NodeId) -> list[TransferId]:
        """A path was used up to `node`: write through what is due; the backups that began."""
        if self.rank.state.config.host_write != "through":
            return []
        return [copy.transfer for copy in self.rank.write_through(node) if self._send(copy)]

    def evict(self, full_pages: int) -> Gain:
        """Ask the tree for free FULL pages; where copies are written back, each victim is read before it goes."""
        if self.rank.state.config.host_write != "back":
            return self.rank.evict(full_pages, 0)
        gained = 0
        while gained < full_pages:
            copy = self.rank.write_back()
            if copy is not None:
                self._send(copy)
            gain = self.rank.evict(1, 0).full
            if not gain:
                break
            gained += gain
        return Gain(gained, 0)

    def load(self, node: NodeId) -> TransferId:
        """Begin to load the path to `node` back; its receipt is the load's until that has ended.

        The path is locked while room is made. Raises PoolShort, with no load begun, if there is not enough.
        """
        rank = self.rank
        receipt = rank.lock(node)
        try:
            found = rank.state.nodes[node]
            missing = found.end - resident_end(found) - rank.state.full.available
            if 0 < missing <= rank.state.full_evictable:
                self.evict(missing)
            copy = rank.load_back(node)
        finally:
            rank.unlock(receipt)
        self._loads[copy.transfer] = copy
        self._carrier.carry(copy.transfer, lambda: self._copier.fetch(copy.host))
        return copy.transfer

    def cancel(self, transfer: TransferId) -> None:
        """Nobody wants this copy any more: it ends as failed, once its carrier has let go of its pages (B150)."""
        if transfer in self.rank.state.transfers:
            self._unwanted.add(transfer)

    def settle(self, *, wait: bool = False) -> list[Ended]:
        """Tell the rank which copies have ended; a load lands only while no step runs, else it waits for the next call."""
        arrivals = self._waiting + self._carrier.arrived(wait=wait and not self._waiting)
        self._waiting = []
        ended = []
        for arrival in arrivals:
            if arrival.transfer in self._loads and self.rank.state.running:
                self._waiting.append(arrival)
            else:
                ended.append(self._end(arrival))
        return ended

    def drain(self) -> list[Ended]:
        """Wait until no copy is under way. Raises Busy if a load has to wait for a step."""
        ended = []
        while self.rank.state.transfers:
            if self._waiting and self.rank.state.running:
                raise Busy(
                    f"step {next(iter(self.rank.state.running))} is running: a load lands between two steps"
                )
            found = self.settle(wait=True)
            if not found and not self._waiting:
                raise Busy(f"copies {', '.join(map(str, self.rank.state.transfers))} were not begun here")
            ended += found
        return ended

    def flush(self) -> int:
        """Empty the tree and the host tier of an idle rank, after its last copy has ended."""
        self.drain()
        return self.rank.flush()

    def _send(self, copy: Copy) -> bool:
        """Gather a backup here and now, and let it be stored; False if it could not be gathered."""
        try:
            parcel = self._copier.gather(copy.full)
        except Exception:  # noqa: BLE001 — whatever a copier raises, its copy has failed
            self.rank.end_backup(copy.transfer, False)
            return False
        self.rank.gathered(copy.transfer)
        self._carrier.carry(copy.transfer, lambda: self._copier.store(parcel, copy.host))
        return True

    def _end(self, arrival: Arrival) -> Ended:
        transfer, error = arrival.transfer, arrival.error
        unwanted = transfer in self._unwanted
        self._unwanted.discard(transfer)
        load = self._loads.pop(transfer, None)
        if load is None:
            landed = error is None and not unwanted
            self.rank.end_backup(transfer, landed)
            return Ended(transfer, landed, error)
        if error is None and not unwanted:
            error = self._flushed(arrival, load)
        landed = error is None and not unwanted
        self.rank.end_load(transfer, landed)
        return Ended(transfer, landed, error)

    def _flushed(self, arrival: Arrival, load: Copy) -> Exception | None:
        try:
            self._copier.flush(arrival.result, load.full)  # type: ignore[arg-type]  # what fetch returned
        except Exception as error:  # noqa: BLE001 — as above
            return error
        return None
