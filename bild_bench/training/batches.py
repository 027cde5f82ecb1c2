"""Batches of texts of like length, all of them laid out before the first step: a resumed run meets the same ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from bild_bench.errors import UsageError
from bild_bench.training.recipe import MOST_BATCHES
from bild_bench.training.texts import Encoded

IGNORED = -100
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class BatchSize:
    """How much goes into one batch: a number of texts, or of tokens of source and target with their padding."""

    texts: int | None
    tokens: int | None


class Batches(Dataset[dict[str, Tensor]]):
    """Item i is the i-th batch as tensors.

    Each holds input_ids and attention_mask [texts, source], decoder_input_ids and labels [texts, target].
    """

    def __init__(self, texts: Sequence[Encoded], batches: Sequence[Rows], pad: int, start: int) -> None:
        self._texts, self._batches, self._pad, self._start = texts, batches, pad, start

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        texts = [self._texts[row] for row in self._batches[index]]
        sources = _padded([text.source for text in texts], self._pad)
        mask = _padded([(1,) * len(text.source) for text in texts], 0)
        labels = _padded([text.target for text in texts], IGNORED)
        written = _padded([(self._start, *text.target[:-1]) for text in texts], self._pad)
        return {"input_ids": sources, "attention_mask": mask, "decoder_input_ids": written, "labels": labels}

    @property
    def texts(self) -> int:
        """Texts of all batches; one that comes twice counts twice."""
        return sum(map(len, self._batches))

    def seen(self, batches: int) -> dict[str, int]:
        """Texts, source_tokens and target_tokens of the first batches, padding not counted."""
        texts = [self._texts[row] for rows in self._batches[:batches] for row in rows]
        source, target = (sum(len(getattr(text, side)) for text in texts) for side in ("source", "target"))
        return {"texts": len(texts), "source_tokens": source, "target_tokens": target}


def _padded(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])


def training_batches(
    parts: Sequence[tuple[Sequence[Encoded], float]],
    size: BatchSize,
    epochs: float | None,
    count: int | None,
    seed: int,
) -> list[Rows]:
    """Rows of the parts' texts, one after the other, in batches.

    Args:
        parts: texts and weight of each part; row numbers run on from part to part.
        epochs: passes over the weighted parts; None to make `count` batches.
        count: batches to make, where epochs is None.
        seed: of the order; batches of one epoch hold texts of like length and come in a random order.

    Raises:
        UsageError: the epochs make more batches than are allowed.
    """
    lengths = _lengths([text for texts, _ in parts for text in texts])
    batches: list[Rows] = []
    starts = np.cumsum([0, *(len(texts) for texts, _ in parts)])
    walks = [_walk(int(starts[part]), len(texts), [seed, 1, part]) for part, (texts, _) in enumerate(parts)]
    whole = None if epochs is None else int(np.ceil(epochs))
    epoch = 0
    while len(batches) < count if count is not None else epoch < (whole or 0):
        rows = [
            _take(walk, max(1, round(weight * len(texts)))) for walk, (texts, weight) in zip(walks, parts, strict=True)
        ]
        made = grouped(np.concatenate(rows), lengths, size, np.random.default_rng([seed, 0, epoch]))
        if epochs is not None and epoch + 1 > epochs:
            made = made[: max(1, round((epochs - epoch) * len(made)))]
        if epochs is not None and epochs * len(made) > MOST_BATCHES:
            problem = f"makes about {epochs * len(made):,.0f} batches, and at most {MOST_BATCHES:,} are allowed"
            raise UsageError("--epochs", epochs, problem, "ask for fewer, and go on from --init")
        batches += made
        epoch += 1
    return batches if count is None else batches[:count]


def grouped(rows: Rows, lengths: Rows, size: BatchSize, random: np.random.Generator) -> list[Rows]:
    """Rows cut into batches of like source and target length, in random order.

    Args:
        lengths: source and target tokens of every text, [texts, 2].
    """
    tie = random.permutation(len(rows))
    order = rows[np.lexsort((tie, lengths[rows, 1], lengths[rows, 0]))]
    batches = list(_cut(order, lengths, size))
    return [batches[index] for index in random.permutation(len(batches))]


def _cut(order: Rows, lengths: Rows, size: BatchSize) -> Iterator[Rows]:
    start, widest = 0, (0, 0)
    for end, row in enumerate(order):
        wider = (max(widest[0], int(lengths[row, 0])), max(widest[1], int(lengths[row, 1])))
        texts = end - start + 1
        full = size.texts is not None and texts > size.texts
        full = full or (size.tokens is not None and texts * sum(wider) > size.tokens)
        if full and texts > 1:
            yield order[start:end]
            start, wider = end, (int(lengths[row, 0]), int(lengths[row, 1]))
        widest = wider
    yield order[start:]


def _walk(first: int, count: int, seed: list[int]) -> Iterator[int]:
    """Rows without end: every row once in each round, each round in an order of its own."""
    number = 0
    while True:
        yield from first + np.random.default_rng([*seed, number]).permutation(count)
        number += 1


def _take(walk: Iterator[int], count: int) -> Rows:
    return np.fromiter(walk, dtype=np.int64, count=count)


def _lengths(texts: Sequence[Encoded]) -> Rows:
    return np.array([(len(text.source), len(text.target)) for text in texts], dtype=np.int64)


def validation_batches(texts: Sequence[Encoded], size: BatchSize) -> list[Rows]:
    """Every text once, in batches of like length."""
    return grouped(np.arange(len(texts)), _lengths(texts), size, np.random.default_rng(0))
