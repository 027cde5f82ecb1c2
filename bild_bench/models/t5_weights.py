"""A T5's weights, fused from the library's modules: T5 1.0 and 1.1, Flan-T5, mT5; tied and untied heads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class LayerWeights:
    """One decoder layer. Matrices are [out, in]; inner = heads x d_kv."""

    self_norm: Tensor
    qkv: Tensor  # [3 * inner, d_model]
    self_out: Tensor
    cross_norm: Tensor
    cross_q: Tensor
    cross_kv: Tensor  # [2 * inner, d_model]
    cross_out: Tensor
    ff_norm: Tensor
    ff_in: Tensor  # [d_ff, d_model], or [2 * d_ff, d_model] when gated: activated half first
    ff_out: Tensor


@dataclass(frozen=True)
class EncoderLayerWeights:
    """One encoder layer; see `LayerWeights`."""

    self_norm: Tensor
    qkv: Tensor
    self_out: Tensor
    ff_norm: Tensor
    ff_in: Tensor
    ff_out: Tensor


@dataclass(frozen=True)
class EncoderWeights:
    """An encoder's weights and shape, and the function that makes its position bias."""

    layers: tuple[EncoderLayerWeights, ...]
    embedding: Tensor  # [vocabulary, d_model]
    final_norm: Tensor
    heads: int
    d_kv: int
    epsilon: float
    gated: bool
    activation: Callable[[Tensor], Tensor]
    distance_bias: Callable[[int], Tensor]  # n -> [heads, 2n - 1]: keys from n - 1 positions before to as many after


@dataclass(frozen=True)
class DecoderWeights:
    """A decoder's weights and shape, and the function that makes its position bias."""

    layers: tuple[LayerWeights, ...]
    embedding: Tensor  # [vocabulary, d_model]
    final_norm: Tensor
    head: Tensor  # [vocabulary, d_model]
    head_scale: float
    heads: int
    d_kv: int
    epsilon: float
    gated: bool
    activation: Callable[[Tensor], Tensor]
    position_bias: Callable[[int], Tensor]  # length -> [heads, length, length], before the causal mask


def weights_from_library(model: Any, vocabulary: int) -> DecoderWeights:
    """Fuse the weights of a loaded `T5ForConditionalGeneration` or `MT5ForConditionalGeneration`.

    Args:
        model: the library's model, in evaluation mode. Its decoder layers' weights are released one by one, so that
            memory peaks at one model and one layer.
        vocabulary: rows of the output projection to keep; ids beyond the tokenizer are masked by leaving them out.
    """
    config, decoder = model.config, model.decoder
    first = decoder.block[0].layer[0].SelfAttention
    gated = bool(config.is_gated_act)
    activation = decoder.block[0].layer[2].DenseReluDense.act
    bias_of = first.compute_bias
    layers = []
    for block in decoder.block:
        layers.append(_layer_weights(block, gated))
        _release(block)
    # mT5's configuration has no such field and its model does not scale; T5's says so itself.
    scaled = bool(getattr(config, "scale_decoder_outputs", False))
    return DecoderWeights(
        layers=tuple(layers),
        embedding=decoder.embed_tokens.weight.detach(),
        final_norm=decoder.final_layer_norm.weight.detach(),
        head=model.lm_head.weight.detach()[:vocabulary],
        head_scale=config.d_model**-0.5 if scaled else 1.0,
        heads=config.num_heads,
        d_kv=config.d_kv,
        epsilon=config.layer_norm_epsilon,
        gated=gated,
        activation=activation,
        position_bias=lambda length: bias_of(length, length)[0].detach(),
    )


def encoder_from_library(model: Any) -> EncoderWeights:
    """Fuse the encoder's weights of such a model, whose encoder layers are released one by one."""
    config, encoder = model.config, model.encoder
    gated, layers = bool(config.is_gated_act), []
    bias_of = encoder.block[0].layer[0].SelfAttention.compute_bias
    activation = encoder.block[0].layer[1].DenseReluDense.act
    for block in encoder.block:
        layers.append(EncoderLayerWeights(**_self_weights(block.layer[0]), **_feed_weights(block.layer[1], gated)))
        _release(block)
    return EncoderWeights(
        layers=tuple(layers),
        embedding=encoder.embed_tokens.weight.detach(),
        final_norm=encoder.final_layer_norm.weight.detach(),
        heads=config.num_heads,
        d_kv=config.d_kv,
        epsilon=config.layer_norm_epsilon,
        gated=gated,
        activation=activation,
        # The query in the middle sees every distance.
        distance_bias=lambda n: bias_of(1, 2 * n - 1, past_seen_tokens=n - 1)[0, :, 0].detach(),
    )


def _layer_weights(block: Any, gated: bool) -> LayerWeights:
    cross, other = block.layer[1], block.layer[1].EncDecAttention
    return LayerWeights(
        **_self_weights(block.layer[0]),
        cross_norm=cross.layer_norm.weight.detach(),
        cross_q=other.q.weight.detach(),
        cross_kv=torch.cat([other.k.weight, other.v.weight]).detach(),
        cross_out=other.o.weight.detach(),
        **_feed_weights(block.layer[2], gated),
    )


def _self_weights(sublayer: Any) -> dict[str, Tensor]:
    own = sublayer.SelfAttention
    return {
        "self_norm": sublayer.layer_norm.weight.detach(),
        "qkv": torch.cat([own.q.weight, own.k.weight, own.v.weight]).detach(),
        "self_out": own.o.weight.detach(),
    }


def _feed_weights(sublayer: Any, gated: bool) -> dict[str, Tensor]:
    dense = sublayer.DenseReluDense
    inner = [dense.wi_0.weight, dense.wi_1.weight] if gated else [dense.wi.weight]
    return {
        "ff_norm": sublayer.layer_norm.weight.detach(),
        "ff_in": torch.cat(inner).detach(),
        "ff_out": dense.wo.weight.detach(),
    }


def _release(block: Any) -> None:
    """Drop the matrices of all of a block's sub-layers."""
    for sublayer in block.layer:
        for module in sublayer.children():
            for name in ("q", "k", "v", "o", "wi", "wi_0", "wi_1", "wo"):
                if hasattr(module, name):
                    delattr(module, name)
