"""The same sequence gives the same bits, whatever else happens: rules E1 to E11 on the tiny model.

Bits, not ids: two programs that differ in the last place agree on ids until the day they do not.
"""

import numpy as np
import pytest

from radixledger.tools.serve.loader import Checkpoint
from radixledger.tools.serve.tiny import Tiny, load_tiny

from .desk import PAGES, Desk, ids_of
from .schedule import Work, play

LENGTH, WINDOW = 200, 32
CUTS = {
    "halves": (100,),
    "odd chunks of 37": tuple(range(37, LENGTH, 37)),
    "one, two, three...": tuple(np.cumsum(range(1, 20)).tolist()),
    "all but one": (LENGTH - 1,),
    "whole tiles": tuple(range(16, LENGTH, 16)),
    "a decode from the middle": tuple(range(150, LENGTH)),
}


@pytest.mark.parametrize("page_size", PAGES)
def test_a_prompt_in_chunks_gives_the_bits_of_the_whole(tiny: Checkpoint, page_size: int) -> None:
    """E1, E2, E3: last logits and every layer's K and V; W is 32, so 128 and 256 are pages wider than it."""
    desk, ids = Desk.new(tiny, page_size), ids_of(1, LENGTH)
    whole, kept = desk.prefill(0, ids), desk.kept(0, 0, LENGTH)
    for name, cuts in CUTS.items():
        assert desk.prefill(1, ids, cuts) == whole, name
        assert desk.kept(1, 0, LENGTH) == kept, name


def test_a_prompt_token_by_token_gives_the_bits_of_the_whole(tiny: Checkpoint) -> None:
    """E3: decode and prefill are one program."""
    desk, ids = Desk.new(tiny, 16), ids_of(2, 90)
    whole = desk.prefill(0, ids)
    assert desk.prefill(1, ids, tuple(range(1, 90))) == whole
    assert desk.kept(1, 0, 90) == desk.kept(0, 0, 90)


@pytest.mark.parametrize("page_size", PAGES)
def test_neighbours_in_the_batch_change_nothing(tiny: Checkpoint, page_size: int) -> None:
    desk = Desk.new(tiny, page_size)
    own, others = ids_of(3, 130), [ids_of(4, 77), ids_of(5, 40), ids_of(6, 9)]
    alone = desk.prefill(0, own), desk.kept(0, 0, 130)
    for row, ids in enumerate(others, 1):
        desk.step((row, 0, ids[:-1]))
    desk.logits((2, 20, others[1][20:-1]), (0, 0, own[:101]), (1, 50, others[0][50:-1]))
    last = desk.logits(
        *((row, len(ids) - 1, ids[-1:]) for row, ids in enumerate(others, 1)), (0, 101, own[101:])
    )
    assert last[3].tobytes() == alone[0]
    assert desk.kept(0, 0, 130) == alone[1]


def test_padding_changes_nothing(tiny: Checkpoint) -> None:
    """The same spans in programs of 32, 96 and 256 tokens."""
    ids, seen = ids_of(7, 31), set()
    for buckets in ((), (32,), (96,)):
        desk = Desk.new(tiny, 16, buckets=buckets)
        seen.add((desk.prefill(0, ids), desk.kept(0, 0, 31)))
    assert len(seen) == 1


@pytest.mark.parametrize("page_size", [1, 128])
def test_where_the_pages_lie_changes_nothing(tiny: Checkpoint, page_size: int) -> None:
    ids, seen = ids_of(8, 150), set()
    for seed in range(3):
        desk = Desk.new(tiny, page_size, seed=seed)
        seen.add((desk.prefill(seed, ids, (70,)), desk.kept(seed, 0, 150)))
    assert len(seen) == 1


def test_ids_agree_between_page_sizes(tiny: Checkpoint) -> None:
    """E11: strips differ, so bits may; ids are those of the model."""
    made = {tuple(Desk.new(tiny, page).generate(0, ids_of(9, 140), 24)) for page in PAGES}
    assert len(made) == 1


@pytest.mark.parametrize("page_size", PAGES)
def test_a_shared_prefix_gives_the_bits_of_a_cold_run(tiny: Checkpoint, page_size: int) -> None:
    """E9: row 1 goes on from a page edge, over pages that row 0 wrote and left in another direction."""
    desk, edge = Desk.new(tiny, page_size), max(64, page_size)
    first, second = ids_of(10, edge + 50), ids_of(11, edge + 60)
    second[:edge] = first[:edge]
    cold = Desk.new(tiny, page_size, seed=5).prefill(0, second, (edge // 2,))
    desk.prefill(0, first, (edge - 5,))
    shared = edge // page_size
    desk.full[1, :shared], desk.swa[1, :shared] = desk.full[0, :shared], desk.swa[0, :shared]
    assert desk.logits((1, edge, second[edge:])).tobytes() == cold


@pytest.mark.parametrize("page_size", PAGES)
def test_dead_swa_pages_may_be_freed_and_spoilt_while_decoding(tiny: Checkpoint, page_size: int) -> None:
    """E8, E10: the table forgets each page once no window reaches it, and the page is overwritten at once."""
    edge = max(64, page_size)
    ids = ids_of(12, edge - 10)
    kept = Desk.new(tiny, page_size, seed=1).generate(0, ids, 60)
    desk, made = Desk.new(tiny, page_size), []
    made.append(int(desk.step((0, 0, ids))[0]))
    for position in range(len(ids), len(ids) + 59):
        dead = max(0, position - WINDOW + 1) // page_size
        desk.runner.poison([], [int(page) for page in desk.swa[0, :dead] if page])
        desk.swa[0, :dead] = 0
        made += desk.decode(0, position, made[-1], 1)
    assert made == kept
    assert not desk.swa[0, 0]


@pytest.mark.parametrize("page_size", PAGES)
def test_one_needed_swa_page_short_changes_the_ids(tiny: Checkpoint, page_size: int) -> None:
    """E10, the negative control: the page of position n - W + 1 is one that nobody wrote; the page before it, dead
    by the same rule, may be.
    """
    edge = max(64, page_size)
    ids = ids_of(13, edge + 12)
    oldest = (len(ids) - WINDOW + 1) // page_size
    desk, made = Desk.new(tiny, page_size), {}
    spare = ({*range(1, desk.runner.sizes.swa_pages + 1)} - {*desk.swa.ravel().tolist()}).pop()
    for case, lost in (("none", []), ("dead", range(oldest)), ("needed", [oldest])):
        desk.prefill(0, ids, (edge,))
        table = desk.swa.copy()
        desk.swa[0, lost] = spare
        made[case] = desk.decode(0, len(ids), 77, 24)
        desk.swa = table
    assert made["dead"] == made["none"]
    assert made["needed"] != made["none"]


@pytest.mark.parametrize("page_size", [1, 16])
def test_bfloat16_gives_the_same_bits_in_chunks(page_size: int) -> None:
    desk, ids = Desk.new(load_tiny(dtype="bfloat16"), page_size), ids_of(14, LENGTH)
    whole, kept = desk.prefill(0, ids), desk.kept(0, 0, LENGTH)
    for name, cuts in CUTS.items():
        assert desk.prefill(1, ids, cuts) == whole, name
        assert desk.kept(1, 0, LENGTH) == kept, name


@pytest.mark.parametrize("window_tokens", [20, 100])
def test_a_window_that_fits_no_page_gives_the_same_bits_in_chunks(window_tokens: int) -> None:
    """W mod P is neither 0 nor P - 1, and W is smaller or larger than a page of 64."""
    desk, ids = Desk.new(load_tiny(Tiny(window_tokens=window_tokens)), 64), ids_of(15, LENGTH)
    whole = desk.prefill(0, ids)
    for name, cuts in CUTS.items():
        assert desk.prefill(1, ids, cuts) == whole, name


@pytest.mark.parametrize("page_size", PAGES)
@pytest.mark.parametrize("seed", [1, 2])
def test_any_schedule_gives_the_ids_of_each_request_alone(
    tiny: Checkpoint, page_size: int, seed: int
) -> None:
    """Requests come and go in mixed steps of random chunks; pages are freed, spoilt and given to the next."""
    work = [Work(ids_of(100 * seed + i, 20 + 30 * i), new_tokens=12) for i in range(8)]
    alone = [Desk.new(tiny, page_size).generate(0, item.prompt, item.new_tokens) for item in work]
    assert play(Desk.new(tiny, page_size, seed=seed), work, seed) == alone
