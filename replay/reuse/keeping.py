"""What a loss means and how it could have been avoided, in sentences for the person on call.

Rule: figures are the journal's. What another configuration would have done is an estimate (J17), and is called one: more
pages change who is evicted later, so only running it again shows. What a route cannot be told is not advised.
"""

from radixledger.cache.traits import TRAITS, UNKNOWN
from radixledger.journal.events import Opened
from radixledger.replay.counted import counted
from radixledger.replay.reuse.misses import Lost, Miss, Stretch

WHY = {
    "hit": "from the cache",
    "lost": "would have hit until an event took them",
    "not_usable": "cached without a whole window or state",
    "concurrent": "another request was computing them",
    "never_cached": "no request had left them in the cache",
    "forced": "could have hit, told not to",
    "untold": "their key is not in the journal",
    "not_known": "events are missing: nobody knows",
    "too_short": "behind the last whole page",
}
"""Kinds of tokens in words."""

_ON_PURPOSE = {
    "flush": "Somebody emptied the cache on purpose; no pool size changes this.",
    "outgrown": "A state stands at a leaf only, and the leaf got a child; no pool size changes this.",
}


def wanted_text(lost: Lost) -> str:
    """Who wanted the room that a loss made; empty where nobody is told."""
    asked = [
        counted(count, unit)
        for count, unit in (
            (lost.asked_full, "FULL page"),
            (lost.asked_swa, "SWA page"),
            (lost.asked_states, "state slot"),
        )
        if count
    ]
    if not asked and not lost.wanted_seq:
        return ""
    text = f"an eviction for {' and '.join(asked)}" if asked else "an eviction"
    if not lost.wanted_seq:
        return f"{text}; nobody took room before the next one"
    more = lost.wanted_by_count - len(lost.wanted_by)
    who = ", ".join(lost.wanted_by) + (f" and {more} more" if more > 0 else "")
    return f"{text}; {who} took room next (event {lost.wanted_seq})"


def keeping_text(lost: Lost, opened: Opened) -> str:
    """How the tokens of a loss could have been kept by a rank that was opened so."""
    text = _keeping(lost, opened)
    if lost.also_seq and lost.what in ("window", "state"):
        text += (
            f" That alone was not enough: event {lost.also_seq} took their FULL pages too ({lost.also_cause})"
        )
        more = counted(lost.also_evicted_full, "more FULL page")
        text += f", so about {more} were needed as well." if lost.also_evicted_full else "."
    return text


def setting_to_try(lost: Lost, opened: Opened) -> str:
    """What `radixledger whatif --set` takes to try the room that is advised; empty where none is."""
    if _besides_pressure(lost) or _is_of_states(lost):
        return ""
    if _is_of_windows(lost):
        return f"swa_pages={opened.config.swa_pages + lost.evicted_swa}"
    return f"full_pages={opened.config.full_pages + lost.evicted_full}"


def _besides_pressure(lost: Lost) -> str:
    """What took the tokens, where it was no want of room."""
    if lost.event == "Opened":
        return "The process began anew, with empty pools: a restart costs what was cached."
    if lost.event == "Gap":
        return (
            "Events are missing there: one of them, or of those behind it, took this; which one nobody knows."
        )
    operation, _, site = lost.cause.partition("/")
    for name in (operation, site):
        if name in _ON_PURPOSE:
            return _ON_PURPOSE[name]
    return "" if lost.pressed else f"{lost.cause} took it, and that is no pressure: see the event."


def _is_of_windows(lost: Lost) -> bool:
    return lost.what == "window" or lost.cause.endswith("/swa_leaf")


def _is_of_states(lost: Lost) -> bool:
    return not _is_of_windows(lost) and (lost.what == "state" or lost.cause.endswith("/state_leaf"))


def _keeping(lost: Lost, opened: Opened) -> str:
    if told := _besides_pressure(lost):
        return told
    config, traits = opened.config, TRAITS.get(opened.route, UNKNOWN)
    if _is_of_windows(lost):
        advice = _room("SWA", lost.evicted_swa, config.swa_pages)
        if traits.orders and config.swa_victims == "lru":
            advice += " Or --swa-victims use, which takes window pages first that no request can need."
        return advice
    if _is_of_states(lost):
        return f"More state slots (there are {config.recurrent_slots}) would have kept it."
    advice = _room("FULL", lost.evicted_full, config.full_pages)
    if lost.what == "prefix" and traits.hosted and not config.host_pages:
        advice += " Or a host tier, which keeps copies behind an eviction."
    return advice


def _room(pool: str, evicted: int, capacity: int) -> str:
    return (
        f"About {counted(evicted, f'more {pool} page')} (there are {capacity:,}) would have kept it, an estimate: so many were "
        "evicted from there to this request."
    )


def because_text(stretch: Stretch) -> str:
    """Why pages were not kept in the first place."""
    where = f"event {stretch.seq} ({stretch.cause})"
    if stretch.kind == "not_usable":
        return f"their request had given the window back below its own by {where}: only the end of what it left has one"
    return f"perhaps: pages behind the same prefix were computed before and not kept, {where}; their text was never told"


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
