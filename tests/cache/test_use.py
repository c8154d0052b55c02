"""Which window pages go first where a rank asks for their use: those that no boundary can need, page by page."""

import numpy as np
import pytest
from msgspec.structs import replace

from radixledger.cache import spare
from radixledger.cache.components.window import WindowComponent
from radixledger.cache.eviction import oldest_spare, oldest_window
from radixledger.cache.laws.invariants import broken_laws
from radixledger.cache.rank import RankCache
from radixledger.cache.refusals import LawBroken
from radixledger.cache.spare import needed_pages, spare_pages
from radixledger.cache.state import Node, State
from radixledger.cache.watch import Watched
from radixledger.journal.accounts import Kind
from radixledger.journal.causes import Operation, Site, cause
from radixledger.journal.events import Evicted, Split, Tombstoned
from radixledger.journal.sizes import BadConfig
from radixledger.journal.units import RequestId

from ..machine import opened
from ..model_tree import Shape
from ..witnesses import Tape
from .driven import SHAPES, Driven, FrameList
from .driven import opened as small
from .test_recency import key, path, put

WINDOW = 4
ROOMY = Shape(page=1, window=WINDOW, full=200, swa=200, row_pages=100, victims="use")


class Served:
    """A rank with pages of one token, and requests whose texts are strings of letters."""

    def __init__(self, shape: Shape = ROOMY, watched: Watched = Watched.BOOKS) -> None:
        self.tape = Tape(opened(shape))
        self.rank = RankCache(self.tape.opened, self.tape, watched=watched)
        self.count = 0

    def admit(self, prompt: str) -> RequestId:
        self.count += 1
        return self.rank.admit(f"r{self.count}", key(prompt), len(prompt)).request

    def compute(self, request: RequestId, text: str) -> None:
        """All of `text` that is not computed yet is, and the tree gets it."""
        state = self.rank.state
        grown = len(text) - int(state.rows.length[state.row_of(request)])
        self.rank.extend(np.array([request], np.int64), np.array([grown], np.int32))
        self.rank.cache_unfinished(request, key(text))

    def turn(self, prompt: str, answer: str) -> str:
        """A whole request; returns its text, whose last token has no KV."""
        request = self.admit(prompt)
        self.compute(request, prompt)
        for _ in answer[:-1]:
            self.rank.decode(np.array([request], np.int64))
        self.rank.finish(request, key(prompt + answer[:-1]))
        return prompt + answer

    def alive(self, text: str) -> str:
        """The pages of a path: `L` live, `-` a tombstone, in the words of the path's letters."""
        return "".join(("L" if node.swa else "-") * node.pages for node in path(self.rank, text))

    def give_spare(self) -> None:
        """Let all go that no boundary can need."""
        while oldest_spare(self.rank.state):
            self.rank.evict(0, 1)

    def cuts(self) -> list[tuple[int, int]]:
        """Where nodes were cut, and why."""
        return [(len(event.full) // 4, event.cause) for event in self.tape.events if isinstance(event, Split)]


@pytest.mark.parametrize(
    ("victims", "old", "new"), [("use", "----LLLL", "--------LLLL"), ("lru", "----", "LLLLLLLLLLLL")]
)
def test_the_middle_of_a_new_prompt_goes_before_the_end_of_an_old_turn(
    victims: str, old: str, new: str
) -> None:
    """R103, R99: by recency alone the old turn loses its window, which is all that can be used of either."""
    served = Served(replace_shape(victims=victims))
    put(served.rank, "abcdefgh")
    put(served.rank, "ABCDEFGHIJKL")
    served.rank.evict(0, 5)
    assert (served.alive("abcdefgh"), served.alive("ABCDEFGHIJKL")) == (old, new)


def replace_shape(**changes: object) -> Shape:
    return Shape(**{**ROOMY.__dict__, **changes})


def test_a_parting_of_ways_keeps_the_window_before_it() -> None:
    """R73, R76: whoever comes next starts there, and needs what a window reaches back from it."""
    served = Served()
    put(served.rank, "ssssssss" + "abcdefgh")
    put(served.rank, "ssssssss" + "ABCDEFGH")
    served.rank.evict(0, 12)
    assert served.alive("ssssssssabcdefgh") == "----LLLL----LLLL"
    assert served.alive("ssssssssABCDEFGH") == "----LLLL----LLLL"


def test_only_the_part_of_a_node_that_nobody_can_need_goes() -> None:
    """R99, R105: it is cut off first; the events and the credit say what went."""
    served = Served()
    put(served.rank, "abcdefgh")
    served.rank.match(key("abcdefg"))
    assert [node.pages for node in path(served.rank, "abcdefgh")] == [4, 3, 1]
    assert served.rank.evict(0, 1) == (0, 4)
    served.turn("abcdefgh" + "ijk", "lm")
    before = served.rank.state.swa.available
    assert served.rank.evict(0, 1) == (0, 1)
    assert served.rank.state.swa.available == before + 1
    assert [type(event) for event in served.tape.events[-3:]] == [Split, Tombstoned, Evicted]
    assert served.tape.events[-1].events == 2  # type: ignore[union-attr]
    assert served.alive("abcdefghijkl") == "-----LLLLLLL"


def test_the_end_of_a_prompt_is_kept_until_its_answer_is_taken_up() -> None:
    """A next prompt may leave the path before the answer, or somewhat before the prompt's end: half a window more is kept."""
    served = Served()
    text = served.turn("abcdefghijklmnop", "ANSWERANSWER")
    assert end_of_prompt(served, "abcdefghijklmnop").asked == 1
    served.give_spare()
    assert served.alive(text[:-1]) == "-" * 10 + "LLLLLL" + "-" * 7 + "LLLL"
    served.turn(text + "more", "so")
    assert end_of_prompt(served, "abcdefghijklmnop").asked == 0
    served.give_spare()
    assert served.alive(text[:-1])[:16] == "-" * 16


def end_of_prompt(served: Served, prompt: str) -> Node:
    return path(served.rank, prompt)[-1]


def test_a_prompt_is_kept_while_its_request_decodes_and_forgotten_when_it_is_aborted() -> None:
    """What its request may come back for after a retraction is the window before its end."""
    served = Served()
    request = served.admit("abcdefghijkl")
    served.compute(request, "abcdefgh")
    assert end_of_prompt(served, "abcdefgh").asked == 0
    served.compute(request, "abcdefghijkl")
    assert end_of_prompt(served, "abcdefghijkl").asked == 1
    served.rank.abort(request)
    assert end_of_prompt(served, "abcdefghijkl").asked == 0


def test_an_answer_that_loses_its_end_still_ends_where_it_is_left() -> None:
    """A leaf that goes hands on whose answer it was, up to the prompt's end and no further."""
    served = Served()
    served.turn("abcdefgh", "ANSWERANSWER")
    end = end_of_prompt(served, "abcdefgh")
    state = served.rank.state
    while len(path(served.rank, "abcdefghANSWERANSWE")) > 1 and end.children:
        served.rank.evict(1, 0)
        assert end.asked == 1
        assert [node.answers for node in state.nodes.values() if node.answers] == [end.id]
    served.rank.evict(1, 0)
    assert end.parent is None
    assert all(node.asked == 0 for node in state.nodes.values())


@pytest.mark.parametrize(("victims", "held"), [("use", WINDOW), ("lru", 8)])
def test_a_lock_holds_one_window_and_no_more(victims: str, held: int) -> None:
    """R95, R111, R114: the node in which the window begins is cut there, so that what lies before may go."""
    served = Served(replace_shape(victims=victims))
    put(served.rank, "abcdefghij")
    request = served.admit("abcdefgh" + "XYZ")
    assert served.rank.state.swa_protected == held
    served.compute(request, "abcdefgh" + "XYZ")
    assert served.rank.state.swa_protected == (WINDOW if victims == "use" else WINDOW + 1)
    window = [(pages, why) for pages, why in served.cuts() if why & 31 == Site.WINDOW]
    assert len(window) == (2 if victims == "use" else 0)
    if victims == "use":
        assert window[0] == (4, cause(Operation.ADMIT, Site.WINDOW))


def test_a_lock_of_a_path_by_itself_is_narrowed_too() -> None:
    """R111: whoever locks."""
    served = Served()
    put(served.rank, "abcdefgh")
    served.rank.match(key("abcdef"))
    node = served.rank.peek(key("abcdef")).node
    receipt = served.rank.lock(node)
    assert served.rank.state.swa_protected == WINDOW
    assert served.cuts()[-1] == (2, cause(Operation.LOCK, Site.WINDOW))
    assert served.rank.evict(0, 2).swa >= 2
    served.rank.unlock(receipt)
    assert served.rank.state.swa_protected == 0


def by_use(seed: int, shape: tuple[int, int, int, int]) -> Driven:
    first = small(shape)
    return Driven(
        seed, shape, recorder=FrameList(replace(first, config=replace(first.config, swa_victims="use")))
    )


def wanted(state: State) -> set[tuple[int, int]]:
    """Each page, as (node, place in it), that a boundary wants: told by looking up from every boundary."""
    found: set[tuple[int, int]] = set()
    for node in state.nodes.values():
        count = len(node.children or ())
        pages = state.reach_pages if node.asked else state.tail_pages if count != 1 else 0
        each = node
        while pages > 0 and each.parent is not None and each.swa:
            found |= {(each.id, at) for at in range(max(0, each.pages - pages), each.pages)}
            pages, each = pages - each.pages, each.parent
            if len(each.children or ()) != 1:
                break
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_the_next_victim_is_the_one_that_a_scan_would_choose(
    shape: tuple[int, int, int, int], seed: int
) -> None:
    """R103, R69: of the nodes with pages that nobody wants the oldest, then of all; no lock is ever met (R102)."""
    driven, seen = by_use(seed, shape), 0
    for _ in driven.steps(250):
        state = driven.cache.state
        pages = wanted(state)
        nodes = [node for node in state.nodes.values() if node.swa and not node.swa_locks]
        parts = {
            node: next((at for at in range(node.pages) if (node.id, at) in pages), node.pages)
            for node in nodes
        }
        assert {node: spare_pages(state, node) for node in nodes} == parts
        first = [node for node in nodes if parts[node]]
        seen += bool(first)
        assert oldest_spare(state) is min(first, key=age, default=None)
        assert oldest_window(state) is min(nodes, key=age, default=None)
    assert seen > 10


def age(node: Node) -> tuple[int, int]:
    return node.swa_tick, node.id


@pytest.mark.parametrize("leaf", ["veto", "materialise"])
def test_a_run_ends_with_every_page_back_whatever_the_policy_of_dead_leaves(leaf: str) -> None:
    """R28, R105, A15: spare pages that go are credited, and none is lost."""
    for shape in SHAPES:
        first = small(shape)
        config = replace(first.config, swa_victims="use", tombstone_leaf=leaf, formula="tight")
        driven = Driven(11, shape, recorder=FrameList(replace(first, config=config))).run(300)
        state = driven.cache.state
        assert driven.cache.evict(999, 999)
        driven.drain()
        assert state.full.held[Kind.FREE] == state.full.capacity
        assert state.swa.held[Kind.FREE] == state.swa.capacity


def test_an_eviction_asks_about_its_victim_and_what_lies_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """R174: as many questions in a tree of 64 conversations as in one of 4."""
    asked: list[Node] = []

    def question(state: State, node: Node) -> int:
        asked.append(node)
        return needed_pages(state, node)

    monkeypatch.setattr(spare, "needed_pages", question)
    counts = []
    for conversations in (4, 64):
        served = Served(replace_shape(full=9000, swa=9000, row_pages=200))
        for number in range(conversations):
            served.turn(chr(40 + number) * 20, "A" * 100)
        asked.clear()
        served.rank.evict(0, 1)
        counts.append(len(asked))
    assert counts[0] == counts[1] <= 8


def test_a_spare_page_that_waits_in_no_order_is_noticed() -> None:
    """J28, R69: the law that counts who waits counts these too."""
    served = Served()
    put(served.rank, "abcdefgh")
    state = served.rank.state
    assert [*broken_laws(state)] == []
    assert state.spare_order
    state.spare_order.clear()
    assert {finding.law for finding in broken_laws(state)} == {"every_spare_page_waits_in_its_order"}


@pytest.mark.parametrize("fault", ["share", "oldest", "narrowed"])
def test_a_rank_that_watches_itself_sees_who_went_out_of_order(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R103, R111: a needed page that goes with the spare ones, a needed node before a spare one, a lock of too much."""
    wrong = {
        "share": lambda _, __, node: node.pages,
        "oldest": lambda _, state: oldest_window(state),
        "narrowed": lambda *_: (),
    }
    served = Served(watched=Watched.EVENTS)
    put(served.rank, "zyxw")
    put(served.rank, "abcdefghij")
    put(served.rank, "abcdeABCDE")
    served.rank.evict(0, 1)
    monkeypatch.setattr(WindowComponent, fault, wrong[fault])
    with pytest.raises(LawBroken) as found:
        if fault == "narrowed":
            served.rank.lock(served.rank.peek(key("abcde")).node)
        else:
            served.rank.evict(0, 1)
    assert found.value.law == LAW_OF[fault]


LAW_OF = {
    "share": "the_victim_is_the_oldest_candidate",
    "oldest": "the_victim_is_the_oldest_candidate",
    "narrowed": "a_lock_covers_the_last_window",
}


def test_an_order_that_nobody_knows_is_refused() -> None:
    """R14: before anything is built, with what would do."""
    first = small()
    with pytest.raises(BadConfig, match="lru, use") as found:
        RankCache(replace(first, config=replace(first.config, swa_victims="used")))
    assert found.value.field == "swa_victims"


def test_a_route_without_windows_of_a_tree_has_no_use_for_it() -> None:
    """R14, R204: nothing that was asked for is silently left out."""
    for route in ("radix", "swa_chunk"):
        shape = Shape(
            page=1, window=4 * (route != "radix"), full=20, swa=20 * (route != "radix"), route=route
        )
        first = opened(shape)
        RankCache(first)
        with pytest.raises(BadConfig, match="give lru"):
            RankCache(replace(first, config=replace(first.config, swa_victims="use")))
