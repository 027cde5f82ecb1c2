"""The reference session: the library's own modules, whatever encoder-decoder architecture they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from bild_bench.models.rows import TensorRows


class EncoderOutput(BaseModelOutput):  # type: ignore[misc]  # the library is not typed
    """What every architecture takes from an encoder that has run: some want no tuple, and mixtures of experts this."""

    router_logits = None


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
        encoder = self.model.get_encoder()
        if hasattr(encoder, "set_attention_type"):
            # BigBird's encoder leaves sparse attention at the first short text, and stays so for all texts after it.
            encoder.set_attention_type(self.model.config.attention_type)
        states = encoder(input_ids=source, attention_mask=mask, return_dict=True).last_hidden_state
        bare = ReferenceSource(states, mask, DynamicCache())
        cache = EncoderDecoderCache(DynamicCache(), bare.cross)
        self.forward([self._start_id], cache, bare)
        return ReferenceSource(states, mask, cache.cross_attention_cache)

    def session(self, source: ReferenceSource) -> ReferenceSession:
        """A fresh session that reads an encoded source."""
        return ReferenceSession(self, source)

    def forward(self, tokens: Sequence[int], cache: EncoderDecoderCache, source: ReferenceSource) -> Tensor:
        """Logits [n, vocabulary] of n new tokens; the cache grows by n."""
        return self._logits(tokens, source, cache=cache, use_cache=True)

    @torch.inference_mode()
    def at_once(self, tokens: Sequence[int], source: ReferenceSource) -> Tensor:
        """Logits [n, vocabulary] of n tokens from the start on, without a cache: what a session's must agree with."""
        return self._logits(tokens, source, use_cache=False)

    def _logits(self, tokens: Sequence[int], source: ReferenceSource, **options: Any) -> Tensor:
        output = self.model(
            encoder_outputs=EncoderOutput(last_hidden_state=source.states),
            attention_mask=source.mask,
            decoder_input_ids=torch.tensor([tokens], device=self.device),
            return_dict=True,
            **options,
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
