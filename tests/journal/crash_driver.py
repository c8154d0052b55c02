"""A process that forks writers which are killed, on order, at a certain call to the disk.

Lines of JSON come in on stdin, each an `Order`; for each one a child drives a journal and acknowledges on a pipe
what its writer has accepted, until SIGKILL ends it in the middle of the call that the order names. This parent
holds what it read from the pipe and answers with one line of JSON, an `Outcome`. One process for all
orders: an interpreter takes longer to start than a child to die.
"""

import os
import signal
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import msgspec

from radixledger.journal.disk import Disk
from radixledger.journal.events import AnyEvent, Snapshotted
from radixledger.journal.retention import Retention
from radixledger.journal.writer import Policy, Sealing

from .written import append, new_writer, some_commands

COMMANDS_PER_SNAPSHOT = 9
ROTATE_BYTES = 3_000
KEEP_BYTES = 5_000
COMMANDS_MAX = 200


class Order(msgspec.Struct, frozen=True):
    """Kill at the `nth` disk call of `phase`: `before` it, `after` it, or `half` way through a write."""

    run: str
    phase: str
    nth: int
    when: str
    policy: Policy
    sealing: Sealing


class Outcome(msgspec.Struct, frozen=True):
    """How the child ended, and the last number that it acknowledged."""

    killed: bool
    acknowledged: int


class DeadlyDisk(Disk):
    """Knows from a file's name what the writer is about, and ends the process at the call that was ordered."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._calls = 0
        self._phases: dict[int, str] = {}
        self._folder_phase = "write"

    def create(self, path: Path, mode: int = 0o644) -> int:
        phase = self._phase(path)
        with _Deadly(self, phase):
            fd = super().create(path, mode)
        self._phases[fd] = phase
        return fd

    def write(self, fd: int, data: bytes) -> int:
        phase = self._phases[fd]
        if self.strikes(phase):
            if self._order.when != "before":
                super().write(fd, data if self._order.when == "after" else data[: len(data) // 2])
            die()
        if phase == "rotation":
            self._phases[fd] = "write"  # the heading is written; what follows are frames
        return super().write(fd, data)

    def sync(self, fd: int) -> None:
        with _Deadly(self, self._phases[fd]):
            super().sync(fd)

    def sync_folder(self, path: Path) -> None:
        with _Deadly(self, self._folder_phase):
            super().sync_folder(path)

    def rename(self, source: Path, target: Path) -> None:
        with _Deadly(self, self._phase(source)):
            super().rename(source, target)

    def remove(self, path: Path) -> None:
        phase = "seal" if path.suffix == ".seg" else "retention"
        self._folder_phase = phase
        with _Deadly(self, phase):
            super().remove(path)

    def strikes(self, phase: str) -> bool:
        """Whether this call, which is now counted, is the one."""
        if phase != self._order.phase:
            return False
        self._calls += 1
        return self._calls == self._order.nth

    @property
    def when(self) -> str:
        """Before or after the call."""
        return self._order.when

    def _phase(self, path: Path) -> str:
        kinds = {".seg": "rotation", ".sealed": "seal", ".snap": "snapshot"}
        phase = kinds[Path(path.name.removesuffix(".tmp")).suffix]
        self._folder_phase = phase
        return phase


class _Deadly:
    """Around a call that cannot be done by halves."""

    def __init__(self, disk: DeadlyDisk, phase: str) -> None:
        self._strikes, self._when = disk.strikes(phase), disk.when

    def __enter__(self) -> None:
        if self._strikes and self._when == "before":
            die()

    def __exit__(self, *_: object) -> None:
        if self._strikes:
            die()


def die() -> None:
    """End as the out-of-memory killer would end us."""
    os.kill(os.getpid(), signal.SIGKILL)


def image_of(seq: int) -> bytes:
    """The image that a child puts down at a number."""
    return f"the state after event {seq}".encode() * 40


def script() -> Iterator[list[AnyEvent]]:
    """The commands that every child gives, in order; a snapshot is taken before each that begins with `Snapshotted`."""
    stream = iter(some_commands(COMMANDS_MAX))
    for number in count(1):
        if number % COMMANDS_PER_SNAPSHOT == 0:
            yield [Snapshotted(b"digest")]
        command = next(stream, None)
        if command is None:
            return
        yield command


def drive(order: Order, acknowledge: int) -> None:
    """What a child does: give commands, and say on the pipe what was accepted."""
    writer = new_writer(
        Path(order.run),
        policy=order.policy,
        sealing=order.sealing,
        rotate_bytes=ROTATE_BYTES,
        retention=Retention(keep_bytes=KEEP_BYTES),
        disk=DeadlyDisk(order),
    )
    for step, command in enumerate(script()):
        if isinstance(command[0], Snapshotted):
            writer.write_snapshot(image_of(writer.last_seq), b"digest")
        append(writer, command)
        writer.end_step(step)
        if order.policy is Policy.SYNC:
            writer.wait_durable(writer.last_seq)
        os.write(acknowledge, writer.last_seq.to_bytes(8))
    writer.close()


def obey(order: Order) -> Outcome:
    """Fork a child for one order and hold what it acknowledges."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            drive(order, writing)
        finally:
            os._exit(1)
    os.close(writing)
    acknowledged = 0
    while piece := os.read(reading, 8):
        acknowledged = int.from_bytes(piece)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    return Outcome(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, acknowledged)


def main() -> None:
    """Obey the orders on stdin, one after the other."""
    for line in sys.stdin:
        outcome = obey(msgspec.json.decode(line, type=Order))
        sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
