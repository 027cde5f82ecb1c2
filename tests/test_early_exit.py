"""BiLD by early exit is `bild` on two models that share their lower layers, and runs no layer twice for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench.decoding.early_exit import EarlyExitSettings, untrained_exit
from bild_bench.decoding.picking import Sampling
from bild_bench.decoding.records import Decoded
from bild_bench.decoding.sampling import Sampler
from bild_bench.errors import DataError, UsageError
from bild_bench.models.fast import FastModel
from bild_bench.models.pair import Pair
from tests.checkpoints import VOCABULARY, save_bart
from tests.loading import edit
from tests.method_pairs import TEXTS, cut_out, decode, limits_of, load_alone, load_both, save_deep

DEPTH = 3
Models = tuple[Pair, dict[int, Pair]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """One model alone, and for each k the pair of it with its first k layers, saved as a checkpoint of their own."""
    folder = tmp_path_factory.mktemp("whole")
    save_deep(folder, DEPTH)
    pairs = {k: load_both(folder, cut_out(folder, k, tmp_path_factory.mktemp(f"first{k}"))) for k in (1, 2)}
    return load_alone(folder), pairs


def assert_same(found: Decoded, expected: Decoded) -> None:
    """Ids, counters and trace; its probabilities to rounding."""
    assert (found.tokens, found.counters, found.hit_limit) == (expected.tokens, expected.counters, expected.hit_limit)
    for one, other in zip(found.trace(), expected.trace(), strict=True):
        assert one[:4] == other[:4]
        assert one.small_max_prob == pytest.approx(other.small_max_prob, abs=1e-9)
        assert one.large_nll == pytest.approx(other.large_nll, abs=1e-9)


BILD = st.fixed_dictionaries(
    {
        "alpha_fb": st.floats(0, 1),
        "alpha_rb": st.floats(0, 8) | st.just(math.inf),
        "max_draft": st.none() | st.integers(1, 5),
        "first": st.sampled_from(["small", "large"]),
        "verify_tail": st.booleans(),
    }
)
ENDS = st.sets(st.integers(0, VOCABULARY - 1), min_size=1, max_size=12)


@settings(max_examples=120, deadline=None)
@given(st.sampled_from([1, 2]), BILD, st.integers(1, 12), ENDS, st.sampled_from(TEXTS))
def test_it_is_bild_on_two_models(
    models: Models, k: int, how: dict[str, Any], length: int, ends: set[int], text: str
) -> None:
    alone, pairs = models
    limits = limits_of(length, *ends)
    found = decode(alone, "bild-early-exit", {**how, "exit_layer": k}, limits, text)
    assert_same(found, decode(pairs[k], "bild", how, limits, text))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(
    "how",
    [
        {"alpha_fb": 0.4, "alpha_rb": 4.0},
        {"alpha_fb": 0.0, "alpha_rb": 5.0, "max_draft": 7},  # a stride
        {"alpha_fb": 0.3, "alpha_rb": math.inf, "first": "large"},
        {"alpha_fb": 0.0, "alpha_rb": 6.0, "verify_tail": True},  # all of it drafted, then tested at once
    ],
)
def test_long_texts_over_several_blocks_of_the_cache(models: Models, k: int, how: dict[str, Any]) -> None:
    alone, pairs = models
    limits = limits_of(150, VOCABULARY)  # an id that neither model can choose: only the limit ends a text
    found = decode(alone, "bild-early-exit", {**how, "exit_layer": k}, limits)
    assert len(found.tokens) == 150
    assert_same(found, decode(pairs[k], "bild", how, limits))


def test_it_draws_what_bild_draws(models: Models) -> None:
    alone, pairs = models
    how, sampling = {"alpha_fb": 0.3, "alpha_rb": 3.0}, Sampling(temperature=1.5, top_p=0.9)
    for seed in range(5):
        found = decode(
            alone, "bild-early-exit", {**how, "exit_layer": 2}, limits_of(30), picker=Sampler(sampling, seed)
        )
        assert_same(found, decode(pairs[2], "bild", how, limits_of(30), picker=Sampler(sampling, seed)))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1, 2]), BILD, st.integers(1, 20), ENDS)
def test_its_histogram_holds_every_kept_token(
    models: Models, k: int, how: dict[str, Any], length: int, ends: set[int]
) -> None:
    found = decode(models[0], "bild-early-exit", {**how, "exit_layer": k}, limits_of(length, *ends))
    by_small = found.counters.drafted - found.counters.discarded
    expected = [0, 0, 0]
    expected[k - 1], expected[DEPTH - 1] = by_small, found.counters.large_tokens
    assert found.exit_layers == tuple(expected)
    assert sum(found.exit_layers) == found.counters.generated


@pytest.mark.parametrize("k", [1, 2])
def test_alpha_fb_one_is_vanilla(models: Models, k: int) -> None:
    alone, _ = models
    for text in TEXTS:
        expected = decode(alone, "vanilla", {}, limits_of(80), text)
        found = decode(alone, "bild-early-exit", {"alpha_fb": 1.0, "exit_layer": k}, limits_of(80), text)
        assert found.tokens == expected.tokens


# --- how often a layer runs


@contextmanager
def executions() -> Iterator[list[tuple[range, int, int]]]:
    """What runs meanwhile: layers (from 0), how many positions at once, and the first of them."""
    runs: list[tuple[range, int, int]] = []
    run_layers = FastModel.run_layers

    def noted(model: FastModel, layers: range, states: Any, cache: Any, source: Any, start: int) -> Any:
        runs.append((layers, states.shape[0], start))
        return run_layers(model, layers, states, cache, source, start)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FastModel, "run_layers", noted)
        yield runs


def test_after_a_low_confidence_hand_over_only_the_upper_layers_run(models: Models) -> None:
    with executions() as runs:
        found = decode(models[0], "bild-early-exit", {"alpha_fb": 1.0, "exit_layer": 1}, limits_of(4, VOCABULARY))
    assert found.counters.fallbacks == found.counters.large_calls == 4
    lower, upper = range(1), range(1, DEPTH)
    assert runs == [(layers, 1, position) for position in range(4) for layers in (lower, upper)]


def test_after_a_stride_the_lower_layers_run_for_the_newest_token_too(models: Models) -> None:
    how = {"alpha_fb": 0.0, "alpha_rb": math.inf, "max_draft": 3, "exit_layer": 2}
    with executions() as runs:
        found = decode(models[0], "bild-early-exit", how, limits_of(8, VOCABULARY))
    assert (found.counters.cap_handovers, found.counters.large_tokens) == (2, 2)
    lower, upper = range(2), range(2, DEPTH)
    drafts = [(lower, 1, position) for position in range(8)]
    # Start and two drafts read by S; L reads the third below and all four above; S goes on with L's own token.
    assert runs == [*drafts[:4], (upper, 4, 0), *drafts[4:], (upper, 4, 4)]


def test_a_tail_check_reads_no_position_below_that_was_read(models: Models) -> None:
    how = {"alpha_fb": 0.0, "alpha_rb": math.inf, "verify_tail": True, "exit_layer": 1}
    with executions() as runs:
        found = decode(models[0], "bild-early-exit", how, limits_of(4, VOCABULARY))
    assert (found.counters.tail_checks, found.counters.large_tokens) == (1, 0)
    # A tail check appends nothing, so the last draft goes through no layer at all.
    assert runs == [*((range(1), 1, position) for position in range(4)), (range(1, DEPTH), 4, 0)]


def test_when_the_large_model_starts_the_start_token_goes_through_all_layers(models: Models) -> None:
    how = {"alpha_fb": 0.0, "alpha_rb": math.inf, "first": "large", "exit_layer": 2}
    with executions() as runs:
        decode(models[0], "bild-early-exit", how, limits_of(2, VOCABULARY))
    assert runs == [(range(2), 1, 0), (range(2, DEPTH), 1, 0), (range(2), 1, 1)]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2]), BILD, st.integers(1, 15), ENDS)
def test_no_position_goes_through_a_layer_twice_unless_it_was_cut(
    models: Models, k: int, how: dict[str, Any], length: int, ends: set[int]
) -> None:
    with executions() as runs:
        found = decode(models[0], "bild-early-exit", {**how, "exit_layer": k}, limits_of(length, *ends))
    lower = [(count, start) for layers, count, start in runs if layers == range(k)]
    upper = [(count, start) for layers, count, start in runs if layers == range(k, DEPTH)]
    assert len(lower) + len(upper) == len(runs)
    assert len(upper) == found.counters.large_calls
    # Below: S's own steps, and the newest token at a hand-over that is not S's doubt.
    assert len(lower) == found.counters.small_calls + found.counters.cap_handovers + found.counters.start_calls
    assert all(count == 1 for count, _ in lower)
    if not found.counters.rollbacks:
        assert [start for _, start in lower] == list(range(len(lower)))
        ends_of = [0, *(start + count for count, start in upper)]
        assert [start for _, start in upper] == ends_of[:-1]


# --- settings


def test_what_cannot_be_is_refused_in_one_line(models: Models, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--exit-layer: 0: must be 1 or more"):
        EarlyExitSettings(exit_layer=0)
    with pytest.raises(UsageError, match="--exit-layer: 3: the decoder has 3 layers"):
        decode(models[0], "bild-early-exit", {"exit_layer": 3}, limits_of(4))
    with pytest.raises(UsageError, match="--alpha-fb"):
        EarlyExitSettings(alpha_fb=1.5)
    bart = load_alone(save_bart(tmp_path))
    with pytest.raises(DataError, match=r"--large: .*T5"):
        decode(bart, "bild-early-exit", {}, limits_of(4))


def test_its_label_says_where_it_leaves() -> None:
    assert EarlyExitSettings(0.5, 2.0).label() == "k=1 fb=0.5 rb=2"
    assert replace(EarlyExitSettings(0.5, math.inf, exit_layer=3), max_draft=4).label() == "k=3 fb=0.5 rb=never cap=4"


@pytest.mark.parametrize(("objective", "trained"), [(None, False), ("plain", False), ("early-exit", True)])
def test_the_record_tells_the_objective_that_a_checkpoint_names(
    tmp_path: Path, objective: str | None, trained: bool
) -> None:
    folder = save_deep(tmp_path / "made")
    edit(folder, "config.json", **({} if objective is None else {"bild_bench_objective": objective}))
    found = load_alone(folder).describe()["large"]["objective"]
    assert found == objective
    assert untrained_exit("bild-early-exit", found) is not trained
    assert untrained_exit("bild", found) is False
