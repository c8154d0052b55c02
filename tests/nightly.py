"""The machine for an hour: every setting with fresh seeds, round after round, until the time is up.

    python -m tests.nightly [--minutes 60] [--commands 4000] [--first-seed N] [--workers 2]

Plays are those of `test_machine.py`, whose seeds are others: `--first-seed` continues where an earlier night ended. A play
in which the witnesses disagree is told with its setting and seed, by which it can be played again; exit code 1. Rule:
the clock decides how many plays there are, never what is in one.
"""

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import count, islice
from multiprocessing import get_context
from typing import NamedTuple

from .machine import SETTINGS
from .test_machine import by_seed


class Played(NamedTuple):
    """How one play ended; `failure` is empty where the witnesses agreed all the way."""

    setting: str
    seed: int
    kinds: Counter[str]
    failure: str


def play(asked: tuple[str, int, int]) -> Played:
    """One play, judged."""
    name, seed, commands = asked
    try:
        return Played(name, seed, by_seed(SETTINGS[name], seed, commands).seen(), "")
    except Exception:  # noqa: BLE001  # whatever stops a play is what the night is for
        return Played(name, seed, Counter(), traceback.format_exc())


def plays(first_seed: int, commands: int, until: float) -> Iterator[tuple[str, int, int]]:
    """Every setting with one seed, then with the next, until the clock says so."""
    for seed in count(first_seed):
        for name in SETTINGS:
            if time.monotonic() >= until:
                return
            yield name, seed, commands


def in_turn(asked: Iterator[tuple[str, int, int]], workers: int) -> Iterator[Played]:
    """Play what is asked, as many at once as there are workers; nothing is asked before somebody can play it."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(play, each) for each in islice(asked, workers)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(play, each) for each in islice(asked, len(done))}
            for future in done:
                yield future.result()


def main() -> int:
    """Play, tell each play in a line, and sum up."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="how long new plays are begun (default 60)"
    )
    parser.add_argument("--commands", type=int, default=4000, help="commands of a play (default 4000)")
    parser.add_argument("--first-seed", type=int, default=100, help="seed of the first round (default 100)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    given = parser.parse_args()
    begun = time.monotonic()
    asked = plays(given.first_seed, given.commands, begun + 60 * given.minutes)
    all_played = list[Played]()
    for played in in_turn(asked, given.workers):
        all_played.append(played)
        verdict = "FAILED" if played.failure else "agreed"
        sys.stdout.write(
            f"{time.monotonic() - begun:7.0f} s  {verdict}  seed {played.seed}  {played.setting}\n"
        )
        sys.stdout.flush()
    failed = [each for each in all_played if each.failure]
    for each in failed:
        sys.stdout.write(f"\nseed {each.seed}, {each.setting}:\n{each.failure}")
    kinds = sum((each.kinds for each in all_played), Counter[str]())
    settings = {each.setting for each in all_played}
    sys.stdout.write(
        f"{len(all_played)} plays of {given.commands:,} commands, {len(settings)} of {len(SETTINGS)} settings, {len(kinds)} "
        f"kinds of transition and refusal, {time.monotonic() - begun:,.0f} s: {len(failed)} failed\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
