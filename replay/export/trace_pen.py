"""Entries of the Trace Event Format for one rank, which is a process: slices, marks, counters and names of its tracks.

Not here: what is told of a rank (`perfetto`). Times are microseconds since the run began.
"""

from typing import Any

Entry = dict[str, Any]
"""One entry of `traceEvents`."""

STEPS, TREE, LAWS, UNKNOWN, ROWS, SOME_ROW = 1, 2, 3, 999, 1000, 1 << 24
"""Numbers of tracks in a rank's process; overlapping steps take those behind `LAWS`, rows those from `ROWS` on, and requests whose
row is not known those from `SOME_ROW` on."""


class TracePen:
    """Makes the entries of one process; `now` is the time at hand."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.now = 0.0

    def named(self, what: str, track: int, name: str) -> Entry:
        """A name of the process or of a track."""
        return {"ph": "M", "name": what, "pid": self._pid, "tid": track, "args": {"name": name}}

    def slice(self, since: float, track: int, told: Entry) -> Entry:
        """What lasted until now; its name is among what is told."""
        name, arguments = told["name"], {key: value for key, value in told.items() if key != "name"}
        return {
            "ph": "X", "name": name, "cat": _category(track), "pid": self._pid, "tid": track,
            "ts": since, "dur": max(0.0, self.now - since), "args": arguments,
        }  # fmt: skip

    def mark(self, track: int, name: str, told: Entry) -> Entry:
        """Something that happens now."""
        return {
            "ph": "i", "name": name, "cat": "mark", "s": "t", "pid": self._pid, "tid": track, "ts": self.now, "args": told,
        }  # fmt: skip

    def counter(self, name: str, values: Entry) -> Entry:
        """Values that hold from now on."""
        return {"ph": "C", "name": name, "pid": self._pid, "ts": self.now, "args": values}


def _category(track: int) -> str:
    if track == UNKNOWN:
        return "not known"
    return "step" if track < ROWS else "request"
