"""What a forked child has of its parent's open journals: nothing that it may write.

Not a lock: that is of other processes. Rule: the file and the place in it are the parent's; a child that wrote there, too,
would leave two stories in one file. It costs the parent nothing.
"""

import os
from typing import Protocol
from weakref import WeakSet


class Left(Protocol):
    """What is the parent's alone."""

    def leave_to_parent(self) -> None:
        """Called in a child, before anything else there."""


_OPEN: WeakSet[Left] = WeakSet()


def left_in_children(writer: Left) -> None:
    """Children that are forked from now on leave `writer` to their parent, as long as it lives."""
    _OPEN.add(writer)


def _leave_all() -> None:
    for writer in list(_OPEN):
        writer.leave_to_parent()


os.register_at_fork(after_in_child=_leave_all)
