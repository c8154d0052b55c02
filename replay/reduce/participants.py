"""Who takes part in a command: the things that it names, and the command without some of them.

Rule: what several requests do at once is done by those that are left, as if the others had never been.
"""

from msgspec.structs import replace

from radixledger.replay.schedule import commands as c
from radixledger.replay.schedule.commands import AnyCommand


def names_in(command: AnyCommand | None) -> set[str]:
    """The requests, locks, copies, allocations and steps that a command names, or names anew."""
    if command is None:
        return set()
    found: set[str] = set()
    for field in command.__struct_fields__:
        value = getattr(command, field)
        if field in ("name", "lock", "copy", "giver"):
            found.add(value)
        elif field in ("grown", "ranges", "names"):
            found.update(value)
        elif field == "step":
            found.add(f"step {value}")
        elif field == "rows":
            found.update(each for row in value for each in (row.name, *map(_holder, row.pages)))
        elif field in ("pages", "source", "target", "states"):
            found.update(map(_holder, value))
    return found - {""}


def _holder(page: str) -> str:
    return page.partition(".")[0]


def less(command: AnyCommand | None, names: set[str]) -> AnyCommand | None:
    """A command of several requests, of those that are not left out; None where none is left."""
    if isinstance(command, c.Extend):
        grown = {name: count for name, count in command.grown.items() if name not in names}
        return (command if len(grown) == len(command.grown) else c.Extend(grown)) if grown else None
    if isinstance(command, c.BeginStep):
        ranges = {name: each for name, each in command.ranges.items() if name not in names}
        return command if len(ranges) == len(command.ranges) else replace(command, ranges=ranges)
    if isinstance(command, c.Decode):
        rest = [name for name in command.names if name not in names]
        return (command if len(rest) == len(command.names) else c.Decode(rest)) if rest else None
    if isinstance(command, c.Write):
        rows = [row for row in command.rows if row.name not in names]
        return (command if len(rows) == len(command.rows) else c.Write(rows)) if rows else None
    return command
