"""A YAML file that says the same as the flags of a command."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bild_bench.errors import DataError, unknown_name
from bild_bench.yaml_files import read_yaml


def read_experiment_file(path: Path, known: Iterable[str]) -> dict[str, str]:
    """Options by name, with the text that would be given on the command line ("true" for a flag without a value).

    Names may be written with dashes or underscores; lists become comma-separated values.

    Args:
        path: the file.
        known: the command's option names, with dashes.

    Raises:
        DataError: the file is missing, or no mapping of options.
        UsageError: an option that the command does not have.
    """
    content = read_yaml(path, "--config", "correct the file", as_typed=True)
    if not isinstance(content, dict):
        raise DataError(
            "--config", str(path), "must be a mapping of options", "write lines such as alpha-fb: 0.3:0.9:0.1"
        )
    names = set(known)
    options: dict[str, str] = {}
    for key, value in content.items():
        name = str(key).replace("_", "-")
        if name not in names:
            raise unknown_name(f"--config {path.name}", str(key), names)
        if name in options:
            raise DataError(f"--config {path.name}: {key}", value, "is given twice", "leave one out")
        options[name] = _as_option(path, str(key), value)
    return options


def _as_option(path: Path, key: str, value: object) -> str:
    if isinstance(value, list):
        if not value or not all(isinstance(item, str) for item in value):
            raise DataError(f"--config {path.name}: {key}", value, "must be a list of numbers or names", "correct it")
        return ",".join(value)
    if not isinstance(value, str):
        raise DataError(
            f"--config {path.name}: {key}", value, "must be a value or a list", "correct it, or take it out"
        )
    return value
