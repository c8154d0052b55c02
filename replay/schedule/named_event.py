"""An event by its names: what is compared between two runs, and said again in other words.

Rule: an event by names holds names, letters and counts, and nothing that was numbered by a run.
"""

from typing import Any, NamedTuple, Protocol

PAGES = ("full", "unmapped", "swa", "host", "recurrent", "fresh", "old", "row", "source", "target", "slots", "slot", "former", "pages")  # fmt: skip
NODES = {"node", "parent", "upper", "marked", "above", "host_node", "walked"}
"""Fields that name a node; not read off `journal.fields`, which another revision need not have."""
ACCOUNTS = {"giver", "taker"}
"""Fields that name an account."""

FREE = "free"
"""How a page is told that nobody has: by its place among those."""

Path = tuple[str, str]
"""A namespace, and the letters of a path in it."""


class NamedEvent(NamedTuple):
    """An event by its names."""

    kind: type
    fields: tuple[tuple[str, Any], ...]

    def respelled(self, spelling: "Spells") -> "NamedEvent":
        """The same in other letters and names."""
        return NamedEvent(
            self.kind, tuple((name, _respelled(name, value, spelling)) for name, value in self.fields)
        )


class Spells(Protocol):
    """Other letters for keys and other names for things."""

    @property
    def letters(self) -> dict[int, str]:
        """By the code of a letter."""
        ...

    def name(self, name: str) -> str:
        """A name, or one with a place behind it."""
        ...


def _respelled(name: str, value: Any, spelling: Spells) -> Any:
    """A told value in other words: keys are said in letters, and paths, which are pairs of a namespace and a key."""
    if isinstance(value, str):
        if name == "key":
            return value.translate(spelling.letters)
        return spelling.name(value) if name not in ("namespace", "phase") else value
    if isinstance(value, tuple):
        if len(value) == 2 and all(isinstance(each, str) for each in value) and name in NODES | {"path"}:
            return value[0], value[1].translate(spelling.letters)
        inner = "path" if name in ACCOUNTS or name == "skipped" else name
        return tuple(_respelled(inner, each, spelling) for each in value)
    return value


def column(name: str, value: Any) -> str:
    """The name of a field by which it is told; none where its bytes are no whole number of numbers: those stand as they are."""
    width = 4 if name in PAGES else _WIDTHS.get(name, 1)
    return "" if isinstance(value, bytes) and len(value) % width else name


_WIDTHS = {"requests": 8, "takers": 8, "skipped": 8}
"""Bytes of a number in the columns that are not of pages."""
