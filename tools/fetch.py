"""Brings a run from a URL to this machine, through fsspec: `s3://`, `gs://`, `https://`, `zip::...` and what else it knows.

Rule 1: only what is asked for is fetched: segments and snapshots of the ranks in question, each once; nothing that lies beside
them. Rule 2: names in a listing are a stranger's: those that are not exactly ours are passed over, so that nothing is
written but below the folder that was given. A `file://` URL is not copied.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import metadata
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from fsspec import Callback
from fsspec.core import split_protocol, url_to_fs
from fsspec.implementations.local import LocalFileSystem

from radixledger.analytics.folder import LAYOUT_FILE
from radixledger.journal.folder import SNAPSHOT_SUFFIX
from radixledger.journal.segment import LIVE_SUFFIX, SEALED_SUFFIX
from radixledger.journal.units import Rank
from radixledger.tools.console import UNREADABLE, USAGE, CommandFailure, progress
from radixledger.tools.run_argument import Choose, spoken

RANK_FOLDER = re.compile(r"rank-(\d{4,9})", re.ASCII)
RANK_FILE = re.compile(
    rf"(\d{{20}})({'|'.join(map(re.escape, (LIVE_SUFFIX, SEALED_SUFFIX, SNAPSHOT_SUFFIX)))})", re.ASCII
)
SAID_MAX = 400
"""So much of what a library of others says is told."""

STORE_FOLDER = re.compile(r"[^/\\\0]+")


class _Place(NamedTuple):
    """A URL, opened: `path` is what the file system calls it, `name` its last part."""

    url: str
    files: Any
    path: str
    name: str


class _Bar(Callback):  # type: ignore[misc]  # fsspec has no types
    """Tells a progress bar of every file that is there."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        super().__init__()
        self._advance = advance

    def relative_update(self, inc: int = 1) -> None:
        """So many files more."""
        self._advance(inc)


def run_from(url: str, room: Path, choose: Choose) -> Path:
    """The run at `url`, in a folder of its name in `room`; raises CommandFailure, `choose` may too."""
    place = _opened(url)
    if isinstance(place.files, LocalFileSystem):
        return Path(place.path)
    with _told(url):
        ranks = _ranks_at(place)
    if not ranks:
        raise CommandFailure(
            f"{spoken(url)}: there is no rank-NNNN folder here, so it is no run; name the folder that was given as --journal"
        )
    chosen = choose(sorted(ranks))
    if missing := [str(rank) for rank in chosen if rank not in ranks]:
        known = ", ".join(map(str, sorted(ranks)))
        raise CommandFailure(
            f"{spoken(url)}: rank {missing[0]} has no journal here (this run has ranks {known})", UNREADABLE
        )
    with _told(url):
        wanted = {
            f"{place.path.rstrip('/')}/{ranks[rank]}/{name}": room / place.name / ranks[rank] / name
            for rank in chosen
            for name in _journal_files(_names(place.files, f"{place.path.rstrip('/')}/{ranks[rank]}"))
        }
        for rank in chosen:
            (room / place.name / ranks[rank]).mkdir(parents=True, exist_ok=True)
        _get(place, wanted)
    return room / place.name


def run_or_store_from(url: str, room: Path) -> Path:
    """The run at `url`, or the DuckDB file or Parquet folder of loaded runs; raises CommandFailure."""
    place = _opened(url)
    if isinstance(place.files, LocalFileSystem):
        return Path(place.path)
    with _told(url):
        if not url.endswith("/") and PurePosixPath(place.name).suffix and place.files.isfile(place.path):
            _get(place, {place.path: room / place.name})
            return room / place.name
        if LAYOUT_FILE in _names(place.files, place.path):
            _get(place, dict(_store_files(place, room / place.name)))
            return room / place.name
    return run_from(url, room, lambda ranks: ranks)


def _opened(url: str) -> _Place:
    """Raises CommandFailure for a protocol that is not known, or whose package is not installed."""
    try:
        files, path = url_to_fs(url)
    except ImportError as error:
        raise CommandFailure(f"{spoken(url)}: {_said(error)}{_hint(url)}", USAGE) from error
    except ValueError as error:
        raise CommandFailure(
            f"{spoken(url)}: {_said(error)}; file, http, https, s3, gs, abfs and sftp are", USAGE
        ) from error
    except Exception as error:
        raise _failure(url, error) from error
    name = re.sub(r"[^\w.+=@-]", "_", url.rstrip("/").rsplit("/", 1)[-1])
    return _Place(url, files, path, name if name.strip(".") else "run")


def _hint(url: str) -> str:
    """How to install what a protocol needs, where fsspec has an extra of its name."""
    protocol = split_protocol(url.rsplit("::", 1)[-1])[0] or url.partition("::")[0]
    protocol = protocol.removesuffix("s") if protocol == "https" else protocol
    extras = metadata("fsspec").get_all("Provides-Extra") or []
    return f": pip install 'fsspec[{protocol}]'" if protocol in extras else ""


@contextmanager
def _told(url: str) -> Iterator[None]:
    """Whatever goes wrong on the way is one message that names the URL."""
    try:
        yield
    except CommandFailure:
        raise
    except Exception as error:
        raise _failure(url, error) from error


def _failure(url: str, error: Exception) -> CommandFailure:
    if isinstance(error, FileNotFoundError):
        return CommandFailure(f"{spoken(url)}: there is nothing here")
    return CommandFailure(f"{spoken(url)} cannot be read: {type(error).__name__}: {_said(error)}")


def _said(error: Exception) -> str:
    """What a library of others says, which may be whatever a server has sent: without passwords, and cut."""
    said = spoken(str(error))
    return said if len(said) <= SAID_MAX else said[:SAID_MAX] + "..."


def _names(files: Any, path: str) -> list[str]:
    """The names in a folder, without what leads to them."""
    return [str(entry).rstrip("/").rsplit("/", 1)[-1] for entry in files.ls(path, detail=False)]


def _ranks_at(place: _Place) -> dict[Rank, str]:
    """The folder of each rank of a run."""
    matches = filter(None, map(RANK_FOLDER.fullmatch, _names(place.files, place.path)))
    ranks = {Rank(int(match[1])): match[0] for match in matches}
    return {rank: name for rank, name in ranks.items() if name == f"rank-{rank:04d}"}


def _journal_files(names: Sequence[str]) -> list[str]:
    """Segments and snapshots; a live segment is left out where its sealed form lies there."""
    matches = list(filter(None, map(RANK_FILE.fullmatch, names)))
    sealed = {match[1] for match in matches if match[2] == SEALED_SUFFIX}
    return sorted({match[0] for match in matches if match[2] != LIVE_SUFFIX or match[1] not in sealed})


def _store_files(place: _Place, target: Path) -> Iterator[tuple[str, Path]]:
    """The files of a folder of loaded runs."""
    top = place.path.rstrip("/")
    for found in place.files.find(place.path):
        parts = PurePosixPath(str(found).removeprefix(top).lstrip("/")).parts
        if all(part != ".." and STORE_FOLDER.fullmatch(part) for part in parts):
            yield str(found), target.joinpath(*parts)


def _get(place: _Place, wanted: dict[str, Path]) -> None:
    """Fetch files, several at a time where the file system can."""
    for target in wanted.values():
        target.parent.mkdir(parents=True, exist_ok=True)
    with progress(f"fetching {spoken(place.url)}", len(wanted)) as advance:
        place.files.get(list(wanted), list(map(str, wanted.values())), callback=_Bar(advance))
