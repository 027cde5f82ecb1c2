"""Pickled weights, read without running anything in them and turned into safetensors once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from bild_bench.errors import DataError, RunError
from bild_bench.models.cache import is_own, own_folder

# What stands beside the weights: configuration and tokenizer.
SMALL_FILES = ("*.json", "*.model", "*.spm", "vocab.*", "*.txt")
PICKLED = ("pytorch_model.bin", "pytorch_model-*.bin")
_UNFINISHED, _DAY = "unfinished-", 86_400.0
_OTHER_PICKLES = (".pt", ".pth", ".ckpt", ".pkl", ".bin")


def converted(source: str, folder: Path, option: str, announce: Callable[[str], None]) -> tuple[Path, str]:
    """The checkpoint with safetensors weights, converted now or before.

    Args:
        source: the checkpoint's name, for errors.
        folder: a checkpoint without safetensors weights.
        option: the flag that named it, for errors.
        announce: called with one line before a conversion.

    Returns:
        The converted checkpoint's folder, and the pickled files that it was read from with their sha256.

    Raises:
        DataError: there are no pickled weights, or they hold anything but plain tensors by name.
        RunError: the cache folder cannot be written.
    """
    files = sorted(path for pattern in PICKLED for path in folder.glob(pattern))
    if not files:
        raise DataError(
            option, source, f"{_found_instead(folder)} (allowed: *.safetensors, or pytorch_model*.bin)", "save it anew"
        )
    origin = ", ".join(f"{path.name} sha256:{sha256(path)}" for path in files)
    # The small files count too: a corrected generation_config.json must not meet an older copy of itself.
    small = [f"{path.name} sha256:{sha256(path)}" for path in _small_files(folder)]
    key = hashlib.sha256("\n".join([origin, *small]).encode()).hexdigest()[:16]
    try:
        target = own_folder("converted") / key
        if not _is_whole(target):
            announce(f"converting {source} to safetensors, once")
            _write(_unpickle(files, option), folder, target, {"source": source, "converted_from": origin})
    except DataError:
        raise
    except Exception as error:
        # Disk, permissions and safetensors each have an error of their own; to the reader they are one.
        raise RunError(
            "BILD_BENCH_CACHE",
            os.environ.get("BILD_BENCH_CACHE"),
            f"the converted checkpoint cannot be written ({type(error).__name__}: {error})",
            "free some space, or set it to another folder",
        ) from error
    return target, origin


def sha256(path: Path) -> str:
    """A file's sha256 in hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _found_instead(folder: Path) -> str:
    others = sorted(path.name for path in folder.iterdir() if path.suffix in _OTHER_PICKLES)
    if others:
        return f"has only pickled weights of another kind ({', '.join(others)}), which are refused"
    return "holds no weights"


def _small_files(folder: Path) -> list[Path]:
    found = {path for pattern in SMALL_FILES for path in folder.glob(pattern)}
    return sorted(path for path in found if path.name != "pytorch_model.bin.index.json")


def _write(tensors: dict[str, Any], folder: Path, target: Path, record: dict[str, Any]) -> None:
    """Write the converted checkpoint beside its place and move it there whole."""
    from safetensors.torch import save_file

    _sweep(target.parent)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=_UNFINISHED, ignore_cleanup_errors=True) as scratch:
        made = Path(scratch) / "checkpoint"
        made.mkdir(mode=0o700)
        for path in _small_files(folder):
            shutil.copyfile(path, made / path.name)
        save_file(tensors, made / "model.safetensors", metadata={"format": "pt"})
        record |= {"bytes": (made / "model.safetensors").stat().st_size}
        (made / "conversion.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
        for path in made.iterdir():
            path.chmod(0o600)
        if not _is_whole(target):
            # What is in the way was cut or is not ours; it goes with the scratch folder.
            with suppress(FileNotFoundError):
                target.rename(Path(scratch) / "replaced")
        try:
            made.rename(target)
        except OSError:
            # Another process may have put the same checkpoint there meanwhile.
            if not _is_whole(target):
                raise


def _is_whole(target: Path) -> bool:
    """Whether a converted checkpoint is all there, and nobody else has put anything into it."""
    try:
        if not all(is_own(path.lstat()) for path in (target, *target.iterdir())):
            return False
        record = json.loads((target / "conversion.json").read_text(encoding="utf-8"))
        return bool(record["bytes"] == (target / "model.safetensors").stat().st_size)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _sweep(folder: Path) -> None:
    """Remove what killed conversions left; one that may still run is let be."""
    for left in folder.glob(f"{_UNFINISHED}*"):
        with suppress(OSError):
            if time.time() - left.lstat().st_mtime > _DAY:
                shutil.rmtree(left)


def _unpickle(files: list[Path], option: str) -> dict[str, Any]:
    import torch

    tensors: dict[str, Any] = {}
    for path in files:
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:
            # A damaged or hostile pickle makes the reader raise almost anything; no narrower class covers it.
            raise _refused(option, path, f"is not a plain file of weights ({type(error).__name__})") from error
        if not isinstance(content, dict) or not all(_is_plain(name, value) for name, value in content.items()):
            raise _refused(option, path, "holds other things than plain tensors by name")
        tensors |= content
    return _without_aliases(tensors)


def _refused(option: str, path: Path, problem: str) -> DataError:
    return DataError(option, str(path), f"{problem} and is refused", "save it as safetensors")


def _is_plain(name: object, value: Any) -> bool:
    import torch

    return (
        isinstance(name, str)
        and isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
    )


def _without_aliases(tensors: dict[str, Any]) -> dict[str, Any]:
    """Tied weights once: safetensors stores no aliases. The library looks for the name with `shared` in it."""
    kept: dict[tuple[object, ...], str] = {}
    for name in sorted(tensors, key=lambda name: ("shared" not in name, len(name), name)):
        tensor = tensors[name]
        kept.setdefault((tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype), name)
    return {name: tensors[name].contiguous() for name in kept.values()}
