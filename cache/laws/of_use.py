"""The laws of pages that may go because no boundary can need them: who waits for it, and which prompts are waited for.

They hold on every rank; one that chooses victims by recency alone has nothing of the kind. Counts are recounted from what
they count.
"""

from collections import Counter
from collections.abc import Iterator

from radixledger.cache.laws.law import Breach, law
from radixledger.cache.laws.of_the_tree import below_the_root
from radixledger.cache.spare import asks, spare_pages
from radixledger.cache.state import IN_SPARE_ORDER, State
from radixledger.journal.units import ROOT


@law
def every_spare_page_waits_in_its_order(state: State) -> Iterator[Breach]:
    """A live node in no locked window, with pages that nobody can need, waits once, at its tick or an older one (R69)."""
    order = state.spare_order or []
    waiting = Counter(node.id for _, _, node in order)
    oldest = {node.id: tick for tick, _, node in order}
    for node in below_the_root(state):
        may_go = (
            state.spare_order is not None and node.swa and not node.swa_locks and spare_pages(state, node)
        )
        if waiting[node.id] > 1 or bool(node.queued & IN_SPARE_ORDER) != bool(waiting[node.id]):
            yield Breach(
                f"node {node.id} waits {waiting[node.id]} times among the spare", found=waiting[node.id]
            )
        elif may_go and not waiting[node.id]:
            yield Breach(f"{may_go} pages of node {node.id} are for nobody, and it does not wait", expected=1)
        elif oldest.get(node.id, node.swa_tick) > node.swa_tick:
            yield Breach(f"node {node.id} waits at tick {oldest[node.id]}, it has {node.swa_tick}")
    for place in range(1, len(order)):
        if order[place][:2] < order[(place - 1) // 2][:2]:
            yield Breach(f"place {place} of the spare nodes is older than the one before it")


@law
def a_prompt_waits_until_its_answer_is_taken_up(state: State) -> Iterator[Breach]:
    """`asked` counts the live requests whose prompts end at a node, and the answers to it that still are leaves."""
    waiting = Counter(node.id for live in state.requests.values() if (node := asks(state, live)) is not None)
    for node in below_the_root(state):
        if node.answers != ROOT:
            waiting[node.answers] += 1
            if node.children:
                yield Breach(f"node {node.id} ends an answer, and has {len(node.children)} children")
    for node in state.nodes.values():
        if node.asked != waiting[node.id]:
            text = f"{node.asked} prompts wait at node {node.id}, {waiting[node.id]} have no answer that was taken up"
            yield Breach(text, expected=waiting[node.id], found=node.asked)


LAWS = (every_spare_page_waits_in_its_order, a_prompt_waits_until_its_answer_is_taken_up)
