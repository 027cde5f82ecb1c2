"""Texts to train on: tasks mixed by weight, each with its prefix, as token ids."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bild_bench.data import Example, load_examples
from bild_bench.errors import DataError
from bild_bench.tasks import Task

_CHUNK = 10_000


@dataclass(frozen=True)
class Source:
    """One of the tasks that a model learns.

    Args:
        task: its columns, length limits and metric.
        data: "hub", or the path of a file or folder.
        prefix: put before every source text; tells the tasks of one model apart (Raffel et al. 2020).
        weight: texts of an epoch as a share of those there are; 0.5 shows half of them in one epoch and the other half
            in the next.
        validation: where the validation texts are if not in `data`; None for its validation split.
        limit: a seeded sample of so many training texts; None for all.
        hold_out: take so many validation texts out of the training texts instead; 0 for none.
    """

    task: Task
    data: str
    prefix: str = ""
    weight: float = 1.0
    validation: str | None = None
    limit: int | None = None
    hold_out: int = 0


@dataclass(frozen=True)
class Encoded:
    """One text as ids, each with its end token."""

    source: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True)
class Learned:
    """A source's texts, ready to train on.

    Args:
        label, fingerprint: what was read; see `data.Examples`.
        train, validation: the texts.
        dropped: training texts with an empty source or target.
    """

    source: Source
    label: str
    fingerprint: str
    train: tuple[Encoded, ...]
    validation: tuple[Encoded, ...]
    dropped: int


def read_source(
    source: Source, tokenizer: Any, limits: tuple[int | None, int | None], seed: int, announce: Callable[[str], None]
) -> Learned:
    """Read and encode a source's training and validation texts.

    Args:
        tokenizer: the library's, one that ends each text with its end token.
        limits: tokens of a source and of a target at most; None for the task's.
        seed: of the samples.

    Raises:
        UsageError, DataError: see `data.load_examples`; DataError too where no text is left.
    """
    found = load_examples(source.task, source.data, "train", source.limit, seed, announce)
    kept = [example for example in found.examples if example.source.strip() and example.references[0].strip()]
    validation, train = _validation(source, kept, seed, announce)
    if not train or not validation:
        which = "training" if not train else "validation"
        raise DataError("--data", source.data, f"no {which} text is left", "check the columns and --hold-out")
    sizes = (
        source.task.source_limit if limits[0] is None else limits[0],
        source.task.target_limit if limits[1] is None else limits[1],
    )
    return Learned(
        source,
        found.label,
        found.fingerprint,
        encode(train, source.prefix, tokenizer, sizes),
        encode(validation, source.prefix, tokenizer, sizes),
        len(found.examples) - len(kept),
    )


def encode(examples: Sequence[Example], prefix: str, tokenizer: Any, sizes: tuple[int, int]) -> tuple[Encoded, ...]:
    """Sources with the prefix, and first references, cut to sizes."""
    encoded: list[Encoded] = []
    for start in range(0, len(examples), _CHUNK):
        chunk = examples[start : start + _CHUNK]
        sources = tokenizer([prefix + example.source for example in chunk], truncation=True, max_length=sizes[0])
        targets = tokenizer(
            text_target=[example.references[0] for example in chunk], truncation=True, max_length=sizes[1]
        )
        pairs = zip(sources["input_ids"], targets["input_ids"], strict=True)
        encoded += [Encoded(tuple(source), tuple(target)) for source, target in pairs]
    return tuple(encoded)


def _validation(
    source: Source, kept: list[Example], seed: int, announce: Callable[[str], None]
) -> tuple[list[Example], list[Example]]:
    """Validation and training texts."""
    if source.hold_out:
        held = set(random.Random(seed).sample(range(len(kept)), min(source.hold_out, len(kept))))
        out = [example for row, example in enumerate(kept) if row in held]
        return out, [example for row, example in enumerate(kept) if row not in held]
    where = source.data if source.validation is None else source.validation
    found = load_examples(source.task, where, "validation", None, seed, announce)
    return [text for text in found.examples if text.source.strip() and text.references[0].strip()], kept
