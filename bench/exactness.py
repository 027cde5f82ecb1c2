"""How far a device's scores are from the library's modules in float64 on the CPU, and whether the ids are theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bench.baselines import our_vanilla, source_of
from bench.figures import Figure
from bench.interleave import Text
from bench.shapes import Subject
from bild_bench.models.library import load_model

# Logits by which float64 prefers its own id where rounding may decide otherwise.
TIE = 1e-3
WAYS = {"one token per step": 1, "8 tokens per step": 8}
# Source text and the ids fed to the decoder -> float64 logits [ids, vocabulary].
Exact = Callable[[Text, Sequence[int]], Tensor]


@dataclass(frozen=True)
class Compared:
    """Rows held against float64.

    Args:
        rows: how many.
        margins: where another id was chosen, by how much float64 prefers its own, in logits.
        error: the largest difference of a logit.
    """

    rows: int
    margins: tuple[float, ...]
    error: float

    def __add__(self, other: Compared) -> Compared:
        return Compared(self.rows + other.rows, self.margins + other.margins, max(self.error, other.error))


def exact_model(checkpoint: Any, vocabulary: int) -> Exact:
    """The library's model in float64 on the CPU, without a cache."""
    model = load_model(checkpoint, "--large", "cpu", "float64")

    @torch.inference_mode()
    def exact(text: Text, fed: Sequence[int]) -> Tensor:
        ids, prefix = source_of(text, "cpu"), torch.tensor([list(fed)])
        logits: Tensor = model(input_ids=ids, decoder_input_ids=prefix, use_cache=False).logits
        return logits[0, :, :vocabulary]

    return exact


def compared(ours: Tensor, exact: Tensor, chosen: Sequence[int]) -> Compared:
    """Our logits and the ids we chose against float64's, [n, vocabulary] both."""
    best, index = exact.max(dim=-1)
    ids = torch.tensor(list(chosen))
    behind = best - exact.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    error = float((ours.double().cpu() - exact).abs().max())
    return Compared(len(ids), tuple(behind[ids != index].tolist()), error)


def exactness_figures(subject: Subject, label: str, exact: Exact, texts: int) -> list[Figure]:
    """The share of ids that are float64's, after the same prefix: greedy search's own text, in steps of 1 and of 8.

    Args:
        subject: the models on the device.
        label: shape and dtype.
        exact: see `exact_model`.
        texts: how many of the first to compare.
    """
    found = {way: Compared(0, (), 0.0) for way in WAYS}
    vanilla = our_vanilla(subject)
    for text in subject.texts[:texts]:
        tokens = vanilla(text).tokens
        fed = (subject.pair.special.start, *tokens[:-1])
        reference = exact(text, fed)
        for way, rows in WAYS.items():
            logits = _our_logits(subject, text, fed, rows)
            # In steps of one the ids are those that greedy search chose; a block chooses from its own scores.
            chosen = tokens if rows == 1 else logits.argmax(dim=-1).tolist()
            found[way] += compared(logits, reference, chosen)
    exactly = subject.pair.dtype == "float32"
    return [row_of(label, way, each, min(texts, len(subject.texts)), exactly) for way, each in found.items()]


def row_of(label: str, way: str, found: Compared, texts: int, exactly: bool) -> Figure:
    """The figure of one way of feeding.

    Args:
        label, way: shape and dtype; how tokens were fed.
        found: over all texts.
        texts: how many.
        exactly: whether every id must be float64's, ties aside.
    """
    same, furthest = found.rows - len(found.margins), max(found.margins, default=0.0)
    note = f"{same} of {found.rows} ids; largest error of a logit {found.error:.1e}"
    if found.margins:
        note += f"; other ids at margins up to {furthest:.1e} logits"
    reached = furthest <= TIE if exactly else None
    target = 1.0 if exactly else None
    share = same / found.rows
    return Figure("ids of float64", label, way, share, None, None, target, "at least", reached, "share", texts, note)


@torch.inference_mode()
def _our_logits(subject: Subject, text: Text, fed: Sequence[int], rows: int) -> Tensor:
    model: Any = subject.pair.models["large"].model
    session = model.session(model.encode(source_of(text, subject.pair.device)))
    return torch.cat([session.extend(fed[start : start + rows]).logits.cpu() for start in range(0, len(fed), rows)])
