"""How the life of a page is printed: one step a row, and a column for what was wrong where something was.

Not here: the steps themselves (`radixledger.replay.blame`).
"""

from msgspec.structs import asdict

from radixledger.journal.accounts import describe
from radixledger.replay.blame import LifeStep
from radixledger.tools.console import print_table
from radixledger.tools.event_text import time_text


def print_story(steps: list[LifeStep], title: str) -> None:
    """A table of steps, or one record under the other where the terminal is narrow."""
    columns = ["life", "event", "time", "step", "what", "from", "to", "request id", "why", "mapped with"]
    rows = [_story_row(step) for step in steps]
    if any(step.wrong for step in steps):
        columns.append("wrong")
        rows = [[*row, step.wrong] for row, step in zip(rows, steps, strict=True)]
    print_table(columns, rows, title=title)


def _story_row(step: LifeStep) -> list[object]:
    life = str(step.life) if step.life else "before"
    taker = "stays" if step.taker == step.giver else describe(step.taker)
    return [
        life, str(step.seq), time_text(step.time_ns), str(step.step), step.event, describe(step.giver), taker,
        step.rid, step.cause, str(step.partner or ""),
    ]  # fmt: skip


def step_json(step: LifeStep) -> dict[str, object]:
    """A step for programs: its fields, and the accounts and the time in words."""
    return {
        **asdict(step),
        "from": describe(step.giver),
        "to": describe(step.taker),
        "time": time_text(step.time_ns),
    }
