"""The reference session against the library's own forward pass, which recomputes the whole prefix without a cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench.models.reference import ReferenceModel
from tests.checkpoints import PAD, VOCABULARY, save_bart, save_marian, save_mt5, save_pegasus, save_t5
from tests.forward import OTHER_SOURCE, SOURCE, assert_near, library_logits, load, random_tokens

ARCHITECTURES: dict[str, Callable[[Path], Path]] = {
    "BART": save_bart,
    "BART with a deeper decoder": partial(save_bart, decoder_layers=3),
    "Marian": save_marian,
    "Pegasus": save_pegasus,
    "T5": save_t5,
    "T5 with a deeper decoder": partial(save_t5, gated=True, tied=False, num_layers=1, num_decoder_layers=3),
    "mT5 with a shallower decoder": partial(save_mt5, num_layers=2, num_decoder_layers=1),
}


@pytest.fixture(scope="module", params=ARCHITECTURES)
def models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[ReferenceModel, Any]:
    """The model under test and the library's, each with its own copy of the weights, in float64."""
    folder = ARCHITECTURES[request.param](tmp_path_factory.mktemp("checkpoint"))
    return ReferenceModel(load(folder, "float64"), VOCABULARY, PAD), load(folder, "float64")


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12), st.integers(0, 9)), min_size=1, max_size=6),
)
@settings(max_examples=20)
def test_after_any_history_the_scores_are_the_librarys(
    models: tuple[ReferenceModel, Any], history: list[tuple[int, int, int]]
) -> None:
    model, library = models
    session = model.session(model.encode(SOURCE))
    fed: list[int] = []
    for cut, count, seed in history:
        session.truncate(cut)
        fed = fed[:cut]
        assert session.length == len(fed)
        new = random_tokens(count, seed)
        rows = session.extend(new)
        fed += new
        assert (session.length, len(rows)) == (len(fed), count)
        assert_near(rows.logits, library_logits(library, SOURCE, fed)[-count:], 1e-9)


def test_a_truncated_session_is_a_fresh_one(models: tuple[ReferenceModel, Any]) -> None:
    model, _ = models
    encoded = model.encode(SOURCE)
    used, fresh = model.session(encoded), model.session(encoded)
    used.extend([0, 5, 6, 7])
    used.truncate(9)
    assert used.length == 4
    used.truncate(1)
    fresh.extend([0])
    assert_near(used.extend([8, 9]).logits, fresh.extend([8, 9]).logits, 1e-12)
    used.truncate(0)
    assert used.length == 0
    assert_near(used.extend([0, 9]).logits, model.session(encoded).extend([0, 9]).logits, 1e-12)


def test_sessions_of_one_model_do_not_disturb_each_other(models: tuple[ReferenceModel, Any]) -> None:
    model, library = models
    encoded = model.encode(SOURCE)
    first, twin, other = model.session(encoded), model.session(encoded), model.session(model.encode(OTHER_SOURCE))
    one, two = random_tokens(12, seed=2), random_tokens(12, seed=3)
    found_first, found_twin, found_other = [], [], []
    for step in range(0, 12, 4):
        found_first.append(first.extend(one[step : step + 4]).logits)
        found_twin.append(twin.extend(two[step : step + 4]).logits)
        found_other.append(other.extend(two[step : step + 4]).logits)
    assert_near(torch.cat(found_first), library_logits(library, SOURCE, one), 1e-9)
    assert_near(torch.cat(found_twin), library_logits(library, SOURCE, two), 1e-9)
    assert_near(torch.cat(found_other), library_logits(library, OTHER_SOURCE, two), 1e-9)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_scores_in_float32(architecture: str, tmp_path: Path) -> None:
    folder = ARCHITECTURES[architecture](tmp_path)
    model, tokens = ReferenceModel(load(folder, "float32"), VOCABULARY, PAD), random_tokens(12)
    session = model.session(model.encode(SOURCE))
    found = torch.cat([session.extend(tokens[:1]).logits, session.extend(tokens[1:7]).logits])
    assert_near(found, library_logits(load(folder, "float32"), SOURCE, tokens)[:7], 1e-4)


@pytest.mark.parametrize("save", [save_bart, save_mt5])
def test_one_token_and_a_block_give_the_same_bfloat16_scores(save: Callable[[Path], Path], tmp_path: Path) -> None:
    model, tokens = ReferenceModel(load(save(tmp_path), "bfloat16"), VOCABULARY, PAD), random_tokens(24)
    encoded = model.encode(SOURCE)
    single = model.session(encoded)
    step_by_step = torch.cat([single.extend([token]).logits for token in tokens])
    # Scores of 4 to 8 are 0.03 apart in bfloat16.
    assert_near(step_by_step, model.session(encoded).extend(tokens).logits, 0.04)


def test_the_sources_keys_are_made_by_encode_and_never_again(models: tuple[ReferenceModel, Any]) -> None:
    model, _ = models
    encoded = model.encode(SOURCE)
    for session in (model.session(encoded), model.session(encoded)):
        assert encoded.cross.get_seq_length() == SOURCE.shape[1]
        session.extend([0, 5])
    assert encoded.cross.get_seq_length() == SOURCE.shape[1]


def test_ids_beyond_the_tokenizer_never_appear(tmp_path: Path) -> None:
    library = load(save_bart(tmp_path), "float64")
    library.final_logits_bias[:, VOCABULARY:] = 100
    tokens = random_tokens(6)
    with torch.inference_mode():
        full = library(input_ids=SOURCE, decoder_input_ids=torch.tensor([tokens])).logits[0]
    assert (full.argmax(-1) >= VOCABULARY).all()
    model = ReferenceModel(library, VOCABULARY, PAD)
    rows = model.session(model.encode(SOURCE)).extend(tokens)
    assert rows.argmax() == full[:, :VOCABULARY].argmax(-1).tolist()
    assert rows.probs().shape == (6, VOCABULARY)
