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

from bild_bench.models.t5_weights import DecoderWeights, EncoderLayerWeights, EncoderWeights, LayerWeights

# Half precision overflows in T5's residual stream; the library clamps after each sub-layer, and so do we.
_HALF_LIMIT = torch.finfo(torch.float16).max - 1000


@dataclass(frozen=True)
class CrossCache:
    """Keys [heads, d_kv, source] and values [heads, source, d_kv] a layer; encoder states [1, source, d_model]."""

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    states: Tensor


class SelfCache:
    """Static keys and values of the target, grown in blocks; any position is free to be overwritten."""

    BLOCK = 64

    def __init__(self, weights: DecoderWeights) -> None:
        self._layers, self._heads, self._d_kv = len(weights.layers), weights.heads, weights.d_kv
        self._like = weights.layers[0].qkv
        self.capacity = 0
        self.keys = self.values = self._like.new_empty(0)

    def reserve(self, length: int) -> None:
        """Make room for `length` positions, keeping what is there."""
        if length <= self.capacity:
            return
        kept, self.capacity = self.capacity, -(-length // self.BLOCK) * self.BLOCK
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
        x = clamped(x + _self_attention(weights, layer, x, cache.keys[index], cache.values[index], window, start))
        x = clamped(x + _cross_attention(weights, layer, x, source.keys[index], source.values[index]))
        x = clamped(x + feed_forward(weights, layer, x))
    return x


def before_head(weights: DecoderWeights, x: Tensor) -> Tensor:
    """Final norm and scaling: what the output projection is applied to, [n, d_model]."""
    return norm(x, weights.final_norm, weights.epsilon) * weights.head_scale


def fill_keys_values(weights: DecoderWeights, layers: range, x: Tensor, cache: SelfCache, start: int) -> None:
    """Write keys and values of layers that states [n, d_model] do not go through, projected from those states."""
    n, inner = x.shape[0], weights.heads * weights.d_kv
    for index in layers:
        layer = weights.layers[index]
        projected = functional.linear(norm(x, layer.self_norm, weights.epsilon), layer.qkv[inner:])
        key, value = projected.view(n, 2, weights.heads, weights.d_kv).permute(1, 2, 0, 3)
        cache.keys[index, :, start : start + n] = key
        cache.values[index, :, start : start + n] = value


def feed_forward(
    weights: DecoderWeights | EncoderWeights, layer: LayerWeights | EncoderLayerWeights, x: Tensor
) -> Tensor:
    """The feed-forward sub-layer of states [n, d_model], its norm included and the residual left out."""
    inner = functional.linear(norm(x, layer.ff_norm, weights.epsilon), layer.ff_in)
    if weights.gated:
        activated, linear = inner.chunk(2, dim=-1)
        inner = weights.activation(activated) * linear
    else:
        inner = weights.activation(inner)
    # The library keeps this one projection in float32 when the rest is half precision.
    return functional.linear(inner.to(layer.ff_out.dtype), layer.ff_out)


def norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Root mean square norm of states [n, d_model], as the library computes it in this precision."""
    if x.dtype == weight.dtype and x.dtype in (torch.float32, torch.float64):
        return functional.rms_norm(x, weight.shape, weight, epsilon)
    scaled = x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + epsilon)
    return weight * scaled.to(weight.dtype)


def clamped(x: Tensor) -> Tensor:
    """What the residual stream keeps of a sum in half precision; other precisions stay as they are."""
    return x.clamp(-_HALF_LIMIT, _HALF_LIMIT) if x.dtype == torch.float16 else x


def _self_attention(
    weights: DecoderWeights, layer: LayerWeights, x: Tensor, keys: Tensor, values: Tensor, bias: Tensor, start: int
) -> Tensor:
    n, end = x.shape[0], start + x.shape[0]
    projected = functional.linear(norm(x, layer.self_norm, weights.epsilon), layer.qkv)
    query, key, value = projected.view(n, 3, weights.heads, weights.d_kv).permute(1, 2, 0, 3)
    keys[:, start:end] = key
    values[:, start:end] = value
    scores = torch.baddbmm(bias, query, keys[:, :end].transpose(1, 2))
    mixed = torch.bmm(torch.softmax(scores, dim=-1), values[:, :end])
    return functional.linear(mixed.transpose(0, 1).reshape(n, -1), layer.self_out)


def _cross_attention(weights: DecoderWeights, layer: LayerWeights, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    n = x.shape[0]
    query = functional.linear(norm(x, layer.cross_norm, weights.epsilon), layer.cross_q)
    scores = torch.bmm(query.view(n, weights.heads, weights.d_kv).transpose(0, 1), keys)
    mixed = torch.bmm(torch.softmax(scores, dim=-1), values)
    return functional.linear(mixed.transpose(0, 1).reshape(n, -1), layer.cross_out)
