"""What a unified cache may be built with: every check stands before anything exists (R14).

Rule: nothing is guessed and nothing falls back: what this cache does not serve is refused with its name.
"""

from collections.abc import Sequence

from radixledger.cache.opening import NO_STATES, StateMode
from radixledger.cache.prefix_cache import CacheInitParams, ComponentType
from radixledger.journal.sizes import BadConfig

FULL_ALONE = (ComponentType.FULL,)
WITH_WINDOWS = (ComponentType.FULL, ComponentType.SWA)
WITH_STATES = (ComponentType.FULL, ComponentType.RECURRENT)
SERVED = (FULL_ALONE, WITH_WINDOWS, WITH_STATES)


def checked_window(
    params: CacheInitParams | None,
    *,
    req_to_token_pool: object,
    token_to_kv_pool_allocator: object,
    page_size: int,
    is_eagle: bool,
    lift_bigram: bool,
    tree_components: Sequence[ComponentType],
    enable_recurrent_extra_buffer: bool,
    recurrent_track_interval: int | None,
) -> int | None:
    """The sliding window, in tokens, that a cache is built with, None where nothing is said of one.

    Raises BadConfig, naming the field (R56, R58); that SWA needs a window is the face's to say.
    """
    components = tuple(tree_components)
    _check_components(components)
    if is_eagle and components == WITH_STATES:
        raise BadConfig(
            "is_eagle", "is not served together with states: a state is of a token, not of a pair"
        )
    if is_eagle and not lift_bigram and components != FULL_ALONE:
        raise BadConfig(
            "is_eagle", "is not served together with (FULL, SWA), unless lift_bigram is given too (R10, R267)"
        )
    _check_mode(components, enable_recurrent_extra_buffer, recurrent_track_interval)
    if params is None:
        if components == FULL_ALONE:
            return None
        raise BadConfig("component_init_params", "every component needs them, None was given (R56)")
    for field, value in (
        ("req_to_token_pool", req_to_token_pool),
        ("token_to_kv_pool_allocator", token_to_kv_pool_allocator),
        ("page_size", page_size),
        ("is_eagle", is_eagle),
        ("enable_recurrent_extra_buffer", enable_recurrent_extra_buffer),
        ("recurrent_track_interval", recurrent_track_interval),
    ):
        _check_agreed(field, getattr(params, field), value)
    if components != WITH_WINDOWS and params.sliding_window_size:
        told = "FULL alone has" if components == FULL_ALONE else f"{_named(components)} have"
        raise BadConfig("sliding_window_size", f"{params.sliding_window_size}; {told} no window")
    return params.sliding_window_size


def state_mode(
    tree_components: Sequence[ComponentType], extra_buffer: bool, track_interval: int | None
) -> StateMode:
    """How a cache of these components keeps states; what `checked_window` has let pass."""
    if tuple(tree_components) != WITH_STATES:
        return NO_STATES
    return StateMode("extra_buffer", track_interval or 0) if extra_buffer else StateMode("base")


def _check_components(components: tuple[ComponentType, ...]) -> None:
    if {ComponentType.SWA, ComponentType.RECURRENT} <= {*components}:
        raise BadConfig(
            "tree_components",
            f"{_named(components)} is not served: a hit on a state needs the window below that state, and windows are "
            "kept below the last token alone (R11); take (FULL, SWA) or (FULL, RECURRENT)",
        )
    if components not in SERVED:
        served = " and ".join(_named(each) for each in SERVED)
        raise BadConfig("tree_components", f"{_named(components)} is not served here; {served} are")


def _check_mode(components: tuple[ComponentType, ...], extra_buffer: bool, interval: int | None) -> None:
    """Track slots and their interval come together, and only where there are states."""
    if components != WITH_STATES:
        for field, asked in (
            ("enable_recurrent_extra_buffer", extra_buffer),
            ("recurrent_track_interval", interval is not None),
        ):
            if asked:
                raise BadConfig(field, f"is not served together with {_named(components)} (R10, R11)")
    elif extra_buffer != (interval is not None):
        need = (
            "track slots need one"
            if extra_buffer
            else "without enable_recurrent_extra_buffer nothing is tracked"
        )
        raise BadConfig("recurrent_track_interval", f"{interval}; {need}")


def _check_agreed(field: str, told: object, value: object) -> None:
    """A pool has to be the very same (R58)."""
    if field.endswith(("pool", "allocator")):
        if told is not value:
            raise BadConfig(field, "the component's is not the cache's (R58)")
    elif told != value:
        raise BadConfig(field, f"the component says {told}, the cache {value} (R58)")


def _named(components: Sequence[ComponentType]) -> str:
    return "(" + ", ".join(ComponentType(component).name for component in components) + ")"
