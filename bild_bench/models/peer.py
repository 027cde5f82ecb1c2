"""The library's `generate` over an encoded source, for the peers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput


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
            encoder_outputs=BaseModelOutput(last_hidden_state=self._large_states),
            max_new_tokens=max_tokens,
            max_length=None,
            num_beams=1,
            do_sample=False,
            **helped,
        )
        ids: list[int] = output[0].tolist()
        return ids


class _Encoded(nn.Module):
    """An encoder that has already run."""

    def __init__(self, states: Tensor | None) -> None:
        super().__init__()
        self._states = states

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: Any) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=self._states)
