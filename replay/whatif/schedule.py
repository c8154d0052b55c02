"""The recorded schedule of one rank: who asked for what and who grew when, whatever the cache made of it.

Not a journal: it names no page and no node, so it can be sent through any configuration. Growth is told as the position
that a request reached, not as tokens, because a request that finds more in another cache has less to compute. It
lies in a folder of three files, is written once and read by many processes. Rule: memory grows with the requests
that are live, and by 8 bytes for each that ever was.
"""

from array import array
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from radixledger.journal.events import Opened

ACTS_TOGETHER = 512
"""Acts that are coded as one piece."""


class Admit(Struct, frozen=True, array_like=True, gc=False, tag=1):
    """Job `job` was admitted, with `prompt` tokens by now, and found `hit` of them.

    crowded: by the rule that a redrive admits by, it would have waited, so that rule is not this server's.
    """

    job: int
    prompt: int
    hit: int
    force_miss: bool = False
    crowded: bool = False


class Grow(Struct, frozen=True, array_like=True, gc=False, tag=2):
    """A step: job `jobs[i]` reached token `to[i]`; packed int32. The same again, a token further, `times` times in all."""

    jobs: bytes
    to: bytes
    decode: bool
    times: int = 1


class Keep(Struct, frozen=True, array_like=True, gc=False, tag=3):
    """The first `tokens` tokens of a running job were given to the cache."""

    job: int
    tokens: int


class End(IntEnum):
    """How a job left its row."""

    FINISHED = 0
    RETRACTED = 1
    ABORTED = 2


class Leave(Struct, frozen=True, array_like=True, gc=False, tag=4):
    """A job gave its row back. in_vain: it was retracted after something had been evicted for the step, and that was not enough."""

    job: int
    how: int
    in_vain: bool = False


class Empty(Struct, frozen=True, array_like=True, gc=False, tag=5):
    """The tree was emptied on purpose."""


class Restart(Struct, frozen=True, array_like=True, gc=False, tag=6):
    """The rank began anew, with nothing in its pools; its numbers go on from event `seq`."""

    seq: int


Act = Admit | Grow | Keep | Leave | Empty | Restart


class Job(Struct, frozen=True, array_like=True, gc=False):
    """A request from its first admission to its end, through all retractions.

    tokens: the length that it reached. key: whole pages of its key, as far as anybody told, of the recorded page size
    and stride. given: pages of its key that the cache was given at its end; -1 where it has not finished.
    """

    rid: str
    namespace: bytes
    priority: int
    prompt: int
    tokens: int
    key: bytes
    given: int


class Schedule(Struct, frozen=True):
    """A schedule on disk, and what is worth knowing of it before it is read; passes from process to process."""

    folder: Path
    opened: Opened
    jobs: int
    steps: int
    chunk_tokens: int
    """The most prompt tokens of one step."""
    odd: tuple[str, ...]
    """Why, whatever the configuration, a redrive of it is an estimate."""

    def acts(self) -> Iterator[Act]:
        """What was done, in order."""
        decode = msgspec.msgpack.Decoder(list[Act]).decode
        with (self.folder / "acts").open("rb") as file:
            while head := file.read(4):
                yield from decode(file.read(int.from_bytes(head, "little")))

    def job_of(self) -> Callable[[int], Job]:
        """A function that reads one job by its number."""
        places = np.fromfile(self.folder / "places", "<i8")
        path, decode = self.folder / "jobs", msgspec.msgpack.Decoder(Job).decode

        def job(number: int) -> Job:
            with path.open("rb") as file:
                file.seek(int(places[number]))
                return decode(file.read(int.from_bytes(file.read(4), "little")))

        return job


class ScheduleWriter:
    """Puts a schedule down in an empty folder that is there already; raises OSError where the disk is full."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._acts = (folder / "acts").open("wb")
        self._jobs = (folder / "jobs").open("wb")
        self._places = array("q")
        self._together: list[Act] = []
        self._step: tuple[bytes, Grow, int] | None = None
        """The last act, if it was a step that may be done again: by what it is known, and how often it was done."""
        self._encode = msgspec.msgpack.Encoder().encode
        self._odd: dict[str, None] = {}
        self.steps = 0

    def new_job(self) -> int:
        """The number of the next job."""
        self._places.append(-1)
        return len(self._places) - 1

    def tell(self, act: Act) -> None:
        """One act more."""
        self._end_step()
        self._add(act)

    def tell_step(self, known_by: bytes, step: Grow) -> None:
        """A step that may be done again."""
        self._end_step()
        self._step = known_by, step, 1

    def again(self, known_by: bytes) -> bool:
        """Whether the last act was the step known by this; then it was done once more, everybody a token further."""
        step = self._step
        if step is None or step[0] != known_by:
            return False
        self._step = known_by, step[1], step[2] + 1
        return True

    def note(self, why: str) -> None:
        """Why a redrive is an estimate, whatever the configuration."""
        self._odd[why] = None

    def end_job(self, number: int, job: Job) -> None:
        """All there is to say of a job, once."""
        self._places[number] = self._jobs.tell()
        _put(self._jobs, self._encode(job))

    def close(self, opened: Opened, chunk_tokens: int) -> Schedule:
        """The finished schedule."""
        self._end_step()
        self._flush()
        self._acts.close()
        self._jobs.close()
        with (self._folder / "places").open("wb") as file:
            self._places.tofile(file)
        return Schedule(self._folder, opened, len(self._places), self.steps, chunk_tokens, tuple(self._odd))

    def abandon(self) -> None:
        """Let the files go, whatever is in them."""
        self._acts.close()
        self._jobs.close()

    def _end_step(self) -> None:
        if self._step is not None:
            (_, step, times), self._step = self._step, None
            self._add(step if times == 1 else Grow(step.jobs, step.to, step.decode, times))

    def _add(self, act: Act) -> None:
        self.steps += act.times if isinstance(act, Grow) else 1
        self._together.append(act)
        if len(self._together) == ACTS_TOGETHER:
            self._flush()

    def _flush(self) -> None:
        if self._together:
            _put(self._acts, self._encode(self._together))
            self._together.clear()


def _put(file: BinaryIO, coded: bytes) -> None:
    file.write(len(coded).to_bytes(4, "little") + coded)


def numbers_in(packed: bytes) -> NDArray[np.int32]:
    """A packed int32 column, as an array that cannot be written."""
    return np.frombuffer(packed, "<i4")
