"""Tasks: one YAML file says where a data set is, which columns it has, its length limits and its metric."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Any

from bild_bench.errors import DataError, UsageError, unknown_name
from bild_bench.printable import shown

METRICS = ("bleu", "rougeL", "rougeLsum")
KINDS = ("translation", "summarization")

_PACKAGE = Path(__file__).resolve().parent
# A wheel carries the files inside the package; a checkout keeps them where people look for them.
_TASK_FOLDERS = (_PACKAGE / "_tasks", _PACKAGE.parent / "tasks")


@dataclass(frozen=True)
class Task:
    """What a task file says; the fields are those of the YAML file, all of them required there.

    Args:
        name, title: the name on the command line and one line for people.
        kind: "translation" or "summarization".
        hub_id, revision, config, files: the data set on the hub (None: not there): its repository, branch or commit,
            configuration, and the glob of a split's files from the repository's root, with `{split}` for the split.
        splits: the name a user gives -> the name in the files.
        split: the split that is read unless another one is asked for.
        source_column, target_column: dotted for nested columns ("translation.de").
        source_limit, target_limit: tokens at most, the end token included.
        metric: "bleu", "rougeL" or "rougeLsum".
        embedded: file, source and target: file name and columns of the sample that comes with the package, or None.
        licence_note: what the data set's owners say.
        sizes: rows of each split.
        sources: field -> where its value comes from.
    """

    name: str
    title: str
    kind: str
    hub_id: str | None
    revision: str | None
    config: str | None
    files: str | None
    splits: dict[str, str]
    split: str
    source_column: str
    target_column: str
    source_limit: int
    target_limit: int
    metric: str
    embedded: dict[str, str] | None
    licence_note: str
    sizes: dict[str, int]
    sources: dict[str, str]


_TEXT, _OPTIONAL_TEXT = (str,), (str, NoneType)
_TYPES: dict[str, tuple[type, ...]] = {
    "hub_id": _OPTIONAL_TEXT,
    "revision": _OPTIONAL_TEXT,
    "config": _OPTIONAL_TEXT,
    "files": _OPTIONAL_TEXT,
    "embedded": (dict, NoneType),
    "splits": (dict,),
    "sizes": (dict,),
    "sources": (dict,),
    "source_limit": (int,),
    "target_limit": (int,),
}
_VALUE_TYPES: dict[str, type] = {"splits": str, "sizes": int, "sources": str, "embedded": str}
_TYPE_NAMES: dict[type, str] = {str: "text", int: "a whole number", dict: "a mapping", NoneType: "null"}


def task_names() -> list[str]:
    """The names of the tasks that come with the package, sorted.

    Raises:
        DataError: the installation has no task files.
    """
    return sorted(path.stem for path in _task_folder().glob("*.yaml"))


def load_task(name: str, **overrides: str | int | None) -> Task:
    """Read and check a task.

    Args:
        name: one of `task_names()`, or the path of a .yaml file with the same fields.
        overrides: values of fields to use in place of the file's (`source_column`, `target_column`, `metric`, …);
            None means: not given.

    Raises:
        UsageError: no such task, or an override that is not allowed.
        DataError: a task file that cannot be read or has a missing, unknown or wrong field.
    """
    path = _task_path(name)
    raw = _read_yaml(path)
    _check_names(path, raw)
    problem = _first_problem(raw)
    if problem is not None:
        field, what = problem
        raise DataError(f"{path.name}: {field}", raw[field], what, "correct the task file")
    given = {field: value for field, value in overrides.items() if value is not None}
    raw = {**raw, **given}
    problem = _first_problem(raw)
    if problem is not None:
        field, what = problem
        raise UsageError(f"--{field.replace('_', '-')}", raw[field], what, f"leave it out to use the task's ({name})")
    return Task(**raw)


def _task_folder() -> Path:
    for folder in _TASK_FOLDERS:
        if folder.is_dir():
            return folder
    raise DataError("tasks", str(_TASK_FOLDERS[0]), "the installation has no task files", "install bild-bench again")


def _task_path(name: str) -> Path:
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise UsageError("--task", name, "there is no such task file", f"or name one of: {', '.join(task_names())}")
        return path
    if name not in task_names():
        raise unknown_name("--task", name, task_names())
    return _task_folder() / f"{name}.yaml"


def _read_yaml(path: Path) -> dict[str, Any]:
    from bild_bench.yaml_files import read_yaml

    raw = read_yaml(path, "task file", "correct the task file")
    if not isinstance(raw, dict):
        raise DataError("task file", str(path), "must be a mapping of fields", "start from a task file of the package")
    return raw


def _check_names(path: Path, raw: dict[str, Any]) -> None:
    known = [field.name for field in fields(Task)]
    for name in raw:
        if name not in known:
            raise DataError(
                f"{path.name}: {name}", raw[name], f"unknown field (allowed: {', '.join(known)})", "take it out"
            )
    for name in known:
        if name not in raw:
            raise DataError(f"{path.name}: {name}", None, "this field is missing", "add it to the task file")


def _first_problem(raw: dict[str, Any]) -> tuple[str, str] | None:
    """The first field that is not what it must be, and what it must be."""
    for name, value in raw.items():
        wrong = _type_problem(name, value)
        if wrong is not None:
            return name, wrong
    sample = raw["embedded"]
    whole = sample is None or sample.keys() == {"file", "source", "target"}
    inner = sample is None or Path(sample.get("file", "")).name == sample.get("file", "")
    rules = (
        ("kind", raw["kind"] in KINDS, f"must be one of {', '.join(KINDS)}"),
        ("metric", raw["metric"] in METRICS, f"must be one of {', '.join(METRICS)}"),
        ("split", raw["split"] in raw["splits"], f"must be one of the splits: {', '.join(raw['splits'])}"),
        ("source_limit", raw["source_limit"] >= 1, "must be at least 1 token"),
        ("target_limit", raw["target_limit"] >= 1, "must be at least 1 token"),
        ("embedded", whole, "must have the fields file, source and target, and no other"),
        ("embedded", inner, "must name a file without a folder"),
        ("files", raw["files"] is None or "{split}" in raw["files"], "must contain {split}"),
        ("files", raw["files"] is not None or raw["hub_id"] is None, "must be given when hub_id is"),
        ("revision", raw["revision"] is not None or raw["hub_id"] is None, "must be given when hub_id is"),
    )
    return next(((name, problem) for name, holds, problem in rules if not holds), None)


def _type_problem(name: str, value: object) -> str | None:
    allowed = _TYPES.get(name, _TEXT)
    # YAML reads yes and no as booleans, and a boolean passes for an int in Python.
    if isinstance(value, bool) or not isinstance(value, allowed):
        return f"must be {' or '.join(_TYPE_NAMES[kind] for kind in allowed)}"
    if value == "":
        return "must not be empty"
    if isinstance(value, dict):
        inner = _VALUE_TYPES[name]
        for key, item in value.items():
            if not isinstance(key, str) or isinstance(item, bool) or not isinstance(item, inner):
                return f"must map text to {_TYPE_NAMES[inner]}, not {shown(key)} to {shown(item)}"
    return None
