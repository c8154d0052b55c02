"""Groups of commands that import the one that is called, and none to list them.

Rule: a module is imported when its command is called and not before, so that `--help` and every command about journals
start at once and without JAX; so is fsspec, when a URL is given. These are the lazy imports of the house.
"""

import importlib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import click

from radixledger.tools.console import USAGE, CommandFailure

ENGINE_PACKAGES = frozenset({"jax", "jaxlib", "ml_dtypes", "safetensors"})


def imported(module: str, name: str) -> Any:
    """What a module calls `name`; the module is imported now."""
    return getattr(importlib.import_module(module), name)


class Subcommand(NamedTuple):
    """Where a command lives, and the line that `--help` shows for it: the first of its docstring."""

    module: str
    attribute: str
    help: str
    is_group: bool = False
    """Whether it has commands of its own, that somebody may look for beside it."""


class NearGroup(click.Group):
    """A group that answers a name that is none with the commands that are called nearly so, here or in a group elsewhere."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click resolves it; a name that is none is answered with those that are near: here, then anywhere."""
        name = args[0]
        if name not in self.list_commands(ctx) and not name.startswith("-") and not ctx.resilient_parsing:
            calls = _near(name, self, ctx) or _near(name, ctx.find_root().command, ctx.find_root())
            ctx.fail(f"No such command {name!r}." + (f" Did you mean: {', '.join(calls)}?" if calls else ""))
        return super().resolve_command(ctx, args)

    def names(self, ctx: click.Context) -> Iterator[tuple[str, str]]:
        """Every name that is a command here or in a group below, with what is typed for it from here."""
        yield from ((name, name) for name in self.list_commands(ctx))


class LazyGroup(NearGroup):
    """A group that knows its commands by name, from `table`, and imports the one that is called."""

    def __init__(self, *arguments: Any, table: Mapping[str, Subcommand], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the table, which is the order in which a newcomer meets them."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command called `cmd_name`, imported now; None when there is no such command."""
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        try:
            command: click.Command = imported(entry.module, entry.attribute)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in ENGINE_PACKAGES:
                raise
            raise CommandFailure(
                f"`radixledger {cmd_name}` runs the engine, which needs {error.name}: pip install 'radixledger[serve]'; in a checkout '.[serve]'",
                USAGE,
            ) from error
        return command

    def names(self, ctx: click.Context) -> Iterator[tuple[str, str]]:
        """As above; a group below is imported, to be asked for its own."""
        for name, entry in self.table.items():
            yield name, name
            if entry.is_group:
                group: click.Group = imported(entry.module, entry.attribute)
                yield from ((each, f"{name} {each}") for each in group.list_commands(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, importing none of them."""
        if not self.table:
            return
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.table.items()])


def _near(name: str, group: click.Command, ctx: click.Context) -> list[str]:
    """What is typed for the commands of a group that are called nearly so."""
    names = list(group.names(ctx)) if isinstance(group, NearGroup) else []
    near = get_close_matches(name, dict.fromkeys(each for each, _ in names))
    return [f"{ctx.command_path} {call}" for close in near for each, call in names if each == close]
