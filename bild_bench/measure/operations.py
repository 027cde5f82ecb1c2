"""FLOPs and memory operations of encoder-decoder models, from their shapes: the terms of docs/PROFILE.md.

The analysis is that of Kim et al. 2023 (BiLD, arXiv 2302.07863, section 3.1): one token at a time a model reads all its
weights for two operations each, so latency follows bytes and not FLOPs; a block of tokens reads them once.

Counted: matrix products, two FLOPs per multiply-add; every weight matrix once per call, and keys and values read and
written. Left out: norms, softmax, activation functions, biases, position biases and the activations between products,
which stay in the caches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bild_bench.errors import DataError

# Encoder-decoders whose layers are those of T5 (own width per head, gate or not), and of BART (heads split d_model).
T5_TYPES = ("t5", "mt5", "umt5")
BART_TYPES = (
    *("bart", "mbart", "marian", "pegasus", "blenderbot", "blenderbot-small"),
    *("m2m_100", "plbart"),
)

_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True)
class Stack:
    """Layers of one kind. inner: heads x width per head; gated: the feed-forward layer has a second input matrix."""

    layers: int
    inner: int
    d_ff: int
    gated: bool


@dataclass(frozen=True)
class Shape:
    """What the formulas need of a model.

    Args:
        d_model: width of the states.
        encoder, decoder: their layers.
        vocabulary: rows of the output projection that are computed.
        element_bytes: of weights, keys and values.
        feed_out_bytes: of the second feed-forward matrix, which T5 keeps in float32 in half precision.
        reads_all: every row is projected, read or not, as the library's modules do.
    """

    d_model: int
    encoder: Stack
    decoder: Stack
    vocabulary: int
    element_bytes: int
    feed_out_bytes: int
    reads_all: bool = False


@dataclass(frozen=True)
class Work:
    """FLOPs, bytes of weights, and bytes of keys and values; sums of works are works."""

    flops: int = 0
    weight_bytes: int = 0
    cache_bytes: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.flops + other.flops,
            self.weight_bytes + other.weight_bytes,
            self.cache_bytes + other.cache_bytes,
        )

    @property
    def bytes(self) -> int:
        """All memory operations, in bytes."""
        return self.weight_bytes + self.cache_bytes

    @property
    def intensity(self) -> float | None:
        """Arithmetic intensity, FLOPs per byte; None where nothing was moved."""
        return self.flops / self.bytes if self.bytes else None


@dataclass(frozen=True)
class DecoderCall:
    """One pass over new tokens.

    Args:
        rows: new tokens.
        cached: tokens whose keys and values were there before.
        source: source tokens.
        projected: rows that went through the output projection.
        layers: how many were run; None for all.
        heads: how often the output projection was applied (CALM asks it at several layers).
        filled: layers whose keys and values alone were projected (CALM's skipped ones).
    """

    rows: int
    cached: int
    source: int
    projected: int
    layers: int | None = None
    heads: int = 1
    filled: int = 0


def decoder_call(shape: Shape, call: DecoderCall) -> Work:
    """The work of one decoder pass."""
    stack, n = shape.decoder, call.rows
    layers = stack.layers if call.layers is None else call.layers
    product, inner, keys = shape.d_model * stack.inner, stack.inner, call.cached + n + call.source
    head, size = shape.d_model * shape.vocabulary, shape.element_bytes
    # Self-attention: query, key, value, output; cross-attention: query, output. Scores and mixing: a product each.
    per_layer = 2 * n * (6 * product + _feed_elements(shape, stack)) + 4 * n * inner * keys
    flops = layers * per_layer + call.filled * 2 * n * 2 * product + 2 * call.projected * head
    weights = layers * (6 * product * size + _feed_bytes(shape, stack)) + call.filled * 2 * product * size
    weights += (call.heads * head + n * shape.d_model) * size
    # Read: keys and values of target and source; written: those of the new tokens.
    cache = layers * 2 * inner * (keys + n) + call.filled * 2 * inner * n
    return Work(flops, weights, cache * size)


def encoding(shape: Shape, source: int) -> Work:
    """The encoder over a source of this many tokens, and the decoder's keys and values of it, which are kept."""
    encoder, decoder = shape.encoder, shape.decoder
    product, cross = shape.d_model * encoder.inner, 2 * shape.d_model * decoder.inner
    per_layer = 2 * source * (4 * product + _feed_elements(shape, encoder)) + 4 * source * source * encoder.inner
    flops = encoder.layers * per_layer + decoder.layers * 2 * source * cross
    weights = encoder.layers * (4 * product * shape.element_bytes + _feed_bytes(shape, encoder))
    weights += (decoder.layers * cross + source * shape.d_model) * shape.element_bytes
    written = decoder.layers * 2 * source * decoder.inner * shape.element_bytes
    work = Work(flops, weights, written)
    # The library fills its cross-attention cache inside a decoder pass, on which the reference session spends one.
    return work + decoder_call(shape, DecoderCall(1, 0, source, 1)) if shape.reads_all else work


def shape_of(config: Any, *, vocabulary: int | None, dtype: str, name: str, option: str) -> Shape:
    """Read a model's shape from the library's configuration.

    Args:
        config: a `PretrainedConfig`.
        vocabulary: rows of the output projection where only those of the tokenizer are computed; None where all are,
            read or not, as by the library's modules.
        dtype: float32, float16, bfloat16 or float64.
        name, option: of the checkpoint, for the error.

    Raises:
        DataError: an architecture whose layers the formulas do not describe.
    """
    kind, size = config.model_type, _BYTES[dtype]
    feed_out = size
    if kind in T5_TYPES:
        inner, gated = config.num_heads * config.d_kv, bool(config.is_gated_act)
        encoder = Stack(config.num_layers, inner, config.d_ff, gated)
        decoder = Stack(config.num_decoder_layers, inner, config.d_ff, gated)
        feed_out = 4 if dtype == "float16" else size
    elif kind in BART_TYPES:
        encoder = Stack(config.encoder_layers, config.d_model, config.encoder_ffn_dim, False)
        decoder = Stack(config.decoder_layers, config.d_model, config.decoder_ffn_dim, False)
    else:
        known = ", ".join((*T5_TYPES, *BART_TYPES))
        problem = f"is of type {kind}, whose layers have no formulas (allowed: {known})"
        raise DataError(option, name, problem, "use one of these")
    rows = config.vocab_size if vocabulary is None else vocabulary
    return Shape(config.d_model, encoder, decoder, rows, size, feed_out, vocabulary is None)


def _feed_elements(shape: Shape, stack: Stack) -> int:
    return (3 if stack.gated else 2) * shape.d_model * stack.d_ff


def _feed_bytes(shape: Shape, stack: Stack) -> int:
    inner = shape.d_model * stack.d_ff
    return (2 if stack.gated else 1) * inner * shape.element_bytes + inner * shape.feed_out_bytes
