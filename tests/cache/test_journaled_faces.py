"""Behind the faces every rank keeps a journal like every other: it can be verified, resumed and asked."""

from pathlib import Path

import pytest

from radixledger.cache.faces.allocator import SWATokenToKVPoolAllocator
from radixledger.cache.faces.request_rows import ReqToTokenPool
from radixledger.cache.faces.unified import UnifiedRadixCache
from radixledger.cache.opening import opened_ranks
from radixledger.cache.prefix_cache import CacheInitParams, Ended
from radixledger.journal.accounts import Pool, describe
from radixledger.journal.events import Bound
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.journal.writer import JournalWriter
from radixledger.replay.story.blame import LifeStep, story
from radixledger.replay.verify import verify_rank

from .server import BOTH, Server, text

RANKS = 2


def journaled(run: Path, *, resume: bool = False) -> Server:
    """A server whose two ranks write to disk."""
    server = Server(4, 4, dp_size=RANKS, full_pages=12, swa_pages=10)
    opened = opened_ranks(
        4 * 12 * RANKS, 4 * 10 * RANKS, 4, RANKS, sliding_window_size=4, rows=8, max_context_len=8192
    )
    writers = [JournalWriter.open(run, each, resume=resume) for each in opened]
    server.pool = ReqToTokenPool(8, 8192)
    server.allocator = SWATokenToKVPoolAllocator(
        4 * 12 * RANKS, 4 * 10 * RANKS, None, 4, RANKS, journals=writers
    )
    params = CacheInitParams(server.pool, server.allocator, 4, sliding_window_size=4)
    server.cache = UnifiedRadixCache(
        server.pool, server.allocator, 4, tree_components=BOTH, component_init_params=params
    )
    return server


def serve(server: Server) -> None:
    """Requests of both ranks that share a prefix, under pressure: cached, reclaimed, retracted, aborted, evicted."""
    for rank in range(RANKS):
        first = server.start(text("a", 0, 14), dp_rank=rank)
        server.cache_so_far(first)
        for _ in range(9):
            server.decode(first)
            server.reclaim(first)
        second = server.start(text("a", 0, 9), dp_rank=rank)
        server.end(second, insert=False, ended=Ended.RETRACTED)
        server.end(first)
        server.evict(8, 12, dp_rank=rank)
        third = server.start(text("a", 0, 13), dp_rank=rank)
        server.end(third, insert=False)
        server.allocator.free_group_begin()
        server.allocator.free(server.slots(8, rank), rank)
        server.allocator.free_group_end()
    server.cache.sanity_check()


def test_what_a_foreign_server_did_is_verified_like_everything_else(tmp_path: Path) -> None:
    """J12, J14, R28: the journal alone gives the state, and no law is broken on the way."""
    run = tmp_path / "run"
    server = journaled(run)
    serve(server)
    for here in server.allocator.ranks:
        here.record_ledger("end")
    server.allocator.close()
    for rank in range(RANKS):
        report = verify_rank(run, Rank(rank))
        assert (report.unreadable, report.findings) == ("", [])
        told = [event for frame in JournalReader(run, Rank(rank)).frames() for event in frame.events]
        assert any(isinstance(event, Bound) for event in told)


def test_a_run_goes_on_behind_the_faces_where_it_ended(tmp_path: Path) -> None:
    """J12: a new epoch counts on, with pools that are empty again."""
    run = tmp_path / "run"
    for resume in (False, True):
        server = journaled(run, resume=resume)
        assert server.allocator.available_size(1) == 40
        serve(server)
        server.allocator.close("done")
    for rank in range(RANKS):
        report = verify_rank(run, Rank(rank))
        assert (report.unreadable, report.findings) == ("", [])


def steps(run: Path, pool: Pool, page: int) -> list[LifeStep]:
    return list(story(JournalReader(run, Rank(0)).frames(), pool, page))


@pytest.mark.parametrize("pool", [Pool.FULL, Pool.SWA])
def test_a_page_that_a_server_was_given_has_a_life_that_can_be_told(tmp_path: Path, pool: Pool) -> None:
    """J16: handed out, written into a row, and so on, each with its request."""
    run = tmp_path / "run"
    server = journaled(run)
    serve(server)
    serve(server)
    server.allocator.close()
    told = steps(run, pool, 1)
    assert [step.event for step in told[:3]] == ["Allocated", "Bound", "Transferred"]
    assert [describe(step.taker) for step in told[:2]] == ["request(unbound)", "request(8)"]
    assert [step.rid for step in told[1:3]] == ["r1", "r1"]
    assert [step.wrong for step in told] == [""] * len(told)
    lives = [max(step.life for step in steps(run, pool, page)) for page in range(1, 11)]
    assert max(lives) > 1
