"""A checkpoint on this disk: found or fetched, its JSON checked, and fingerprinted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bild_bench.errors import DataError, UsageError
from bild_bench.hub import fetch
from bild_bench.json_files import read_json_object
from bild_bench.models.choice import ModelChoice
from bild_bench.models.pickled import PICKLED, SMALL_FILES, converted, sha256
from bild_bench.models.weights import (
    has_weights,
    refuse_adapters,
    refuse_pointers,
    refuse_quantised,
    variant_of,
)

_WEIGHTS = ("*.safetensors",)
_CONFIGURATION = ("config.json", "generation_config.json")
_VOCABULARY = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "source.spm",
    "target.spm",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint's folder, with safetensors weights.

    Args:
        name: as asked for: the folder or the hub id.
        path: where configuration and weights lie.
        tokenizer_path: where the tokenizer lies (often the same).
        commit: of the hub repository; None for a folder.
        converted_from: the pickled files that the weights were read from, with their sha256; None where there are none.
        fingerprint: 16 hex digits over configuration, weights and tokenizer.
        variant: of the weights' file name, such as "fp16" of model.fp16.safetensors; None for model.safetensors.
    """

    name: str
    path: Path
    tokenizer_path: Path
    commit: str | None
    converted_from: str | None
    fingerprint: str
    variant: str | None = None

    def file_json(self, name: str) -> dict[str, Any]:
        """A JSON file of the folder; empty where it is absent.

        Raises:
            DataError: the file is not a JSON object.
        """
        return _read_json(self.path / name)


def find_checkpoint(choice: ModelChoice, option: str, announce: Callable[[str], None]) -> Checkpoint:
    """Locate a checkpoint, fetching it from the hub where need be.

    Args:
        choice: folder or hub id.
        option: the flag that named it ("--large"), for errors.
        announce: called with one line before something slow starts.

    Raises:
        DataError: there is no such checkpoint, it has no usable weights, or the hub cannot be reached.
        RunError: pickled weights cannot be converted for lack of a place to write.
    """
    folder, commit = _locate(choice, option, announce)
    refuse_adapters(folder, option, choice.source, announce)
    refuse_pointers(folder.iterdir(), option, choice.source)
    if not (folder / "config.json").is_file():
        raise DataError(
            option,
            choice.source,
            "holds no config.json, so it is not a checkpoint",
            "give a folder saved by save_pretrained",
        )
    for name in _CONFIGURATION:
        # Read here because the library passes over a damaged generation_config.json in silence.
        _read_json(folder / name)
    refuse_quantised(_read_json(folder / "config.json"), option, choice.source)
    origin = None
    if not has_weights(folder):
        if commit is not None:
            folder = fetch(choice.source, commit, "model", [*SMALL_FILES, *PICKLED], announce=announce).path
        folder, origin = converted(choice.source, folder, option, announce)
    variant = variant_of(folder, option, choice.source, announce)
    tokenizer = folder
    if choice.tokenizer is not None:
        other = ModelChoice(choice.tokenizer, choice.tokenizer_revision)
        tokenizer, _ = _locate(other, option, announce, patterns=SMALL_FILES)
        refuse_pointers((tokenizer / name for name in _VOCABULARY), option, choice.tokenizer)
    fingerprint = _fingerprint(sorted(folder.glob("*.safetensors")), folder, tokenizer)
    return Checkpoint(choice.source, folder, tokenizer, commit, origin, fingerprint, variant)


def _locate(
    choice: ModelChoice, option: str, announce: Callable[[str], None], patterns: Iterable[str] = SMALL_FILES + _WEIGHTS
) -> tuple[Path, str | None]:
    if not choice.source.strip():
        raise UsageError(option, choice.source, "is empty", "give a folder or a hub id, or leave it out")
    try:
        folder = Path(choice.source).expanduser()
        is_folder, is_file = folder.is_dir(), folder.is_file()
    except (OSError, RuntimeError) as error:
        raise DataError(option, choice.source, f"is not a usable path ({error})", "check the path") from error
    if is_folder:
        return folder, None
    if is_file:
        raise DataError(option, choice.source, "is a file, not a checkpoint's folder", "give the folder that holds it")
    if choice.source.startswith((".", "/", "~")) or choice.source.count("/") != 1:
        raise DataError(
            option,
            choice.source,
            "no such folder (allowed: a folder, or a hub id like google/flan-t5-small)",
            "check the path",
        )
    try:
        fetched = fetch(choice.source, choice.revision, "model", list(patterns), announce=announce)
    except DataError as error:
        raise DataError(option, error.value, f"no such folder, and as a hub id: {error.problem}", error.fix) from error
    return fetched.path, fetched.commit


def _fingerprint(weights: list[Path], folder: Path, tokenizer: Path) -> str:
    described = [folder / name for name in _CONFIGURATION]
    vocabulary = [tokenizer / name for name in _VOCABULARY]
    files = [path for path in (*described, *vocabulary, *weights) if path.is_file()]
    return hashlib.sha256("".join(sha256(path) for path in files).encode()).hexdigest()[:16]


def _read_json(path: Path) -> dict[str, Any]:
    return read_json_object(path, path.name) if path.is_file() else {}
