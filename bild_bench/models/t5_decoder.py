"""A T5 decoder for one text: fused projections, a static key-value cache, a precomputed position bias.

The architecture is that of Raffel et al. 2020 (T5) and Xue et al. 2021 (mT5): pre-norm blocks of self-attention with a
relative position bias, cross-attention, and a ReLU or gated-GELU feed-forward layer. The arithmetic follows the
`transformers` modules term by term, so that scores agree to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from bild_bench.models.t5_weights import DecoderWeights, LayerWeights

# Half precision overflows in T5's residual stream; the library clamps after each sub-layer, and so do we.
_HALF_LIMIT = torch.finfo(torch.float16).max - 1000


@dataclass(frozen=True)
class CrossCache:
    """Keys [heads, d_kv, source] and values [heads, source, d_kv] a layer; encoder states [1, source, d_model]."""

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    states: Tensor


class SelfCache:
    """Static keys and values of the target, grown in blocks; a position beyond `length` is free to be overwritten."""

    BLOCK = 64

    def __init__(self, weights: DecoderWeights) -> None:
        self._layers, self._heads, self._d_kv = len(weights.layers), weights.heads, weights.d_kv
        self._like = weights.layers[0].qkv
        self.capacity = 0
        self.length = 0
        self.keys = self.values = self._like.new_empty(0)

    def reserve(self, length: int) -> None:
        """Make room for `length` positions, keeping what is cached."""
        if length <= self.capacity:
            return
        kept, self.capacity = self.length, -(-length // self.BLOCK) * self.BLOCK
        grown = self._like.new_empty((2, self._layers, self._heads, self.capacity, self._d_kv))
        if kept:
            grown[0, :, :, :kept] = self.keys[:, :, :kept]
            grown[1, :, :, :kept] = self.values[:, :, :kept]
        self.keys, self.values = grown[0], grown[1]


def source_keys_values(weights: DecoderWeights, source: Tensor) -> CrossCache:
    """Project the encoder's output [1, source, d_model] once for every layer."""
    keys, values = [], []
    for layer in weights.layers:
        both = functional.linear(source[0], layer.cross_kv).view(-1, 2, weights.heads, weights.d_kv)
        keys.append(both[:, 0].permute(1, 2, 0).contiguous())
        values.append(both[:, 1].transpose(0, 1).contiguous())
    return CrossCache(tuple(keys), tuple(values), source)


def decode(weights: DecoderWeights, tokens: Tensor, cache: SelfCache, source: CrossCache, bias: Tensor) -> Tensor:
    """One forward pass over n new tokens.

    Args:
        weights: the decoder.
        tokens: ids, shape [n].
        cache: room for n more positions must have been reserved; its length grows by n.
        source: the source's keys and values.
        bias: position bias with the causal mask in it, shape [heads, >= length + n, >= length + n].

    Returns:
        What the output projection is applied to, shape [n, d_model].
    """
    x = embed(weights, tokens)
    x = run_layers(weights, range(len(weights.layers)), x, cache, source, bias, cache.length)
    cache.length += tokens.shape[0]
    return before_head(weights, x)


def embed(weights: DecoderWeights, tokens: Tensor) -> Tensor:
    """Ids [n] -> states [n, d_model]."""
    return functional.embedding(tokens, weights.embedding)


def run_layers(
    weights: DecoderWeights, layers: range, x: Tensor, cache: SelfCache, source: CrossCache, bias: Tensor, start: int
) -> Tensor:
    """States [n, d_model] of positions start, start + 1, … through some layers, whose caches are written there."""
    window = bias[:, start : start + x.shape[0], : start + x.shape[0]]
    for index in layers:
        layer = weights.layers[index]
        x = _clamped(x + _self_attention(weights, layer, x, cache.keys[index], cache.values[index], window, start))
        x = _clamped(x + _cross_attention(weights, layer, x, source.keys[index], source.values[index]))
        x = _clamped(x + _feed_forward(weights, layer, x))
    return x


def before_head(weights: DecoderWeights, x: Tensor) -> Tensor:
    """Final norm and scaling: what the output projection is applied to, [n, d_model]."""
    return _norm(x, weights.final_norm, weights.epsilon) * weights.head_scale


def fill_keys_values(weights: DecoderWeights, layers: range, x: Tensor, cache: SelfCache, start: int) -> None:
    """Write keys and values of layers that states [n, d_model] do not go through, projected from those states."""
    n, inner = x.shape[0], weights.heads * weights.d_kv
    for index in layers:
        layer = weights.layers[index]
        projected = functional.linear(_norm(x, layer.self_norm, weights.epsilon), layer.qkv[inner:])
        key, value = projected.view(n, 2, weights.heads, weights.d_kv).permute(1, 2, 0, 3)
        cache.keys[index, :, start : start + n] = key
        cache.values[index, :, start : start + n] = value


def _self_attention(
    weights: DecoderWeights, layer: LayerWeights, x: Tensor, keys: Tensor, values: Tensor, bias: Tensor, start: int
) -> Tensor:
    n, end = x.shape[0], start + x.shape[0]
    projected = functional.linear(_norm(x, layer.self_norm, weights.epsilon), layer.qkv)
    query, key, value = projected.view(n, 3, weights.heads, weights.d_kv).permute(1, 2, 0, 3)
    keys[:, start:end] = key
    values[:, start:end] = value
    scores = torch.baddbmm(bias, query, keys[:, :end].transpose(1, 2))
    mixed = torch.bmm(torch.softmax(scores, dim=-1), values[:, :end])
    return functional.linear(mixed.transpose(0, 1).reshape(n, -1), layer.self_out)


def _cross_attention(weights: DecoderWeights, layer: LayerWeights, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    n = x.shape[0]
    query = functional.linear(_norm(x, layer.cross_norm, weights.epsilon), layer.cross_q)
    scores = torch.bmm(query.view(n, weights.heads, weights.d_kv).transpose(0, 1), keys)
    mixed = torch.bmm(torch.softmax(scores, dim=-1), values)
    return functional.linear(mixed.transpose(0, 1).reshape(n, -1), layer.cross_out)


def _feed_forward(weights: DecoderWeights, layer: LayerWeights, x: Tensor) -> Tensor:
    inner = functional.linear(_norm(x, layer.ff_norm, weights.epsilon), layer.ff_in)
    if weights.gated:
        activated, linear = inner.chunk(2, dim=-1)
        inner = weights.activation(activated) * linear
    else:
        inner = weights.activation(inner)
    # The library keeps this one projection in float32 when the rest is half precision.
    return functional.linear(inner.to(layer.ff_out.dtype), layer.ff_out)


def _norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    if x.dtype == weight.dtype and x.dtype in (torch.float32, torch.float64):
        return functional.rms_norm(x, weight.shape, weight, epsilon)
    scaled = x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + epsilon)
    return weight * scaled.to(weight.dtype)


def _clamped(x: Tensor) -> Tensor:
    return x.clamp(-_HALF_LIMIT, _HALF_LIMIT) if x.dtype == torch.float16 else x
