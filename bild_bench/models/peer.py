"""The library's `generate` over an encoded source, for the peers."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationConfig

from bild_bench.models.reference import EncoderOutput


class LibraryPeer:
    """See `decoding.session.Peer`.

    Args:
        source: ids, [1, length].
        large, large_states: the library's model, and its encoder's output [1, length, d_model].
        small, small_states: the same of the assistant; None for greedy search alone.
    """

    def __init__(
        self, source: Tensor, large: Any, large_states: Tensor, small: Any = None, small_states: Tensor | None = None
    ) -> None:
        self._source, self._large, self._large_states = source, large, large_states
        self._small, self._small_states = small, small_states

    @torch.inference_mode()
    def generate(self, max_tokens: int, assistant: dict[str, Any] | None) -> list[int]:
        helped: dict[str, Any] = {}
        if assistant is not None:
            # The library runs the assistant's encoder inside `generate`; ours has run already, and is timed apart.
            self._small.get_encoder = lambda: _Encoded(self._small_states)
            for name, value in assistant.items():
                setattr(self._small.generation_config, name, value)
            helped["assistant_model"] = self._small
        output = self._large.generate(
            inputs=self._source,
            attention_mask=torch.ones_like(self._source),
            encoder_outputs=EncoderOutput(last_hidden_state=self._large_states),
            max_new_tokens=max_tokens,
            max_length=None,
            **helped,
        )
        ids: list[int] = output[0].tolist()
        return ids


def make_peer(model: Any, vocabulary: int, settings: GenerationConfig) -> None:
    """Prepare a library model, so that `generate` does what the peer's label says.

    Args:
        model: in evaluation mode; changed in place.
        vocabulary: ids at and beyond this get no score, as in our own sessions. So heads that are padded differently
            are of one size, which the library requires of a pair.
        settings: all that the model's generation_config is to hold.
    """
    # An assistant gets these rules from the large model, whose source they look at, and warns that it has none.
    warnings.filterwarnings("ignore", r"Passing `encoder_(no_repeat_ngram_size|repetition_penalty)` requires")
    model.generation_config = settings
    head = model.get_output_embeddings()
    if head.weight.shape[0] > vocabulary:
        model.set_output_embeddings(_shorter(head, vocabulary))
        bias = getattr(model, "final_logits_bias", None)
        if bias is not None:
            model.final_logits_bias = bias[:, :vocabulary]
        model.config.get_text_config(decoder=True).vocab_size = vocabulary
        if hasattr(model.config, "vocab_size"):
            model.config.vocab_size = vocabulary
    if hasattr(model.config, "num_decoder_layers"):
        # The library sizes a cache by T5's encoder layers, which fails where the decoder is the deeper one. No encoder
        # runs here any more.
        model.config.num_layers = model.config.num_decoder_layers


def _shorter(head: nn.Linear, rows: int) -> nn.Linear:
    found = nn.Linear(head.in_features, rows, bias=head.bias is not None, device="meta")
    # Parts of the same memory: an embedding tied to the head stays as it is.
    found.weight = nn.Parameter(head.weight[:rows], requires_grad=False)
    if head.bias is not None:
        found.bias = nn.Parameter(head.bias[:rows], requires_grad=False)
    return found


class _Encoded(nn.Module):
    """An encoder that has already run."""

    def __init__(self, states: Tensor | None) -> None:
        super().__init__()
        self._states = states

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: Any) -> EncoderOutput:
        return EncoderOutput(last_hidden_state=self._states)
