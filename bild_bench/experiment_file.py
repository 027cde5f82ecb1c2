"""A YAML file that says the same as the flags of a command."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bild_bench.errors import DataError, unknown_name


def read_experiment_file(path: Path, known: Iterable[str]) -> dict[str, Any]:
    """Options by name, as they would be given on the command line.

    Names may be written with dashes or underscores; lists become comma-separated values.

    Args:
        path: the file.
        known: the command's option names, with underscores.

    Raises:
        DataError: the file is missing, or no mapping of options.
        UsageError: an option that the command does not have.
    """
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise DataError("--config", str(path), f"cannot be read as YAML ({reason})", "correct the file") from error
    if not isinstance(content, dict):
        raise DataError(
            "--config", str(path), "must be a mapping of options", "write lines such as alpha-fb: 0.3:0.9:0.1"
        )
    names = set(known)
    options = {}
    for key, value in content.items():
        name = str(key).replace("-", "_")
        if name not in names:
            raise unknown_name(f"--config {path.name}", str(key), names)
        options[name] = _as_option(path, str(key), value)
    return options


def _as_option(path: Path, key: str, value: object) -> object:
    if isinstance(value, list):
        if not all(isinstance(item, str | int | float) and not isinstance(item, bool) for item in value):
            raise DataError(f"--config {path.name}: {key}", value, "must be a list of numbers or names", "correct it")
        return ",".join(str(item) for item in value)
    if value is None or isinstance(value, dict):
        raise DataError(
            f"--config {path.name}: {key}", value, "must be a value or a list", "correct it, or take it out"
        )
    return value
