"""The commands of a rank about copies on the host; `HostTier` calls them and carries out what they decide.

Rule: each is one call of a decider of `decide.host`; a rank without a host tier refuses them.
"""

from radixledger.cache.arguments import number
from radixledger.cache.decide import host as decide_host
from radixledger.cache.decide import host_room as decide_host_room
from radixledger.cache.decide.host import Copy
from radixledger.cache.shell import Shell
from radixledger.journal.units import NodeId, TransferId


class HostCommands(Shell):
    """What a rank can be asked about copies."""

    def write_through(self, node: NodeId) -> list[Copy]:
        """Begin to back up what of the path to `node` was used often enough, parents first, as far as there is room."""
        return self._run(decide_host.write_through(self.state, NodeId(number(node, "node"))))

    def write_back(self) -> Copy | None:
        """Begin to back up the leaf that FULL pressure takes next; None if there is nothing to do, or no room."""
        return self._run(decide_host.write_back(self.state))

    def gathered(self, transfer: TransferId) -> None:
        """The FULL pages of a backup have been read; they may be given up from now on."""
        self._run(decide_host.gathered(self.state, TransferId(number(transfer, "transfer"))))

    def end_backup(self, transfer: TransferId, landed: bool) -> None:
        """A backup is over, well or not."""
        self._run(decide_host.end_backup(self.state, TransferId(number(transfer, "transfer")), bool(landed)))

    def evict_copies(self, pages: int) -> int:
        """Ask the host tier for free pages; the answer is how many it gained."""
        return self._run(decide_host_room.evict_copies(self.state, number(pages, "pages")))

    def load_back(self, node: NodeId) -> Copy:
        """Begin to load the FULL tombstones that end at `node`; PoolShort if FULL has too few free pages."""
        return self._run(decide_host.load_back(self.state, NodeId(number(node, "node"))))

    def end_load(self, transfer: TransferId, landed: bool) -> None:
        """A load is over, well or not; well only while no step runs."""
        self._run(decide_host.end_load(self.state, TransferId(number(transfer, "transfer")), bool(landed)))
