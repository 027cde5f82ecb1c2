"""Models of the graphs session for its tests: eager on the CPU, or replayed from a recorded capture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bild_bench.models.fast import FastModel
from bild_bench.models.graphs.session import GraphModel, GraphSession
from tests.checkpoints import END, VOCABULARY, save_mt5, save_t5
from tests.forward import load, random_tokens

VARIANTS: dict[str, Callable[[Path], Path]] = {
    "T5 1.0": save_t5,
    "T5 1.1": partial(save_t5, gated=True, tied=False),
    "mT5": save_mt5,
    "one head": partial(save_t5, num_heads=1, d_kv=32),
    "decoder deeper than encoder": partial(save_mt5, num_layers=1, num_decoder_layers=3),
    "wide buckets": partial(save_t5, relative_attention_num_buckets=32, relative_attention_max_distance=128),
}


def graph_model(folder: Path, dtype: str = "float64") -> GraphModel:
    return GraphModel(FastModel(load(folder, dtype), VOCABULARY))


def captured_model(folder: Path, capture: Any, dtype: str = "float64") -> GraphModel:
    """A model that believes it is on CUDA, with a stand-in for its capture."""
    model = graph_model(folder, dtype)
    model._capture, model.why_eager = capture, None
    return model


def in_steps(session: GraphSession, tokens: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Feed tokens in blocks of these sizes; all rows' scores."""
    assert sum(sizes) == len(tokens)
    rows, start = [], session.length
    for size in sizes:
        rows.append(session.extend(tokens[start : start + size]).logits)
        start += size
    return torch.cat(rows)


def source_of(length: int) -> Tensor:
    return torch.tensor([[*random_tokens(length, seed=length)[1:], END]])
