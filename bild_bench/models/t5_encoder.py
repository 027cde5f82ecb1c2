"""A T5 encoder for one text in PyTorch: nothing is padded, so nothing is masked.

The architecture is that of Raffel et al. 2020 (T5) and Xue et al. 2021 (mT5). The arithmetic follows the `transformers`
modules term by term, so that states agree to rounding.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import functional

from bild_bench.models.t5_decoder import clamped, feed_forward, norm
from bild_bench.models.t5_weights import EncoderLayerWeights, EncoderWeights, encoder_from_library


class T5Encoder:
    """An encoder with fused weights and a position bias that is made once.

    Args:
        library_model: a loaded T5 or mT5 model in evaluation mode; its encoder is taken apart.
    """

    BLOCK = 64

    def __init__(self, library_model: Any) -> None:
        self.weights: EncoderWeights = encoder_from_library(library_model)
        self._bias = self.weights.embedding.new_empty((self.weights.heads, 0, 0))

    def states(self, source: Tensor) -> Tensor:
        """Source ids [n] -> the encoder's output [n, d_model]."""
        weights, n = self.weights, source.shape[0]
        bias = self._position_bias(n)[:, :n, :n]
        x = functional.embedding(source, weights.embedding)
        for layer in weights.layers:
            x = clamped(x + _self_attention(weights, layer, x, bias))
            x = clamped(x + feed_forward(weights, layer, x))
        return norm(x, weights.final_norm, weights.epsilon)

    def _position_bias(self, n: int) -> Tensor:
        """[heads, >= n, >= n]: by how far a key lies from its query."""
        if self._bias.shape[1] < n:
            length = -(-n // self.BLOCK) * self.BLOCK
            # The row of a query that is one further on begins one distance earlier.
            self._bias = self.weights.distance_bias(length).unfold(1, length, 1).flip(1).contiguous()
        return self._bias


def _self_attention(weights: EncoderWeights, layer: EncoderLayerWeights, x: Tensor, bias: Tensor) -> Tensor:
    n = x.shape[0]
    projected = functional.linear(norm(x, layer.self_norm, weights.epsilon), layer.qkv)
    query, key, value = projected.view(n, 3, weights.heads, weights.d_kv).permute(1, 2, 0, 3)
    # The fused kernel, which the library takes here too, keeps the scores in float32 whatever the states are in.
    mixed = functional.scaled_dot_product_attention(
        query[None], key[None], value[None], attn_mask=bias[None], scale=1.0
    )
    return functional.linear(mixed[0].transpose(0, 1).reshape(n, -1), layer.self_out)
