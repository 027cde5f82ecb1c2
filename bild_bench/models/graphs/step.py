"""One step of the T5 decoder as tensor operations of fixed shape on static buffers, so that it can be captured.

Whatever differs from call to call (ids, positions, the source and its length) is the content of a buffer and never a
number of Python's: a replay repeats the launches of the capture with the same addresses and shapes. The arithmetic is
that of `models.t5_decoder`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from bild_bench.models.t5_decoder import before_head, clamped, embed, feed_forward, norm
from bild_bench.models.t5_weights import DecoderWeights, LayerWeights

# Rows of a step; a block of another size is padded up to the next of these.
SIZES = (1, 2, 4, 8, 16)
MOST = SIZES[-1]

# Columns of the scores that go to the host: a row's best id, its log probability, and that of the token fed after it.
BEST, BEST_LOGPROB, NEXT_LOGPROB = range(3)


@dataclass(frozen=True)
class Buffers:
    """All that a step reads and writes, beside the weights.

    Args:
        inputs: [2 + MOST], int64: the first row's position, the ids, and the id after the last of them.
        offsets: [MOST], int64: 0, 1, 2, …
        keys, values: of the target, [layers, heads, capacity, d_kv]; a row's own are written at its position.
        bias: position bias, minus infinity above the diagonal, [heads, capacity, capacity].
        source_keys: [layers, heads, d_kv, width]; zeros beyond the source's length.
        source_values: [layers, heads, width, d_kv]; zeros beyond it.
        source_mask: [1, 1, width]; minus infinity beyond it, else 0.
        logits: written, [MOST, vocabulary], float32 or wider.
        scores: written, [MOST, 3], float64, which holds every id exactly; see `BEST`.
    """

    inputs: Tensor
    offsets: Tensor
    keys: Tensor
    values: Tensor
    bias: Tensor
    source_keys: Tensor
    source_values: Tensor
    source_mask: Tensor
    logits: Tensor
    scores: Tensor

    @property
    def capacity(self) -> int:
        """Positions of the target."""
        return self.keys.shape[2]

    @property
    def width(self) -> int:
        """Positions of the source."""
        return self.source_keys.shape[3]


def make_buffers(weights: DecoderWeights, bias: Tensor, capacity: int, width: int) -> Buffers:
    """Buffers for this many positions of the target and of the source.

    Zeros and not whatever lies in memory: a NaN behind a mask is still a NaN after the softmax.

    Args:
        weights: the decoder's.
        bias: [heads, >= capacity, >= capacity]; kept, not copied.
        capacity, width: see `Buffers`.
    """
    like, layers = weights.layers[0].qkv, len(weights.layers)
    target = (layers, weights.heads, capacity, weights.d_kv)
    wide = torch.float64 if like.dtype == torch.float64 else torch.float32
    return Buffers(
        inputs=like.new_zeros(2 + MOST, dtype=torch.int64),
        offsets=torch.arange(MOST, device=like.device),
        keys=like.new_zeros(target),
        values=like.new_zeros(target),
        bias=bias[:, :capacity, :capacity],
        source_keys=like.new_zeros((layers, weights.heads, weights.d_kv, width)),
        source_values=like.new_zeros((layers, weights.heads, width, weights.d_kv)),
        source_mask=like.new_zeros((1, 1, width)),
        logits=like.new_zeros((MOST, weights.head.shape[0]), dtype=wide),
        scores=like.new_zeros((MOST, 3), dtype=torch.float64),
    )


def step(weights: DecoderWeights, buffers: Buffers, rows: int) -> None:
    """Feed `rows` tokens; afterwards the first `rows` rows of `logits` and `scores` are theirs.

    Rows that only pad a block behave like tokens after it: nothing before them attends to them, and the next step
    writes over their keys and values before it reads there.
    """
    positions = buffers.inputs[0] + buffers.offsets[:rows]
    bias = buffers.bias.index_select(1, positions)
    x = embed(weights, buffers.inputs[1 : rows + 1])
    for index, layer in enumerate(weights.layers):
        x = clamped(x + _self_attention(weights, layer, x, buffers, index, positions, bias))
        x = clamped(x + _cross_attention(weights, layer, x, buffers, index))
        x = clamped(x + feed_forward(weights, layer, x))
    _score(weights, buffers, before_head(weights, x), buffers.inputs[2 : rows + 2])


def _self_attention(
    weights: DecoderWeights,
    layer: LayerWeights,
    x: Tensor,
    buffers: Buffers,
    index: int,
    positions: Tensor,
    bias: Tensor,
) -> Tensor:
    n, keys, values = x.shape[0], buffers.keys[index], buffers.values[index]
    projected = functional.linear(norm(x, layer.self_norm, weights.epsilon), layer.qkv)
    query, key, value = projected.view(n, 3, weights.heads, weights.d_kv).permute(1, 2, 0, 3)
    keys.index_copy_(1, positions, key)
    values.index_copy_(1, positions, value)
    scores = torch.baddbmm(bias, query, keys.transpose(1, 2))
    mixed = torch.bmm(torch.softmax(scores, dim=-1), values)
    return functional.linear(mixed.transpose(0, 1).reshape(n, -1), layer.self_out)


def _cross_attention(weights: DecoderWeights, layer: LayerWeights, x: Tensor, buffers: Buffers, index: int) -> Tensor:
    n = x.shape[0]
    query = functional.linear(norm(x, layer.cross_norm, weights.epsilon), layer.cross_q)
    query = query.view(n, weights.heads, weights.d_kv).transpose(0, 1)
    scores = torch.baddbmm(buffers.source_mask, query, buffers.source_keys[index])
    mixed = torch.bmm(torch.softmax(scores, dim=-1), buffers.source_values[index])
    return functional.linear(mixed.transpose(0, 1).reshape(n, -1), layer.cross_out)


def _score(weights: DecoderWeights, buffers: Buffers, states: Tensor, following: Tensor) -> None:
    """The fused head: logits stay where they are; what greedy search and BiLD's test want is three numbers a row."""
    n = states.shape[0]
    logits = buffers.logits[:n]
    logits.copy_(functional.linear(states, weights.head))
    best, index = logits.max(dim=-1)
    normaliser = logits.logsumexp(dim=-1)
    # An id that is masked has no score here; whoever asks for it is not answered from this column.
    known = following.clamp(max=logits.shape[1] - 1).unsqueeze(-1)
    after = logits.gather(-1, known).squeeze(-1) - normaliser
    buffers.scores[:n].copy_(torch.stack((index.double(), (best - normaliser).double(), after.double()), dim=-1))
