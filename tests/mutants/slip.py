"""A slip: one place of the sources reads otherwise. What one test of one row has to notice.

Slips are narrower than the mutants of `seeded`: nobody promises that all detectors see them, and they do not count among
those. Rule: nothing here imports what is tested; a slip is planted before the first of it is imported, in a process of
its own, and whoever reads the file as text reads the slip too.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PRODUCT = ("journal", "cache", "replay", "analytics", "tools")


class Slip(NamedTuple):
    """`was`, which stands in `file` exactly once, reads `becomes`. rows: requirements that this breaks."""

    name: str
    file: str
    was: str
    becomes: str
    rows: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The file."""
        return ROOT / self.file

    @property
    def module(self) -> str:
        """The name under which the file is imported."""
        parts = Path(self.file.removeprefix("src/")).with_suffix("").parts
        whole = ("radixledger", *parts) if parts[0] in PRODUCT else parts
        return ".".join(whole).removesuffix(".__init__")

    def text(self) -> str:
        """The file as the slip has it."""
        return _read_text(self.path, "utf-8").replace(self.was, self.becomes)


class _Spoilt(SourceFileLoader):
    """A module of the slip's text; never kept in a cache of compiled code."""

    def __init__(self, slip: Slip) -> None:
        super().__init__(slip.module, str(slip.path))
        self._slip = slip

    def get_code(self, fullname: str) -> CodeType:
        """Compiled anew each time."""
        return compile(self._slip.text(), self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def __init__(self, slip: Slip) -> None:
        self._slip = slip

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The slip's module, and no other."""
        if fullname != self._slip.module:
            return None
        return spec_from_file_location(fullname, self._slip.path, loader=_Spoilt(self._slip))


_read_text, _read_bytes = Path.read_text, Path.read_bytes


def plant(slip: Slip) -> None:
    """Forget what was imported and let the slip be what is imported from now on, for the rest of this process."""
    for name in [*sys.modules]:
        if name.startswith(("radixledger", "tests.")):
            del sys.modules[name]
    sys.meta_path.insert(0, _Finder(slip))
    there = slip.path.resolve()

    def read_text(path: Path, encoding: str | None = None, errors: str | None = None) -> str:
        return slip.text() if path.resolve() == there else _read_text(path, encoding, errors)

    def read_bytes(path: Path) -> bytes:
        return slip.text().encode() if path.resolve() == there else _read_bytes(path)

    Path.read_text, Path.read_bytes = read_text, read_bytes  # type: ignore[assignment,method-assign]
