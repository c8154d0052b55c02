"""Triage of journals that are torn, flipped, cut, re-ordered, mixed or empty: the right event, or clearly none.

Whatever is done to the files, an event is named only if it is the first wrong one. J7, J8, J11, J14.
"""

import random
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixledger.journal import opening, segment
from radixledger.journal.errors import NoJournal
from radixledger.journal.writer import JournalWriter, Sealing
from radixledger.replay.triage.sentences import verdict
from radixledger.replay.triage.triage import RankTriage, triage
from radixledger.replay.verify import verify_rank
from radixledger.tools.drill import plant_double_free

from ..cache.driven import opened
from ..replay.runs import RANK, written
from .journals import copied

Damage = Callable[[random.Random, bytearray], bytes]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, int]]:
    """Wrong and lawful runs, live and sealed, in one segment and in many; each with its first wrong event, 0 for none."""
    folder = tmp_path_factory.mktemp("whole")
    written(folder / "lawful", 110, seed=11)
    planted = plant_double_free(folder / "lawful", folder / "wrong", RANK)
    out = {}
    for name, seq in (("lawful", 0), ("wrong", int(planted.second))):
        for form, sealing, size in (
            ("live", Sealing.NEVER, 1 << 20),
            ("live parts", Sealing.NEVER, 4_096),
            ("sealed parts", Sealing.INLINE, 4_096),
        ):
            out[f"{name}, {form}"] = copied(folder / name, folder / f"{name} {form}", rotate_bytes=size, sealing=sealing), seq  # fmt: skip
    return out


def segments(run: Path) -> list[Path]:
    """The files of rank 0, in order."""
    return sorted(path for path in (run / "rank-0000").iterdir() if path.suffix in (".seg", ".sealed"))


def first_event(found: RankTriage) -> int:
    """The first wrong event that was named, 0 for none."""
    return found.explained.first.seq if found.explained else 0


def frames_of(packed: bytes) -> list[bytes]:
    """The heading of a live segment, and its frames."""
    places = [0, *(at for at in range(len(packed)) if packed[at : at + 4] == b"RLFR"), len(packed)]
    return [packed[begin:end] for begin, end in pairwise(places)]


def torn(dice: random.Random, packed: bytearray) -> bytes:
    return bytes(packed[: dice.randrange(len(packed))])


def flipped(dice: random.Random, packed: bytearray) -> bytes:
    for _ in range(dice.choice((1, 1, 3, 20))):
        packed[dice.randrange(len(packed))] ^= 1 << dice.randrange(8)
    return bytes(packed)


def zeroed(dice: random.Random, packed: bytearray) -> bytes:
    begin = dice.randrange(len(packed))
    end = min(len(packed), begin + dice.randrange(1, 300))
    return bytes(packed[:begin]) + bytes(end - begin) + bytes(packed[end:])


def stuffed(dice: random.Random, packed: bytearray) -> bytes:
    at = dice.randrange(len(packed))
    return bytes(packed[:at]) + dice.randbytes(dice.randrange(1, 300)) + bytes(packed[at:])


def swapped(dice: random.Random, packed: bytearray) -> bytes:
    head, *frames = frames_of(bytes(packed))
    if len(frames) > 1:
        one, two = dice.randrange(len(frames)), dice.randrange(len(frames))
        frames[one], frames[two] = frames[two], frames[one]
    return head + b"".join(frames)


def repeated(dice: random.Random, packed: bytearray) -> bytes:
    head, *frames = frames_of(bytes(packed))
    if frames:
        frames.insert(dice.randrange(len(frames)), dice.choice(frames))
    return head + b"".join(frames)


def dropped(dice: random.Random, packed: bytearray) -> bytes:
    head, *frames = frames_of(bytes(packed))
    if frames:
        del frames[dice.randrange(len(frames))]
    return head + b"".join(frames)


DAMAGES: tuple[Damage, ...] = (torn, flipped, zeroed, stuffed, swapped, repeated, dropped)


@given(seed=st.integers(0, 2**32), damage=st.sampled_from(DAMAGES), data=st.data())
def test_random_damage_never_makes_triage_blame_another_event(
    seed: int,
    damage: Damage,
    data: st.DataObject,
    runs: dict[str, tuple[Path, int]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The first wrong event, one that followed from it where that one is lost, or none; of a lawful run never one."""
    run, seq = runs[data.draw(st.sampled_from(sorted(runs)))]
    wrong = {each.seq for each in verify_rank(run, RANK).findings}
    dice = random.Random(seed)
    spoiled = tmp_path_factory.mktemp("spoiled") / run.name
    shutil.copytree(run, spoiled)
    path = dice.choice(segments(spoiled))
    path.write_bytes(damage(dice, bytearray(path.read_bytes())))
    (found,) = triage([spoiled])
    shutil.rmtree(spoiled)
    assert verdict(found)
    assert first_event(found) in {0, seq} | wrong, verdict(found)
    assert (found.explained is None or not found.explained.first.by_pages) or found.report.unjudged
    assert found.kind != "leak"


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_behind_the_first_wrong_event_does_not_hide_it(
    damage: Damage, runs: dict[str, tuple[Path, int]], tmp_path: Path
) -> None:
    """It salvages by itself, and says what it read around."""
    run, seq = runs["wrong, live parts"]
    shutil.copytree(run, tmp_path / "run")
    path = segments(tmp_path / "run")[-2]
    assert int(path.stem) > seq
    path.write_bytes(damage(random.Random(3), bytearray(path.read_bytes())))
    (found,) = triage([tmp_path / "run"])
    assert first_event(found) == seq
    assert found.damage


def test_a_torn_tail_is_no_damage(runs: dict[str, tuple[Path, int]], tmp_path: Path) -> None:
    """A killed process leaves one: what was acknowledged is there."""
    for name, kind in (("lawful, live", "clean"), ("wrong, live", "wrong")):
        run = shutil.copytree(runs[name][0], tmp_path / name)
        path = segments(run)[-1]
        path.write_bytes(path.read_bytes()[:-40])
        (found,) = triage([run])
        assert (found.kind, found.damage) == (kind, [])
        assert any(notice.startswith("torn tail") for notice in found.report.notices)


def test_swapped_segments_are_damage_and_no_violation(
    runs: dict[str, tuple[Path, int]], tmp_path: Path
) -> None:
    run = shutil.copytree(runs["lawful, live parts"][0], tmp_path / "run")
    one, two = segments(run)[1:3]
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    (found,) = triage([run])
    assert found.kind == "damaged"
    assert any("the name says" in line for line in found.damage)


def test_a_segment_of_another_run_is_passed_over(runs: dict[str, tuple[Path, int]], tmp_path: Path) -> None:
    """Mixed folders: its events are not taken for ours."""
    run = shutil.copytree(runs["wrong, live parts"][0], tmp_path / "run")
    other = {path.name: path for path in segments(runs["lawful, live parts"][0])}
    path = segments(run)[-2]
    strange = sorted(other)[-2]
    path.unlink()
    shutil.copy(other[strange], path.with_name(strange))
    (found,) = triage([run])
    assert first_event(found) == runs["wrong, live parts"][1]
    assert any("stands among those of" in line for line in found.damage)


def test_a_newer_segment_ends_the_reading_and_names_its_version(
    runs: dict[str, tuple[Path, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J5: what stands before it is judged all the same."""
    for name, kind in (("lawful, live parts", "unreadable"), ("wrong, live parts", "wrong")):
        run = shutil.copytree(runs[name][0], tmp_path / name)
        path = segments(run)[-1]
        with monkeypatch.context() as patch:
            patch.setattr(segment, "FORMAT_VERSION", 3)
            JournalWriter.open(tmp_path / f"{name} newer", opened(), sealing=Sealing.NEVER).close()
        path.write_bytes(segments(tmp_path / f"{name} newer")[0].read_bytes())
        (found,) = triage([run])
        assert found.kind == kind
        assert "needs a radixledger that reads file format version 3" in " ".join(verdict(found))
        assert found.report.events > 0


def test_a_run_of_a_newer_vocabulary_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(opening, "SCHEMA_VERSION", 7)
        JournalWriter.open(tmp_path / "run", opened(), sealing=Sealing.NEVER).close()
    (found,) = triage([tmp_path / "run"])
    assert found.kind == "unreadable"
    assert "vocabulary version 7" in verdict(found)[0]


@pytest.mark.parametrize("size", [0, 7, 60])
def test_an_empty_journal_says_that_it_is(
    size: int, runs: dict[str, tuple[Path, int]], tmp_path: Path
) -> None:
    run = shutil.copytree(runs["lawful, live"][0], tmp_path / "run")
    path = segments(run)[0]
    path.write_bytes(path.read_bytes()[:size])
    (found,) = triage([run])
    assert found.kind == "unreadable"
    assert "no event was written" in verdict(found)[0]
    path.unlink()
    (found,) = triage([run])
    assert "has no journal here" in verdict(found)[0]


def test_a_folder_without_journals_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(NoJournal):
            triage([folder])
