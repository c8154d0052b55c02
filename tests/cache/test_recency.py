"""Who is older than whom after cuts and removals, and which losses count as evictions."""

from radixledger.cache.rank import RankCache
from radixledger.cache.slices import Slice
from radixledger.cache.state import Node
from radixledger.journal.accounts import request_account
from radixledger.journal.causes import Operation
from radixledger.journal.units import UNBOUND, Pages

from ..machine import opened
from ..model_tree import Shape
from ..witnesses import Tape


def rank_of(shape: Shape) -> RankCache:
    tape = Tape(opened(shape))
    return RankCache(tape.opened, tape)


def put(rank: RankCache, letters: str, released: int = 0) -> None:
    """Give the tree pages of its own for this path, one page for a letter."""
    pages = rank.alloc(len(letters))[0]
    if released:
        rank.free_swa(Pages(pages[: 4 * released]))
    brought = Slice(pages, 0, released, request_account(UNBOUND), UNBOUND, Operation.INSERT)
    rank.insert(key(letters), b"", brought)


def key(letters: str) -> bytes:
    return b"".join(letter.encode() * 4 for letter in letters)


def path(rank: RankCache, letters: str) -> list[Node]:
    """The nodes of a path, from the root on."""
    nodes: list[Node] = []
    walk: Node | None = rank.state.nodes[rank.peek(key(letters), full_only=True).node]
    while walk is not None and walk.parent is not None:
        nodes.insert(0, walk)
        walk = walk.parent
    return nodes


def test_an_ancestor_stays_older_than_its_descendant_however_often_the_path_is_cut() -> None:
    """R80: both were refreshed by the same use; the cuts came later and touched neither."""
    rank = rank_of(Shape(page=1, window=5, full=60, swa=60, row_pages=16))
    put(rank, "ab")
    put(rank, "abcdef")
    rank.match(key("abcdef"))
    put(rank, "abcd" + "xxxxx")
    put(rank, "abc" + "yyyyy")
    nodes = path(rank, "abcdef")
    assert [node.pages for node in nodes] == [2, 1, 1, 2]
    ticks = [node.swa_tick for node in nodes]
    assert ticks == sorted(ticks)
    assert len(set(ticks)) == len(ticks)


def test_a_parent_is_as_young_as_the_youngest_child_that_it_lost() -> None:
    """R68, R103: the use of a path counts for what remains of it, in whatever order its branches go."""
    rank = rank_of(Shape(page=1, window=1, full=40, swa=40, leaf="materialise"))
    put(rank, "a")
    put(rank, "ac")
    put(rank, "ab", released=2)
    put(rank, "z")
    rank.match(key("ac"))
    shield = rank.lock(path(rank, "z")[0].id)
    rank.evict(0, 2)
    rank.unlock(shield)
    assert (len(path(rank, "ac")), len(path(rank, "ab"))) == (1, 2), "the youngest branch went first"
    rank.evict(2, 0)
    assert (len(path(rank, "ab")), len(path(rank, "z"))) == (1, 0)


def test_a_flush_is_no_eviction() -> None:
    """R172, A40: totals are evidence of pressure; emptying an idle tree is none."""
    rank = rank_of(Shape(page=1, window=2, full=20, swa=20))
    put(rank, "abcd")
    rank.evict(0, 1)
    before = rank.ledger()
    assert (before.full_evicted_total, before.swa_evicted_total) != (0, 0)
    rank.flush()
    after = rank.ledger()
    assert (after.full_evicted_total, after.swa_evicted_total) == (
        before.full_evicted_total,
        before.swa_evicted_total,
    )
    assert after.full_available == 20
