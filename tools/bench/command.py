"""`radixledger bench`: measure this machine and print our figures beside the bars they are held to.

Rule: nothing is hidden. A figure that misses its bar is printed as missed, and the exit code is 0 either way:
a benchmark informs, the tests judge.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from radixledger.journal.writer import Policy
from radixledger.tools.bench import replays, workload
from radixledger.tools.bench.bed import Bed
from radixledger.tools.bench.harness import Figure, Machine, machine
from radixledger.tools.bench.journals import journal_figures
from radixledger.tools.bench.operations import OPERATIONS
from radixledger.tools.bench.replays import EVENTS
from radixledger.tools.bench.systems import system_figures
from radixledger.tools.console import (
    USAGE,
    CommandFailure,
    GivenPath,
    examples,
    json_flag,
    print_facts,
    print_json,
    progress,
)
from radixledger.tools.numbers import Whole
from radixledger.tools.places import SourceFile, check_outside_runs
from radixledger.tools.table import print_table

Part = Callable[[Path, bool], Iterator[Figure]]

MOST_EVENTS = 1_000_000_000
"""A journal of so many takes 17 GB, and three hours to verify."""


def _operations(policy: Policy) -> Part:
    def figures(folder: Path, quick: bool) -> Iterator[Figure]:
        for measure in OPERATIONS:
            yield from measure(Bed(folder, policy), quick)

    return figures


PARTS: dict[str, Part] = {
    "operations": _operations(Policy.STEP),
    "operations-committed": _operations(Policy.OPERATION),
    "journal": journal_figures,
    "system": system_figures,
}


WORKLOAD, REPLAY = "workload", "replay"
"""These stand alone."""


@click.command(
    epilog=examples(
        "radixledger bench",
        "radixledger bench operations --quick",
        "radixledger bench journal --json",
        "radixledger bench workload",
        "radixledger bench workload --trace mooncake_conversation_trace.jsonl --json",
        "radixledger bench replay --events 1000000 --events 10000000",
    )
)
@click.argument("parts", nargs=-1, metavar="[PART]...")
@click.option("--quick", is_flag=True, help="Smaller sizes, a smoke test: the figures mean less.")
@click.option(
    "--folder",
    type=GivenPath(file_okay=False, path_type=Path),
    help="Where journals are written.  [default: a temporary folder]",
)
@click.option(
    "--trace",
    type=SourceFile(),
    help="With `workload`: drive the first 2,000 requests of this trace in the Mooncake format, too.",
)
@click.option(
    "--events",
    type=Whole(1, MOST_EVENTS),
    multiple=True,
    help=f"With `replay`: verify a journal of so many events; several sizes may be given.  [default: {EVENTS}]",
)
@json_flag
def command(
    parts: tuple[str, ...],
    quick: bool,
    folder: Path | None,
    trace: Path | None,
    events: tuple[int, ...],
    as_json: bool,
) -> None:
    """Measure operations, journal and whole workloads on this machine, beside their bars.

    A PART is operations, operations-committed, journal or system; without one, all are measured. The part `workload`
    stands alone: hit rate, host seconds, events and bytes of several workloads at each memory setting, on each route
    and in each order of window victims, beside the best that any order of FULL victims could reach. So does `replay`:
    how fast journals of given sizes are verified, and the most memory that this takes.
    """
    alone = parts[0] if parts in ((WORKLOAD,), (REPLAY,)) else ""
    unknown = [part for part in parts if part not in PARTS and not alone]
    if unknown:
        known = ", ".join([*PARTS, f"{WORKLOAD} (alone)", f"{REPLAY} (alone)"])
        raise CommandFailure(f"there is no part {', '.join(unknown)}; parts are {known}", USAGE)
    if trace is not None and alone != WORKLOAD:
        raise CommandFailure(f"--trace goes with the part {WORKLOAD}", USAGE)
    if events and alone != REPLAY:
        raise CommandFailure(f"--events goes with the part {REPLAY}", USAGE)
    if folder is not None:
        check_outside_runs(folder)
    with TemporaryDirectory(prefix="radixledger-bench-", dir=folder) as scratch:
        place = Path(scratch)
        if alone == WORKLOAD:
            workload.report(place, quick=quick, trace=trace, as_json=as_json)
            return
        if alone == REPLAY:
            replays.report(place, events or (EVENTS // 20 if quick else EVENTS,), as_json=as_json)
            return
        here = machine(place)
        figures: list[Figure] = []
        with progress("measuring", None) as advance:
            for part in parts or PARTS:
                for figure in PARTS[part](place, quick):
                    figures.append(figure)
                    advance(1)
    if as_json:
        print_json(
            {"machine": here._asdict(), "quick": quick, "figures": [_json(figure) for figure in figures]}
        )
    else:
        _print(here, figures)


def _json(figure: Figure) -> dict[str, object]:
    return {**figure._asdict(), "meets": figure.meets}


def _print(here: Machine, figures: list[Figure]) -> None:
    print_facts(
        {
            "processor": f"{here.processor}, {here.cores} cores",
            "python": here.python,
            "memcmp of 64 KiB": f"{here.memcmp_64k_us:.2f} us",
            "write of 200 bytes": f"{here.write_200_us:.2f} us",
        },
        title="machine",
    )
    for topic in dict.fromkeys(figure.topic for figure in figures):
        rows = [_row(figure) for figure in figures if figure.topic == topic]
        print_table(["what", "measured", "bar", "met", "least"], rows, title=f"\n{topic}")


def _row(figure: Figure) -> list[object]:
    unit = f" {figure.unit}" if figure.unit else ""
    sign = "≥" if figure.more else "≤"
    bar = f"{sign} {_number(figure.bar)}{unit}" if figure.bar is not None else ""
    met = {True: "yes", False: "no", None: ""}[figure.meets]
    least = f"{_number(figure.floor)}{unit}" if figure.floor is not None else figure.note
    return [figure.name, f"{_number(figure.value)}{unit}", bar, met, least]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
