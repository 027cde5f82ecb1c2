"""Checkpoint folders as people have them, and what each comes to: cases of tests and of docs/ARCHITECTURES.md."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.loading import change_weights, edit

QUERY = "decoder.block.1.layer.0.SelfAttention.q.weight"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12345\n"


@dataclass(frozen=True)
class Folder:
    """One state of a checkpoint's folder.

    Args:
        what: in words.
        make: changes a whole T5 1.0 checkpoint into it.
        refused: a part of the line with which it is refused; "" where it is read.
    """

    what: str
    make: Callable[[Path], object]
    refused: str = ""


def _renamed(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "model.safetensors").rename(folder / name)


def _copied(folder: Path) -> None:
    for kind in ("fp16", "bf16"):
        shutil.copyfile(folder / "model.safetensors", folder / f"model.{kind}.safetensors")
    (folder / "model.safetensors").unlink()


def _half(folder: Path) -> None:
    weights = {name: tensor.half() for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.fp16.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").unlink()


def _shards(folder: Path, index: bool = True) -> None:
    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    parts = {f"model-0000{part + 1}-of-00002.safetensors": names[part::2] for part in (0, 1)}
    for file, own in parts.items():
        save_file({name: weights[name] for name in own}, folder / file, metadata={"format": "pt"})
    if index:
        places = {name: file for file, own in parts.items() for name in own}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    (folder / "model.safetensors").unlink()


def _pickled(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def _pointer(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(POINTER)


def _stored_as(kind: torch.dtype) -> Callable[[Path], object]:
    return lambda folder: change_weights(folder, lambda weights: weights.update({QUERY: weights[QUERY].to(kind)}))


def _settings(name: str, **fields: Any) -> Callable[[Path], object]:
    return lambda folder: edit(folder, name, **fields)


def _without_end(folder: Path) -> None:
    for name in ("config.json", "generation_config.json"):
        edit(folder, name, eos_token_id=None)


def _adapter_inside(folder: Path) -> None:
    (folder / "adapter").mkdir()
    (folder / "adapter" / "adapter_config.json").write_text("{}")


def _classifier(**tensors: torch.Tensor) -> Callable[[Path], object]:
    whole = {"weight": torch.zeros(32), "bias": torch.tensor(0.0)}
    return lambda folder: save_file({**whole, **tensors}, folder / "exit_classifier.safetensors")


FOLDERS = (
    Folder("as `save_pretrained` leaves it", lambda folder: None),
    Folder("in shards, with their index", _shards),
    Folder(
        "in shards, without their index",
        lambda folder: _shards(folder, index=False),
        "without model.safetensors.index.json",
    ),
    Folder("pickled weights, `pytorch_model.bin`", _pickled),
    Folder("a variant, `model.fp16.safetensors`", _half),
    Folder("two variants, and no `model.safetensors`", _copied, "holds several variants"),
    Folder("weights of another name, `t5.safetensors`", _renamed("t5.safetensors"), "and no model.safetensors"),
    Folder("weights that are a Git LFS pointer", _pointer("model.safetensors"), "Git LFS pointer"),
    Folder("a `config.json` that is a Git LFS pointer", _pointer("config.json"), "Git LFS pointer"),
    Folder("an adapter beside the weights", _settings("adapter_config.json", peft_type="LORA"), "holds an adapter"),
    Folder("an adapter in a folder inside", _adapter_inside),
    Folder("a weight stored as int8", _stored_as(torch.int8), "stored as I8, integer or quantised"),
    Folder("a weight stored as int64", _stored_as(torch.int64), "stored as I64, integer or quantised"),
    Folder("a weight stored as float8", _stored_as(torch.float8_e4m3fn), "stored as F8_E4M3, integer or quantised"),
    Folder("a weight stored as bfloat16", _stored_as(torch.bfloat16)),
    Folder(
        "quantised weights by `config.json`",
        _settings("config.json", quantization_config={"quant_method": "gptq", "bits": 4}),
        "its weights are quantised (gptq)",
    ),
    Folder("no end token in either configuration", _without_end, "names no eos_token_id"),
    Folder(
        "a ban without an id, `bad_words_ids: [[]]`",
        _settings("generation_config.json", bad_words_ids=[[]]),
        "bad_words_ids",
    ),
    Folder(
        "a number in quotes, `no_repeat_ngram_size`",
        _settings("generation_config.json", no_repeat_ngram_size="3"),
        "no_repeat_ngram_size",
    ),
    Folder(
        "settings that the library refuses, `num_return_sequences: 3`",
        _settings("generation_config.json", num_return_sequences=3),
    ),
    Folder("an exit classifier", _classifier()),
    Folder("an exit classifier with NaN", _classifier(bias=torch.tensor(torch.nan)), "bias holds NaN or infinity"),
    Folder("an exit classifier of another width", _classifier(weight=torch.zeros(31)), "weight has shape [31]"),
    Folder("an exit classifier of whole numbers", _classifier(weight=torch.zeros(32).long()), "is stored as int64"),
)
