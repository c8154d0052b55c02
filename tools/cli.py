"""The door to every command: `radixledger COMMAND ...`.

A command is one line of `COMMANDS`: its module, the click command in it, and its line of help. The module is imported
when its command is called, see `lazy_group`. Rule: whatever happens, the exit code is one of `tools.console`.
"""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from radixledger import __version__
from radixledger.journal.errors import JournalError, KeyFileRefused, NoSuchEvent, RunExists, WriterBusy
from radixledger.tools.console import (
    BUG,
    INTERRUPTED,
    PIPE_CLOSED,
    UNREADABLE,
    USAGE,
    CommandFailure,
    examples,
    exit_with,
    remark,
)
from radixledger.tools.lazy_group import LazyGroup, Subcommand
from radixledger.tools.printable import speak_as_the_streams_can
from radixledger.tools.run_argument import Copies

COMMANDS: dict[str, Subcommand] = {
    "demo": Subcommand(
        "radixledger.tools.serve.demo",
        "command",
        "Serve, verify, compare, ask in SQL and find a planted fault, in half a minute of processor time.",
    ),
    "journal": Subcommand(
        "radixledger.tools.journal",
        "command",
        "Look at a journal, count it, examine it, recover it, take the tokens out of it.",
        is_group=True,
    ),
    "serve": Subcommand(
        "radixledger.tools.serve.command",
        "command",
        "Serve requests from a file on a small real engine, with a journal of every page.",
    ),
    "drive": Subcommand(
        "radixledger.tools.drive",
        "command",
        "Send a request trace in the Mooncake format through the cache, without a model.",
    ),
    "bench": Subcommand(
        "radixledger.tools.bench.command",
        "command",
        "Measure operations, journal and whole workloads on this machine, beside their bars.",
    ),
    "triage": Subcommand(
        "radixledger.tools.triage",
        "command",
        "Find the first wrong event of each rank, what led to it, and whose pages it was about.",
    ),
    "replay": Subcommand(
        "radixledger.tools.replay.command",
        "command",
        "Rebuild what was true from a journal: verify it, show any state, tell a page's story.",
        is_group=True,
    ),
    "export": Subcommand(
        "radixledger.tools.export.command",
        "command",
        "Give a journal to programs that know other formats: Perfetto, routers.",
        is_group=True,
    ),
    "report": Subcommand(
        "radixledger.tools.report",
        "command",
        "Write runs as one page to attach to a ticket: verdict, charts, findings, and every moment that was.",
    ),
    "whatif": Subcommand(
        "radixledger.tools.whatif",
        "command",
        "Send the recorded requests of RUN through other configurations, beside what happened.",
    ),
    "reduce": Subcommand(
        "radixledger.tools.reduce",
        "command",
        "Reduce an incident to the few commands that show it, and write a pytest file that fails while the fault is in the code.",
    ),
    "counterfactual": Subcommand(
        "radixledger.tools.counterfactual",
        "command",
        "Perform an incident again with another revision's deciders: does the violation go away, and without a new one?",
    ),
    "load": Subcommand(
        "radixledger.tools.load",
        "command",
        "Put journals into a DuckDB file or Parquet files; a second load goes on where the first ended.",
    ),
    "sql": Subcommand(
        "radixledger.tools.sql",
        "command",
        "Ask runs in SQL: a question by its name, a query of your own, or every check at once.",
    ),
}

ASKED_WRONGLY = (KeyFileRefused, NoSuchEvent, RunExists, WriterBusy)
"""Errors of a journal that another command line would not have met; all others mean: unreadable."""


@contextmanager
def _pipe_closed() -> Iterator[None]:
    """A reader that went away (`| head`) is no failure, and no finding either; click leaves with 1."""
    try:
        yield
    except BrokenPipeError:
        _point_stdout_at_nothing()
        exit_with(PIPE_CLOSED)


class Door(LazyGroup):
    """The outermost group."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        with _pipe_closed():
            return super().invoke(ctx)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read the command line, which prints `--help`."""
        with _pipe_closed():
            return super().make_context(*arguments, **options)


@click.group(
    cls=Door,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples("radixledger COMMAND --help")
    + "\n\nExit codes: 0 clean, 1 findings, 2 usage, 3 unreadable.",
)
@click.version_option(__version__, prog_name="radixledger")
def radixledger() -> None:
    """KV-cache metadata with a journal: serve with it, rebuild any state from it, ask it in SQL."""


def main() -> None:
    """Run the command line and leave with one of the exit codes of `tools.console`."""
    speak_as_the_streams_can()
    try:
        code = run()
    except OSError:  # not even the failure could be told: stderr is a file on the disk that is full
        code = UNREADABLE
    sys.exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run one command line (default: the program's own arguments); the exit code."""
    copies = Copies()
    try:
        result = radixledger.main(arguments, prog_name="radixledger", standalone_mode=False, obj=copies)
        if sys.stdout is not None:  # a shell can start us with it closed: `>&-`
            sys.stdout.flush()
    except CommandFailure as failure:
        CommandFailure(copies.told(failure.message), failure.exit_code).show()
        return failure.exit_code
    except click.ClickException as failure:
        failure.show()
        return failure.exit_code
    except click.Abort:
        remark("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _point_stdout_at_nothing()
        return PIPE_CLOSED
    except JournalError as error:
        code = USAGE if isinstance(error, ASKED_WRONGLY) else UNREADABLE
        CommandFailure(copies.told(str(error)), code).show()
        return code
    except OSError as error:
        CommandFailure(copies.told(_os_error_text(error))).show()
        return UNREADABLE
    except MemoryError as error:
        CommandFailure(_memory_text(error)).show()
        return UNREADABLE
    except Exception:  # noqa: BLE001 — the last door: a bug must not leave with 1, which means findings
        traceback.print_exc()
        remark("This is a bug in radixledger; the lines above say where.")
        return BUG
    return result if isinstance(result, int) else 0


def _os_error_text(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename is not None else reason


def _memory_text(error: MemoryError) -> str:
    more = "give the process more (`ulimit -v`, the limit of its container), or ask it about less: one --rank, fewer --processes, smaller pools"
    return "\n".join(filter(None, (f"there was not enough memory: {more}", str(error))))


def _point_stdout_at_nothing() -> None:
    """Whoever read our output has gone; without this, Python complains once more while it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
