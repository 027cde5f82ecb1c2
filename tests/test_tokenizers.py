"""Tokenizers: as published checkpoints carry them, never made up, never anyone's code."""

from __future__ import annotations

import builtins
import contextlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from safetensors.torch import load_file

from bild_bench.errors import DataError
from tests import checkpoints as made
from tests.loading import edit, load, problem_with

SENTENCE = "the dog sees a cat near the house"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.save_t5(tmp_path_factory.mktemp("saved") / "t5")


@pytest.fixture(scope="module")
def spiece(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentencepiece model with T5's special tokens, trained on random sentences."""
    draw, prefix = random.Random(0), tmp_path_factory.mktemp("spiece") / "spiece"
    sentences = [" ".join(draw.choices(made.WORDS, k=8)) for _ in range(300)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_prefix=str(prefix),
        vocab_size=34,
        model_type="unigram",
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    return prefix.with_suffix(".model")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A checkpoint that the test may damage."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


def without_tokenizer(folder: Path) -> Path:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    return folder


def ids_by_sentencepiece(model: Path, text: str) -> list[int]:
    return [*sentencepiece.SentencePieceProcessor(model_file=str(model)).encode(text), 1]


@pytest.mark.parametrize("save", [made.save_mt5, made.save_t5])
def test_a_sentencepiece_model_and_settings_are_enough(save: Any, spiece: Path, tmp_path: Path) -> None:
    # A checkpoint from before tokenizer.json: spiece.model, and settings that ask for no extra ids.
    folder = without_tokenizer(save(tmp_path / "model"))
    shutil.copyfile(spiece, folder / "spiece.model")
    settings = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "extra_ids": 0}
    edit(folder, "tokenizer_config.json", additional_special_tokens=None, **settings)
    pair = load(folder)
    ids = pair.tokenise(SENTENCE, 100).ids[0].tolist()
    assert ids == ids_by_sentencepiece(spiece, SENTENCE)
    assert pair.text(ids) == SENTENCE


def test_a_sentencepiece_model_alone_brings_the_hundred_extra_ids_of_t5(spiece: Path, tmp_path: Path) -> None:
    folder = without_tokenizer(made.save_mt5(tmp_path / "model", vocab_size=134))
    shutil.copyfile(spiece, folder / "spiece.model")
    pair = load(folder)
    assert pair.tokenise(SENTENCE, 100).ids[0].tolist() == ids_by_sentencepiece(spiece, SENTENCE)
    narrow = without_tokenizer(made.save_mt5(tmp_path / "narrow", vocab_size=133))
    shutil.copyfile(spiece, narrow / "spiece.model")
    assert "scores 133 ids, its tokenizer has 134" in problem_with(narrow)


@pytest.mark.filterwarnings("ignore:Recommended")
@pytest.mark.parametrize("pickled", [False, True])
def test_the_two_sentencepiece_models_of_marian(
    spiece: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pickled: bool
) -> None:
    folder = without_tokenizer(made.save_marian(tmp_path / "model"))
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(spiece))
    for name in ("source.spm", "target.spm"):
        shutil.copyfile(spiece, folder / name)
    (folder / "vocab.json").write_text(json.dumps({pieces.id_to_piece(index): index for index in range(len(pieces))}))
    edit(folder, "tokenizer_config.json", source_lang="de", target_lang="en")
    if pickled:
        import torch

        monkeypatch.setenv("BILD_BENCH_CACHE", str(tmp_path / "cache"))
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    pair = load(folder)
    assert pair.tokenise(SENTENCE, 100).ids[0].tolist() == ids_by_sentencepiece(spiece, SENTENCE)
    assert pair.models["large"].model.kind == "reference"


def test_a_tokenizer_from_another_folder_is_used(folder: Path, tmp_path: Path) -> None:
    other = made.save_tokenizer(tmp_path / "other", lowercase=True)
    own, borrowed = load(folder), load(folder, tokenizer=other)
    assert own.tokenise("THE dog", 100).ids[0].tolist() != borrowed.tokenise("THE dog", 100).ids[0].tolist()
    assert borrowed.tokenise("THE dog", 100).ids[0].tolist() == own.tokenise("the dog", 100).ids[0].tolist()
    # It is enough that the other folder has one.
    assert load(without_tokenizer(folder), tokenizer=other).tokenise("the dog", 100).ids.shape == (1, 3)


@pytest.mark.parametrize("left", ["source.spm", "target.spm", "vocab.json"])
@pytest.mark.filterwarnings("ignore:Recommended")
def test_a_tokenizer_that_lacks_one_of_its_files(left: str, spiece: Path, tmp_path: Path) -> None:
    folder = without_tokenizer(made.save_marian(tmp_path / "model"))
    for name in ("source.spm", "target.spm"):
        shutil.copyfile(spiece, folder / name)
    (folder / "vocab.json").write_text(json.dumps({"<pad>": 0, "</s>": 1, "<unk>": 2}))
    (folder / left).unlink()
    assert "has no tokenizer" in problem_with(folder)


_AUTO_MAP = {
    "AutoConfig": "evil.Configuration",
    "AutoModelForSeq2SeqLM": "evil.Model",
    "AutoTokenizer": ["evil.Pieces", "evil.Pieces"],
}
_EVIL = """
from pathlib import Path
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
Path(__file__).parent.joinpath("ran").touch()
Path({mark!r}).touch()
class Configuration(PretrainedConfig):
    model_type = "strange"
class Model(PreTrainedModel):
    config_class = Configuration
class Pieces(PreTrainedTokenizerFast):
    pass
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked on the terminal, where every answer is yes."""
    prompts: list[str] = []

    def answer_yes(prompt: str = "") -> str:
        prompts.append(prompt)
        return "y"

    monkeypatch.setattr(builtins, "input", answer_yes)
    return prompts


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("config.json", {"model_type": "strange"}),
        ("config.json", {}),
        ("tokenizer_config.json", {"tokenizer_class": "Pieces"}),
        ("tokenizer_config.json", {}),
    ],
)
@pytest.mark.parametrize("where", ["the checkpoint", "its tokenizer"])
def test_code_beside_a_checkpoint_is_never_run_and_nobody_is_asked(
    saved: Path, folder: Path, tmp_path: Path, asked: list[str], name: str, fields: dict[str, Any], where: str
) -> None:
    (folder / "evil.py").write_text(_EVIL.format(mark=str(tmp_path / "ran")))
    edit(folder, name, auto_map=_AUTO_MAP, **fields)
    if name == "config.json":
        (folder / "tokenizer_config.json").unlink()
    with contextlib.suppress(DataError):  # refused or read without that code: both are right
        load(folder if where == "the checkpoint" else saved, tokenizer=folder)
    assert asked == []
    assert not (tmp_path / "ran").exists()
    assert not (folder / "ran").exists()


def test_a_folder_without_a_tokenizer_does_not_get_an_empty_one(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    assert "has no tokenizer (neither tokenizer.json nor spiece.model)" in problem_with(folder)


@pytest.mark.parametrize("content", ["", "{}", "[1", '{"model": {"type": "Unigram", "vocab": 3}}'])
def test_a_damaged_tokenizer(folder: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content)
    message = problem_with(folder)
    assert "has no tokenizer that can be loaded" in message
    assert "add tokenizer.json or the sentencepiece model to the folder" in message
