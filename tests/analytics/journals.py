"""Journals on disk for the tests of loading: stories, written by the real writer."""

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from radixledger.journal.events import Gap, Opened
from radixledger.journal.frame import Frame
from radixledger.journal.writer import JournalWriter, Sealing

from .story import STEP_NS, Story, emptied, faces, first_request, pressure, second_request, states


class Clock:
    """A millisecond later at every look."""

    def __init__(self, begin_ns: int = 0) -> None:
        self.now_ns = begin_ns

    def __call__(self) -> int:
        self.now_ns += STEP_NS
        return self.now_ns


def one_epoch(rank: int = 0) -> Story:
    """A healthy story without a restart, and without an end."""
    story = Story(rank=rank)
    for chapter in (first_request, second_request, pressure, faces, emptied):
        chapter(story)
    return story


def begin(run: Path, story: Story, *, begin_ns: int = 0) -> JournalWriter:
    """A writer for the story's rank under `run`, which has written its `Opened`; goes on with what is there."""
    opened = story.frames[0].events[0]
    assert isinstance(opened, Opened)
    return JournalWriter.open(
        run, replace(opened, run="", epoch=0, redaction="plain"), clock=Clock(begin_ns), sealing=Sealing.INLINE, resume=True
    )  # fmt: skip


def tell_the_rest(writer: JournalWriter) -> None:
    """What the story of one epoch has nothing of: states of a recurrent model, and a gap."""
    story = Story()
    story.frames.clear()
    states(story)
    tell(writer, story.frames)
    writer.append(Gap(1, "told"))
    writer.end_command()


def tell(writer: JournalWriter, frames: Iterable[Frame]) -> None:
    """Write these frames, one command each, but for an `Opened`, which is the writer's."""
    for frame in frames:
        events = [event for event in frame.events if not isinstance(event, Opened)]
        for event in events:
            writer.append(event)
        if events:
            writer.end_command()


def write(run: Path, *stories: Story) -> Path:
    """Whole stories as the journals of their ranks under `run`."""
    for story in stories:
        with begin(run, story) as writer:
            tell(writer, story.frames)
    return run
