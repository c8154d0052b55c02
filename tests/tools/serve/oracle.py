"""The same mathematics once more, in float64 and without pages, tiles, windows of memory or JAX.

Written from the description of the model and shares no code with the forward; only the weights' names are common.
"""

import math

import numpy as np
from numpy.typing import NDArray

from radixledger.tools.serve.spec import LayerSpec, ModelSpec

Floats = NDArray[np.float64]
Tensors = dict[str, NDArray[np.float32]]


def logits_of(spec: ModelSpec, tensors: Tensors, ids: NDArray[np.int32]) -> Floats:
    """Return the logits after every one of `ids`, [len(ids), vocab]."""
    wide = {name: x.astype(np.float64) for name, x in tensors.items()}
    embed = wide["model.embed_tokens.weight"]
    h = embed[ids] * spec.embed_scale
    for number, layer in enumerate(spec.layers):
        prefix = f"model.layers.{number}."
        own = {name.removeprefix(prefix): x for name, x in wide.items() if name.startswith(prefix)}
        h = _layer(spec, layer, own, h)
    head = embed if spec.tied else wide["lm_head.weight"]
    logits: Floats = _norm(spec, h, wide["model.norm.weight"]) @ head.T
    cap = spec.logit_softcap
    return logits if cap is None else np.tanh(logits / cap) * cap


def _layer(spec: ModelSpec, layer: LayerSpec, own: dict[str, Floats], h: Floats) -> Floats:
    attended = _attention(spec, layer, own, _norm(spec, h, own["input_layernorm.weight"]))
    if not layer.sandwich:
        h = h + attended
        return h + _mlp(spec, own, _norm(spec, h, own["post_attention_layernorm.weight"]))
    h = h + _norm(spec, attended, own["post_attention_layernorm.weight"])
    made = _mlp(spec, own, _norm(spec, h, own["pre_feedforward_layernorm.weight"]))
    h = h + _norm(spec, made, own["post_feedforward_layernorm.weight"])
    return h * own["layer_scalar"] if layer.scalar else h


def _attention(spec: ModelSpec, layer: LayerSpec, own: dict[str, Floats], x: Floats) -> Floats:
    count = len(x)
    q = (x @ own["self_attn.q_proj.weight"].T).reshape(count, layer.q_heads, layer.head_dim)
    k = (x @ own["self_attn.k_proj.weight"].T).reshape(count, layer.kv_heads, layer.head_dim)
    v = k if layer.k_eq_v else (x @ own["self_attn.v_proj.weight"].T).reshape(k.shape)
    if layer.qk_norm:
        q, k = (_norm(spec, a, own[f"self_attn.{n}_norm.weight"]) for a, n in ((q, "q"), (k, "k")))
    if layer.v_norm:
        v = v / np.sqrt((v**2).mean(-1, keepdims=True) + spec.eps)
    q, k = _rope(layer, q), _rope(layer, k)
    made = np.empty_like(q)
    for place in range(count):
        first = 0 if layer.window_tokens is None else max(0, place - layer.window_tokens + 1)
        for number in range(layer.q_heads):
            shared = number * layer.kv_heads // layer.q_heads
            scores = k[first : place + 1, shared] @ q[place, number] * layer.scale
            p = np.exp(scores - scores.max())
            made[place, number] = p / p.sum() @ v[first : place + 1, shared]
    return np.asarray(made.reshape(count, -1) @ own["self_attn.o_proj.weight"].T)


def _rope(layer: LayerSpec, x: Floats) -> Floats:
    """Turn each pair as a complex number."""
    half = layer.head_dim // 2
    live = np.arange(half) < layer.rope.live_pairs
    turns = live * layer.rope.theta ** (-np.arange(half) / half) / layer.rope.factor
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * np.arange(len(x))[:, None, None] * turns)
    return np.concatenate([turned.real, turned.imag], axis=-1)


def _norm(spec: ModelSpec, x: Floats, weight: Floats) -> Floats:
    return np.asarray(x / np.sqrt((x**2).mean(-1, keepdims=True) + spec.eps) * (weight + spec.norm_offset))


def _mlp(spec: ModelSpec, own: dict[str, Floats], x: Floats) -> Floats:
    gate, up = x @ own["mlp.gate_proj.weight"].T, x @ own["mlp.up_proj.weight"].T
    if spec.activation == "silu":
        active = gate / (1 + np.exp(-gate))
    else:
        active = gate / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)))
    return np.asarray((active * up) @ own["mlp.down_proj.weight"].T)
