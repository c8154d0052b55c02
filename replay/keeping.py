"""What a loss means and how it could have been avoided, in sentences for the person on call.

Rule: figures are the journal's. What another configuration would have done is an estimate (J17), and is called one: more
pages change who is evicted later, so only running it again shows.
"""

from radixledger.journal.events import Config
from radixledger.replay.misses import Lost, Miss

_STAYS = "no pool size changes this"

WHY = {
    "hit": "from the cache",
    "lost": "would have hit until an event took them",
    "not_usable": "cached without a whole window or state",
    "concurrent": "another request was computing them",
    "never_cached": "no request had left them in the cache",
    "forced": "could have hit, told not to",
    "untold": "their key is not in the journal",
    "too_short": "behind the last whole page",
}
"""Kinds of tokens in words."""


def wanted_text(lost: Lost) -> str:
    """Who wanted the room that a loss made; empty where nobody is told."""
    asked = [
        f"{count} {unit}"
        for count, unit in (
            (lost.asked_full, "FULL pages"),
            (lost.asked_swa, "SWA pages"),
            (lost.asked_states, "state slots"),
        )
        if count
    ]
    if not asked and not lost.wanted_seq:
        return ""
    who = ", ".join(lost.wanted_by)
    more = lost.wanted_by_count - len(lost.wanted_by)
    if more > 0:
        who += f" and {more} more"
    text = f"an eviction for {' and '.join(asked)}" if asked else "an eviction"
    taken = f"; {who} took them (event {lost.wanted_seq})" if who else "; nobody took them before the next"
    return text + taken


def keeping_text(lost: Lost, config: Config) -> str:
    """How the tokens of a loss could have been kept."""
    text = _keeping(lost, config)
    if lost.also_seq and lost.what in ("window", "state"):
        text += (
            f" That alone was not enough: event {lost.also_seq} took their FULL pages too ({lost.also_cause}"
        )
        text += f", {lost.also_evicted_full:,} FULL pages ago)." if lost.also_evicted_full else ")."
    return text


def _keeping(lost: Lost, config: Config) -> str:
    if lost.event == "Opened":
        return "The process began anew, with empty pools: a restart always costs what was cached."
    operation, _, site = lost.cause.partition("/")
    if operation == "flush":
        return f"Somebody emptied the cache on purpose; {_STAYS}."
    if site == "outgrown":
        return f"A state stands at a leaf only, and the leaf got a child; {_STAYS}."
    if operation not in ("evict", "evict_host"):
        return f"{lost.cause} took it, which is no pressure; see the event."
    if lost.what == "window" or site == "swa_leaf":
        advice = _room("SWA", lost.evicted_swa, config.swa_pages, "swa_pages")
        if config.swa_victims == "lru":
            advice += " Or --swa-victims use, which takes window pages first that no request can need."
        return advice
    if lost.what == "state" or site == "state_leaf":
        return f"More state slots than {config.recurrent_slots} would have kept it."
    advice = _room("FULL", lost.evicted_full, config.full_pages, "full_pages")
    if lost.what == "prefix" and not config.host_pages and not config.swa_pages:
        advice += " Or a host tier, which keeps copies behind an eviction."
    return advice


def _room(pool: str, evicted: int, capacity: int, setting: str) -> str:
    more = f"About {evicted:,} more {pool} pages" if evicted != 1 else f"One more {pool} page"
    return (
        f"{more} (there are {capacity:,}) would have kept it: so many were evicted from there to this request. "
        f"An estimate; radixledger whatif --set {setting}={capacity + evicted} tries it."
    )


def stop_sentence(miss: Miss) -> str:
    """Why a match ended where it did, in words."""
    return {
        "end_of_key": "it got all that it asked for",
        "no_child": "the tree had nothing further for this prompt",
        "diverged": "what the tree had there was another text",
        "window_dead": f"FULL pages went on to token {miss.full_hit:,}, the window behind them was dead",
        "forced_miss": f"it was told not to hit; the tree had {miss.full_hit:,} tokens",
        "no_state": f"FULL pages went on to token {miss.full_hit:,}, no state stood behind them",
        "not_told": "the journal has no match of this request",
        "on_host": f"copies on the host went on for {miss.host_hit:,} tokens",
    }.get(miss.stop, miss.stop)
