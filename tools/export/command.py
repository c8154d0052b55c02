"""The group `radixledger export`: a journal in the formats of others.

A format is one line of `COMMANDS` and a module beside this one. Rule: these commands only read the journal.
"""

import click

from radixledger.tools.lazy_group import LazyGroup, Subcommand

COMMANDS: dict[str, Subcommand] = {
    "perfetto": Subcommand(
        "radixledger.tools.export.perfetto",
        "command",
        "Write a trace for ui.perfetto.dev: requests, device steps and pools on one time line.",
    ),
    "kv-events": Subcommand(
        "radixledger.tools.export.kv_events",
        "command",
        "Tell what the cache holds in the wire form that vLLM and SGLang publish.",
    ),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def command() -> None:
    """Give a journal to programs that know other formats: Perfetto, routers.

    RUN is the folder that was given as --journal, with one rank-NNNN folder per rank, or the URL of one.
    """
