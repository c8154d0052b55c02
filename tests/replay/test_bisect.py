"""Bisection: the first command behind which something is so, by snapshots, by events, and command by command (J15)."""

import ast
from itertools import pairwise
from math import log2
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radixledger.cache import evolve
from radixledger.cache.digest import digest
from radixledger.cache.image import image
from radixledger.journal.disk import Disk
from radixledger.journal.events import Digested
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.snapshot import read_snapshot, write_snapshot
from radixledger.replay.laws import NOTICED, OF_STATES
from radixledger.replay.search.bisect import FOLDED_AT_ONCE, turned, turned_at
from radixledger.replay.search.every_command import first_event_that_broke, first_of_all, first_of_all_at
from radixledger.replay.search.found import of_laws
from radixledger.replay.search.predicate import Predicate
from radixledger.replay.seek import state_at

from ..mutants.caught import write
from ..mutants.table import MUTANTS
from .runs import RANK, written


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of many snapshots, and no digests beside them."""
    run = tmp_path_factory.mktemp("long") / "run"
    written(run, 900, snapshots=range(20, 900, 20))
    return run


def reader_of(run: Path) -> JournalReader:
    return JournalReader(run, RANK)


def commands(reader: JournalReader) -> list[Frame]:
    return list(reader.frames())


def test_what_is_so_from_a_number_on_is_found_at_its_command(long: Path) -> None:
    """J15: log n of n snapshots are looked at, then one stretch."""
    reader = reader_of(long)
    snapshots = len(reader.snapshots())
    frames = commands(reader)
    assert snapshots > 40
    for frame in frames[1 :: len(frames) // 25]:
        found = turned(reader, Predicate(f"seq >= {frame.seq_first}"))
        assert (found.first, found.last) == (frame.seq_first, frame.seq_first + len(frame.events) - 1)
        assert found.no_at == frame.seq_first - 1
        assert found.snapshots <= log2(snapshots) + 1
        assert found.looks <= found.snapshots + 1 + FOLDED_AT_ONCE
        assert (found.time_ns, found.step) == (frame.time_ns, frame.step)


def test_a_journal_without_snapshots_is_folded_and_halved(tmp_path: Path) -> None:
    written(tmp_path / "run", 900)
    reader = reader_of(tmp_path / "run")
    last = reader.last_seq
    assert last > 4 * FOLDED_AT_ONCE
    found = turned(reader, Predicate(f"seq >= {last - 300}"))
    assert found.first <= last - 300 <= found.last
    assert found.snapshots == 0
    assert found.looks < FOLDED_AT_ONCE + 10


@settings(max_examples=12, deadline=None)
@given(
    pages=st.integers(1, 40), what=st.sampled_from(["swa_evicted", "full_evicted", "tombstoned", "healed"])
)
def test_what_never_turns_back_is_found_by_halves_where_every_command_finds_it(
    long: Path, pages: int, what: str
) -> None:
    ask = Predicate(f"{what} >= {pages}")
    halves, every = turned(reader_of(long), ask), first_of_all(reader_of(long), ask)
    assert (halves.first, halves.last, halves.no_at) == (every.first, every.last, every.no_at)
    assert halves.detail == every.detail
    assert len(every.turns) == (1 if every.first else 0)


def test_what_turns_back_is_said_to(long: Path) -> None:
    """Requests come and go: halves find one place, every command the first and all turns."""
    reader, ask = reader_of(long), Predicate("requests == 3")
    every = first_of_all(reader, ask)
    assert len(every.turns) > 2
    assert [turn.now for turn in every.turns] == [number % 2 == 0 for number in range(len(every.turns))]
    assert every.turns[0].seq == every.last
    halves = turned(reader, ask)
    assert halves.first >= every.first
    assert halves.at_the_end == every.at_the_end
    if halves.first:
        yes_from = [turn.seq for turn in every.turns if turn.now]
        assert halves.last in yes_from, "a place where it turned, if not the first"


def test_what_is_never_so_is_not_found(long: Path) -> None:
    found = turned(reader_of(long), Predicate("full.free > full.capacity"))
    assert (found.first, found.last, found.at_the_end) == (0, 0, False)
    assert found.no_at == reader_of(long).last_seq
    assert found.snapshots == len(reader_of(long).snapshots())
    assert first_of_all(reader_of(long), Predicate("seq < 0")).first == 0


def test_what_was_so_before_the_journal_begins_is_so_from_its_beginning(long: Path, tmp_path: Path) -> None:
    """After retention a journal begins at a snapshot."""
    run = tmp_path / "kept"
    written(run, 300, snapshots=(100, 200), rotate_bytes=2_000)
    reader = reader_of(run)
    seq = reader.snapshots()[0].seq
    for path in reader.folder.iterdir():
        if path.suffix in (".sealed", ".seg") and int(path.stem) < seq - 100:
            path.unlink()
    assert reader_of(run).first_seq > 1
    for found in (
        turned(reader_of(run), Predicate("seq > 1")),
        first_of_all(reader_of(run), Predicate("seq > 1")),
    ):
        assert (found.first, found.no_at) == (seq, 0)


def test_a_snapshot_that_cannot_be_read_is_passed_over_and_told(long: Path, tmp_path: Path) -> None:
    written(tmp_path / "run", 300, snapshots=range(20, 300, 20))
    reader = reader_of(tmp_path / "run")
    for ref in reader.snapshots()[2:9]:
        ref.path.write_bytes(ref.path.read_bytes()[:-9])
    frame = commands(reader)[150]
    found = turned(reader, Predicate(f"seq >= {frame.seq_first}"))
    assert found.first == frame.seq_first
    assert found.notices


def test_a_snapshot_that_says_otherwise_than_the_events_is_told(tmp_path: Path) -> None:
    written(tmp_path / "run", 200, snapshots=(100,))
    reader = reader_of(tmp_path / "run")
    (ref,) = reader.snapshots()
    head, state = read_snapshot(ref.path).head, state_at(reader, ref.seq)
    state.totals.full_evicted += 1000
    ref.path.unlink()
    write_snapshot(
        ref.path, image(state), Disk(), run=head.run, rank=head.rank, epoch=head.epoch, seq=head.seq, time_ns=head.time_ns,
        digest=digest(state), chain=head.chain,
    )  # fmt: skip
    found = turned(reader, Predicate(f"seq == {ref.seq} and full_evicted >= 1000"))
    assert (found.first, found.contradicted) == (0, ref.seq)


@pytest.mark.parametrize("name", [*MUTANTS][::9])
def test_the_law_that_a_wrong_server_broke_is_found_at_the_event_that_was_predicted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J14, J15: its journal has no digest, no snapshot, and no word of a law."""
    mutant = MUTANTS[name]
    mutant.change(monkeypatch)
    predicted = write(tmp_path / name, mutant)
    monkeypatch.undo()
    reader = reader_of(tmp_path / name)
    assert not any(isinstance(event, Digested) for frame in reader.frames() for event in frame.events)
    if mutant.law in OF_STATES:
        found = turned(reader, of_laws([OF_STATES[mutant.law]]))
    else:
        found = first_event_that_broke(reader, mutant.law)
    assert predicted is not None
    assert found.first <= predicted <= found.last
    assert mutant.law in found.detail


def test_the_laws_that_folding_notices_are_all_named() -> None:
    """The table is what `cache/evolve.py` and `cache/fold/` note, and nothing else."""
    noted: set[str] = set()
    assert evolve.__file__
    cache = Path(evolve.__file__).parent
    for path in (cache / "evolve.py", *sorted((cache / "fold").glob("[!_]*.py"))):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="note"), args=[_, ast.Constant(value=str() as law), *_]):
                    noted.add(law)
                case ast.Assign(targets=[ast.Name(id="law")], value=ast.Constant(value=str() as law)):
                    noted.add(law)
                case _:
                    pass
    assert set(NOTICED) == noted


@pytest.mark.parametrize("wanted", [1, 2, 17, 500, 10_000])
def test_what_is_asked_of_all_events_up_to_a_number_is_found_by_halves(long: Path, wanted: int) -> None:
    reader = reader_of(long)
    asked: list[int] = []

    def ask(seq: int) -> str:
        asked.append(seq)
        return "enough" if seq >= wanted else ""

    found = turned_at(reader, ask)
    if wanted > reader.last_seq:
        assert (found.first, found.no_at, asked) == (0, reader.last_seq, [reader.last_seq])
        return
    assert (found.first, found.no_at) == (wanted, wanted - 1)
    assert len(asked) <= log2(reader.last_seq) + 5
    every = first_of_all_at(reader, ask)
    assert every.first <= wanted <= every.last
    assert all(earlier < later for earlier, later in pairwise(turn.seq for turn in every.turns))


def test_a_query_that_has_rows_of_nothing_is_so_from_the_beginning(long: Path) -> None:
    found = turned_at(reader_of(long), lambda _: "always")
    assert (found.first, found.no_at) == (1, 0)
