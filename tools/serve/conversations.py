"""Conversations as requests: turns over one shared system prompt, each turn repeating all that was said before.

The workload of the demo. Rule: it is a function of its numbers alone; token ids come from a seeded stream, times are
virtual, and what a turn says depends on nothing but the answers before it.
"""

from typing import NamedTuple

import numpy as np

from radixledger.tools.serve.engine import Outcome, Placed
from radixledger.tools.serve.requests import Request

FIRST_TOKEN = 3
"""Ids below are padding, end and beginning."""


class Talk(NamedTuple):
    """The shape of a workload; lengths are tokens, times virtual milliseconds.

    A question has half to one and a half times the length that is said, so that no two ranks do the same.
    """

    conversations: int
    turns: int
    ranks: int
    system: int
    question: int
    answer: int
    pause_ms: int
    """Between an answer and the next question."""
    stagger_ms: int
    """Between the first questions of two conversations."""
    vocab_size: int = 512
    seed: int = 1


class Conversations:
    """A workload under way: `openings` are its first requests, `then` tells what each outcome leads to.

    `requests` holds every request in the order of its place, with the arrival it had: served again, they make the same
    run. Conversation i stays on rank i modulo the number of ranks.
    """

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.requests: list[Request] = []
        self._turns: list[tuple[int, int]] = []
        """Whose turn each request is, and its number."""
        system = self._words(talk.system)
        for who in range(talk.conversations):
            self._ask(who, 0, system, who * talk.stagger_ms)
        self.openings = list(self.requests)

    def then(self, outcome: Outcome) -> list[Placed]:
        """The next turn of the conversation that an outcome belongs to, if it has one."""
        who, turn = self._turns[outcome.place]
        if turn + 1 == self.talk.turns:
            return []
        said = [*self.requests[outcome.place].input_ids, *outcome.result.output_ids]
        return [self._ask(who, turn + 1, said, outcome.at_ms + self.talk.pause_ms)]

    def _ask(self, who: int, turn: int, said: list[int], at_ms: int) -> Placed:
        talk = self.talk
        length = talk.question // 2 + self._words(1, who, turn, 1)[0] % (talk.question + 1)
        request = Request(
            f"talk-{who}-turn-{turn + 1}",
            [*said, *self._words(length, who, turn)],
            talk.answer,
            ignore_eos=True,
            arrival_ms=at_ms,
            dp_rank=who % talk.ranks,
        )
        self.requests.append(request)
        self._turns.append((who, turn))
        return len(self.requests) - 1, request

    def _words(self, count: int, *which: int) -> list[int]:
        """Token ids of one text, which are the same wherever and whenever they are asked for."""
        chance = np.random.default_rng([self.talk.seed, *which])
        ids: list[int] = chance.integers(FIRST_TOKEN, self.talk.vocab_size, count).tolist()
        return ids
