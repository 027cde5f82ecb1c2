"""CALM's learned exit: is a layer's token the last layer's already? (Schuster et al. 2022, section 3.4)"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from bild_bench.training.batches import IGNORED
from bild_bench.training.objectives import layer_logits


class ExitClassifier(nn.Module):
    """One linear unit over a layer's state [d_model], shared by all layers below the last; the backbone is frozen."""

    def __init__(self, backbone: Any) -> None:
        super().__init__()
        # In a tuple, so that the backbone is no part of this module: it is neither trained nor saved with it.
        self._frozen = (backbone.eval().requires_grad_(False),)
        self.config = backbone.config
        self.linear = nn.Linear(backbone.config.d_model, 1)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, **inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and binary targets, [layers below the last, texts, target] each."""
        (backbone,) = self._frozen
        with torch.no_grad():
            backbone.to(self.linear.weight.device)
            outputs = backbone(**inputs, output_hidden_states=True)
            states = torch.stack(outputs.decoder_hidden_states[1:-1])
            last = outputs.logits.argmax(-1)
            agrees = torch.stack([layer_logits(backbone, layer).argmax(-1) == last for layer in states])
        return self.linear(states.float()).squeeze(-1), agrees.float()


def summed_classifier_loss(outputs: tuple[Tensor, Tensor], labels: Tensor) -> Tensor:
    """Binary cross-entropy, averaged over layers and summed over the target tokens."""
    logits, agrees = outputs
    entropy = binary_cross_entropy_with_logits(logits, agrees, reduction="none").mean(0)
    return (entropy * (labels != IGNORED)).sum()
