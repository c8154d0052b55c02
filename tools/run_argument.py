"""RUN on the command line: a folder, wherever it is mounted, or a URL that fsspec opens.

A command takes one with `run_argument` (`run: Path`) or several with `runs_argument` (`runs: tuple[Path, ...]`), and
gets folders of this machine. Rule 1: a URL is fetched when every argument has been read and before the command begins,
of the ranks that it was asked about; the copy goes away with the command. Rule 2: what people read names the URL: paths
of a copy go through `as_given`, errors do so by themselves. Rule 3: whether a RUN is there is found by who reads it, so that
one that is not is unreadable, in every command.
"""

import os
import re
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from radixledger.journal.units import Rank
from radixledger.tools.console import USAGE, CommandFailure, GivenPath
from radixledger.tools.lazy_group import imported
from radixledger.tools.leaving import leaving_when_told

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)")
"""How a URL begins: `s3://...`, or a chain of them, `zip::https://...`."""

PASSWORD = re.compile(r"(://[^/@:]*):[^/@]*(?=@)")

Choose = Callable[[Sequence[Rank]], Collection[Rank]]
"""Which of the ranks of a run a command is about."""


class RunPath(GivenPath):
    """A path, as a Path; a URL stays text, for `located` to fetch."""

    name = "run"

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """The path as click makes it; the URL as it stands."""
        return value if is_url(value) else super().convert(value, param, ctx)


class Copies:
    """The copies that one command line made of URLs."""

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}

    def add(self, copy: Path, url: str) -> None:
        """Remember what a copy is of."""
        self._urls[str(copy)] = spoken(url).rstrip("/")

    def told(self, text: str) -> str:
        """A text with the URLs in the place of their copies."""
        for copy, url in self._urls.items():
            text = text.replace(copy, url)
        return text


def is_url(run: object) -> bool:
    """Whether this is a URL, and no path."""
    return isinstance(run, str) and URL.match(run) is not None


def spoken(url: str) -> str:
    """A URL as it may be printed: without the password that stands in it."""
    return PASSWORD.sub(r"\1", url)


def as_given(run: Path) -> str:
    """A run, or a path in it, as the caller named it: the URL, for the copy of one."""
    return in_given_words(str(run))


def in_given_words(text: str) -> str:
    """A text that names paths of runs, as the caller named those."""
    copies = click.get_current_context().find_object(Copies)
    return copies.told(text) if copies else text


def located(run: Path | str, choose: Choose = lambda ranks: ranks) -> Path:
    """The folder of a run on this machine, fetched where a URL was given; raises CommandFailure."""
    return _brought("run_from", run, choose)


def located_or_loaded(run: Path | str) -> Path:
    """As `located`; the URL may also be that of a DuckDB file, or of a Parquet folder that `load` made."""
    return _brought("run_or_store_from", run)


def _brought(how: str, run: Path | str, *more: Choose) -> Path:
    if not is_url(run):
        return Path(run)
    context = click.get_current_context()
    room = TemporaryDirectory(prefix="radixledger-")
    context.find_root().call_on_close(room.cleanup)
    with leaving_when_told():
        copy: Path = imported("radixledger.tools.fetch", how)(str(run), Path(room.name), *more)
    context.ensure_object(Copies).add(copy, str(run))
    return copy


def only_rank(ranks: Sequence[Rank], run: str) -> Rank:
    """The one rank of a run; that it has several is wrong usage where none was named."""
    if len(ranks) > 1:
        raise CommandFailure(f"{run} has ranks {', '.join(map(str, ranks))}: say which with --rank", USAGE)
    return ranks[0]


def one_rank(run: Path | str, rank: int | None) -> Choose:
    """For `located`: the rank that was asked for, or the only one."""
    return _chooser(run, {"rank": rank}, one_rank=True)


def _chooser(run: Path | str, arguments: dict[str, Any], *, one_rank: bool) -> Choose:
    """What `--rank` says, under the name that the command has for it."""
    rank, asked = arguments.get("rank"), [Rank(rank) for rank in arguments.get("ranks", ())]
    if rank is not None:
        asked = [Rank(rank)]
    if not asked and one_rank:
        return lambda ranks: [only_rank(ranks, str(run))]
    return lambda ranks: asked or ranks


def _taking_a_run(*, one_rank: bool = False) -> Callable[[Callable[..., Any]], Any]:
    def decorate(function: Callable[..., Any]) -> Any:
        @wraps(function)
        def with_folder(*arguments: Any, run: Path | str, **options: Any) -> Any:
            folder = located(run, _chooser(run, options, one_rank=one_rank))
            return function(*arguments, run=folder, **options)

        return click.argument("run", type=RunPath())(with_folder)

    return decorate


run_argument = _taking_a_run()
"""RUN of a command that looks at all ranks, or at those of `--rank` (`rank` or `ranks`)."""

run_of_one_rank_argument = _taking_a_run(one_rank=True)
"""RUN of a command about one rank: `--rank`, needed where the run has several (`the_rank`)."""


def runs_argument(function: Callable[..., Any]) -> Any:
    """RUN... of a command that looks at one run or more, at all ranks or at those of `--rank`."""

    @wraps(function)
    def with_folders(*arguments: Any, runs: Sequence[Path | str], **options: Any) -> Any:
        folders = tuple(located(run, _chooser(run, options, one_rank=False)) for run in runs)
        return function(*arguments, runs=folders, **options)

    return click.argument("runs", nargs=-1, required=True, type=RunPath())(with_folders)
