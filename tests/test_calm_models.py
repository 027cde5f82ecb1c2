"""CALM on real decoders: vanilla and the first layers as its two ends, and what skipped layers attend to."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from bild_bench.errors import DataError, UsageError
from bild_bench.models.choice import choose_pair
from bild_bench.models.layered import LayeredSession
from bild_bench.models.pair import Pair, load_pair
from tests.checkpoints import VOCABULARY, save_bart
from tests.method_pairs import TEXTS, cut_out, decode, limits_of, load_alone, save_deep

DEPTH, WIDTH = 3, 32  # layers and d_model of the random decoder
SOURCE = torch.tensor([[5, 9, 30, 12, 7, 44, 1]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_deep(tmp_path_factory.mktemp("whole"), DEPTH)


@pytest.fixture(scope="module")
def whole(folder: Path) -> Pair:
    return load_alone(folder, library=["large"])


@pytest.mark.parametrize("threshold", [1.0, 3.0])
@pytest.mark.parametrize("measure", ["softmax", "state"])
def test_lambda_one_is_vanilla_on_a_random_model(whole: Pair, measure: str, threshold: float) -> None:
    for text in TEXTS:
        expected = decode(whole, "vanilla", {}, limits_of(80), text)
        found = decode(whole, "calm", {"measure": measure, "threshold": threshold}, limits_of(80), text)
        assert (found.tokens, found.hit_limit) == (expected.tokens, expected.hit_limit)
        assert found.exit_layers == (0, 0, len(expected.tokens))


def test_lambda_one_is_vanilla_on_the_embedded_model() -> None:
    pair = load_pair(choose_pair("iwslt17", "translation"), ["large"], device="cpu", dtype="float64")
    limits = pair.limits(40)
    for text in ("Ein Hund läuft über die Straße.", "Zwei Frauen sitzen auf einer Bank."):
        expected = decode(pair, "vanilla", {}, limits, text)
        assert not expected.hit_limit
        assert decode(pair, "calm", {"threshold": 1.0}, limits, text).tokens == expected.tokens


@pytest.mark.parametrize("k", [1, 2])
def test_lambda_zero_is_the_model_of_the_first_layers(whole: Pair, folder: Path, k: int, tmp_path: Path) -> None:
    part = load_alone(cut_out(folder, k, tmp_path))
    for text in TEXTS:
        found = decode(whole, "calm", {"threshold": 0.0, "min_layer": k}, limits_of(80), text)
        assert found.tokens == decode(part, "vanilla", {}, limits_of(80), text).tokens
        assert found.exit_layers == tuple(len(found.tokens) * (layer == k) for layer in (1, 2, 3))


@settings(max_examples=60, deadline=None)
@given(
    st.floats(0, 1.2),
    st.sampled_from(["softmax", "state"]),
    st.booleans(),
    st.none() | st.just(2),
    st.integers(1, 15),
    st.sets(st.integers(0, VOCABULARY - 1), min_size=1, max_size=12),
)
def test_the_histogram_sums_to_generated_and_limits_are_kept(
    whole: Pair, threshold: float, measure: str, decay: bool, min_layer: int | None, length: int, ends: set[int]
) -> None:
    how = {"threshold": threshold, "measure": measure, "decay": decay, "min_layer": min_layer}
    found = decode(whole, "calm", how, limits_of(length, *ends))
    counters, exits = found.counters, found.exit_layers
    assert exits is not None
    assert sum(exits) == counters.generated == len(found.tokens) <= length
    assert counters.generated == counters.large_calls == counters.large_tokens
    assert not set(found.tokens[:-1]) & ends
    assert found.hit_limit == (found.tokens[-1] not in ends)
    if min_layer == 2 or measure == "state":
        assert exits[0] == 0


# --- what skipped layers hold


def heads(states: Tensor) -> Tensor:
    """[d_model] -> [4 heads, 1, 8]."""
    return states.view(4, 1, 8)


def attend(attention: Any, query: Tensor, keys: Tensor, values: Tensor, bias: Tensor | float) -> Tensor:
    weights = torch.softmax(heads(attention.q(query)) @ keys.transpose(1, 2) + bias, -1)
    return attention.o((weights @ values).reshape(WIDTH))


def rows_with_exits(model: Any, tokens: list[int], exits: list[int]) -> Tensor:
    """Scores after every token, from the library's own modules, one position and layer after the other.

    A layer that a token does not go through gets its key and value from the state that the token left with.
    """
    decoder, rows = model.decoder, []
    read = model.encoder(input_ids=SOURCE).last_hidden_state[0]
    cached: list[list[tuple[Tensor, Tensor]]] = [[] for _ in decoder.block]
    for position, (token, exit_layer) in enumerate(zip(tokens, exits, strict=True)):
        x = decoder.embed_tokens.weight[token]
        for number, block in enumerate(decoder.block, start=1):
            own, cross, feed = block.layer
            normed = own.layer_norm(x)
            cached[number - 1].append((own.SelfAttention.k(normed), own.SelfAttention.v(normed)))
            if number > exit_layer:
                continue
            keys, values = (
                torch.cat([heads(part) for part in parts], 1) for parts in zip(*cached[number - 1], strict=True)
            )
            bias = decoder.block[0].layer[0].SelfAttention.compute_bias(position + 1, position + 1)[0, :, -1:]
            x = x + attend(own.SelfAttention, normed, keys, values, bias)
            other = cross.EncDecAttention
            keys, values = (matrix(read).view(-1, 4, 8).transpose(0, 1) for matrix in (other.k, other.v))
            x = x + attend(other, cross.layer_norm(x), keys, values, 0.0)
            x = x + feed.DenseReluDense(feed.layer_norm(x))
        rows.append(model.lm_head(decoder.final_layer_norm(x) * WIDTH**-0.5))
    return torch.stack(rows)


def our_rows(pair: Pair, tokens: list[int], exits: list[int]) -> Tensor:
    model: Any = pair.models["large"].model
    session, rows = LayeredSession(model, model.encode(SOURCE)), []
    for token, exit_layer in zip(tokens, exits, strict=True):
        session.embed([token])
        for _ in range(exit_layer):
            session.run_layer()
        rows.append(session.rows().logits)
        session.skip_rest()
    return torch.cat(rows)


def test_the_independent_computation_is_the_librarys_pass_where_nothing_is_skipped(whole: Pair) -> None:
    model, tokens = whole.library["large"], [0, 7, 30, 2, 9]
    expected = model(input_ids=SOURCE, decoder_input_ids=torch.tensor([tokens])).logits[0]
    torch.testing.assert_close(rows_with_exits(model, tokens, [DEPTH] * 5), expected, atol=1e-9, rtol=0)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, VOCABULARY - 1), st.integers(1, DEPTH)), min_size=1, max_size=10))
def test_skipped_layers_hold_the_projections_of_the_exit_state(whole: Pair, history: list[tuple[int, int]]) -> None:
    tokens, exits = map(list, zip(*history, strict=True))
    expected = rows_with_exits(whole.library["large"], tokens, exits)
    torch.testing.assert_close(our_rows(whole, tokens, exits), expected, atol=1e-9, rtol=0)


def test_skipped_layers_are_kept_beyond_a_block_of_the_cache(whole: Pair) -> None:
    tokens, exits = [n % VOCABULARY for n in range(70)], [1 + n % 3 for n in range(70)]
    expected = rows_with_exits(whole.library["large"], tokens, exits)
    torch.testing.assert_close(our_rows(whole, tokens, exits), expected, atol=1e-9, rtol=0)


# --- the classifier beside a checkpoint, and what is refused before a text is decoded


def with_classifier(folder: Path, weight: Tensor, bias: float) -> Pair:
    tensors = {"weight": weight, "bias": torch.tensor(bias)}
    save_file(tensors, folder / "exit_classifier.safetensors")
    return load_alone(folder)


def test_the_classifier_is_read_from_beside_the_weights(tmp_path: Path) -> None:
    save_deep(tmp_path, DEPTH)
    how = {"measure": "classifier", "threshold": 0.9}
    # sigmoid(3) = 0.953, sigmoid(2) = 0.881
    for bias, expected in ((3.0, (6, 0, 0)), (2.0, (0, 0, 6))):
        pair = with_classifier(tmp_path, torch.zeros(WIDTH), bias)
        assert decode(pair, "calm", how, limits_of(6, VOCABULARY)).exit_layers == expected


def test_the_classifier_reads_the_state_above_the_layer(tmp_path: Path) -> None:
    save_deep(tmp_path, DEPTH)
    weight = torch.zeros(WIDTH)
    weight[5] = 0.3
    model: Any = with_classifier(tmp_path, weight, -0.2).models["large"].model
    library: Any = load_alone(tmp_path, library=["large"]).library["large"]
    hidden = library(
        input_ids=SOURCE, decoder_input_ids=torch.tensor([[0]]), output_hidden_states=True
    ).decoder_hidden_states
    session = LayeredSession(model, model.encode(SOURCE))
    session.embed([0])
    for layer in (1, 2):
        session.run_layer()
        score = 0.3 * float(hidden[layer][0, 0, 5]) - 0.2
        assert session.classify() == pytest.approx(1 / (1 + math.exp(-score)), abs=1e-6)
        cosine = torch.cosine_similarity(hidden[layer][0, 0], hidden[layer - 1][0, 0], dim=0)
        assert session.similarity() == pytest.approx(float(cosine), abs=1e-6)


def test_what_cannot_be_is_refused_in_one_line(whole: Pair, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"classifier.*exit_classifier\.safetensors"):
        decode(whole, "calm", {"measure": "classifier"}, limits_of(4))
    with pytest.raises(UsageError, match="--min-layer: 3: the decoder has 3 layers"):
        decode(whole, "calm", {"min_layer": 3}, limits_of(4))
    with pytest.raises(DataError, match=r"--large: .*T5"):
        decode(load_alone(save_bart(tmp_path / "bart")), "calm", {}, limits_of(4))
    ruled = save_deep(tmp_path / "ruled", 2)
    (ruled / "generation_config.json").write_text('{"decoder_start_token_id": 0, "eos_token_id": 1, "min_length": 4}')
    with pytest.raises(DataError, match=r"calm.*min_length"):
        decode(load_alone(ruled), "calm", {}, limits_of(4))
