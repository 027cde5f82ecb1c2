"""A YAML file that says the same as the flags of a command."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from bild_bench.errors import DataError, unknown_name

_NULL = "tag:yaml.org,2002:null"


class _AsTyped(yaml.SafeLoader):
    """A safe loader that leaves every value the text that it is: YAML takes 3:10 for 190 (base 60), and 010 for 8."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the library's own attribute
        first: [(tag, pattern) for tag, pattern in known if tag == _NULL]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


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
    try:
        content = _AsTyped(path.read_text(encoding="utf-8")).get_single_data()
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise DataError("--config", str(path), f"cannot be read as YAML ({reason})", "correct the file") from error
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
