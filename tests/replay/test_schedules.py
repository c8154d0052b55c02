"""The commands of a journal, performed again, decide what they decided: on every route, in any key mode."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from radixledger.cache.rank import RankCache
from radixledger.journal import events as e
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank, Seq
from radixledger.journal.writer import Policy
from radixledger.replay.fold import opened_state
from radixledger.replay.reading.recorded import Reader, Recorded
from radixledger.replay.schedule import commands as c
from radixledger.replay.schedule.letters import Alphabet, letter
from radixledger.replay.schedule.names import Unplayable
from radixledger.replay.schedule.setting import spelling_of, stage_for

from .. import witnesses
from ..cache.driven import CHUNK_SHAPES, FULL_SHAPES, SHAPES, STATE_SHAPES, Driven, FrameList
from ..machine import SETTINGS
from ..mutants.desk import SMALL, Desk, opened
from ..test_machine import by_seed
from .runs import written

DRIVEN = [
    *((route, shape) for route in ("unified", "legacy") for shape in SHAPES),
    *(("radix", shape) for shape in (*FULL_SHAPES, *STATE_SHAPES)),
    *CHUNK_SHAPES.items(),
]
PLAYED = (
    "page 1, window 4", "page 4, window 4, tight, materialise", "page 4, window 7, pairs, tight, materialise",
    "page 128, window 200, tight, by use, two ranks", "page 4, window 6, slru", "radix, page 16, priority",
    "radix, page 4, pairs", "chunk, page 16", "chunk, page 1, window 3", "legacy, page 4, window 6, tight, two ranks",
    "states, page 1, many rows", "states tracked, page 128", "copies, page 1, through at once", "copies, page 128, back",
)  # fmt: skip
"""One setting of each kind; pages that a writer which goes on was told of are no rank's to name."""
OF_THE_WRITER = (e.Refused, e.Digested, e.Closed, e.Snapshotted)


def commands_of(frames: Iterable[Frame]) -> list[Recorded]:
    """The commands of the last epoch of some frames, which begin with `Opened`, in order; empty for none."""
    reader: Reader | None = None
    recorded: list[Recorded] = []
    for frame in frames:
        first = frame.events[0]
        if isinstance(first, e.Opened):
            reader, recorded = Reader(opened_state(first, frame.seq_first)), []
            frame = frame._replace(seq_first=Seq(frame.seq_first + 1), events=frame.events[1:])
        if reader is not None:
            recorded += reader.read(frame)
    return reader.completed(recorded) if reader is not None else []


def performed(frames: Iterable[Frame]) -> list[Recorded]:
    """Perform all commands of a journal on a stage of their own; each has to decide what it decided."""
    frames = list(frames)
    recorded = commands_of(frames)
    first = frames[0].events[0]
    assert isinstance(first, e.Opened)
    stage = stage_for(first, [each.command for each in recorded])
    for each in recorded:
        if each.command is None:
            assert all(isinstance(event, OF_THE_WRITER) for event in each.events), each
            continue
        stage.perform(each.command)
        assert stage.told == each.told, each
    return recorded


@pytest.mark.parametrize(("route", "shape"), DRIVEN)
def test_a_driven_journal_is_decided_again(route: str, shape: tuple[int, ...]) -> None:
    """J18: no event is told of that no command makes again, and none is missing."""
    recorded = performed(Driven(3, shape, route=route).run(200).journal.frames)
    assert sum(each.command is not None for each in recorded) > 100


class FramedTape(witnesses.Tape):
    """A tape that remembers where each command ended."""

    def __init__(self, first: e.Opened) -> None:
        super().__init__(first)
        self.frames = [Frame(Seq(1), 0, 0, 1, [first])]

    def end_command(self) -> None:
        self.frames.append(Frame(Seq(len(self.events) + 2), 0, 0, 1, list(self.open)))
        super().end_command()


@pytest.mark.parametrize("setting", PLAYED)
def test_a_play_of_every_command_is_decided_again(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """J18: faces, states, copies, pairs of tokens, strangers' inserts."""
    monkeypatch.setattr(witnesses, "Tape", FramedTape)
    for player in by_seed(SETTINGS[setting], 2, 60).players:
        tape = player.sides.tape
        assert isinstance(tape, FramedTape)
        performed(tape.frames)


@pytest.mark.parametrize("redaction", ["plain", "hashed"])
@pytest.mark.parametrize("policy", [Policy.OPERATION, Policy.STEP])
def test_a_journal_on_disk_gives_its_commands_whatever_its_keys_and_frames(
    tmp_path: Path, redaction: str, policy: Policy
) -> None:
    """J18, N18: hashes share what pages share, and nothing else of a key is asked."""
    written(tmp_path / "run", 120, redaction=redaction, policy=policy)
    recorded = performed(JournalReader(tmp_path / "run", Rank(0)).frames())
    assert {type(each.command) for each in recorded} >= {c.Admit, c.Extend, c.Finish, c.Evict, c.Keep}


def test_a_schedule_reads_like_what_was_asked() -> None:
    tape = FrameList(opened(SMALL))
    desk = Desk(RankCache(tape.opened, tape))
    desk.serve("first", "abcd")
    desk.admit("second", "abxy", 15)
    desk.grow("second", 4)
    desk.abort("second")
    asked = [each.command for each in commands_of(tape.frames) if each.command]
    assert [spelling_of(asked).command(each) for each in asked] == [
        c.Admit("r1", "abc", 16),
        c.Extend({"r1": 16}),
        c.Finish("r1", "abcd"),
        c.Admit("r2", "abe", 15),
        c.Extend({"r2": 4}),
        c.Abort("r2"),
    ]


def test_what_another_decided_is_taken_by_its_names() -> None:
    frames = Driven(5, SHAPES[1]).run(150).journal.frames
    recorded = commands_of(frames)
    first = frames[0].events[0]
    assert isinstance(first, e.Opened)
    stage, told = (stage_for(first, [each.command for each in recorded]) for _ in range(2))
    for each in recorded:
        if each.command is None:
            continue
        told.perform(each.command)
        stage.names.foretold_by(told.names)
        taken = stage.take(each.command, each.told)
        assert stage.told == each.told
        assert [type(event) for event in taken] == [type(event) for event in each.events]
    assert not stage.rank.state.findings


def test_a_name_that_means_nothing_is_turned_down_before_anything_is_asked() -> None:
    stage = stage_for(opened(SMALL), [c.Admit("r1", "ab", 9)])
    for command in (c.Finish("r1"), c.Lock("l1", "ab"), c.Free(["a1.0"]), c.Unlock("l1"), c.Gather("t1")):
        with pytest.raises(Unplayable):
            stage.perform(command)
    assert stage.rank.state.seq == 1


def test_letters_go_on_behind_the_latin_ones_and_keys_of_pairs_follow_from_each_other() -> None:
    assert len({letter(number) for number in range(70_000)}) == 70_000
    pairs = Alphabet(replace(SMALL, page_size=1, key_mode="bigram"), ["abac"])
    assert pairs.spelled(pairs.key_of("abac")) == "abac"
