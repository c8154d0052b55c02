"""The schedules of seeded faults: what a small server does, so that a fault shows.

Deterministic, and lawful as long as the cache is; `desk` has the words.
"""

from radixledger.journal.units import Pages

from .desk import Desk

OTHER = b"e\x01\0\0\0x"
"""Another namespace than the nameless one."""


def one_at_a_time(desk: Desk) -> None:
    for _ in range(2):
        desk.cache.alloc(1)


def whole_pool(desk: Desk) -> None:
    desk.cache.alloc(40)


def in_a_group(desk: Desk) -> None:
    full, _ = desk.cache.alloc(2)
    desk.cache.open_group()
    desk.cache.free(full)
    desk.cache.alloc(1)
    desk.cache.flush_group()


def freed_twice(desk: Desk) -> None:
    full, _ = desk.cache.alloc(1)
    desk.cache.free(full)
    desk.cache.free(full)


def frees_of_the_tree(desk: Desk) -> None:
    desk.serve("a", "abcd")
    desk.cache.free_full(Pages(bytes(desk.cache.state.nodes[desk.node("abcd")].full[:4])))


def frees_in_a_row(desk: Desk) -> None:
    desk.admit("a", "abc")
    desk.fill("a")
    desk.cache.free(
        Pages(desk.cache.state.rows.full_table[desk.cache.state.row_of(desk.numbers["a"]), 2:3].tobytes())
    )


def full_before_the_next_allocation(desk: Desk) -> None:
    full, _ = desk.cache.alloc(1)
    desk.cache.free_full(full)
    desk.cache.alloc(1)


def remapped(desk: Desk) -> None:
    (source, _), (target, _) = desk.cache.alloc(1), desk.cache.alloc(1)
    desk.cache.free_swa(target)
    desk.cache.remap(source, target)


def remapped_onto_a_window(desk: Desk) -> None:
    (source, _), (target, _) = desk.cache.alloc(1), desk.cache.alloc(1)
    desk.cache.remap(source, target)


def flushed_twice(desk: Desk) -> None:
    in_a_group(desk)
    desk.cache.flush_group()


def opened_twice(desk: Desk) -> None:
    desk.cache.open_group()
    desk.cache.open_group()


def with_a_tail(desk: Desk) -> None:
    desk.admit("a", "abc", 10)
    desk.fill("a")
    desk.finish("a")


def a_hit(desk: Desk, text: str = "abcdefghij") -> None:
    """A request that goes on behind six pages of the tree, with four of its own."""
    desk.serve("a", "abcdef")
    desk.admit("b", text)
    desk.fill("b")


def hit_and_aborted(desk: Desk) -> None:
    a_hit(desk)
    desk.abort("b")


def hit_and_retracted(desk: Desk) -> None:
    a_hit(desk)
    desk.retract("b")


def hit_and_finished(desk: Desk) -> None:
    a_hit(desk)
    desk.finish("b")


def hit_and_kept(desk: Desk) -> None:
    a_hit(desk)
    desk.keep("b")
    desk.finish("b")


def hit_and_reclaimed(desk: Desk) -> None:
    a_hit(desk, "abcdefghijklmn")
    desk.reclaim("b")


def admitted_twice(desk: Desk) -> None:
    desk.admit("a", "abc")
    desk.admit("a", "abc")


def ten_tokens(desk: Desk) -> None:
    desk.admit("a", "abc", 10)
    desk.fill("a")
    desk.reclaim("a")


def two_pages(desk: Desk) -> None:
    desk.admit("a", "abcd")
    desk.grow("a", 8)


def reclaimed_twice(desk: Desk) -> None:
    desk.admit("a", "abcdefghijkl")
    desk.grow("a", 24)
    desk.reclaim("a")
    desk.fill("a")
    desk.reclaim("a")


def reclaimed_near_a_boundary(desk: Desk) -> None:
    desk.admit("a", "abcdefgh", 61)
    desk.fill("a")
    desk.reclaim("a")
    desk.finish("a")


def reclaimed_and_finished(desk: Desk) -> None:
    desk.admit("a", "abcdefgh")
    desk.fill("a")
    desk.reclaim("a")
    desk.finish("a")


def reclaimed_under_a_step(desk: Desk) -> None:
    desk.admit("a", "abcdefghij")
    desk.fill("a")
    desk.step(1, "a", 8)
    desk.reclaim("a")


def finished_under_a_step(desk: Desk) -> None:
    desk.admit("a", "abcd")
    desk.fill("a")
    desk.step(1, "a", 0)
    desk.finish("a")


def kept_side_by_side(desk: Desk) -> None:
    for name in "ab":
        desk.admit(name, "abcd")
        desk.fill(name)
    desk.keep("a")
    desk.keep("b")


def tombstone_above_a_leaf(desk: Desk) -> None:
    """Nodes of four and two pages; SWA pressure takes the upper one's window."""
    desk.serve("a", "abcdef")
    desk.cache.evict(0, 1)


def matched_behind_a_gap(desk: Desk) -> None:
    """A tombstone of four pages, then one live page that the prompt shares."""
    tombstone_above_a_leaf(desk)
    desk.serve("b", "abcdexyz")


def of_another_tenant(desk: Desk) -> None:
    desk.serve("a", "abcdef", space=OTHER)
    desk.serve("b", "abcdefgh")


def healed(desk: Desk) -> None:
    tombstone_above_a_leaf(desk)
    desk.serve("b", "abcdefgh", miss=True)


def healed_under_a_lock(desk: Desk) -> None:
    tombstone_above_a_leaf(desk)
    desk.admit("b", "abcdefgh")
    desk.fill("b")
    desk.serve("c", "abcdefgh", miss=True)


def healed_in_part(desk: Desk) -> None:
    """The request has given back the window of the first four pages of a tombstone of six."""
    desk.serve("a", "abcdefgh")
    desk.cache.evict(0, 1)
    desk.admit("b", "abcdefgh", miss=True)
    desk.fill("b")
    desk.reclaim("b")
    desk.finish("b")


def computed_again(desk: Desk) -> None:
    desk.serve("a", "abcdef")
    desk.serve("b", "abcdef", miss=True)


def long_prompt(desk: Desk) -> None:
    desk.serve("a", "abcdefgh")


def released_to_its_end(desk: Desk) -> None:
    """A finish caches less than was reclaimed: its leaf would be a tombstone."""
    desk.admit("a", "abcdefghij")
    desk.fill("a")
    desk.reclaim("a")
    desk.cache.finish(desk.numbers["a"], desk.key("abcd"))


def cut_under_a_mark(desk: Desk) -> None:
    """A running request marks the node of its window; another prompt cuts that node."""
    desk.serve("a", "abcdef")
    desk.admit("b", "abcdefgh")
    desk.serve("c", "abcdexyz", miss=True)


def two_leaves(desk: Desk) -> None:
    desk.serve("a", "ab")
    desk.serve("b", "xy")
    desk.cache.evict(1, 0)


def leaf_in_use(desk: Desk) -> None:
    desk.serve("a", "ab")
    desk.admit("b", "abc")
    desk.cache.evict(1, 0)


def window_in_use(desk: Desk) -> None:
    """The tail of the path is locked, the node above it is not, and is younger by no means."""
    desk.serve("a", "abcdef")
    desk.admit("b", "abcdefgh")
    desk.cache.evict(0, 1)
    desk.cache.evict(0, 1)


def leaf_under_window_pressure(desk: Desk) -> None:
    desk.serve("a", "ab")
    desk.cache.evict(0, 1)


def leaf_under_pressure(desk: Desk) -> None:
    desk.serve("a", "ab")
    desk.cache.evict(1, 0)


def flushed_while_somebody_runs(desk: Desk) -> None:
    desk.serve("a", "ab")
    desk.admit("b", "xy")
    desk.fill("b")
    desk.cache.flush()


def flushed(desk: Desk) -> None:
    desk.serve("a", "abcdef")
    desk.cache.flush()


def locked_across_nodes(desk: Desk) -> None:
    """The last node of the path is one page, the window two."""
    desk.serve("a", "abcdef")
    desk.admit("b", "abcdefgh", 21)
    desk.fill("b")
    desk.finish("b")


def locked_over_a_tombstone(desk: Desk) -> None:
    tombstone_above_a_leaf(desk)
    desk.cache.unlock(desk.cache.lock(desk.node("abcd")))


def lent_and_counted(desk: Desk) -> None:
    """Somebody runs, and pages are out that no row names."""
    desk.admit("a", "ab")
    desk.cache.alloc(2)
    desk.cache.record_ledger("busy")


def half_a_page(desk: Desk) -> None:
    desk.admit("a", "abc", 10)
    desk.fill("a")
    desk.cache.record_ledger("busy")


def with_a_tombstone(desk: Desk) -> None:
    desk.serve("a", "abcdef")
    desk.cache.evict(0, 1)
    desk.cache.record_ledger("idle")


def evicted_and_flushed(desk: Desk) -> None:
    with_a_tail(desk)
    desk.cache.evict(1, 0)
    desk.cache.record_ledger("pre_flush")
    desk.cache.flush()
    desk.cache.record_ledger("post_flush")


def in_an_open_group(desk: Desk) -> None:
    full, _ = desk.cache.alloc(1)
    desk.cache.open_group()
    desk.cache.free(full)
    desk.cache.record_ledger("busy")


def keeps_over_tombstones(desk: Desk) -> None:
    """Both nodes of a path are tombstones when a request that computed it again caches it, and runs on."""
    desk.serve("a", "abcdef")
    desk.serve("b", "abcdefgh")
    desk.cache.evict(0, 6)
    desk.admit("c", "abcdefz", 28, miss=True)
    desk.fill("c")
    desk.cache.cache_unfinished(desk.numbers["c"], desk.key("abcdef"))


def keeps_less_than_a_window(desk: Desk) -> None:
    """Six pages of window are given back, and seven pages cached."""
    desk.admit("a", "abcdefghij")
    desk.fill("a")
    desk.reclaim("a")
    desk.cache.cache_unfinished(desk.numbers["a"], desk.key("abcdefg"))


def steps_over_a_prefix(desk: Desk) -> None:
    a_hit(desk)
    desk.step(1, "b", 24)


def used_again_and_older(desk: Desk) -> None:
    desk.serve("a", "abcd")
    for name in "bc":
        desk.admit(name, "abcdx")
        desk.abort(name)
    desk.serve("x", "wxyz")
    desk.cache.evict(1, 0)


def important_and_older(desk: Desk) -> None:
    desk.serve("a", "abcd", priority=2)
    desk.serve("x", "wxyz")
    desk.cache.evict(1, 0)


def spare_and_younger(desk: Desk) -> None:
    """The first pages of the long prompt are needed by nobody; all of the short one is."""
    desk.serve("x", "xy")
    desk.serve("a", "abcdefghij")
    desk.cache.evict(0, 1)
