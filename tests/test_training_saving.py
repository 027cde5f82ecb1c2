"""What training leaves behind: checkpoints that load as they were, by our own loader and by the library's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor

from bild_bench.decoding.early_exit import untrained_exit
from bild_bench.errors import DataError
from bild_bench.models.checkpoint import find_checkpoint
from bild_bench.models.choice import ModelChoice
from bild_bench.models.exit_classifier import load_exit_classifier
from bild_bench.models.library import load_tokenizer
from bild_bench.training.saving import CLASSIFIER_FILE, save_model
from bild_bench.training.sizes import SIZES, new_model
from bild_bench.training.starting import start
from bild_bench.training.tokenizer import train_tokenizer
from tests.checkpoints import save_bart, save_marian, save_mt5, save_pegasus, save_t5
from tests.forward import library_logits, load
from tests.loading import edit
from tests.loading import load as load_alone
from tests.made_data import jsonl
from tests.made_training import job_of, silent, texts, trained
from tests.method_pairs import decode, limits_of

SOURCE, TOKENS = torch.tensor([[5, 9, 30, 12, 1]]), [0, 12, 7, 44, 20]
FAMILIES: dict[str, Callable[[Path], Path]] = {
    "t5": save_t5,
    "v1.1": lambda folder: save_t5(folder, gated=True, tied=False),
    "mt5": save_mt5,
    "bart": save_bart,
    "marian": save_marian,
    "pegasus": save_pegasus,
}
SENTENCES = [
    "Der Hund läuft über die Straße, und die Katze sieht ihm nach.",
    "Library for reading PDF files (development files)",
    "Warum? Weil 3 < 5 ist!",
    "the quick brown fox jumps over the lazy dog",
    "Pack my box with five dozen liquor jugs.",
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return texts(tmp_path_factory.mktemp("data"))


def logits_by_the_library(folder: Path) -> Tensor:
    model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    assert model.dtype == torch.float32
    return library_logits(model.eval(), SOURCE, TOKENS)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_checkpoint_that_is_loaded_for_training_and_saved_scores_as_before(
    family: str, data: Path, tmp_path: Path
) -> None:
    made = FAMILIES[family](tmp_path / "made")
    model, tokenizer = start(job_of(data, tmp_path / "out", made), silent)
    save_model(model, tokenizer, tmp_path / "saved")
    expected = library_logits(load(made, "float32"), SOURCE, TOKENS)
    assert torch.equal(library_logits(load(tmp_path / "saved", "float32"), SOURCE, TOKENS), expected)
    assert torch.equal(logits_by_the_library(tmp_path / "saved"), expected)
    assert {name for name in names(tmp_path / "saved") if not name.endswith(".json")} == {"model.safetensors"}
    # Each matrix once, as in the checkpoint that it came from; Marian's sinusoids may lie beside them.
    weights, before = (load_file(folder / "model.safetensors") for folder in (tmp_path / "saved", made))
    assert {name for name in weights if "embed_positions" not in name} == {
        name for name in before if "embed_positions" not in name
    }
    again = load_tokenizer(find_checkpoint(ModelChoice(str(tmp_path / "saved")), "--init", silent), "--init")
    for text in ("the dog sees a cat near", "unknown Ü"):
        assert again(text)["input_ids"] == tokenizer(text)["input_ids"]
        assert again.decode(again(text)["input_ids"]) == tokenizer.decode(tokenizer(text)["input_ids"])


@pytest.mark.parametrize("family", ["t5", "v1.1"])
def test_half_precision_halves_the_file_and_loads_as_float32(family: str, data: Path, tmp_path: Path) -> None:
    model, tokenizer = start(job_of(data, tmp_path / "out", FAMILIES[family](tmp_path / "made")), silent)
    save_model(model, tokenizer, tmp_path / "whole")
    save_model(model, tokenizer, tmp_path / "half", "float16")
    assert {weight.dtype for weight in load_file(tmp_path / "half" / "model.safetensors").values()} == {torch.float16}
    assert next(model.parameters()).dtype == torch.float32
    whole, half = (logits_by_the_library(tmp_path / name) for name in ("whole", "half"))
    torch.testing.assert_close(half, whole, atol=0.06, rtol=0.01)
    assert not torch.equal(half, whole)


@pytest.mark.parametrize("family", ["v1.1", "bart", "marian"])
def test_a_trained_model_of_another_family_serves_again(family: str, data: Path, tmp_path: Path) -> None:
    made = FAMILIES[family](tmp_path / "made")
    record = trained(data, tmp_path / "out", made, steps=2, dropout=0.0, rate=1e-3)
    assert record["finished"]
    before, after = (library_logits(load(folder, "float32"), SOURCE, TOKENS) for folder in (made, tmp_path / "out"))
    assert not torch.equal(before, after)
    assert torch.equal(logits_by_the_library(tmp_path / "out"), after)
    fixed = "model.encoder.embed_positions.weight"
    if family == "marian":
        # Sinusoids by definition.
        assert torch.equal(*(load(folder, "float32").state_dict()[fixed] for folder in (made, tmp_path / "out")))


def test_dropout_is_set_wherever_a_family_keeps_it(data: Path, tmp_path: Path) -> None:
    for family in ("t5", "bart"):
        made = FAMILIES[family](tmp_path / family)
        model, _ = start(job_of(data, tmp_path / "out", made, dropout=0.0), silent)
        inputs = {"input_ids": SOURCE, "decoder_input_ids": torch.tensor([TOKENS])}
        with torch.no_grad():
            assert torch.equal(model.train()(**inputs).logits, model(**inputs).logits)
            noisy, _ = start(job_of(data, tmp_path / "out", made, dropout=0.5), silent)
            assert not torch.equal(noisy.train()(**inputs).logits, noisy(**inputs).logits)
        assert noisy.config.to_dict()["dropout_rate" if family == "t5" else "dropout"] == 0.5


def test_texts_are_cut_to_the_positions_that_a_model_has(tmp_path: Path) -> None:
    long = [{"source": "the dog sees " * 40, "target": "a man reads"}] * 4
    for split in ("train", "validation"):
        jsonl(tmp_path / "data" / f"{split}.jsonl", long)
    made = save_bart(tmp_path / "made", max_position_embeddings=24)
    assert trained(tmp_path / "data", tmp_path / "out", made, steps=1)["finished"]


def test_early_exit_is_said_in_the_configuration_until_other_training_undoes_it(data: Path, tmp_path: Path) -> None:
    trained(data, tmp_path / "early", save_t5(tmp_path / "made"), objective="early-exit", steps=1)
    objective = load_alone(tmp_path / "early").describe()["large"]["objective"]
    assert objective == "early-exit"
    assert not untrained_exit("bild-early-exit", objective)
    trained(data, tmp_path / "plain", tmp_path / "early", steps=1)
    objective = load_alone(tmp_path / "plain").describe()["large"]["objective"]
    assert objective == "standard"
    assert untrained_exit("bild-early-exit", objective)
    assert json.loads((tmp_path / "early" / "config.json").read_text())["use_cache"] is True
    card = (tmp_path / "early" / "README.md").read_text()
    assert "Objective: early-exit." in card
    assert f"trained from {tmp_path / 'made'} with bild-bench" in card


@pytest.mark.parametrize("objective", ["calm", None])
def test_an_exit_classifier_is_read_and_decodes(data: Path, tmp_path: Path, objective: str | None) -> None:
    made = save_t5(tmp_path / "made")
    edit(made, "config.json", **({} if objective is None else {"bild_bench_objective": objective}))
    out = tmp_path / "out"
    trained(data, out, made, objective="calm-classifier", steps=4, optimizer="adamw", rate=0.05)
    weight, bias = load_exit_classifier(find_checkpoint(ModelChoice(str(out)), "--large", silent), "cpu", 32) or (
        {},
        {},
    )
    assert (weight.shape, bias.shape) == ((32,), ())
    assert weight.abs().max() > 0.01
    # The model beside it is the one that it was trained on; what its layers are good for has not changed either.
    assert torch.equal(logits_by_the_library(out), logits_by_the_library(made))
    pair = load_alone(out)
    assert pair.describe()["large"]["objective"] == objective
    decoded = decode(pair, "calm", {"measure": "classifier", "threshold": 0.5}, limits_of(6))
    assert sum(decoded.exit_layers) == len(decoded.tokens)
    assert (out / CLASSIFIER_FILE).is_file()


def test_a_new_model_and_its_tokenizer_are_trained_saved_and_read_again(data: Path, tmp_path: Path) -> None:
    record = trained(data, tmp_path / "out", None, steps=1)
    assert record["finished"]
    model = load(tmp_path / "out", "float32")
    assert model.config.vocab_size == 28
    assert model.config.tie_word_embeddings
    checkpoint = find_checkpoint(ModelChoice(str(tmp_path / "out")), "--init", silent)
    tokenizer = load_tokenizer(checkpoint, "--init")
    assert tokenizer("the dog sees the house")["input_ids"][-1] == tokenizer.eos_token_id == 1
    assert tokenizer.decode(tokenizer("the dog sees the house")["input_ids"], skip_special_tokens=True) == (
        "the dog sees the house"
    )


@pytest.mark.parametrize("size", ["little", "big"])
def test_a_new_model_has_its_size_and_is_the_same_for_the_same_seed(size: str) -> None:
    model = new_model(size, 100, 3)
    d_model, heads, width, feed, encoder, decoder = SIZES[size]
    config = model.config
    assert (config.d_model, config.num_heads, config.d_kv, config.d_ff) == (d_model, heads, width, feed)
    assert (len(model.encoder.block), len(model.decoder.block)) == (encoder, decoder)
    assert model.lm_head.weight is model.shared.weight
    state = torch.get_rng_state()
    again, other = new_model(size, 100, 3), new_model(size, 100, 4)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(model.shared.weight, again.shared.weight)
    assert not torch.equal(model.shared.weight, other.shared.weight)
    generated = model.generate(torch.tensor([[5, 1]]), max_new_tokens=2, do_sample=False)
    assert generated.shape[0] == 1


def corpus() -> Iterator[str]:
    yield from SENTENCES * 3


def test_a_tokenizer_gives_its_own_texts_back_and_ends_each_with_its_end_token(tmp_path: Path) -> None:
    train_tokenizer(corpus(), 70, tmp_path / "made")
    made: Any = transformers.AutoTokenizer.from_pretrained(tmp_path / "made", trust_remote_code=False)
    assert len(made) == 70
    assert made.convert_ids_to_tokens([0, 1, 2]) == ["<pad>", "</s>", "<unk>"]
    assert (made.pad_token_id, made.eos_token_id, made.unk_token_id) == (0, 1, 2)
    for text in SENTENCES:
        ids = made(text)["input_ids"]
        assert ids[-1] == 1
        assert not {0, 1, 2} & set(ids[:-1])
        assert made.decode(ids, skip_special_tokens=True) == text
        assert made(text, truncation=True, max_length=4)["input_ids"] == [*ids[:3], 1]
    assert made("the 漢")["input_ids"][-2] == 2


# The characters without the space, the mark of a word's beginning, and the three special pieces.
_LEAST = len(set("".join(SENTENCES)) - {" "}) + 4


@pytest.mark.parametrize(
    ("vocabulary", "problem"),
    [(5_000, "the texts yield only"), (20, rf"is too small .*{_LEAST} characters.*ask for {_LEAST} or more")],
)
def test_texts_that_do_not_fit_a_vocabulary_are_one_clear_line(tmp_path: Path, vocabulary: int, problem: str) -> None:
    with pytest.raises(DataError, match=rf"^--vocab-size: {vocabulary}: .*{problem}") as caught:
        train_tokenizer(corpus(), vocabulary, tmp_path / "made")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "made").exists()
