"""Folders that `save_to_disk` of the datasets library wrote: which Arrow files they say they have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bild_bench.errors import DataError
from bild_bench.json_files import read_json_object

_SET, _SPLITS = "state.json", "dataset_dict.json"


@dataclass(frozen=True)
class SavedSet:
    """files: its Arrow files, in order. split: the name that it was saved with; None where it has none."""

    files: tuple[Path, ...]
    split: str | None


def saved_splits(folder: Path) -> list[str] | None:
    """The splits of a saved `DatasetDict`, each a folder inside; None for another kind of folder.

    Raises:
        DataError: the file that lists them is damaged.
    """
    listed = _read(folder / _SPLITS)
    if listed is None:
        return None
    splits = listed.get("splits")
    if not isinstance(splits, list) or not all(isinstance(name, str) and _plain(name) for name in splits):
        raise _damaged(folder / _SPLITS)
    return splits


def saved_set(folder: Path) -> SavedSet | None:
    """A saved `Dataset`; None for another kind of folder.

    Raises:
        DataError: what it says of itself is damaged, or a file of it is not there.
    """
    state = _read(folder / _SET)
    if state is None or "_data_files" not in state:
        return None
    listed, split = state["_data_files"], state.get("_split")
    entries = listed if isinstance(listed, list) and listed else [None]
    named = [entry.get("filename") if isinstance(entry, dict) else None for entry in entries]
    names = [name for name in named if isinstance(name, str) and _plain(name) and name.endswith(".arrow")]
    if len(names) != len(named) or not isinstance(split, str | None):
        raise _damaged(folder / _SET)
    absent = next((name for name in names if not (folder / name).is_file()), None)
    if absent is not None:
        raise DataError("--data", str(folder / absent), "is not there", "copy the whole folder again")
    return SavedSet(tuple(folder / name for name in names), split)


def _read(path: Path) -> dict[str, Any] | None:
    return read_json_object(path, "--data") if path.is_file() else None


def _plain(name: str) -> bool:
    return Path(name).name == name


def _damaged(path: Path) -> DataError:
    return DataError("--data", str(path), "is not what save_to_disk writes", "save the data set again")
