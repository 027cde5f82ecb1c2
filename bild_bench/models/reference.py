"""The reference session: the library's own modules, whatever encoder-decoder architecture they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache

from bild_bench.models.rows import TensorRows


@dataclass(frozen=True)
class ReferenceSource:
    """An encoded source: encoder states [1, length, d_model], its mask, and the decoder's cross-attention cache."""

    states: Tensor
    mask: Tensor
    cross: Any


class ReferenceModel:
    """A checkpoint run by the `transformers` modules.

    Args:
        library_model: a loaded encoder-decoder model in evaluation mode.
        vocabulary: ids at and beyond this are masked (they are not in the tokenizer).
        start_id: the decoder's start token.
    """

    kind = "reference"

    def __init__(self, library_model: Any, vocabulary: int, start_id: int) -> None:
        self.model, self._vocabulary, self._start_id = library_model, vocabulary, start_id
        self.device = library_model.device

    @torch.inference_mode()
    def encode(self, source: Tensor) -> ReferenceSource:
        """Run the encoder and fill the cross-attention cache; source ids have shape [1, length].

        The library projects the source's keys and values only inside a decoder pass, so one pass over the start token
        is spent here; its own key and value are thrown away.
        """
        mask = torch.ones_like(source)
        states = self.model.get_encoder()(input_ids=source, attention_mask=mask).last_hidden_state
        bare = ReferenceSource(states, mask, DynamicCache())
        cache = EncoderDecoderCache(DynamicCache(), bare.cross)
        self.forward([self._start_id], cache, bare)
        return ReferenceSource(states, mask, cache.cross_attention_cache)

    def session(self, source: ReferenceSource) -> ReferenceSession:
        """A fresh session that reads an encoded source."""
        return ReferenceSession(self, source)

    def forward(self, tokens: Sequence[int], cache: EncoderDecoderCache, source: ReferenceSource) -> Tensor:
        """Logits [n, vocabulary] of n new tokens; the cache grows by n."""
        output = self.model(
            encoder_outputs=(source.states,),
            attention_mask=source.mask,
            decoder_input_ids=torch.tensor([tokens], device=self.device),
            cache=cache,
            use_cache=True,
        )
        logits: Tensor = output.logits[0, :, : self._vocabulary]
        return logits


class ReferenceSession:
    """See `decoding.session.Session`."""

    def __init__(self, model: ReferenceModel, source: ReferenceSource) -> None:
        self._model, self._source = model, source
        # Built without a configuration: the library would size it by the encoder's layers, which fails where the
        # decoder is the deeper one.
        self._cache = EncoderDecoderCache(DynamicCache(), source.cross)
        self._length = 0

    @property
    def length(self) -> int:
        return self._length

    @torch.inference_mode()
    def extend(self, tokens: Sequence[int]) -> TensorRows:
        logits = self._model.forward(tokens, self._cache, self._source)
        self._length += len(tokens)
        return TensorRows(logits)

    def truncate(self, length: int) -> None:
        surplus = self._length - length
        if surplus > 0:
            self._cache.self_attention_cache.crop(-surplus)
            self._length = length
