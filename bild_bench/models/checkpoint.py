"""A checkpoint on this disk: found or fetched, pickled weights turned into safetensors once, and fingerprinted."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bild_bench.errors import DataError
from bild_bench.hub import fetch
from bild_bench.models.choice import ModelChoice

_SMALL_FILES = ("*.json", "*.model", "vocab.*", "*.txt")
_WEIGHTS = ("*.safetensors",)
_PICKLED = ("pytorch_model.bin", "pytorch_model-*.bin")
_OTHER_PICKLES = (".pt", ".pth", ".ckpt", ".pkl", ".bin")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint's folder, with safetensors weights.

    Args:
        name: as asked for: the folder or the hub id.
        path: where configuration and weights lie.
        tokenizer_path: where the tokenizer lies (often the same).
        commit: of the hub repository; None for a folder.
        converted_from: the pickled file that the weights were read from, and its sha256; None where there was none.
        fingerprint: 16 hex digits over configuration, weights and tokenizer.
    """

    name: str
    path: Path
    tokenizer_path: Path
    commit: str | None
    converted_from: str | None
    fingerprint: str

    def file_json(self, name: str) -> dict[str, Any]:
        """A JSON file of the folder; empty where it is absent.

        Raises:
            DataError: the file is not JSON.
        """
        return _read_json(self.path / name)


def cache_folder() -> Path:
    """Where converted checkpoints are kept: $BILD_BENCH_CACHE, or ~/.cache/bild-bench."""
    return Path(os.environ.get("BILD_BENCH_CACHE", Path.home() / ".cache" / "bild-bench"))


def find_checkpoint(choice: ModelChoice, option: str, announce: Callable[[str], None]) -> Checkpoint:
    """Locate a checkpoint, fetching it from the hub where need be.

    Args:
        choice: folder or hub id.
        option: the flag that named it ("--large"), for errors.
        announce: called with one line before something slow starts.

    Raises:
        DataError: there is no such checkpoint, it has no usable weights, or the hub cannot be reached.
    """
    folder, commit = _locate(choice, option, announce)
    if not (folder / "config.json").is_file():
        raise DataError(
            option,
            choice.source,
            "holds no config.json, so it is no checkpoint",
            "give a folder saved by save_pretrained",
        )
    converted = None
    if not any(folder.glob("*.safetensors")):
        folder, converted = _without_pickles(choice, folder, option, announce)
    tokenizer = folder
    if choice.tokenizer is not None:
        other = ModelChoice(choice.tokenizer, choice.tokenizer_revision)
        tokenizer, _ = _locate(other, option, announce, patterns=_SMALL_FILES)
    fingerprint = _fingerprint(sorted(folder.glob("*.safetensors")), folder, tokenizer)
    return Checkpoint(choice.source, folder, tokenizer, commit, converted, fingerprint)


def _locate(
    choice: ModelChoice, option: str, announce: Callable[[str], None], patterns: Iterable[str] = _SMALL_FILES + _WEIGHTS
) -> tuple[Path, str | None]:
    folder = Path(choice.source).expanduser()
    if folder.is_dir():
        return folder, None
    if folder.is_file():
        raise DataError(option, choice.source, "is a file, not a checkpoint's folder", "give the folder that holds it")
    if choice.source.startswith((".", "/", "~")) or choice.source.count("/") != 1:
        raise DataError(
            option,
            choice.source,
            "no such folder (allowed: a folder, or a hub id like google/flan-t5-small)",
            "check the path",
        )
    fetched = fetch(choice.source, choice.revision, "model", list(patterns), announce=announce)
    return fetched.path, fetched.commit


def _without_pickles(
    choice: ModelChoice, folder: Path, option: str, announce: Callable[[str], None]
) -> tuple[Path, str]:
    """The folder of the converted checkpoint and what it was converted from."""
    if not Path(choice.source).expanduser().is_dir():
        fetch(choice.source, choice.revision, "model", [*_SMALL_FILES, *_PICKLED], announce=announce)
    files = sorted(path for pattern in _PICKLED for path in folder.glob(pattern))
    if not files:
        others = sorted(path.name for path in folder.iterdir() if path.suffix in _OTHER_PICKLES)
        found = (
            f"has only pickled weights of another kind ({', '.join(others)}), which are refused"
            if others
            else "holds no weights"
        )
        raise DataError(
            option, choice.source, f"{found} (allowed: *.safetensors, or pytorch_model*.bin)", "save it as safetensors"
        )
    digest = _sha256(files)
    target = cache_folder() / "converted" / digest[:16]
    if not (target / "conversion.json").is_file():
        announce(f"converting {choice.source} to safetensors, once")
        _convert(
            files, folder, target, {"source": choice.source, "files": [f.name for f in files], "sha256": digest}, option
        )
    return target, f"{files[0].name} sha256:{digest}"


def _convert(files: list[Path], folder: Path, target: Path, record: dict[str, Any], option: str) -> None:
    """Write the converted checkpoint beside its place and move it there whole."""
    from safetensors.torch import save_file

    tensors = _unpickle(files, option)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / "checkpoint"
        made.mkdir()
        for pattern in _SMALL_FILES:
            for path in folder.glob(pattern):
                if path.name != "pytorch_model.bin.index.json":
                    shutil.copyfile(path, made / path.name)
        save_file(tensors, made / "model.safetensors", metadata={"format": "pt"})
        (made / "conversion.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
        made.rename(target)


def _unpickle(files: list[Path], option: str) -> dict[str, Any]:
    import torch

    tensors: dict[str, Any] = {}
    for path in files:
        try:
            tensors |= torch.load(path, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, TypeError, ValueError) as error:
            raise DataError(
                option,
                path.name,
                f"is not a plain file of weights ({type(error).__name__}) and is refused",
                "save it as safetensors",
            ) from error
    if not all(isinstance(value, torch.Tensor) for value in tensors.values()):
        raise DataError(
            option, files[0].name, "holds other things than tensors and is refused", "save it as safetensors"
        )
    return _without_aliases(tensors)


def _without_aliases(tensors: dict[str, Any]) -> dict[str, Any]:
    """Tied weights once: safetensors stores no aliases. The library looks for the name with `shared` in it."""
    kept: dict[tuple[int, tuple[int, ...]], str] = {}
    for name in sorted(tensors, key=lambda name: ("shared" not in name, len(name), name)):
        kept.setdefault((tensors[name].data_ptr(), tuple(tensors[name].shape)), name)
    return {name: tensors[name].contiguous() for name in kept.values()}


def _fingerprint(weights: list[Path], folder: Path, tokenizer: Path) -> str:
    described = [folder / "config.json", folder / "generation_config.json"]
    vocabulary = [
        tokenizer / name
        for name in ("tokenizer.json", "tokenizer_config.json", "spiece.model", "source.spm", "vocab.json")
    ]
    return _sha256([path for path in (*described, *vocabulary, *weights) if path.is_file()])[:16]


def _sha256(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(str(path), path.name, f"is not valid JSON ({error})", "restore the file") from error
    return dict(content)
