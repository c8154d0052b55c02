"""Which prefixes a request may start from, and whom a match makes young."""

import pytest

from radixledger.cache.state import Node
from radixledger.journal.events import Matched, Split, Stop

from .server import SWA, Server, path, shape, text

paged = pytest.mark.parametrize("page_size", [1, 16, 128, 256])
WINDOWS = [(1, 1), (1, 4), (4, 3), (4, 4), (4, 5), (4, 8), (16, 5), (16, 40), (128, 128), (256, 128)]
"""Page size and window: smaller than, equal to and larger than a page, W mod P among 1, P - 1 and others (R274)."""
windowed = pytest.mark.parametrize(("page_size", "window"), WINDOWS)


def roomy(page_size: int, window: int) -> Server:
    return Server(page_size, window, full_pages=200, swa_pages=200)


def hits(server: Server, tokens: list[int]) -> list[int]:
    """What a match of each whole-page prefix gives, in pages."""
    page_size = server.page_size
    return [server.hit(tokens[:stop]) // page_size for stop in range(page_size, len(tokens) + 1, page_size)]


def nodes_on(server: Server, tokens: list[int]) -> list[Node]:
    """The nodes of a path from the root down; nothing is touched."""
    rank = server.rank()
    node = rank.state.nodes[rank.peek(b"".join(t.to_bytes(4, "little") for t in tokens), full_only=True).node]
    found: list[Node] = []
    while node.parent is not None:
        found.insert(0, node)
        node = node.parent
    return found


@windowed
def test_a_boundary_needs_a_live_run_behind_it_that_covers_the_window(page_size: int, window: int) -> None:
    """R73, R74, R76: behind a gap a page less than the window is a miss, the window is a hit, whatever lies between."""
    server = roomy(page_size, window)
    need = -(-window // page_size)
    tokens = path(server, "L " + "d" + "L" * (need + 2))
    assert hits(server, tokens) == [1, 1] + [1] * (need - 1) + [need + 2, need + 3, need + 4]
    assert (need - 1) * page_size < window <= need * page_size
    server.check()


@windowed
def test_live_runs_on_both_sides_of_a_gap_are_not_added_up(page_size: int, window: int) -> None:
    """R74, R76: after each gap the count begins again (B43)."""
    server = roomy(page_size, window)
    need = -(-window // page_size)
    if need == 1:
        tokens = path(server, "L dL d" + "L")
        assert hits(server, tokens) == [1, 1, 3, 3, 5]
    else:
        short = "L" * (need - 1)
        tokens = path(server, f"{short} d{short} d{short}")
        assert set(hits(server, tokens)[need - 1 :]) == {need - 1}
    server.check()


@windowed
def test_a_path_that_is_live_from_the_root_may_be_shorter_than_the_window(
    page_size: int, window: int
) -> None:
    """R75: nothing is missing behind it."""
    server = roomy(page_size, window)
    tokens = path(server, "L")
    assert hits(server, tokens) == [1]
    dead = path(server, "dL", "b")
    assert hits(server, dead) == [0, 2 if window <= page_size else 0]
    server.check()


@windowed
def test_a_match_tells_why_it_stopped(page_size: int, window: int) -> None:
    """R73: end of the key, no child, a page that differs, a dead window."""
    server = roomy(page_size, window)
    tokens = path(server, "L" * (-(-window // page_size) + 2))
    path(server, "dL", "b")
    for asked, stop in (
        (tokens[:page_size] + text("x", 0, page_size), Stop.DIVERGED),
        (tokens[: 2 * page_size], Stop.END_OF_KEY),
        (tokens + text("x", 0, page_size), Stop.NO_CHILD),
        (text("b", 0, page_size), Stop.WINDOW_DEAD),
    ):
        server.match(asked)
        told = server.journal.of(Matched)[-1]
        assert told.stop == stop
        assert told.hit <= told.full_hit <= told.asked == len(asked)


@windowed
def test_a_match_makes_the_last_window_of_its_path_young_and_nothing_above_it(
    page_size: int, window: int
) -> None:
    """R77-R80: every node in the last ceilP(W) tokens, ancestors strictly older; what is only walked stays old."""
    server = roomy(page_size, window)
    need = -(-window // page_size)
    tokens = path(server, " ".join("L" * (need + 3)))
    nodes = nodes_on(server, tokens)
    before = [node.swa_tick for node in nodes]
    server.match(tokens)
    after = [node.swa_tick for node in nodes]
    young = [old != new for old, new in zip(before, after, strict=True)]
    assert young == [False] * 3 + [True] * need
    assert after == sorted(set(after))
    assert need * page_size >= window > (need - 1) * page_size


@pytest.mark.parametrize(("page_size", "window"), [(256, 128), (16, 5), (4, 3)])
def test_where_a_page_is_larger_than_the_window_the_last_page_stays(page_size: int, window: int) -> None:
    """R78: it is young after a match, and a lock protects all of it."""
    server = roomy(page_size, window)
    tokens = path(server, "L L")
    path(server, "L", "b")
    found = server.match(tokens)
    server.evict(swa=2 * page_size)
    assert shape(server, tokens) == "d L"
    server.cache.inc_lock_ref(found.last_device_node)
    assert server.sizes()["swa_protected"] == page_size
    assert server.sizes()["full_protected"] == 2 * page_size


@windowed
def test_a_tombstone_within_the_window_gets_no_swa_recency(page_size: int, window: int) -> None:
    """R81: only nodes with live SWA are candidates, so only they have an age."""
    server = roomy(page_size, window)
    need = -(-window // page_size)
    tokens = path(server, f"L d{'L' * need}")
    gap = nodes_on(server, tokens)[1]
    assert not gap.swa
    before = gap.swa_tick
    server.match(tokens, full_only=True)
    server.match(tokens[: 2 * page_size], full_only=True)
    assert gap.swa_tick == before
    assert gap.tick > 0


@paged
def test_a_node_is_cut_at_a_page_and_only_where_a_match_ends_in_it(page_size: int) -> None:
    """R82: boundaries are multiples of the page, wherever within a page two keys part."""
    server = roomy(page_size, page_size)
    tokens = path(server, "LLLL")
    nodes = len(server.rank().state.nodes)
    server.match(tokens)
    assert len(server.rank().state.nodes) == nodes
    asked = tokens[: 2 * page_size + page_size // 2]
    assert server.match(asked + text("x", 0, page_size)).device_indices.size == 2 * page_size
    assert (
        server.insert(tokens[: page_size + page_size // 2] + text("x", 0, page_size)).prefix_len == page_size
    )
    assert len(server.journal.of(Split)) == 2
    for node in server.rank().state.nodes.values():
        assert len(node.key) == node.pages * 4 * page_size
    for field in ("prev", "released"):
        if page_size > 1:
            with pytest.raises(ValueError, match="R82"):
                server.insert(tokens, **{field: 1})  # type: ignore[arg-type]
    server.check()


@paged
def test_looking_without_touching_changes_nothing(page_size: int) -> None:
    """R79, R82: a peek cuts no node, moves no recency and writes no event (A19)."""
    server = roomy(page_size, page_size)
    tokens = path(server, "LLLL")
    before = server.rank().digest(), len(server.journal.events)
    assert server.hit(tokens[: 2 * page_size]) == 2 * page_size
    assert (server.rank().digest(), len(server.journal.events)) == before
    assert server.match(tokens[: 2 * page_size]).device_indices.size == 2 * page_size
    assert server.rank().digest() != before[0]


@paged
def test_a_key_without_a_whole_page_matches_nothing_and_leaves_no_trace(page_size: int) -> None:
    """R82: nor does an insert of it (B63)."""
    server = roomy(page_size, page_size)
    path(server, "LL")
    before = server.rank().digest(), len(server.journal.events)
    for stop in range(min(page_size, 3)):
        found = server.match(text("a", 0, stop))
        assert found.device_indices.tolist() == []
        assert found.device_indices.dtype == "int32"
        assert found.last_device_node.parent is None
    assert server.insert([]).prefix_len == 0
    assert (server.rank().digest(), len(server.journal.events)) == before


@paged
def test_a_match_of_full_alone_ignores_windows(page_size: int) -> None:
    """R72: `full_only` follows the FULL slots to the end."""
    server = roomy(page_size, page_size)
    tokens = path(server, "L dL")
    assert server.match(tokens[: 2 * page_size]).device_indices.size == page_size
    found = server.match(tokens[: 2 * page_size], full_only=True)
    assert found.device_indices.size == 2 * page_size
    assert found.last_device_node.component_data[SWA].value is None
    assert found.last_host_node == found.best_match_node == found.last_device_node
    assert found.host_hit_length == 0
