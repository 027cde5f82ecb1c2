"""Where a split's files are: a folder laid out like the hub's, a flat folder, a saved data set, or one file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bild_bench.data_forms import FORMS, any_of, form_of, stem_of, way_out
from bild_bench.errors import DataError
from bild_bench.parts import incomplete_parts
from bild_bench.saved_sets import saved_set, saved_splits
from bild_bench.tasks import Task

Layout = Literal["hub", "folder", "file"]


@dataclass(frozen=True)
class Located:
    """The files of one split, in order, all of one format.

    Args:
        files: one or more files.
        split: the split's name, as the user gave it or as the file's name tells.
        layout: "hub" (as the task's files lie on the hub), "folder" (flat) or "file".
    """

    files: tuple[Path, ...]
    split: str
    layout: Layout


def locate(path: Path, task: Task, split: str | None) -> Located:
    """The files of a split.

    Args:
        path: a hub-like folder (the repository's root or the one inside), a flat folder with `<split>.<extension>` or
            `<split>-*.parquet`, a folder of `save_to_disk`, or one file.
        task: says how the hub's files lie.
        split: None is the task's own split; for one file it only names what the file holds.

    Raises:
        DataError: no such path, no such split, an unknown extension, parts missing, or no permission.
    """
    try:
        found = _locate(path, task, split)
        for file in found.files:
            _check_readable(file)
    except OSError as error:
        raise DataError("--data", str(path), f"cannot be read ({error.strerror})", "check its permissions") from error
    missing = incomplete_parts(file.name for file in found.files)
    if missing is not None:
        raise DataError("--data", str(path), f"some of its parts are not there: {missing}", "copy all parts")
    return found


def _locate(path: Path, task: Task, split: str | None) -> Located:
    if path.is_dir():
        saved = _locate_saved(path, task, split)
        return _locate_in_folder(path, task, task.split if split is None else split) if saved is None else saved
    if not path.exists():
        raise _no_such_path(path, task)
    if not path.is_file():
        # Read twice, and looked at before; a pipe without a writer would be waited for without end.
        raise DataError(
            "--data", str(path), "is not a regular file (a pipe or a device)", "write its content to a file"
        )
    if not form_of(path):
        raise DataError("--data", str(path), "unknown kind of file", way_out(path))
    return Located((path,), _split_of_file(path) if split is None else split, "file")


def _locate_saved(folder: Path, task: Task, split: str | None) -> Located | None:
    """What `save_to_disk` of the datasets library wrote; None where it is nothing of that kind."""
    splits = saved_splits(folder)
    if splits is not None:
        name = task.split if split is None else split
        inside = task.splits.get(name, name)
        if inside not in splits:
            raise _no_such_split(folder, name, set(splits))
        folder, split = folder / inside, name
    saved = saved_set(folder)
    if saved is None:
        if splits is not None:
            raise DataError("--data", str(folder), "holds no saved data set", "copy the whole folder again")
        return None
    holds = saved.split if saved.split is not None else "all"
    if split is not None and splits is None and saved.split is not None and task.splits.get(split, split) != holds:
        raise _no_such_split(folder, split, {holds})
    return Located(saved.files, holds if split is None else split, "folder")


def _locate_in_folder(folder: Path, task: Task, split: str) -> Located:
    for pattern in _hub_patterns(folder, task):
        groups = _by_split(folder, pattern)
        if groups:
            name = task.splits.get(split, split)
            if name not in groups:
                given = {in_files: user for user, in_files in task.splits.items()}
                raise _no_such_split(folder, split, {given.get(found, found) for found in groups})
            return Located(tuple(groups[name]), split, "hub")
    files = sorted(file for file in folder.iterdir() if form_of(file) and file.is_file())
    if not files:
        layouts = f"<split>{any_of(FORMS)}" + ("" if task.files is None else f", or {task.files}")
        raise DataError(
            "--data", str(folder), f"the folder holds no data files of task {task.name}", f"expected {layouts}"
        )
    chosen = [file for file in files if stem_of(file) == split]
    if len(chosen) > 1:
        names = ", ".join(file.name for file in chosen)
        raise DataError(
            "--data", str(folder), f"several files for split {split}: {names}", "give one of them as --data"
        )
    if not chosen:
        chosen = [file for file in files if file.name.startswith(f"{split}-") and file.suffix.lower() == ".parquet"]
    if not chosen:
        raise _no_such_split(folder, split, {re.sub(r"-\d+.*$", "", stem_of(file)) for file in files})
    return Located(tuple(chosen), split, "folder")


def _hub_patterns(folder: Path, task: Task) -> list[str]:
    """The task's glob as seen from the repository's root, and from one level inside where the folder's name says so."""
    if task.files is None:
        return []
    first, _, rest = task.files.partition("/")
    return [task.files, rest] if rest and folder.resolve().name == first else [task.files]


def _by_split(folder: Path, pattern: str) -> dict[str, list[Path]]:
    """Files that match the pattern, by what stands in place of {split}."""
    parts = re.split(r"(\{split\}|\*)", pattern)
    named = {"{split}": "([^/]+?)", "*": "[^/]*"}
    expression = re.compile("".join(named.get(part, re.escape(part)) for part in parts))
    groups: dict[str, list[Path]] = {}
    for file in sorted(folder.glob(pattern.replace("{split}", "*"))):
        match = expression.fullmatch(file.relative_to(folder).as_posix())
        if match is not None and file.is_file():
            groups.setdefault(match[1], []).append(file)
    return groups


def _split_of_file(path: Path) -> str:
    """What a single file's name says about its split; "all" where it says nothing, since no split may be made up."""
    match = re.match(r"(train|validation|valid|val|dev|test)(?![a-z])", path.stem.lower())
    if match is None:
        return "all"
    return "validation" if match[1] in ("valid", "val", "dev") else match[1]


def _check_readable(file: Path) -> None:
    with file.open("rb") as stream:
        if not stream.read(1):
            raise DataError("--data", str(file), "the file is empty", "check how it was written")


def _no_such_path(path: Path, task: Task) -> DataError:
    if task.hub_id is None:
        fix = "give a file or a folder that exists"
    else:
        fix = f"give a file or folder that exists, or --data hub for {task.hub_id} (a hub name is not a path)"
    return DataError("--data", str(path), "there is no such file or folder", fix)


def _no_such_split(folder: Path, split: str, found: set[str]) -> DataError:
    return DataError("--split", split, f"not in {folder} (found: {', '.join(sorted(found))})", "choose one of these")
