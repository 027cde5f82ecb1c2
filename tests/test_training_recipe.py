"""Settings of a training run: what is refused before anything is read, in one line that names the option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bild_bench.errors import UsageError
from bild_bench.training.job import Job
from bild_bench.training.recipe import Recipe
from bild_bench.training.sizes import SIZES
from tests.made_training import source


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"objective": "fast"}, "--objective: 'fast': must be one of standard, early-exit, calm, calm-classifier"),
        ({"optimizer": "sgd"}, "--optimizer: 'sgd': must be one of adafactor, adamw"),
        ({"schedule": "step"}, "--schedule: 'step': must be one of"),
        ({"precision": "int8"}, "--precision: 'int8': must be one of"),
        ({"rate": 0.0}, "--rate: 0.0: must be above 0"),
        ({"rate": float("nan")}, "--rate: nan: must be above 0"),
        ({"rate": float("inf")}, "--rate: inf: must be above 0 and finite"),
        ({"weight_decay": float("inf")}, "--weight-decay: inf: must be 0 or more and finite"),
        ({"weight_decay": -0.1}, "--weight-decay: -0.1: must be 0 or more"),
        ({"dropout": 1.0}, "--dropout: 1.0: must be 0 or more and below 1"),
        ({"source_limit": 1}, "--source-limit: 1: must be 2 or more"),
        ({"every": 0}, "--every: 0: must be 1 or more"),
        ({"accumulate": 0}, "--accumulate: 0: must be 1 or more"),
        ({"processes": 0}, "--processes: 0: must be 1 or more"),
        ({"processes": 1000}, "--processes: 1000: must be at most "),
        (
            {"steps": 9_999_999_999, "epochs": None},
            "--steps: 9999999999: makes 9,999,999,999 batches, and at most 2,000,000 are allowed; ask for fewer",
        ),
        (
            {"steps": 1_000_001, "epochs": None, "processes": 2},
            "--steps: 1000001: makes 2,000,002 batches, and at most 2,000,000 are allowed; ask for fewer",
        ),
        ({"exit_layer": 0}, "--exit-layer: 0: must be 1 or more"),
        ({"seed": -1}, "--seed: -1: must be a whole number"),
        ({"threads": 0}, "--threads: 0: must be 1 or more"),
        ({"steps": 5}, "--epochs/--steps: '3.0 and 5': needs one of the two"),
        ({"epochs": None}, "--epochs/--steps: 'None and None': needs one of the two"),
        ({"batch_tokens": 5}, "--batch-texts/--batch-tokens: '16 and 5': needs one of the two"),
    ],
)
def test_a_value_out_of_range_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        Recipe(**settings)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("rate", "0.1", "a number"),
        ("rate", True, "a number"),
        ("rate", None, "a number"),
        ("exit_layer", 1.0, "a whole number"),
        ("steps", "5", "a whole number or None"),
        ("batch_texts", True, "a whole number or None"),
        ("scale_rate", 1, "True or False"),
        ("objective", 3, "a word"),
        ("dropout", [0.1], "a number or None"),
        ("patience", 2.0, "a whole number or None"),
    ],
)
def test_a_value_of_another_type_is_refused(field: str, value: Any, allowed: str) -> None:
    with pytest.raises(UsageError, match=rf"^--{field.replace('_', '-')}: .*\(allowed: {allowed}\); give {allowed}$"):
        Recipe(**{field: value})


def test_numbers_of_other_kinds_become_plain_ones() -> None:
    recipe = Recipe(rate=1, seed=3, batch_texts=np.int64(4), epochs=np.float64(2))  # type: ignore[arg-type]
    assert (recipe.rate, recipe.batch_texts, recipe.epochs) == (1.0, 4, 2.0)
    assert [type(value) for value in (recipe.rate, recipe.batch_texts, recipe.epochs)] == [float, int, float]


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        ({}, "--init/--size: .*needs one of the two"),
        ({"init": "a", "size": "little"}, "--init/--size: 'a and little': needs one of the two"),
        ({"init": "a", "vocab_size": 100}, "--tokenizer/--vocab-size: 100: goes with --size"),
        ({"size": "little"}, "--tokenizer/--vocab-size: not given: a new model needs one of the two"),
        ({"size": "little", "tokenizer": "a", "vocab_size": 9}, "--tokenizer/--vocab-size: "),
        ({"size": "littel", "vocab_size": 100}, "--size: 'littel': not known .*did you mean 'little'"),
    ],
)
def test_a_start_that_cannot_be_is_refused(tmp_path: Path, start: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=f"^{problem}"):
        Job((source(tmp_path),), Recipe(), tmp_path / "out", **start)
    assert not (tmp_path / "out").exists()


def test_a_classifier_wants_a_trained_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--objective: 'calm-classifier': needs a trained model; give one with --init"):
        Job((source(tmp_path),), Recipe(objective="calm-classifier"), tmp_path / "out", size="little", vocab_size=99)


def test_no_size_has_an_encoder_shallower_than_its_decoder() -> None:
    # The library's own generate fails where it is.
    for d_model, heads, width, feed, encoder, decoder in SIZES.values():
        assert encoder >= decoder >= 1
        assert min(d_model, heads, width, feed) >= 1


@pytest.mark.parametrize("objective", ["standard", "calm", "calm-classifier"])
def test_an_exit_layer_that_means_nothing_is_refused(objective: Any) -> None:
    problem = (
        rf"--exit-layer: 99: means nothing to --objective {objective}; leave it out, or choose --objective early-exit"
    )
    with pytest.raises(UsageError, match=problem):
        Recipe(objective=objective, exit_layer=99)
    assert Recipe(objective="early-exit", exit_layer=99).exit_layer == 99
