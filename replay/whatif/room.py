"""The rule by which a redrive lets a request in, and by which a record is judged to have let one in too early.

It is that of `radixledger drive`, a server with chunked prefill and no foresight. Rule: it reads.
"""

from radixledger.cache.state import State
from radixledger.cache.window import pages_for, window_pages
from radixledger.journal.events import Opened
from radixledger.replay.whatif.schedule import Job

USUAL_CHUNK = 2048
"""Prompt tokens of a step where a journal has no prompt step to measure."""


def has_room_for(
    state: State, prompt: int, *, owed: int, computing: int, decoding: int, chunk_tokens: int
) -> bool:
    """Whether a prompt fits beside what the others still want; its own cached prefix counts as free (B114).

    owed: prompt tokens that the others, `computing` and `decoding` ones, have not computed. In SWA a chunk and the window
    before it have to fit.
    """
    page_size = state.page_size
    full = pages_for(prompt + owed, page_size) + computing + decoding
    swa = pages_for(chunk_tokens, page_size) + state.tail_pages + decoding + 2
    return full <= state.full.available + state.full_evictable and (
        not state.windowed or swa <= state.swa.available + state.swa_evictable
    )


def can_never_fit(opened: Opened, job: Job, chunk_tokens: int) -> bool:
    """Whether the pools could not hold a job if they held nothing else (B109, B116)."""
    config = opened.config
    page_size, tokens = config.page_size, max(job.tokens, job.prompt)
    whole = pages_for(tokens, page_size)
    if whole > min(config.full_pages, config.context_pages):
        return True
    least = (
        pages_for(min(chunk_tokens, job.prompt), page_size) + window_pages(opened.window_need, page_size) + 2
    )
    if not config.free_out_of_window:
        least += pages_for(tokens - job.prompt, page_size)
    return config.swa_pages > 0 and min(whole, least) > config.swa_pages
