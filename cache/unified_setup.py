"""What a unified cache may be built with: every check stands before anything exists (R14).

Rule: nothing is guessed and nothing falls back: what this cache does not serve is refused with its name.
"""

from collections.abc import Sequence

from radixledger.cache.config import BadConfig
from radixledger.cache.prefix_cache import CacheInitParams, ComponentType

FULL_ALONE = (ComponentType.FULL,)
SERVED = (FULL_ALONE, (ComponentType.FULL, ComponentType.SWA))


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
    if components not in SERVED:
        raise BadConfig(
            "tree_components", f"{_named(components)} is not served here; (FULL) and (FULL, SWA) are"
        )
    if is_eagle and not lift_bigram and components != FULL_ALONE:
        raise BadConfig(
            "is_eagle", "is not served together with (FULL, SWA), unless lift_bigram is given too (R10, R267)"
        )
    for field, asked in (
        ("enable_recurrent_extra_buffer", enable_recurrent_extra_buffer),
        ("recurrent_track_interval", recurrent_track_interval is not None),
    ):
        if asked:
            raise BadConfig(field, f"is not served together with {_named(components)} (R10, R11)")
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
    if components == FULL_ALONE and params.sliding_window_size:
        raise BadConfig("sliding_window_size", f"{params.sliding_window_size}; FULL alone has no window")
    return params.sliding_window_size


def _check_agreed(field: str, told: object, value: object) -> None:
    """A pool has to be the very same (R58)."""
    if field.endswith(("pool", "allocator")):
        if told is not value:
            raise BadConfig(field, "the component's is not the cache's (R58)")
    elif told != value:
        raise BadConfig(field, f"the component says {told}, the cache {value} (R58)")


def _named(components: Sequence[ComponentType]) -> str:
    return "(" + ", ".join(ComponentType(component).name for component in components) + ")"
