"""Which weights lie in a checkpoint's folder, and what is there that must not be passed over in silence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import safetensors

from bild_bench.errors import DataError

_EXIT_CLASSIFIER = "exit_classifier.safetensors"
_WHOLE = ("model.safetensors", "model.safetensors.index.json")
_VARIANT = re.compile(r"model\.([^.]+?)(?:-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.([^.]+)\.json")
_FLOATS = ("F64", "F32", "F16", "BF16")
_POINTER = b"version https://git-lfs"


def refuse_pointers(paths: Iterable[Path], option: str, name: str) -> None:
    """Check that files are themselves, and not what Git leaves where its large files were not fetched.

    Raises:
        DataError: one is a pointer; it is named.
    """
    for path in paths:
        if _is_pointer(path):
            problem = f"{path.name} is a Git LFS pointer, not the file itself"
            raise DataError(option, name, problem, "fetch the files: git lfs pull, in the folder's repository")


def _is_pointer(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size < 1024 and path.read_bytes().startswith(_POINTER)
    except OSError:
        # Whoever needs the file says what is wrong with it.
        return False


def refuse_adapters(folder: Path, option: str, name: str, announce: Callable[[str], None]) -> None:
    """Check that no adapter belongs to a checkpoint; one in a folder of its own inside is told, and not used.

    Raises:
        DataError: one lies beside the weights, or alone.
    """
    fix = "give a model into which it was merged (peft: merge_and_unload, then save_pretrained)"
    for file in ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"):
        if (folder / file).is_file():
            raise DataError(option, name, f"holds an adapter ({file}), which would not be applied", fix)
    for path in sorted(folder.glob("*/adapter_config.json")):
        announce(f"{option}: {name}: the adapter in {path.parent.name} is not used; {fix}")


def refuse_quantised(config: dict[str, Any], option: str, name: str) -> None:
    """Check that config.json speaks of no quantised weights.

    Raises:
        DataError: it does.
    """
    found = config.get("quantization_config")
    if found is None:
        return
    method = found.get("quant_method") if isinstance(found, dict) else found
    problem = f"its weights are quantised ({method}), which is not supported"
    raise DataError(option, name, problem, "give a checkpoint in float32, float16 or bfloat16")


def has_weights(folder: Path) -> bool:
    """Whether there are safetensors weights of a model, of whatever name."""
    return any(path.name != _EXIT_CLASSIFIER for path in folder.glob("*.safetensors"))


def variant_of(folder: Path, option: str, name: str, announce: Callable[[str], None]) -> str | None:
    """The variant to read, such as "fp16" of model.fp16.safetensors; None where the usual names are there.

    Raises:
        DataError: there are several variants, or only weights of names that mean nothing.
    """
    if any((folder / file).is_file() for file in _WHOLE):
        return None
    files = sorted(path.name for path in folder.iterdir() if path.suffix == ".safetensors" or "index" in path.name)
    found = {match[1] or match[2] for file in files if (match := _VARIANT.fullmatch(file))}
    if len(found) == 1:
        announce(f"{option}: {name}: its weights are there as variant {next(iter(found))} only, which is read")
        return found.pop()
    weights = [file for file in files if file.endswith(".safetensors") and file != _EXIT_CLASSIFIER]
    listed = ", ".join(weights[:4]) + (", …" if len(weights) > 4 else "")
    if found:
        problem, fix = f"holds several variants ({listed})", "copy one of them to model.safetensors"
    elif any("-of-" in file for file in weights):
        problem, fix = f"holds {listed} without model.safetensors.index.json", "fetch the index too"
    else:
        problem, fix = f"holds {listed}, and no model.safetensors", "rename the weights, if they are this model's"
    raise DataError(option, name, problem, fix)


def not_floating(folder: Path, model: Any) -> str | None:
    """What is wrong with weights that are stored in whole numbers or in less than 16 bits, in words."""
    parameters = {name for name, _ in model.named_parameters()}
    for name, kind in _stored(folder):
        narrow = kind.startswith("F") and kind not in _FLOATS
        # Whole numbers that are no weight, such as a table of positions, are as they should be.
        if narrow or (kind not in _FLOATS and _is_of(name, parameters)):
            return f"weight {name} is stored as {kind}, integer or quantised (allowed: {', '.join(_FLOATS)})"
    return None


def _is_of(name: str, parameters: Iterable[str]) -> bool:
    """Whether a stored name is a parameter's; either may have a beginning more than the other."""
    return any(name == own or name.endswith(f".{own}") or own.endswith(f".{name}") for own in parameters)


def _stored(folder: Path) -> Iterator[tuple[str, str]]:
    """Names and kinds of all tensors in a model's weights."""
    for path in sorted(folder.glob("*.safetensors")):
        if path.name == _EXIT_CLASSIFIER:
            continue
        with safetensors.safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118  (an open file, not a mapping)
                yield name, file.get_slice(name).get_dtype()
