"""`radixledger whatif`: the recorded requests of a run, sent through other configurations, beside what happened.

Not here: taking requests out of a journal and sending them (`radixledger.replay.whatif`), how tables and plots look. Rule:
every setting is judged before the first event is read.
"""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import click

from radixledger.replay.crew import WorkerLost
from radixledger.replay.whatif.compare import compare
from radixledger.replay.whatif.outcome import Comparison
from radixledger.replay.whatif.settings import SETTINGS, BadSetting, settings_of
from radixledger.replay.whole_file import whole_file
from radixledger.tools.console import (
    UNREADABLE,
    USAGE,
    CommandFailure,
    examples,
    json_flag,
    print_json,
    progress,
    remark,
)
from radixledger.tools.leaving import leaving_when_told
from radixledger.tools.near import near
from radixledger.tools.numbers import Whole
from radixledger.tools.places import check_place, new_file
from radixledger.tools.ranks import ranks_option, the_ranks
from radixledger.tools.replay.arguments import salvage_flag
from radixledger.tools.run_argument import as_given, run_argument
from radixledger.tools.unread import Unread
from radixledger.tools.whatif_plot import plotted
from radixledger.tools.whatif_tables import document, show

MOST_CONFIGURATIONS = 100
"""Each is a run of its own; more at once is a slip of the finger in a grid."""

PLOTS = (".svg", ".html")


@click.command(
    epilog=examples(
        "radixledger whatif RUN --set swa_pages=2048",
        "radixledger whatif RUN --set full_pages=8192,policy=slru --set route=legacy --plot whatif.svg",
        "radixledger whatif RUN --grid full_pages=2048,4096,8192 --grid policy=lru,use --json",
    )
    + "\n\n\b\nSettings:\n"
    + "\n".join(f"  {name:<15} {meaning}" for name, meaning in SETTINGS.items())
)
@run_argument
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME=VALUE[,...]",
    help="A configuration: what is other than in the record. Again for one more.",
)
@click.option(
    "--grid",
    "grids",
    multiple=True,
    metavar="NAME=V1,V2[,...]",
    help="A configuration for each value; with another --grid, for each pair.",
)
@ranks_option
@click.option(
    "--processes",
    type=Whole(1),
    help="Configurations and ranks that are sent at once.  [default: the CPUs]",
)
@salvage_flag
@click.option(
    "--plot",
    type=new_file,
    help="Draw it: a file that ends in .svg or .html.",
)
@click.option("--force", is_flag=True, help="Replace a drawing that is there.")
@json_flag
def command(
    run: Path, sets: tuple[str, ...], grids: tuple[str, ...], ranks: tuple[int, ...], processes: int | None, salvage: bool,
    plot: Path | None, force: bool, as_json: bool,
) -> None:  # fmt: skip
    """Send the recorded requests of RUN through other configurations, beside what happened.

    Hits, evictions, tombstones, retractions, peaks and broken laws of each configuration, with the hit rate that no order
    of victims could pass (Belady). What would have changed the schedule itself makes an estimate (~), with the reason.
    Without settings the run is sent again as it was. Exit code 1: a law was broken. 3: none was, and a rank could not be read.
    """
    if plot is not None:
        _check_plot(plot, force=force)
    configurations = dict(_configurations(sets, grids))
    if len(configurations) > MOST_CONFIGURATIONS:
        raise CommandFailure(
            f"--grid: {len(configurations)} configurations at once are too many; {MOST_CONFIGURATIONS} are the most",
            USAGE,
        )
    chosen = the_ranks(run, ranks)
    unread = Unread(run, chosen)
    readable = unread.readable(chosen, salvage=salvage)
    try:
        with leaving_when_told():
            found = compare(
                run,
                readable,
                configurations,
                processes=processes or os.cpu_count() or 1,
                salvage=salvage,
                progress=progress,
            )
    except BadSetting as error:
        raise _refusal(_flag_of(error.name, sets, grids), error) from None
    except WorkerLost as error:
        raise CommandFailure(str(error), UNREADABLE) from None
    _tell(run, found, plot, unread, as_json=as_json)
    unread.leave(found=bool(found.violations))


def _tell(run: Path, found: Comparison, plot: Path | None, unread: Unread, *, as_json: bool) -> None:
    for notice in found.notices:
        remark(notice)
    if plot is not None:
        with whole_file(plot) as file:
            file.write(plotted(found, page=plot.suffix == ".html").encode())
    if as_json:
        print_json({**document(found), "unreadable": unread.ranks})
    else:
        show(found, as_given(run))
        if plot is not None:
            remark(f"drawn in {plot}")


def _check_plot(plot: Path, *, force: bool) -> None:
    if plot.suffix not in PLOTS:
        raise CommandFailure(f"--plot: {plot} ends in neither of {', '.join(PLOTS)}", USAGE)
    check_place(plot, force=force)


def _configurations(sets: tuple[str, ...], grids: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    """Each configuration with its name, which is its settings; the same twice is one."""
    try:
        for text in sets:
            settings = settings_of(text)
            yield _name(settings), settings
    except BadSetting as error:
        raise _refusal("--set", error) from None
    axes: dict[str, list[dict[str, str]]] = {}
    for text in grids:
        name, _, values = text.partition("=")
        if name in axes:
            raise CommandFailure(f"--grid: {name} is named twice; put its values side by side", USAGE)
        try:
            axes[name] = [settings_of(f"{name}={value}") for value in values.split(",")]
        except BadSetting as error:
            raise _refusal("--grid", error) from None
    if axes:
        for point in itertools.islice(itertools.product(*axes.values()), MOST_CONFIGURATIONS + 1):
            settings = {name: value for part in point for name, value in part.items()}
            yield _name(settings), settings


def _name(settings: dict[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in settings.items())


def _refusal(flag: str, error: BadSetting) -> CommandFailure:
    hint = "" if error.name in SETTINGS else near(error.name, SETTINGS)
    return CommandFailure(f"{flag}: {error}{hint}", USAGE)


def _flag_of(name: str, sets: tuple[str, ...], grids: tuple[str, ...]) -> str:
    """The flag by which a setting came."""
    if any(text.partition("=")[0].strip() == name for text in grids):
        return "--grid"
    return "--set" if sets else "--grid"
