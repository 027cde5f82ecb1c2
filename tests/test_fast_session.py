"""The fast session against the library's own forward pass, which recomputes the whole prefix without a cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bild_bench.models.fast import FastModel, FastSession
from tests.checkpoints import VOCABULARY, WIDTH, save_mt5, save_t5
from tests.forward import OTHER_SOURCE, SOURCE, assert_near, library_logits, load, random_tokens

VARIANTS: dict[str, Callable[[Path], Path]] = {
    "T5 1.0": save_t5,
    "T5 1.1": partial(save_t5, gated=True, tied=False),
    "mT5": save_mt5,
    "tied and gated": partial(save_t5, gated=True),
    "one head": partial(save_t5, num_heads=1, d_kv=32),
    "d_kv is not d_model / heads": partial(save_t5, gated=True, num_heads=6, d_kv=10),
    "decoder deeper than encoder": partial(save_mt5, num_layers=1, num_decoder_layers=3),
    "decoder shallower than encoder": partial(save_t5, num_layers=3, num_decoder_layers=1),
    "wide buckets": partial(save_t5, relative_attention_num_buckets=32, relative_attention_max_distance=128),
}
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}


def fast_model(folder: Path, dtype: str = "float64") -> FastModel:
    return FastModel(load(folder, dtype), VOCABULARY)


def in_blocks(session: FastSession, tokens: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Feed tokens in blocks of these sizes; all rows' scores."""
    assert sum(sizes) == len(tokens)
    rows, start = [], session.length
    for size in sizes:
        rows.append(session.extend(tokens[start : start + size]).logits)
        start += size
    return torch.cat(rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("t5"), gated=True, tied=False, num_heads=3, num_decoder_layers=3)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_are_the_librarys_step_by_step_and_in_blocks(variant: str, dtype: str, tmp_path: Path) -> None:
    VARIANTS[variant](tmp_path)
    tokens = random_tokens(12)
    expected = library_logits(load(tmp_path, dtype), SOURCE, tokens)
    model = fast_model(tmp_path, dtype)
    encoded = model.encode(SOURCE)
    for sizes in ([1] * 12, [12], [3, 1, 5, 1, 2]):
        assert_near(in_blocks(model.session(encoded), tokens, sizes), expected, TOLERANCE[dtype])


@pytest.mark.parametrize("variant", ["T5 1.0", "wide buckets"])
def test_scores_beyond_a_cache_block_and_beyond_the_farthest_distance(variant: str, tmp_path: Path) -> None:
    VARIANTS[variant](tmp_path)
    tokens = random_tokens(200)
    expected = library_logits(load(tmp_path, "float64"), SOURCE, tokens)
    model = fast_model(tmp_path)
    encoded = model.encode(SOURCE)
    for sizes in ([200], [60, 3, 1, 1, 65, 1, 62, 7], [64, 64, 64, 8]):
        assert_near(in_blocks(model.session(encoded), tokens, sizes), expected, 1e-9)


HISTORY = st.lists(st.tuples(st.integers(0, 150), st.integers(1, 40), st.integers(0, 9)), min_size=1, max_size=8)


@given(HISTORY)
@settings(max_examples=60)
def test_after_any_history_the_scores_are_those_of_a_fresh_start(
    folder: Path, history: list[tuple[int, int, int]]
) -> None:
    model, library = both(folder)
    encoded = model.encode(SOURCE)
    session = model.session(encoded)
    fed: list[int] = []
    for cut, count, seed in history:
        session.truncate(cut)
        fed = fed[:cut]
        assert session.length == len(fed)
        new = random_tokens(count, seed)
        rows = session.extend(new)
        fed += new
        assert (session.length, len(rows)) == (len(fed), count)
    fresh = model.session(encoded).extend(fed)
    assert_near(rows.logits, fresh.logits[-count:], 1e-9)
    assert_near(rows.logits, library_logits(library, SOURCE, fed)[-count:], 1e-9)


LOADED: dict[Path, tuple[FastModel, Any]] = {}


def both(folder: Path) -> tuple[FastModel, Any]:
    """Our model and the library's, loaded once: hypothesis draws many histories for them."""
    if folder not in LOADED:
        LOADED[folder] = fast_model(folder), load(folder, "float64")
    return LOADED[folder]


def test_truncating_to_more_than_is_cached_changes_nothing(folder: Path) -> None:
    model, _ = both(folder)
    session = model.session(model.encode(SOURCE))
    session.extend([0, 4, 5])
    session.truncate(7)
    assert session.length == 3


def test_two_sessions_of_one_model_do_not_disturb_each_other(folder: Path) -> None:
    model, library = both(folder)
    first, second = model.session(model.encode(SOURCE)), model.session(model.encode(OTHER_SOURCE))
    one, other = random_tokens(70, seed=2), random_tokens(140, seed=3)
    found_one, found_other = [], []
    for step in range(0, 70, 10):
        found_one.append(first.extend(one[step : step + 10]).logits)
        found_other.append(second.extend(other[2 * step : 2 * step + 20]).logits)
    assert_near(torch.cat(found_one), library_logits(library, SOURCE, one), 1e-9)
    assert_near(torch.cat(found_other), library_logits(library, OTHER_SOURCE, other), 1e-9)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("variant", ["T5 1.0", "mT5"])
def test_half_precision_is_as_near_to_float64_as_the_librarys(variant: str, dtype: str, tmp_path: Path) -> None:
    VARIANTS[variant](tmp_path)
    exact, library, model = load(tmp_path, "float64"), load(tmp_path, dtype), fast_model(tmp_path, dtype)
    ours, theirs = [], []
    for seed in range(4):
        tokens = random_tokens(12, seed)
        expected = library_logits(exact, SOURCE, tokens)
        found = in_blocks(model.session(model.encode(SOURCE)), tokens, [5, 1, 1, 5])
        assert found.dtype == torch.float32
        ours.append((found - expected).abs().mean())
        theirs.append((library_logits(library, SOURCE, tokens) - expected).abs().mean())
    # Both round at every step, in another order.
    assert sum(ours) < 1.25 * sum(theirs)


def test_float16_keeps_the_second_feed_forward_projection_in_float32(folder: Path) -> None:
    layer = fast_model(folder, "float16").weights.layers[0]
    assert (layer.ff_out.dtype, layer.ff_in.dtype, layer.qkv.dtype) == (torch.float32, torch.float16, torch.float16)
    assert fast_model(folder, "bfloat16").weights.layers[0].ff_out.dtype == torch.bfloat16


def test_float16_does_not_overflow_in_that_projection(folder: Path) -> None:
    library, taken_apart = load(folder, "float16"), load(folder, "float16")
    for model in (library, taken_apart):
        model.decoder.block[-1].layer[2].DenseReluDense.wo.weight.mul_(1e5)
    expected = library_logits(library, SOURCE, [0, 5, 6])
    model = FastModel(taken_apart, VOCABULARY)
    assert_near(model.session(model.encode(SOURCE)).extend([0, 5, 6]).logits, expected, 0.1)


def test_float16_clamps_what_would_overflow_as_the_library_does(folder: Path) -> None:
    library, taken_apart = load(folder, "float16"), load(folder, "float16")
    for model in (library, taken_apart):
        # Attention's output lifts the residual stream beyond float16's largest number, 65504.
        model.decoder.block[0].layer[0].SelfAttention.o.weight.mul_(2e4)
        model.decoder.embed_tokens.weight.mul_(1e4)
    expected = library_logits(library, SOURCE, [0, 5, 6])
    model = FastModel(taken_apart, VOCABULARY)
    states = model.session(model.encode(SOURCE)).extend([0, 5, 6]).logits
    assert torch.isfinite(states).all()
    assert_near(states, expected, 0.05)


def test_ids_beyond_the_tokenizer_never_appear(tmp_path: Path) -> None:
    save_mt5(tmp_path)
    library = load(tmp_path, "float64")
    taken_apart = load(tmp_path, "float64")
    for model in (library, taken_apart):
        model.lm_head.weight[VOCABULARY:] *= 10
    tokens = random_tokens(40)
    with torch.inference_mode():
        full = library(input_ids=SOURCE, decoder_input_ids=torch.tensor([tokens])).logits[0]
    assert full.shape[1] == WIDTH
    assert (full.argmax(-1) >= VOCABULARY).any()
    model = FastModel(taken_apart, VOCABULARY)
    rows = model.session(model.encode(SOURCE)).extend(tokens)
    assert rows.argmax() == full[:, :VOCABULARY].argmax(-1).tolist()
    assert rows.probs().shape == (40, VOCABULARY)
    assert rows.max_prob() == pytest.approx(full[:, :VOCABULARY].softmax(-1).max(-1).values.tolist())
