"""The group `radixledger replay`: fold a journal again, and ask it what was true, since when, and why.

A subcommand is one line of `COMMANDS` and a module beside this one. Rule: these commands only read; they need the journal
and nothing else: no device, no model, no key.
"""

import click

from radixledger.tools.lazy_group import LazyGroup, Subcommand

COMMANDS: dict[str, Subcommand] = {
    "verify": Subcommand(
        "radixledger.tools.replay.verify",
        "command",
        "Fold every event again; compare every recorded digest and ledger; check every law.",
    ),
    "state": Subcommand(
        "radixledger.tools.replay.state",
        "command",
        "Show the state after an event, or as of a time: pools, accounts, requests, locks and the tree.",
    ),
    "blame": Subcommand(
        "radixledger.tools.replay.blame",
        "command",
        "Tell the story of a page, a node or a request: who held what, who gave it up, why, and in which event.",
    ),
    "tail": Subcommand(
        "radixledger.tools.replay.tail",
        "command",
        "Follow a journal while it is written, one line per event, and raise an alarm where a law is broken.",
    ),
    "locks": Subcommand(
        "radixledger.tools.replay.locks",
        "command",
        "Show who holds which window, since when, for which request, and what that keeps from being evicted.",
    ),
    "bisect": Subcommand(
        "radixledger.tools.replay.bisect",
        "command",
        "Find the first command behind which a law is broken, a predicate is true, or a query has rows.",
    ),
    "diff": Subcommand(
        "radixledger.tools.replay.diff",
        "command",
        "Show where two journals part, or, with @SEQ or @TIME, what is different between two states.",
    ),
    "lost-reuse": Subcommand(
        "radixledger.tools.replay.lost_reuse",
        "command",
        "For each miss, name the event that destroyed the prefix or the window that it needed.",
    ),
    "why-miss": Subcommand(
        "radixledger.tools.replay.why_miss",
        "command",
        "Tell why request RID missed: how far it hit, what was there, what took it, for whom, and how to keep it.",
    ),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def command() -> None:
    """Rebuild what was true from a journal: verify it, show any state, tell a page's story.

    RUN is the folder that was given as --journal, with one rank-NNNN folder per rank, or the URL of one.
    """
