"""How a wrong fold is caught, twice: by the naive model in random plays, and by digests beside those of the lawful fold."""

import random
from typing import Any, NamedTuple, TypeVar

import pytest

from radixledger.cache.decide.pages import Decision
from radixledger.cache.digest import digest
from radixledger.cache.evolve import begin, evolve
from radixledger.cache.rank import RankCache
from radixledger.cache.state import State

from .. import witnesses
from ..cache.driven import FrameList
from ..machine import SETTINGS, Dice, Play
from ..test_machine import COMMANDS
from .caught import Unheard
from .desk import SMALL, Desk, opened
from .of_the_fold import FoldMutant
from .seeded import Predicate

T = TypeVar("T")

STEPS = 200
SEED = 1


class Diverged(NamedTuple):
    """The event that was predicted to be folded wrongly, and the first behind which two digests differ."""

    predicted: int | None
    found: int | None


class Notary:
    """Writes down the digest behind every event, and the first event of which the prediction holds."""

    def __init__(self, wrong: Predicate) -> None:
        self._wrong = wrong
        self.seq: int | None = None
        self.digests: dict[int, bytes] = {}

    def __call__(self, state: State, decision: Decision[T]) -> Decision[T]:
        """The same decision."""
        while True:
            try:
                event = next(decision)
            except StopIteration as stop:
                result: T = stop.value
                return result
            if self.seq is None and self._wrong(state, event):
                self.seq = state.seq + 1
            yield event
            self.digests[state.seq] = digest(state)


def diverged(mutant: FoldMutant) -> Diverged:
    """Run the schedule on the wrong fold, then fold what it wrote with the lawful one."""
    journal, notary = FrameList(opened(SMALL)), Notary(mutant.wrong)
    with pytest.MonkeyPatch.context() as patch:
        mutant.change(patch)
        cache = RankCache(journal.opened, journal, digest_every=1 << 30)
        cache.state.findings = Unheard()
        cache._watch = notary  # type: ignore[assignment]
        try:
            mutant.script(Desk(cache))
        except Exception:  # noqa: BLE001  # a cache gone wrong falls over in any way it likes
            journal.end_command()
    state = begin(journal.opened)
    for event in journal.events[1:]:
        evolve(state, event)
        if notary.digests.get(state.seq, digest(state)) != digest(state):
            return Diverged(notary.seq, int(state.seq))
    return Diverged(notary.seq, None)


def is_seen_by_the_model(mutant: FoldMutant) -> bool:
    """Whether a random play ends because the live state is not what the model says; no law is asked."""
    with pytest.MonkeyPatch.context() as patch:
        mutant.change(patch)
        patch.setattr(witnesses, "broken_laws", lambda _: [])
        patch.setattr(witnesses, "recount", digest)
        return any(_ends_early(name) for name in SETTINGS)


def _ends_early(setting: str) -> bool:
    play: Any = Play(SETTINGS[setting])
    for player in play.players:
        player.sides.live.state.findings = Unheard()
        player.sides.folded.findings = Unheard()
    rolls = random.Random(SEED)
    chance = Dice(rolls)
    try:
        for command in rolls.choices([*COMMANDS], [*COMMANDS.values()], k=STEPS):
            play.run(command, chance)
    except AssertionError:
        return True
    return False
