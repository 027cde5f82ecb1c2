"""Pickled weights: converted once and to the same scores, or refused without running anything in them."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from bild_bench.errors import DataError
from bild_bench.models.checkpoint import Checkpoint, find_checkpoint
from bild_bench.models.choice import ModelChoice, PairChoice
from bild_bench.models.pair import load_pair
from tests import checkpoints as made

SAVERS: dict[str, Callable[[Path], Path]] = {
    "t5 tied": made.save_t5,
    "t5 untied": lambda folder: made.save_t5(folder, gated=True, tied=False),
    "mt5": made.save_mt5,
    "bart": made.save_bart,
    "marian": made.save_marian,
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BILD_BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.save_t5(tmp_path_factory.mktemp("saved") / "t5")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A checkpoint with everything but weights."""
    return Path(shutil.copytree(saved, tmp_path / "pickled", ignore=shutil.ignore_patterns("*.safetensors")))


def find(folder: Path, lines: list[str] | None = None) -> Checkpoint:
    return find_checkpoint(ModelChoice(str(folder)), "--large", (lambda _: None) if lines is None else lines.append)


def problem_with(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        find(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def with_pickle(saved: Path, folder: Path, **options: Any) -> Path:
    """A copy whose weights are pickled as the library did it: tied weights under each of their names."""
    shutil.copytree(saved, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(saved)
    torch.save(model.state_dict(), folder / "pytorch_model.bin", **options)
    return folder


def scores(folder: Path) -> torch.Tensor:
    """The library's own scores of a few tokens."""
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, use_safetensors=True).eval()
    with torch.inference_mode():
        return model(  # type: ignore[no-any-return]
            input_ids=torch.tensor([[5, 6, 7, 1]]), decoder_input_ids=torch.tensor([[0, 9, 4]])
        ).logits


def converted_folders(cache: Path) -> list[str]:
    return sorted(os.listdir(cache / "converted")) if (cache / "converted").is_dir() else []


@pytest.mark.parametrize("kind", sorted(SAVERS))
def test_the_scores_are_the_same_before_and_after(kind: str, tmp_path: Path, cache: Path) -> None:
    saved = SAVERS[kind](tmp_path / "saved")
    found = find(with_pickle(saved, tmp_path / "pickled"))
    assert found.path.is_relative_to(cache)
    assert torch.equal(scores(found.path), scores(saved))


def test_a_head_of_its_own_survives_and_a_tied_one_is_stored_once(tmp_path: Path) -> None:
    names = {}
    for kind in ("t5 tied", "t5 untied"):
        saved = SAVERS[kind](tmp_path / kind)
        names[kind] = set(load_file(find(with_pickle(saved, tmp_path / f"{kind} pickled")).path / "model.safetensors"))
    assert names["t5 untied"] - names["t5 tied"] >= {"lm_head.weight"}
    assert "shared.weight" in names["t5 tied"]
    assert not [name for name in names["t5 tied"] if "embed_tokens" in name or "lm_head" in name]


def test_it_is_converted_once_recorded_and_announced(saved: Path, tmp_path: Path, cache: Path) -> None:
    folder = with_pickle(saved, tmp_path / "pickled")
    digest = hashlib.sha256((folder / "pytorch_model.bin").read_bytes()).hexdigest()
    lines: list[str] = []
    first = find(folder, lines)
    assert lines == [f"converting {folder} to safetensors, once"]
    written = (first.path / "model.safetensors").stat().st_mtime_ns
    assert find(folder, lines) == first
    assert (first.path / "model.safetensors").stat().st_mtime_ns == written
    assert (len(lines), len(converted_folders(cache))) == (1, 1)
    assert first.converted_from == f"pytorch_model.bin sha256:{digest}"
    assert json.loads((first.path / "conversion.json").read_text())["converted_from"] == first.converted_from
    pair = load_pair(PairChoice("p", ModelChoice(str(folder)), None, ""), ["large"], device="cpu")
    assert pair.describe()["large"]["converted_from"] == first.converted_from
    assert pair.describe()["large"]["name"] == str(folder)


def test_safetensors_are_preferred_and_nothing_is_converted(saved: Path, tmp_path: Path, cache: Path) -> None:
    folder = shutil.copytree(saved, tmp_path / "both")
    (folder / "pytorch_model.bin").write_bytes(b"never read")
    assert find(folder).path == folder
    assert converted_folders(cache) == []


def test_a_corrected_configuration_is_not_hidden_by_an_older_conversion(saved: Path, tmp_path: Path) -> None:
    folder = with_pickle(saved, tmp_path / "pickled")
    before = find(folder)
    settings = before.file_json("generation_config.json")
    (folder / "generation_config.json").write_text(json.dumps(settings | {"decoder_start_token_id": 5}))
    assert find(folder).file_json("generation_config.json")["decoder_start_token_id"] == 5
    assert find(folder).fingerprint != before.fingerprint


def test_sharded_and_old_style_pickles_and_matrices_stored_transposed(
    saved: Path, tmp_path: Path, folder: Path
) -> None:
    weights = load_file(saved / "model.safetensors")
    names = sorted(weights)
    turned = {name: weights[name].t().contiguous().t() for name in names[:20] if weights[name].dim() == 2}
    halves = [{**{name: weights[name] for name in names[:20]}, **turned}, {name: weights[name] for name in names[20:]}]
    for number, half in enumerate(halves, 1):
        path = folder / f"pytorch_model-0000{number}-of-00002.bin"
        torch.save(half, path, _use_new_zipfile_serialization=number == 1)
    (folder / "pytorch_model.bin.index.json").write_text("{}")
    found = find(folder)
    assert torch.equal(scores(found.path), scores(saved))
    assert not (found.path / "pytorch_model.bin.index.json").exists()
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.bin"))]
    assert [part.split("sha256:")[1] for part in str(found.converted_from).split(", ")] == digests


def test_the_sentencepiece_models_of_marian_come_along(folder: Path, saved: Path) -> None:
    torch.save(load_file(saved / "model.safetensors"), folder / "pytorch_model.bin")
    for name in ("source.spm", "target.spm", "spiece.model", "vocab.json", "merges.txt"):
        (folder / name).write_text(name)
    converted = find(folder).path
    for name in ("source.spm", "target.spm", "spiece.model", "vocab.json", "merges.txt", "tokenizer.json"):
        assert (converted / name).read_bytes() == (folder / name).read_bytes()


class Runs:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


@pytest.mark.parametrize("form", ["torch", "torch old", "pickle", "pickle 0", "inside a dict of tensors"])
def test_a_malicious_pickle_is_refused_and_never_run(form: str, folder: Path, tmp_path: Path, cache: Path) -> None:
    trap, path = Runs(f"touch {tmp_path}/ran"), folder / "pytorch_model.bin"
    if form.startswith("pickle"):
        path.write_bytes(pickle.dumps({"w": trap}, protocol=0 if form == "pickle 0" else 2))
    else:
        content = {"w": torch.ones(2), "x": trap} if form.startswith("inside") else {"w": trap}
        torch.save(content, path, _use_new_zipfile_serialization=form != "torch old")
    message = problem_with(folder)
    assert not (tmp_path / "ran").exists()
    assert "is not a plain file of weights" in message
    assert str(path) in message
    assert converted_folders(cache) == []
    # The trap is a real one: an open unpickler runs it.
    pickle.loads(pickle.dumps(trap))
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["model.pt", "model.pth", "model.ckpt", "weights.pkl", "other.bin"])
def test_other_pickles_are_refused_by_name_without_a_look(name: str, folder: Path, tmp_path: Path) -> None:
    (folder / name).write_bytes(pickle.dumps(Runs(f"touch {tmp_path}/ran")))
    message = problem_with(folder)
    assert f"has only pickled weights of another kind ({name}), which are refused" in message
    assert "allowed: *.safetensors, or pytorch_model*.bin" in message
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "content",
    [
        {"model": {"w": torch.ones(2)}},
        {"w": torch.ones(2), "epoch": 3},
        {1: torch.ones(2)},
        [torch.ones(2)],
        [("w", torch.ones(2))],
        torch.ones(2, 2),
        None,
        {"w": torch.eye(3).to_sparse()},
        {"w": torch.empty(3, device="meta")},
    ],
    ids=["nested", "a number", "no names", "list", "pairs", "tensor", "nothing", "sparse", "no data"],
)
def test_what_is_no_tensor_by_name_is_refused(content: object, folder: Path, cache: Path) -> None:
    torch.save(content, folder / "pytorch_model.bin")
    assert "holds other things than plain tensors by name and is refused" in problem_with(folder)
    assert converted_folders(cache) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b"PK\x03\x04" + bytes(60),
        b"\x80\x02.",
        b"\x80\x02]e.",
    ],
)
def test_a_damaged_pickle_is_refused(content: bytes, folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(content)
    assert "is not a plain file of weights" in problem_with(folder)


def test_a_pickle_cut_in_the_middle_is_refused(saved: Path, tmp_path: Path) -> None:
    folder = with_pickle(saved, tmp_path / "pickled")
    content = (folder / "pytorch_model.bin").read_bytes()
    (folder / "pytorch_model.bin").write_bytes(content[: len(content) // 2])
    assert "is not a plain file of weights" in problem_with(folder)
