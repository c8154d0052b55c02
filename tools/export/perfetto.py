"""`radixledger export perfetto`: a trace for the Perfetto UI, written as it is read.

Not here: what stands in it (`radixledger.replay.export.perfetto`).
"""

import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from radixledger.journal.reader import JournalReader
from radixledger.replay.export.perfetto import Trace
from radixledger.replay.export.trace_pen import Entry
from radixledger.replay.known import unknown_words
from radixledger.replay.whole_file import whole_file
from radixledger.tools.console import (
    bytes_text,
    count_of,
    examples,
    json_flag,
    print_json,
    remark,
)
from radixledger.tools.places import check_place, new_file
from radixledger.tools.printable import say
from radixledger.tools.ranks import ranks_option, the_ranks
from radixledger.tools.replay.arguments import salvage_flag
from radixledger.tools.run_argument import run_argument
from radixledger.tools.unread import Unread
from radixledger.tools.watching import watched


@click.command(
    short_help="Write a trace for ui.perfetto.dev.",
    epilog=examples(
        "radixledger export perfetto RUN -o run.json.gz  # then open it in https://ui.perfetto.dev",
        "radixledger export perfetto RUN --rank 3 -o rank3.json",
    ),
)
@run_argument
@click.option(
    "-o",
    "--output",
    type=new_file,
    required=True,
    help="The file to write; compressed where its name ends in .gz.",
)
@ranks_option
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@salvage_flag
@json_flag
def command(
    run: Path, output: Path, ranks: tuple[int, ...], *, force: bool, salvage: bool, as_json: bool
) -> None:
    """Write a trace for ui.perfetto.dev: requests, device steps and pools on one time line.

    A rank is a process, with a track for each row, whose slices are its requests; marks are tombstones, heals, evictions and refusals, and what broke a law: the exit code
    is 1 where there is any, else 3 where a rank could not be read. The page is a web page, but it reads the file where you are: nothing is uploaded.
    """
    check_place(output, force=force)
    chosen = the_ranks(run, ranks)
    unread, readers, begun = Unread(run, chosen), list[JournalReader](), list[int]()
    for rank in chosen:
        with unread.around(rank):
            reader = JournalReader(run, rank, salvage=salvage)
            begun.append(next(iter(reader.frames())).time_ns)
            readers.append(reader)
    if not readers:
        unread.leave(found=False)
    begun_ns = min(begun)
    traces = [Trace(reader, begun_ns) for reader in readers]
    entries = 0
    with _written(output) as file:
        encode = msgspec.json.Encoder().encode
        file.write(b'{"displayTimeUnit":"ms","otherData":')
        file.write(encode({"run": readers[0].opened.run, "begun": _moment(begun_ns)}))
        file.write(b',"traceEvents":[')
        for entry in _all(run, readers, traces, unread):
            file.write(b",\n" if entries else b"\n")
            file.write(encode(entry))
            entries += 1
        file.write(b"\n]}\n")
    broken = sum(sum(trace.report.broken.values()) for trace in traces)
    size = output.stat().st_size
    if as_json:
        summary = {"path": str(output), "entries": entries, "bytes": size, "findings": broken}
        print_json(summary | {"unreadable": unread.ranks})
    else:
        say(
            f"{output}: {count_of(entries, 'trace event')}, {bytes_text(size)}; open it in https://ui.perfetto.dev"
        )
    _remark_on(readers, traces)
    if broken:
        remark(f"{count_of(broken, 'finding')} marked in the track `broken laws`")
    unread.leave(found=broken > 0)


def _all(
    run: Path, readers: Sequence[JournalReader], traces: Sequence[Trace], unread: Unread
) -> Iterator[Entry]:
    for reader, trace in zip(readers, traces, strict=True):
        with unread.around(reader.rank), watched(run, reader.rank) as watch:
            yield from trace.entries(watch)


def _remark_on(readers: Sequence[JournalReader], traces: Sequence[Trace]) -> None:
    """What whoever looks at the trace has to know of each rank."""
    for trace in traces:
        if trace.turned_back:
            held = f"{count_of(trace.turned_back, 'frame')} stamped before one that came before"
            remark(f"rank {trace.report.rank}: the clock was set back: {held}; told at the time of that one")
    for reader, trace in zip(readers, traces, strict=True):
        for notice in reader.notices:
            remark(f"rank {reader.rank}: {notice}")
        for each in trace.known.stretches:
            remark(
                f"rank {reader.rank}: {unknown_words(each.lost_at)}; of pools and rows nothing is told there"
            )


def _moment(begun_ns: int) -> str:
    """When the trace begins; a run in virtual time began at 0."""
    return datetime.fromtimestamp(begun_ns / 1e9, UTC).isoformat()


@contextmanager
def _written(path: Path) -> Iterator[BinaryIO]:
    """The file of the trace, packed where its name says so."""
    with whole_file(path) as raw:
        if path.suffix == ".gz":
            with (
                gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
                io.BufferedWriter(packed, 1 << 16) as file,
            ):
                yield file
        else:
            yield raw
