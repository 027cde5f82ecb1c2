"""Loading by the library: only whole, finite encoder-decoders; never anyone's code; devices by their names."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from bild_bench.errors import UsageError
from bild_bench.models.library import check_device
from tests import checkpoints as made
from tests.loading import change_weights, edit, load, problem_with

QUERY = "decoder.block.1.layer.0.SelfAttention.q.weight"
NORM = "encoder.final_layer_norm.weight"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.save_t5(tmp_path_factory.mktemp("saved") / "t5")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A checkpoint that the test may damage."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "header too small"),
        (b"<html>the hub's page of an error</html>", "header too large"),
        (b"\x08\x00\x00\x00\x00\x00\x00\x00{]      ", "invalid JSON in header"),
    ],
)
def test_weights_that_are_no_safetensors(folder: Path, content: bytes, words: str) -> None:
    (folder / "model.safetensors").write_bytes(content)
    message = problem_with(folder)
    assert words in message
    assert str(folder) in message


def test_truncated_weights(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-100])
    assert "cannot be loaded (SafetensorError: " in problem_with(folder)


def test_a_missing_weight_is_named(folder: Path) -> None:
    change_weights(folder, lambda weights: weights.pop(QUERY))
    assert f"lacks 1 of its weights, {QUERY} first" in problem_with(folder)


def test_a_lost_head_is_not_replaced_by_the_embedding(tmp_path: Path) -> None:
    # The configuration class of T5 insists on a tied head, so the library itself would say nothing here.
    folder = made.save_t5(tmp_path / "model", gated=True, tied=False)
    edit(folder, "config.json", tie_word_embeddings=False)
    assert load(folder).models["large"].description["model_type"] == "t5"
    change_weights(folder, lambda weights: weights.pop("lm_head.weight"))
    assert "lacks 1 of its weights, lm_head.weight first" in problem_with(folder)


def test_a_weight_of_another_shape_is_named_with_both_shapes(folder: Path) -> None:
    change_weights(folder, lambda weights: weights.update({NORM: torch.ones(31)}))
    assert f"weight {NORM} has shape [31], its configuration expects [32]" in problem_with(folder)


def test_layers_that_the_configuration_leaves_out_are_not_left_out_in_silence(folder: Path) -> None:
    edit(folder, "config.json", num_decoder_layers=1)
    assert "holds weights of decoder.block.1, for which its configuration has no layer" in problem_with(folder)


def test_other_weights_beside_the_models_own_are_ignored(folder: Path) -> None:
    # The library itself knows the second one as a weight that old T5 checkpoints carry and nothing uses.
    unused = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    names = ("reward_head.weight", unused, "decoder.block.1.adapter.weight")
    change_weights(folder, lambda weights: weights.update({name: torch.ones(3) for name in names}))
    assert load(folder).models["large"].description["model_type"] == "t5"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_weight_that_is_not_finite_is_named(folder: Path, value: float) -> None:
    change_weights(folder, lambda weights: weights[NORM].__setitem__(3, value))
    message = problem_with(folder)
    assert f"weight {NORM} holds NaN or infinity in float32; use another checkpoint" in message


def test_a_bias_that_is_no_parameter_must_be_finite_too(tmp_path: Path) -> None:
    folder = made.save_bart(tmp_path / "bart")
    change_weights(folder, lambda weights: weights.update(final_logits_bias=torch.full((1, made.WIDTH), torch.nan)))
    assert "weight final_logits_bias holds NaN or infinity" in problem_with(folder)


def test_weights_too_large_for_half_precision_are_refused_there_only(folder: Path) -> None:
    change_weights(folder, lambda weights: weights[NORM].__setitem__(3, 65536.0))
    assert load(folder, dtype="bfloat16").dtype == "bfloat16"
    message = problem_with(folder, dtype="float16")
    assert f"weight {NORM} holds NaN or infinity in float16; use --dtype float32" in message


@pytest.mark.parametrize(
    "fields", [{"d_model": "wide"}, {"d_model": 0}, {"dense_act_fn": "x", "feed_forward_proj": "x"}]
)
def test_impossible_configurations(folder: Path, fields: dict[str, Any]) -> None:
    edit(folder, "config.json", **fields)
    message = problem_with(folder)
    assert "its config.json cannot be used" in message or "cannot be loaded" in message


def test_a_decoder_only_checkpoint_is_named_before_its_tokenizer_is_looked_at(tmp_path: Path) -> None:
    config = transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=8, n_layer=1, n_head=1)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    message = problem_with(tmp_path)
    assert "is of type gpt2, which is not an encoder-decoder text model (allowed: bart, " in message
    allowed = message.partition("(allowed: ")[2].partition(")")[0].split(", ")
    assert {"t5", "mt5", "marian", "pegasus", "mbart", "m2m_100"} <= set(allowed)
    assert not [
        name for name in allowed if any(word in name for word in ("audio", "asr", "speech", "seamless", "music"))
    ]
    assert "t5" in message
    assert "give a sequence-to-sequence checkpoint" in message


def test_an_encoder_only_checkpoint_lacks_a_decoder(tmp_path: Path) -> None:
    config = transformers.T5Config(**made.T5_SHAPE)
    transformers.T5EncoderModel(config).save_pretrained(tmp_path)
    made.save_tokenizer(tmp_path)
    assert "weights, decoder.block.0.layer.0.SelfAttention.k.weight first" in problem_with(tmp_path)


@pytest.mark.parametrize(("kind", "words"), [(None, "names no model_type"), ("t6", "of type t6"), (["t5"], "of type ")])
def test_model_types_that_nobody_knows(folder: Path, kind: object, words: str) -> None:
    edit(folder, "config.json", model_type=kind)
    assert words in problem_with(folder)


def test_float64_uses_a_norm_that_is_exact(saved: Path) -> None:
    model = load(saved, dtype="float64", session="reference").models["large"].model
    norm = model.model.encoder.final_layer_norm  # type: ignore[union-attr]
    states = torch.randn(3, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    by_hand = states / (states.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * norm.weight
    assert torch.allclose(norm(states), by_hand, rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    "device", ["gpu", "", "CPU", "meta", "hpu", "xla", "cuda:", "cuda:-1", "cpu:1", "cuda:0 ", "privateuseone"]
)
def test_devices_that_are_not_known(device: str) -> None:
    with pytest.raises(UsageError, match=r"--device: .*allowed: auto, cpu, cuda, cuda:N, mps"):
        check_device(device)


@pytest.mark.skipif(torch.cuda.device_count() > 99, reason="this machine has that many GPUs")
def test_a_gpu_that_is_not_there_and_what_auto_takes() -> None:
    with pytest.raises(UsageError, match=r"--device: 'cuda:99': torch cannot use it here.*try --device auto"):
        check_device("cuda:99")
    assert check_device("cpu") == "cpu"
    assert check_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
