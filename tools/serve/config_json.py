"""Reads a Hugging Face `config.json` into a `ModelSpec`.

Two spellings are in the field, the hub's own keys and the ones that `save_pretrained` writes; both are read.
A config that needs what the forward does not have is refused by the name of the field, never approximated.

Rule: an absent field means the reference implementation's default, because that is what it meant to the
writer of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from radixledger.tools.serve.spec import ConfigError, LayerSpec, ModelSpec, RopeSpec

__all__ = ["eos_ids", "spec_from_config"]


def spec_from_config(config: Mapping[str, Any]) -> ModelSpec:
    """Read the text model that `config` (a parsed `config.json`) describes.

    A multimodal wrapper is read through its `text_config`; the other towers are not served.

    Raises
    ------
    ConfigError
        The family is unknown, or a field is absent, malformed, or asks for what is not built.
    """
    fields = _Fields(config, "")
    family = fields.text("model_type")
    if "text_config" in config:
        fields = fields.inner("text_config")
        family = fields.text("model_type", default=f"{family}_text")
    reader = _FAMILIES.get(family)
    if reader is None:
        raise ConfigError(fields.path("model_type"), found=family, wanted=f"one of {sorted(_FAMILIES)}")
    return reader(fields)


class _Fields:
    """Typed look-ups in one JSON object, with errors that name the whole path."""

    def __init__(self, values: object, prefix: str) -> None:
        if not isinstance(values, Mapping):
            raise ConfigError(prefix.rstrip(".") or "config", found=values, wanted="an object")
        self._values, self._prefix = values, prefix

    def path(self, name: str) -> str:
        return self._prefix + name

    def names(self) -> list[str]:
        return [str(name) for name in self._values]

    def has(self, name: str) -> bool:
        return self._values.get(name) is not None

    def raw(self, name: str) -> object:
        return self._values.get(name)

    def inner(self, name: str) -> _Fields:
        return _Fields(self._values.get(name), f"{self._prefix}{name}.")

    def count(self, name: str, *, default: int | None = None) -> int:
        """Return a whole number of at least 1."""
        found = self._values.get(name)
        found = default if found is None else found
        if isinstance(found, bool) or not isinstance(found, int) or found < 1:
            raise ConfigError(self.path(name), found=found, wanted="a whole number of at least 1")
        return found

    def number(self, name: str, *, default: float | None = None) -> float:
        """Return a finite number above 0."""
        found = self._values.get(name)
        found = default if found is None else found
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < float("inf"):
            raise ConfigError(self.path(name), found=found, wanted="a finite number above 0")
        return float(found)

    def text(self, name: str, *, default: str | None = None) -> str:
        found = self._values.get(name)
        found = default if found is None else found
        if not isinstance(found, str):
            raise ConfigError(self.path(name), found=found, wanted="a string")
        return found

    def flag(self, name: str, *, default: bool) -> bool:
        found = self._values.get(name)
        found = default if found is None else found
        if not isinstance(found, bool):
            raise ConfigError(self.path(name), found=found, wanted="true or false")
        return found

    def must_be(self, name: str, wanted: object, *, default: object, needs: str) -> None:
        """Refuse any value but `wanted`; an absent field has the value `default`."""
        found = self._values.get(name)
        found = default if found is None else found
        if found != wanted:
            raise ConfigError(self.path(name), found=found, wanted=f"{wanted!r}: {needs} is not built")


# Gemma 4 text: the defaults are those of the reference implementation's configuration class, which leaves a
# field out of a hub file exactly when it has that value.

_SLIDING, _FULL = "sliding_attention", "full_attention"


def _gemma4(fields: _Fields) -> ModelSpec:
    _gemma4_refuses(fields)
    hidden = fields.count("hidden_size")
    kinds = _layer_types(fields, fields.count("num_hidden_layers"))
    return ModelSpec(
        family="gemma4_text",
        vocab_size=fields.count("vocab_size"),
        hidden=hidden,
        layers=tuple(_gemma4_layer(fields, number, kind) for number, kind in enumerate(kinds)),
        eps=fields.number("rms_norm_eps", default=1e-6),
        norm_offset=0.0,
        activation="gelu_tanh",
        embed_scale=hidden**0.5,
        logit_softcap=_number_or_none(fields, "final_logit_softcapping"),
        tied=fields.flag("tie_word_embeddings", default=True),
        context_tokens=fields.count("max_position_embeddings", default=131_072),
        eos_ids=eos_ids(fields.raw("eos_token_id"), field=fields.path("eos_token_id")),
    )


def _gemma4_refuses(fields: _Fields) -> None:
    needed = "per-layer input embeddings (an absent field means 256)"
    fields.must_be("hidden_size_per_layer_input", 0, default=256, needs=needed)
    fields.must_be("num_kv_shared_layers", 0, default=0, needs="sharing K and V between layers")
    fields.must_be("enable_moe_block", False, default=False, needs="a mixture of experts")
    fields.must_be("use_bidirectional_attention", None, default=None, needs="bidirectional attention")
    fields.must_be("attention_bias", False, default=False, needs="a bias on attention projections")
    default = "gelu_pytorch_tanh"
    fields.must_be("hidden_activation", default, default=default, needs="another activation")


def _gemma4_layer(fields: _Fields, number: int, kind: str) -> LayerSpec:
    full = kind == _FULL
    head_dim, kv_heads = _gemma4_heads(fields, number, full=full)
    return LayerSpec(
        q_heads=fields.count("num_attention_heads"),
        kv_heads=kv_heads,
        head_dim=head_dim,
        mlp_width=fields.count("intermediate_size"),
        window_tokens=None if full else fields.count("sliding_window", default=512),
        rope=_gemma4_rope(fields, kind, head_dim),
        scale=1.0,
        k_eq_v=full and fields.flag("attention_k_eq_v", default=False),
        v_norm=True,
        scalar=True,
    )


def _gemma4_heads(fields: _Fields, number: int, *, full: bool) -> tuple[int, int]:
    """Return head size and K/V heads of one layer, from whichever spelling the file has.

    Saved files hold `per_layer_config`, keyed by layer number, with the fields that differ from the top;
    hub files hold `global_head_dim` and `num_global_key_value_heads`. The first wins, as in the reference.
    """
    head_dim, kv_heads = fields.count("head_dim"), fields.count("num_key_value_heads")
    if fields.has("per_layer_config"):
        table = fields.inner("per_layer_config")
        if not table.has(str(number)):
            return head_dim, kv_heads
        entry = table.inner(str(number))
        for name in entry.names():
            if name not in {"head_dim", "num_key_value_heads"}:
                raise ConfigError(
                    entry.path(name), found=entry.raw(name), wanted="head_dim or num_key_value_heads"
                )
        return entry.count("head_dim", default=head_dim), entry.count("num_key_value_heads", default=kv_heads)
    if not full:
        return head_dim, kv_heads
    if fields.flag("attention_k_eq_v", default=False):
        kv_heads = fields.count("num_global_key_value_heads", default=kv_heads)
    return fields.count("global_head_dim", default=512), kv_heads


def _gemma4_rope(fields: _Fields, kind: str, head_dim: int) -> RopeSpec:
    if not fields.has("rope_parameters"):
        default = {_SLIDING: (1e4, head_dim // 2), _FULL: (1e6, int(0.25 * head_dim // 2))}
        return RopeSpec(*default[kind])
    rope = fields.inner("rope_parameters").inner(kind)
    theta = rope.number("rope_theta")
    match rope.text("rope_type", default="default"):
        case "default":
            return RopeSpec(theta, head_dim // 2)
        case "proportional":
            share = rope.number("partial_rotary_factor", default=1.0)
            return RopeSpec(theta, int(share * head_dim // 2), rope.number("factor", default=1.0))
        case other:
            raise ConfigError(rope.path("rope_type"), found=other, wanted="'default' or 'proportional'")


def _layer_types(fields: _Fields, count: int) -> list[str]:
    """Return one kind per layer; the last is full attention whatever the file says, as in the reference."""
    found = fields.raw("layer_types")
    if found is None:
        found = [_FULL if (number + 1) % 6 == 0 else _SLIDING for number in range(count)]
    if not isinstance(found, list) or len(found) != count or not set(found) <= {_SLIDING, _FULL}:
        wanted = f"{count} entries, each {_SLIDING!r} or {_FULL!r}"
        raise ConfigError(fields.path("layer_types"), found=found, wanted=wanted)
    return [*found[:-1], _FULL]


def _number_or_none(fields: _Fields, name: str) -> float | None:
    return fields.number(name) if fields.has(name) else None


def eos_ids(found: object, *, field: str) -> tuple[int, ...]:
    """Return the ids that end a sequence: the file has one, a list, or none."""
    ids = [] if found is None else found if isinstance(found, list) else [found]
    if not all(isinstance(x, int) and not isinstance(x, bool) and x >= 0 for x in ids):
        raise ConfigError(field, found=found, wanted="a token id or a list of token ids")
    return tuple(ids)


_FAMILIES: Mapping[str, Callable[[_Fields], ModelSpec]] = {"gemma4_text": _gemma4}
