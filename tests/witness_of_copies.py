"""What the live state and the naive model have to agree on where there is a host tier: part of `witnesses`."""

from radixledger.cache.state import State
from radixledger.journal.accounts import FREE, Kind
from radixledger.journal.moves import pages_of

from .model import TREE
from .model_host import HostModel
from .model_tree import Prefix


def image_of_copies(state: State) -> tuple[object, ...]:
    """Everything that a state holds of copies, as plain values."""
    book = state.host
    nodes = [(node.id, node.host, node.backup, node.hits, node.demoted) for node in state.nodes.values()]
    transfers = [
        (number, each.id, each.node, each.pages, each.left, each.gathered, each.receipt)
        for number, each in state.transfers.items()
    ]
    return (
        book.account.tobytes(), book.since.tobytes(), bytes(book.free), tuple(book.held), book.digest, nodes, transfers,
        state.next_transfer, state.host_bare, state.host_protected,
    )  # fmt: skip


def agree_on_copies(state: State, model: HostModel, paths: dict[int, Prefix]) -> None:
    """Owners of HOST pages, copies by prefix, uses, transfers, who is older than whom, and what every page holds."""
    owners = [TREE if account & 7 == Kind.TREE else account for account in state.host.account[1:].tolist()]
    assert owners == list(model.host.values()), "HOST owners"
    free = sorted(pages_of(bytes(state.host.free)).tolist())
    assert free == [page for page, held in model.host.items() if held == FREE]
    found, uses = {}, {}
    for number, path in paths.items():
        node = state.nodes[number]
        for at in range(node.pages):
            prefix = path[: node.end - node.pages + at + 2]
            uses[prefix] = node.hits
            if node.host:
                found[prefix] = (int(pages_of(node.host)[at]), node.backup)
    assert found == {prefix: (copy.page, copy.transfer) for prefix, copy in model.tree.copies.items()}
    assert uses == model.tree.uses
    known = {number: (trip.loads, trip.gathered) for number, trip in model.trips.items()}
    assert {number: (each.loads, each.gathered) for number, each in state.transfers.items()} == known
    assert state.host_protected == model.tree.alone(held=True)
    assert state.host_evictable == model.tree.alone(held=False)
    stamps = model.tree.idle_copies()
    order = sorted((state.nodes[number].tick, number) for number, path in paths.items() if path in stamps)
    ages = [stamps[paths[number]] for _, number in order]
    assert ages == sorted(ages), "order of copies"
    assert model.contents_are_right(), "a page does not hold what its place says"
