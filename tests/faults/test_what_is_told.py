"""Faults of events, journals and figures that people met in the field: what was told twice, not at all, or wrongly."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from radixledger.analytics.load import load_frames
from radixledger.analytics.queries import ask, find
from radixledger.analytics.store import Database
from radixledger.cache.evolve import begin, evolve
from radixledger.cache.keys import namespace, raw_key
from radixledger.journal.accounts import Kind, Pool
from radixledger.journal.errors import Damaged, JournalError, MissingEvents
from radixledger.journal.events import AnyEvent, Gap, GroupOpened, Opened, Removed, Split, Transferred
from radixledger.journal.frame import Frame
from radixledger.journal.moves import moves
from radixledger.journal.reader import JournalReader, ranks_in
from radixledger.journal.units import FIRST, NodeId, Rank
from radixledger.journal.writer import JournalWriter, Sealing

from ..cache.server import Server, text
from ..cache.test_journaled_faces import RANKS, journaled, serve


def stored(events: list[AnyEvent]) -> Iterator[tuple[Pool, int]]:
    """Each pool, and by how many pages an event made what the tree holds more or less."""
    for event in events:
        for move in moves(event):
            pages = len(move.pages) // 4
            yield move.pool, pages * ((move.taker & 7 == Kind.TREE) - (move.giver & 7 == Kind.TREE))


def evicted_for_full(server: Server) -> None:
    server.evict(full=12)


def evicted_for_swa(server: Server) -> None:
    server.evict(swa=12)
    server.evict(full=12)


def emptied(server: Server) -> None:
    server.cache.reset()


def taken_after_its_windows(server: Server) -> None:
    server.match(text("a", 0, 4))
    server.evict(swa=8)
    server.evict(full=12)


@pytest.mark.parametrize("way", [evicted_for_full, evicted_for_swa, emptied, taken_after_its_windows])
def test_each_way_of_leaving_the_tree_is_told(way: Callable[[Server], None]) -> None:
    """B89: 3 pages stored, 3 removed; after every event stored less removed is what the tree holds."""
    server = Server(4, 4)
    server.insert(text("a", 0, 12))
    way(server)
    held: Counter[Pool] = Counter()
    state = begin(server.journal.opened)
    for event in server.journal.events:
        evolve(state, event)
        for pool, pages in stored([event]):
            held[pool] += pages
        assert (
            held[Pool.FULL] == state.full.held[Kind.TREE] == sum(node.pages for node in state.nodes.values())
        )
        assert held[Pool.SWA] == state.swa.held[Kind.TREE]
    assert held == {Pool.FULL: 0, Pool.SWA: 0}
    assert sum(pages for pool, pages in stored(server.journal.events) if pages > 0 and pool is Pool.FULL) == 3
    server.check()


def test_a_second_telling_of_one_removal_is_noted_and_drops_nothing_that_is_there() -> None:
    """B91: stored, stored again, removed, removed again, stored; an unknown removal is harmless."""
    server = Server(4, 4)
    server.insert(text("a", 0, 4))
    server.insert(text("b", 0, 4))
    server.evict(full=4)
    state = begin(server.journal.opened)
    for event in server.journal.events:
        evolve(state, event)
    (removal,) = server.journal.of(Removed)
    before = (bytes(state.full.free), bytes(state.swa.free), sorted(state.nodes))
    for node in (removal.node, NodeId(99)):
        evolve(state, Removed(node, removal.parent, removal.full, removal.swa))
    assert [finding.law for finding in state.findings] == ["an_event_names_what_exists"] * 2
    assert (bytes(state.full.free), bytes(state.swa.free), sorted(state.nodes)) == before


def test_a_batch_that_names_a_page_nobody_has_frees_the_others() -> None:
    """B99, where a server goes on: the middle one of three pages is free already, the other two become so."""
    server = Server(4, 4, strict=False)
    slots = server.slots(12)
    server.allocator.free(slots[4:8])
    server.allocator.free(slots)
    assert server.allocator.full_available_size() == server.allocator.swa_available_size() == 64
    server.check()


def test_a_leaf_names_the_node_that_it_grew_from() -> None:
    """B95: 4 pages stored, then 2 behind page 2; the cut stores nothing and changes no page."""
    server = Server(4, 16)
    server.insert(text("a", 0, 16))
    begun = len(server.journal.events)
    server.insert(text("a", 0, 8) + text("b", 8, 16))
    (first, second), (cut,) = server.journal.of(Transferred), server.journal.of(Split)
    assert len(first.full) // 4 == 4
    assert len(second.full) // 4 == 2
    assert (first.parent, cut.parent, cut.node) == (0, 0, first.node)
    assert second.parent == cut.upper
    assert cut.full == first.full[:8]
    assert sum(pages for pool, pages in stored([cut])) == 0
    assert sum(pages for pool, pages in stored(server.journal.events[begun:]) if pool is Pool.FULL) == 2
    server.check()


def test_every_rank_writes_under_its_own_tag_from_number_one(tmp_path: Path) -> None:
    """B98: two pages stored on each of two ranks, told by each of them."""
    server = journaled(tmp_path)
    for rank in range(RANKS):
        server.insert(text("a", 0, 8), dp_rank=rank)
    for each in server.allocator.ranks:
        each.close()
    assert ranks_in(tmp_path) == [Rank(0), Rank(1)]
    for rank in range(RANKS):
        frames = list(JournalReader(tmp_path, Rank(rank)).frames())
        events = [event for frame in frames for event in frame.events]
        assert frames[0].seq_first == 1
        assert isinstance(events[0], Opened)
        assert events[0].rank == rank
        assert sum(len(event.full) // 4 for event in events if isinstance(event, Transferred)) == 2


def test_a_load_that_goes_on_takes_each_frame_once(tmp_path: Path) -> None:
    """B94: cut in the middle and taken up again, twice; in order, and nothing twice."""
    server = journaled(tmp_path)
    serve(server)
    for each in server.allocator.ranks:
        each.close()
    frames = list(JournalReader(tmp_path, Rank(0)).frames())
    database, middle = Database(), len(frames) // 2
    for stop, start in ((middle, 0), (middle, middle - 2), (len(frames), middle)):
        known = database.loaded("run", Rank(0))
        behind = [frame for frame in frames[start:stop] if known is None or frame.seq_first > known.seq]
        load_frames(database, "run", Rank(0), iter(behind))
    loaded = [row[0] for row in database.questioned().execute("SELECT seq FROM stored.events").fetchall()]
    assert loaded == list(range(1, frames[-1].seq_first + len(frames[-1].events)))


# -- the record ------------------------------------------------------------------------------------------------------


def five_records(run: Path) -> tuple[Path, list[int]]:
    """A journal of five records behind its first frame, one frame each; its segment, and where each of them ends."""
    opened = Server(4, 4).journal.opened
    ends = []
    with JournalWriter.open(run, opened, sealing=Sealing.NEVER) as writer:
        (segment,) = (run / "rank-0000").glob("*.seg")
        for number in range(1, 6):
            writer.append(GroupOpened())
            writer.append(Gap(number, "a record"))
            writer.end_command()
            ends.append(segment.stat().st_size)
    return segment, ends


def read_until_refused(run: Path) -> tuple[list[int], JournalError | None, list[str]]:
    """The records that a reader gives, what it stops with, and its notices."""
    reader, given = JournalReader(run, Rank(0)), list[int]()
    try:
        for frame in reader.frames():
            given += [event.lost for event in frame.events if isinstance(event, Gap)]
    except JournalError as refused:
        return given, refused, reader.notices
    return given, None, reader.notices


def test_a_torn_record_costs_itself_and_damage_stops_the_reader_where_it_is(tmp_path: Path) -> None:
    """B104: the last of five torn: four, with a notice. The third one damaged: two, an error that says where, no fourth."""
    segment, ends = five_records(tmp_path)
    whole = segment.read_bytes()
    segment.write_bytes(whole[: ends[4] - 3])
    given, refused, notices = read_until_refused(tmp_path)
    assert (given, refused) == ([1, 2, 3, 4], None)
    assert any("torn tail" in notice for notice in notices)
    damaged = bytearray(whole)
    damaged[ends[2] - 1] ^= 0x40
    segment.write_bytes(damaged)
    given, refused, _ = read_until_refused(tmp_path)
    assert given == [1, 2]
    assert isinstance(refused, Damaged)
    assert segment.name in str(refused)
    assert str(ends[1]) in str(refused)


def test_records_that_are_missing_are_never_caught_up_with(tmp_path: Path) -> None:
    """B107: without the fourth record a reader gives three, and says what is missing and what would come next."""
    segment, ends = five_records(tmp_path)
    whole = segment.read_bytes()
    segment.write_bytes(whole[: ends[2]] + whole[ends[3] :])
    given, refused, _ = read_until_refused(tmp_path)
    assert given == [1, 2, 3]
    assert isinstance(refused, MissingEvents)
    assert "8" in str(refused), "1 for the opening, 2 for each record: number 8 is missing"
    assert "10" in str(refused), "and number 10 is there"


def test_records_behind_a_torn_one_are_not_lost_at_the_next_start(tmp_path: Path) -> None:
    """B102: a stray byte, a restart, a record, a restart: nothing of either writer is missing."""
    segment, ends = five_records(tmp_path)
    segment.write_bytes(segment.read_bytes()[: ends[4]] + b"R")
    for number in (6, 7):
        with JournalWriter.open(tmp_path, Server(4, 4).journal.opened, resume=True) as writer:
            writer.append(Gap(number, "a record"))
            writer.end_command()
    given, refused, notices = read_until_refused(tmp_path)
    assert (given, refused) == ([1, 2, 3, 4, 5, 6, 7], None)
    assert any("torn tail: 1 bytes" in notice for notice in notices)


# -- figures and hashes ------------------------------------------------------------------------------------------------


def test_requests_that_warm_a_server_up_can_be_left_out_of_its_hit_rate() -> None:
    """B155: four cold requests of a warm-up, then one that hits 8 of 9 tokens: 8/9, not 8/45."""
    server = Server(4, 4)
    for letter in "abcd":
        server.end(server.start(text(letter, 0, 9)))
    server.end(server.start(text("d", 0, 9)))
    database = Database()
    events = [server.journal.opened, *server.journal.events]
    load_frames(database, "run", Rank(0), iter([Frame(FIRST, 0, 0, 1, events)]))
    connection = database.questioned()
    rates = [ask(connection, find("hit_rate"), values).rows[0] for values in ({}, {"warm_up": "4"})]
    assert [(row[2], row[3], row[4]) for row in rates] == [(5, 45, 8), (1, 9, 8)]


NONE_IN_EACH_PROCESS = """
from radixledger.cache.keys import namespace, raw_key
from radixledger.journal.redact import Redactor
redactor = Redactor(bytes(range(32)), 16)
spaces = [namespace(), namespace(extra_key=""), namespace(extra_key="None"), namespace(lora_id="1")]
print([redactor.namespace_hash(space).hex() for space in spaces], redactor.page_hashes(raw_key([1, 2, 3, 4])).hex())
"""


def test_hashes_are_the_same_in_every_process() -> None:
    """B157: neither the absence of a namespace nor a page depends on the process that hashes it."""
    said = {
        subprocess.run(
            [sys.executable, "-c", NONE_IN_EACH_PROCESS], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }  # fmt: skip
    assert len(said) == 1
    assert said.pop().count("'") == 8


def hits(tokens: list[int], cached_under: bytes, asked_under: Sequence[bytes]) -> list[int]:
    """What a prompt that was cached under one namespace gives under others."""
    rank = Server(4, 4).rank()
    key = raw_key(tokens)
    request = rank.admit("r", key, len(tokens), cached_under).request
    rank.extend(np.array([request]), np.array([len(tokens)], np.int32))
    rank.finish(request, key)
    return [int(rank.peek(key, space).tokens) for space in asked_under]


def test_adapters_are_told_apart_by_what_they_are() -> None:
    """B82: a prefix under (name x, id 1) is none under (x, 2), and an adapter's id is no part of anybody's own word."""
    spaces = [
        namespace(extra_key="x", lora_id="1"),
        namespace(extra_key="x", lora_id="2"),
        namespace(extra_key="y", lora_id="1"),
        namespace(extra_key="x1"),
    ]
    assert hits(text("a", 0, 8), spaces[0], spaces) == [8, 0, 0, 0]


def test_content_identities_that_share_their_last_digits_are_two() -> None:
    """B86: an image is named by its whole digest; that the last 16 bits of two are the same says nothing."""
    spaces = [namespace(extra_key="9f3a" * 15 + "beef"), namespace(extra_key="0c41" * 15 + "beef")]
    assert hits(text("a", 0, 8), spaces[0], spaces) == [8, 0]
