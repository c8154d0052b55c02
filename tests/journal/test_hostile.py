"""Files that somebody made up, with checksums that are right: they can do no more than fail (J7)."""

import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from radixledger.journal import seal as sealing_module
from radixledger.journal import snapshot as snapshot_module
from radixledger.journal.block import encode_block
from radixledger.journal.codec import Encoder
from radixledger.journal.disk import Disk
from radixledger.journal.doctor import Verdict, examine
from radixledger.journal.errors import Damaged, MissingEvents, NoJournal, ReaderError
from radixledger.journal.events import AnyEvent, Closed, Gap, GroupOpened
from radixledger.journal.folder import listing, open_segment, rank_folder, ranks_in
from radixledger.journal.frame import RawFrame, chain_after
from radixledger.journal.live import LiveWriter
from radixledger.journal.reader import JournalReader
from radixledger.journal.recover import recover
from radixledger.journal.seal import seal
from radixledger.journal.sealed import Footer, encode_footer
from radixledger.journal.segment import Form, Heading, encode_heading
from radixledger.journal.units import Rank, Seq
from radixledger.journal.writer import Sealing

from .written import RANK, append, frames_in, new_writer, read, segment_paths, some_commands, write

COMMANDS = some_commands(24)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One sealed segment of several blocks."""
    monkeypatch.setattr(sealing_module, "BLOCK_BYTES", 300)
    run = tmp_path / "run"
    write(run, COMMANDS)
    return run


def salvaged(run: Path) -> tuple[int, int]:
    """Events that are there and events that gaps stand for, each number accounted for once; it comes to an end."""
    expected, there, lost = 1, 0, 0
    for frame in JournalReader(run, RANK, salvage=True).frames():
        for seq, event in enumerate(frame.events, frame.seq_first):
            if isinstance(event, Gap):
                assert seq == expected + event.lost - 1
                lost += event.lost
            else:
                assert seq == expected
                there += 1
            expected = seq + 1
    return there, lost


def read_events(run: Path) -> list[AnyEvent]:
    return [event for events in read(run) for event in events]


def taken_apart(run: Path) -> tuple[Path, Heading, list[bytes], Footer]:
    """A sealed segment as its heading, its blocks and its footer."""
    (path,) = segment_paths(run)
    whole = path.read_bytes()
    segment = open_segment(listing(path.parent).segments[0])
    heading = segment.heading
    segment.close()
    footer_at = whole.index(b"RLFT")
    offsets = [at for at in range(len(whole)) if whole.startswith(b"RLBK", at) and at < footer_at]
    blocks = [whole[at:end] for at, end in zip(offsets, [*offsets[1:], footer_at], strict=True)]
    footer = msgspec.msgpack.decode(whole[footer_at + 12 : -16], type=Footer)
    return path, heading, blocks, footer


def put_together(path: Path, heading: Heading, blocks: list[bytes], footer: Footer) -> None:
    body = b"".join((encode_heading(heading, Form.SEALED), *blocks))
    path.write_bytes(body + encode_footer(footer, len(body)))


def test_taking_apart_and_putting_together_changes_nothing(run: Path) -> None:
    path, heading, blocks, footer = taken_apart(run)
    whole = path.read_bytes()
    put_together(path, heading, blocks, footer)
    assert path.read_bytes() == whole
    assert len(blocks) > 3


@pytest.mark.parametrize("change", ["taken_out", "swapped", "twice", "last_taken_out"])
def test_blocks_that_were_moved_about_do_not_connect(run: Path, change: str) -> None:
    path, heading, blocks, footer = taken_apart(run)
    before = read(run)
    match change:
        case "taken_out":
            del blocks[1]
        case "swapped":
            blocks[1], blocks[2] = blocks[2], blocks[1]
        case "twice":
            blocks.insert(2, blocks[1])
        case _:
            blocks.pop()
    put_together(path, heading, blocks, footer)
    seen: list[list[AnyEvent]] = []
    with pytest.raises(Damaged) as damaged:
        seen.extend(frame.events for frame in JournalReader(run, RANK).frames())
    assert isinstance(damaged.value, MissingEvents) == (change != "twice")
    assert seen == before[: len(seen)]
    there, lost = salvaged(run)
    assert (there + lost, lost > 0) == (sum(map(len, before)), change != "twice")


@pytest.mark.parametrize("field", ["seq_next", "chain", "index"])
@pytest.mark.parametrize("up", [False, True])
def test_a_footer_that_lies_is_found_out_and_salvage_comes_to_an_end(run: Path, field: str, up: bool) -> None:
    path, heading, blocks, footer = taken_apart(run)
    before = read(run)
    index = np.frombuffer(footer.index, "<u8").copy()
    index[-1] = 2**63 if up else 0
    lies: dict[str, object] = {
        "seq_next": footer.seq_next + (5 if up else -5),
        "chain": bytes(16),
        "index": index.tobytes() if up else footer.index[:-1],
    }
    put_together(path, heading, blocks, replace(footer, **{field: lies[field]}))
    reader = JournalReader(run, RANK)
    if field == "index":
        assert [frame.events for frame in reader.frames()] == before
        assert "rebuilt by scanning" in reader.notices[0]
        assert next(reader.frames(Seq(9))).seq_first == 9
    else:
        with pytest.raises(Damaged):
            list(reader.frames())
        there, lost = salvaged(run)
        assert there == sum(map(len, before))
        assert lost == (5 if field == "seq_next" and up else 1)


def test_an_index_that_leads_to_the_wrong_block_is_found_out(run: Path) -> None:
    path, heading, blocks, footer = taken_apart(run)
    index = np.frombuffer(footer.index, "<u8").reshape(-1, 3).copy()
    index[1:-1, 2] = index[1:-1, 2] + 1
    put_together(path, heading, blocks, replace(footer, index=index.tobytes()))
    reader = JournalReader(run, RANK)
    last = reader.last_seq
    with pytest.raises(Damaged):
        for seq in range(1, last + 1):
            next(reader.frames(Seq(seq)))
    assert JournalReader(run, RANK, salvage=True).last_seq == last


def test_frames_edited_inside_a_block_whose_seal_was_made_anew_are_found_by_the_doctor(run: Path) -> None:
    """J7: the block fits its neighbours, but the chain of its frames does not end where the next one begins."""
    path, heading, blocks, footer = taken_apart(run)
    segment = open_segment(listing(path.parent).segments[0])
    raws: list[RawFrame] = []
    chains = [heading.chain]
    chain = heading.chain
    for raw in frames_in(segment):
        raws.append(raw)
        chain = chain_after(raw, chain)
        chains.append(chain)
    segment.close()
    count = int(np.frombuffer(blocks[0][20:24], "<u4")[0])
    edited = raws[:count]
    edited[1] = edited[1]._replace(time_ns=edited[1].time_ns + 1)
    put_together(path, heading, [encode_block(edited, heading.chain, chains[count]), *blocks[1:]], footer)
    assert salvaged(run) == (len(read_events(run)), 0), "reading goes by the block"
    report = examine(run, RANK)
    assert report.segments[0].verdict is Verdict.DAMAGED
    assert "frames inside were edited" in report.segments[0].problems[-1]


def forged_frames(run: Path, *bodies: bytes, **heading_fields: object) -> None:
    """A live segment with honest checksums around whatever bodies."""
    write(run, [], sealing=Sealing.NEVER)
    (path,) = segment_paths(run)
    segment = open_segment(listing(path.parent).segments[0])
    heading, (first,) = segment.heading, segment.read()
    segment.close()
    path.unlink()
    writer = LiveWriter(path.parent, replace(heading, **heading_fields), Disk())
    writer.append_raw(first)
    for body in bodies:
        writer.append(body, writer.seq_next, 2, 0, 0)
    writer.close()


def test_a_body_that_is_no_events_is_damage_and_costs_its_frame(tmp_path: Path) -> None:
    good = Encoder().encode([GroupOpened(), GroupOpened()])
    bad = msgspec.msgpack.encode([[9999, 1], [9999, 2]])
    forged_frames(tmp_path, good, bad, good)
    with pytest.raises(Damaged, match="does not hold what it says") as damaged:
        read(tmp_path)
    assert damaged.value.after == 3
    assert salvaged(tmp_path) == (5, 2)
    report = examine(tmp_path, RANK)
    assert (report.segments[0].verdict, report.segments[0].lost) == (Verdict.DAMAGED, 2)
    done = recover(tmp_path, RANK, tmp_path / "copy")
    assert (done.events, done.lost) == (5, 2)
    assert examine(tmp_path / "copy", RANK).segments[0].verdict is Verdict.GAPPED


DEEP = b"\x91" * 20_000 + b"\xc0"
"""One value, in more lists than anybody's stack has room for."""


def swollen(record: Any) -> Any:
    """The record with a field too many, which a reader passes over."""
    kind = msgspec.defstruct(
        "Swollen", [("beyond", msgspec.Raw, msgspec.Raw(DEEP))], bases=(type(record),), array_like=True
    )
    return kind(*(getattr(record, field) for field in record.__struct_fields__))


def test_a_body_that_is_nested_without_end_is_damage(tmp_path: Path) -> None:
    good = Encoder().encode([GroupOpened(), GroupOpened()])
    forged_frames(tmp_path, good, Encoder().encode([swollen(Gap(1, "")), GroupOpened()]), good)
    with pytest.raises(Damaged, match="does not hold what it says"):
        read(tmp_path)
    assert salvaged(tmp_path) == (5, 2)


def test_a_heading_that_is_nested_without_end_is_damage(run: Path) -> None:
    path, heading, blocks, footer = taken_apart(run)
    put_together(path, swollen(heading), blocks, footer)
    with pytest.raises(Damaged, match="the heading cannot be read"):
        read(run)
    assert examine(run, RANK).segments[0].verdict is Verdict.UNREADABLE


def test_a_footer_that_is_nested_without_end_costs_a_notice(run: Path) -> None:
    before = read(run)
    path, heading, blocks, footer = taken_apart(run)
    put_together(path, heading, blocks, swollen(footer))
    assert read(run) == before


def test_a_snapshot_that_is_nested_without_end_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = snapshot_module.SnapshotHead
    with new_writer(tmp_path) as writer, monkeypatch.context() as during:
        during.setattr(snapshot_module, "SnapshotHead", lambda *fields: swollen(head(*fields)))
        path = writer.write_snapshot(b"", b"")
    with pytest.raises(Damaged, match="the head cannot be read"):
        snapshot_module.read_snapshot(path)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("schema", 0, "the name says"),
        ("schema", -3, "the name says"),
        ("chain", b"short", "the name says"),
        ("rank", Rank(7), "rank 7"),
        ("opened", b"", "the first heading"),
        ("opened", Encoder().encode([Closed(b"")]), "headed by Opened, this one by Closed"),
    ],
)
def test_a_heading_that_cannot_be_is_refused(tmp_path: Path, field: str, value: object, says: str) -> None:
    forged_frames(tmp_path, **{field: value})
    reader = JournalReader(tmp_path, RANK)
    with pytest.raises(Damaged, match=says):
        list(reader.frames())
        _ = reader.opened


def test_a_heading_of_something_else_is_refused(tmp_path: Path) -> None:
    folder = rank_folder(tmp_path, RANK)
    folder.mkdir(parents=True)
    path = folder / f"{1:020d}.seg"
    for content in (b"x" * 100, msgspec.msgpack.encode({"run": 1}) * 30):
        path.write_bytes(content)
        with pytest.raises(Damaged, match="no segment of a journal"):
            read(tmp_path)
    path.write_bytes(b"RLED")
    with pytest.raises(NoJournal, match="no event was written"):
        _ = JournalReader(tmp_path, RANK).opened


def test_an_unfinished_heading_in_the_middle_is_damage(tmp_path: Path) -> None:
    write(tmp_path, COMMANDS, rotate_bytes=2_000, sealing=Sealing.NEVER)
    paths = segment_paths(tmp_path)
    before = read(tmp_path)
    paths[2].write_bytes(paths[2].read_bytes()[:40])
    with pytest.raises(Damaged, match="inside its heading"):
        read(tmp_path)
    there, lost = salvaged(tmp_path)
    assert there + lost == sum(map(len, before))
    assert lost == int(paths[3].stem) - int(paths[2].stem)
    report = examine(tmp_path, RANK)
    assert report.segments[2].verdict is Verdict.DAMAGED


def test_salvage_can_begin_behind_damage(tmp_path: Path) -> None:
    write(tmp_path, COMMANDS, sealing=Sealing.NEVER)
    (path,) = segment_paths(tmp_path)
    whole = bytearray(path.read_bytes())
    second = whole.index(b"RLFR", whole.index(b"RLFR") + 1)
    whole[second + 20] ^= 1
    path.write_bytes(whole)
    reader = JournalReader(tmp_path, RANK, salvage=True)
    everything = list(reader.frames())
    for frame in everything[3:]:
        assert list(reader.frames(frame.seq_first)) == everything[everything.index(frame) :]
    with pytest.raises(Damaged):
        list(JournalReader(tmp_path, RANK).frames(everything[3].seq_first))


def test_a_segment_that_is_sealed_between_a_look_and_a_read_is_read_sealed(tmp_path: Path) -> None:
    written = write(tmp_path, COMMANDS[:3], sealing=Sealing.NEVER)
    (listed,) = listing(rank_folder(tmp_path, RANK)).segments
    seal(listed, Disk())
    segment = open_segment(listed)
    assert segment.heading.seq_first == 1
    assert len(frames_in(segment)) == len(written)
    segment.close()


def test_a_segment_that_is_dropped_while_it_is_followed_is_missed(tmp_path: Path) -> None:
    """B107."""
    with new_writer(tmp_path) as writer:
        append(writer, COMMANDS[0])

        def fall_behind() -> bool:
            start = writer.next_seq
            for command in COMMANDS[1:3]:
                writer.rotate()
                append(writer, command)
            next(path for path in segment_paths(tmp_path) if int(path.stem) == start).unlink()
            return True

        with pytest.raises(MissingEvents):
            list(JournalReader(tmp_path, RANK).follow(wait=fall_behind))


def test_all_errors_of_reading_have_one_parent(run: Path) -> None:
    with pytest.raises(ReaderError):
        JournalReader(run, Rank(9))


@pytest.mark.parametrize("suffix", [".sealed", ".snap"])
@pytest.mark.parametrize("thing", ["pipe", "device", "folder"])
def test_what_only_has_the_name_of_a_file_is_neither_waited_for_nor_read(
    run: Path, thing: str, suffix: str
) -> None:
    path = rank_folder(run, RANK) / f"{1:020d}{suffix}"
    path.unlink(missing_ok=True)
    {"pipe": os.mkfifo, "device": lambda at: at.symlink_to("/dev/zero"), "folder": Path.mkdir}[thing](path)
    with pytest.raises(Damaged, match="no regular file"):
        _ = read(run) if suffix == ".sealed" else snapshot_module.read_snapshot(path)


def test_a_rank_has_one_folder_and_others_of_its_number_are_none(run: Path) -> None:
    """J2: a copy that somebody named alike is not the same rank once more."""
    for name in ("rank-00000", "rank-0", "rank-\N{FULLWIDTH DIGIT ZERO}000", "rank-x"):
        (run / name).mkdir()
    assert ranks_in(run) == [RANK]


@pytest.mark.parametrize("kept", [0, 1, 11, 12, 13, 60])
def test_a_sealed_segment_that_lost_its_middle_is_salvaged_up_to_there(run: Path, kept: int) -> None:
    """J7: its last bytes may still say where a footer stood, though there is no room for one behind that place."""
    everything = sum(map(len, read(run)))
    (path,) = segment_paths(run)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"RLFT") + kept] + whole[-16:])
    assert salvaged(run)[0] == everything
    path.write_bytes(whole[: whole.index(b"RLBK") + 300] + whole[-16:])
    with pytest.raises(Damaged):
        read(run)
    assert salvaged(run)[0] < everything
    assert examine(run, RANK).segments[0].verdict is Verdict.DAMAGED


@pytest.mark.parametrize("sealing", [Sealing.INLINE, Sealing.NEVER])
@pytest.mark.parametrize("place", [2, 5, 30, 1000])
def test_a_segment_under_a_name_that_is_not_its_own_costs_no_event_its_second_telling(
    tmp_path: Path, place: int, sealing: Sealing
) -> None:
    """J11: a copy that somebody put between the segments is damage; salvage goes around it and tells nothing twice."""
    write(tmp_path, COMMANDS, rotate_bytes=2_000, sealing=sealing)
    paths = segment_paths(tmp_path)
    for path in (paths[0], paths[-1]):
        copy = path.with_name(f"{place:020d}{path.suffix}")
        if not copy.exists():
            copy.write_bytes(path.read_bytes())
            with pytest.raises(ReaderError):
                read(tmp_path)
            assert salvaged(tmp_path)[0] > 0
            copy.unlink()
