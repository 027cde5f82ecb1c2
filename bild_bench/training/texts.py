"""Texts to train on: tasks mixed by weight, each with its prefix, as token ids."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bild_bench.data import Example, Examples, load_examples
from bild_bench.errors import BildBenchError, DataError, UsageError
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
        limit: a seeded sample of this many training texts; None for all.
        hold_out: take this many validation texts out of the training texts instead; 0 for none.

    Raises:
        UsageError: a weight or a number of held-out texts out of range.
    """

    task: Task
    data: str
    prefix: str = ""
    weight: float = 1.0
    validation: str | None = None
    limit: int | None = None
    hold_out: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.weight < math.inf:
            raise UsageError("--weight", self.weight, "must be above 0", "leave a task out if it is not wanted")
        if self.hold_out < 0:
            raise UsageError("--hold-out", self.hold_out, "must be 0 or more", "leave it out for the validation split")


@dataclass(frozen=True)
class Encoded:
    """One text as ids, each with its end token."""

    source: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True)
class Read:
    """A source's texts as they were read; the fields are those of `Learned`."""

    label: str
    fingerprint: str
    train: tuple[Example, ...]
    validation: tuple[Example, ...]
    dropped: int


@dataclass(frozen=True)
class Learned:
    """A source's texts, ready to train on.

    Args:
        label, fingerprint: what was read; see `data.Examples`.
        train, validation: the texts.
        dropped: training texts with an empty or null source or target.
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
    read = read_examples(source, seed, announce)
    sizes = sizes_of(source.task, limits)
    return Learned(
        source,
        read.label,
        read.fingerprint,
        encode(read.train, source.prefix, tokenizer, sizes),
        encode(read.validation, source.prefix, tokenizer, sizes),
        read.dropped,
    )


def sizes_of(task: Task, limits: tuple[int | None, int | None]) -> tuple[int, int]:
    """Tokens of a source and of a target at most: the limits, and the task's where they are None."""
    return (
        task.source_limit if limits[0] is None else limits[0],
        task.target_limit if limits[1] is None else limits[1],
    )


def fitting(sizes: tuple[int, int], model: Any) -> tuple[int, int]:
    """Sizes no longer than the model has positions for; T5 has no end of them."""
    from bild_bench.models.positions import positions_of, within

    positions = positions_of([model])
    return within(sizes[0], positions.source), within(sizes[1], positions.target)


def read_examples(source: Source, seed: int, announce: Callable[[str], None]) -> Read:
    """Read a source's training and validation texts; those with an empty source or target are left out.

    Raises:
        UsageError, DataError: see `data.load_examples`; DataError too where no text is left.
    """
    found = load_split(source, "train", seed, announce)
    kept = [example for example in found.examples if example.source.strip() and example.answered]
    validation, train = _validation(source, kept, seed, announce)
    if not train or not validation:
        which = "training" if not train else "validation"
        raise DataError("--data", source.data, f"no {which} text is left", "check the columns and --hold-out")
    dropped = len(found.examples) - len(kept)
    return Read(found.label, found.fingerprint, tuple(train), tuple(validation), dropped)


def encode(examples: Sequence[Example], prefix: str, tokenizer: Any, sizes: tuple[int, int]) -> tuple[Encoded, ...]:
    """Sources with the prefix, and first references that are not empty, cut to sizes."""
    encoded: list[Encoded] = []
    for start in range(0, len(examples), _CHUNK):
        chunk = examples[start : start + _CHUNK]
        sources = encode_sources([example.source for example in chunk], prefix, tokenizer, sizes[0])
        targets = tokenizer(text_target=[example.target for example in chunk], truncation=True, max_length=sizes[1])
        pairs = zip(sources, targets["input_ids"], strict=True)
        encoded += [Encoded(tuple(source), tuple(target)) for source, target in pairs]
    return tuple(encoded)


def encode_sources(texts: Sequence[str], prefix: str, tokenizer: Any, size: int) -> list[list[int]]:
    """Ids of each text with the prefix, cut to a length, the end token included."""
    found: list[list[int]] = tokenizer([prefix + text for text in texts], truncation=True, max_length=size)["input_ids"]
    return found


def _validation(
    source: Source, kept: list[Example], seed: int, announce: Callable[[str], None]
) -> tuple[list[Example], list[Example]]:
    """Validation and training texts."""
    if source.hold_out:
        held = set(random.Random(seed).sample(range(len(kept)), min(source.hold_out, len(kept))))
        out = [example for row, example in enumerate(kept) if row in held]
        return out, [example for row, example in enumerate(kept) if row not in held]
    if source.validation is None and Path(source.data).is_file():
        fix = "add --hold-out 200, or --validation-data PATH"
        raise DataError("--validation-data", None, f"{source.data} is a single file without validation texts", fix)
    found = load_split(source, "validation", seed, announce)
    return [text for text in found.examples if text.source.strip() and text.answered], kept


def load_split(source: Source, split: str, seed: int, announce: Callable[[str], None]) -> Examples:
    """A source's "train" or "validation" texts.

    Raises:
        UsageError, DataError: see `data.load_examples`; told by the options of training, of which --split is none.
    """
    option, where, limit, fix = "--data", source.data, source.limit, "give texts to train on with --data PATH"
    if split == "validation":
        limit, fix = None, "add --hold-out 200, or --validation-data PATH"
        if source.validation is not None:
            option, where = "--validation-data", source.validation
    try:
        return load_examples(source.task, where, split, limit, seed, announce)
    except BildBenchError as error:
        if error.field == "--split":
            raise DataError(option, where, f"has no {split} texts: {error.problem}", fix) from error
        if error.field == "--data":
            raise type(error)(option, error.value, error.problem, error.fix) from error
        raise
