"""`analytics/sql/tested_transitions.sql`: which ownership transitions the plays of the tests make, and how often (N19).

    python -m tests.transitions_table

plays every setting of the machine with the seeds that every test run uses, loads what was journaled, and asks the
view `transitions`, the one that is asked of a served run too. `analytics/test_transition_coverage.py` holds the file
against the lists of `transitions.py`, which the plays are held against.
"""

from collections.abc import Iterator
from pathlib import Path

from radixledger.analytics.load import load_frames
from radixledger.analytics.queries import ask_sql
from radixledger.analytics.store import Database
from radixledger.journal.frame import Frame
from radixledger.journal.units import FIRST, Rank

from .machine import SETTINGS, Play
from .test_machine import SEEDS, STEPS_BY_SEED, by_seed
from .transitions import EVERY_KIND

PATH = Path(__file__).parent.parent / "analytics" / "sql" / "tested_transitions.sql"

HEAD = """\
-- Kinds of ownership transition that the project's own tests play, and in how many events.
--
-- Written by `python -m tests.transitions_table`.
-- kind: view 2
SELECT pool, from_kind, to_kind, event, cause, events::BIGINT AS events
FROM (VALUES
"""
TAIL = "\n) AS tested(pool, from_kind, to_kind, event, cause, events)\n"


def listed() -> set[tuple[str, ...]]:
    """The kinds that move pages of the lists that a play is held against, in the columns of the view."""
    kinds = set[tuple[str, ...]]()
    for kind in EVERY_KIND:
        move, arrow, why = kind.partition("→")
        if arrow:
            pool, giver = move.split()
            taker, rest = why.split(": ")
            event, cause = rest.partition(" by ")[0].split()
            kinds.add((pool.lower(), giver, taker, event, cause))
    return kinds


def frames(play: Play) -> Iterator[tuple[Rank, list[Frame]]]:
    """What each rank of a play journaled, as one frame."""
    for player in play.players:
        tape = player.sides.tape
        yield tape.opened.rank, [Frame(FIRST, 0, 0, 1, [tape.opened, *tape.events])]


def played() -> list[tuple[str, ...]]:
    """The rows of the view `transitions` over a play of each setting."""
    database = Database()
    for name, setting in SETTINGS.items():
        for seed in SEEDS.get(setting.play, (1,)):
            for rank, told in frames(by_seed(setting, seed, STEPS_BY_SEED)):
                load_frames(database, f"{name}, {seed}", rank, iter(told))
    query = (
        "SELECT pool, from_kind, to_kind, event, cause, sum(events)::BIGINT FROM transitions"
        " GROUP BY ALL ORDER BY pool, from_kind, to_kind, event, cause"
    )
    rows = ask_sql(database.questioned(), query).rows
    database.close()
    return rows


def text(rows: list[tuple[str, ...]]) -> str:
    """The file."""
    return HEAD + ",\n".join(f"    {(*row[:-1], int(row[-1]))!r}" for row in rows) + TAIL


if __name__ == "__main__":
    PATH.write_text(text(played()), "utf-8")
