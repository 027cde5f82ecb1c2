"""Validation texts to choose on and test texts to report on, which must not be the same."""

from __future__ import annotations

from dataclasses import dataclass

from bild_bench.data import Examples, load_examples
from bild_bench.errors import BildBenchError, DataError
from bild_bench.setup import Announce
from bild_bench.tasks import Task


@dataclass(frozen=True)
class Texts:
    """Which texts to decode.

    Args:
        data: "embedded", "hub" or a path; None for what goes with the pair of models.
        split: the split's name; for one file it only names what the file holds.
        limit: texts at most, a seeded sample; None for all.
    """

    data: str | None
    split: str
    limit: int | None = None


def shared_texts(task: Task, validation: Texts, test: Texts, announce: Announce) -> int:
    """How many test texts are validation texts too, before any sampling.

    Raises:
        UsageError, DataError: either cannot be read, or one is contained in the other. An error names the option of
            its side: --validation-data, --test-split and so on.
    """
    chosen_on = {example.id for example in _read(task, validation, "validation", announce).examples}
    reported = {example.id for example in _read(task, test, "test", announce).examples}
    shared = len(chosen_on & reported)
    if shared == min(len(chosen_on), len(reported)):
        problem = f"all {shared} test texts are validation texts"
        if shared < len(reported):
            problem = f"the {len(reported)} test texts contain all {shared} validation texts"
        fix = "give others by --test-data or --test-split, so that what is reported was not chosen on"
        raise DataError("--test-data", test.data, problem, fix)
    return shared


def _read(task: Task, texts: Texts, role: str, announce: Announce) -> Examples:
    data = "hub" if texts.data is None else texts.data
    if data == "embedded":
        problem = "the embedded sample is one small split, with no texts apart to choose on"
        raise DataError(f"--{role}-data", data, problem, "give --validation-data PATH and --test-data PATH")
    try:
        return load_examples(task, data, texts.split, None, 0, announce)
    except BildBenchError as error:
        if error.field not in ("--data", "--split"):
            raise
        field = f"--{role}-{error.field.removeprefix('--')}"
        raise type(error)(field, error.value, error.problem, error.fix) from error
