"""YAML files that people write: read whole, with one line for whatever is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from bild_bench.errors import DataError
from bild_bench.printable import shown

_MERGE = "tag:yaml.org,2002:merge"
_NULL = "tag:yaml.org,2002:null"
# The longest that anybody would write by hand is a hundredth of it.
_MOST_BYTES = 1_000_000


class _Refused(Exception):
    """A form of YAML that is not read; the message is what is wrong."""


class _Once(yaml.SafeLoader):
    """A safe loader that refuses a key given twice, of which YAML's own would keep the last in silence.

    Merged mappings are refused too: a few lines of them stand for gigabytes.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if key.tag == _MERGE:
                raise _Refused(f"line {line} merges mappings (<<), which is not read")
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in lines:
                first = lines[key.tag, key.value]
                raise _Refused(f"the key {shown(key.value, 100)} is given twice (lines {first} and {line})")
            lines[key.tag, key.value] = line
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


class _AsTyped(_Once):
    """The same, leaving every value the text that it is: YAML takes 3:10 for 190 (base 60), and 010 for 8."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the library's own attribute
        first: [(tag, pattern) for tag, pattern in known if tag == _NULL]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_yaml(path: Path, field: str, fix: str, *, as_typed: bool = False) -> Any:
    """What the file holds.

    Args:
        field: what led to the file, for errors.
        fix: what to do about a file that cannot be read.
        as_typed: leave numbers, dates and booleans as text.

    Raises:
        DataError: no file that can be read, too large, not UTF-8, not YAML, a key given twice, or nested too deeply.
    """
    loader = _AsTyped if as_typed else _Once
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            problem = f"is {size:,} bytes long (allowed: {_MOST_BYTES:,})"
            raise DataError(field, str(path), problem, "give a file of settings")
        return loader(path.read_text(encoding="utf-8")).get_single_data()
    except RecursionError:
        raise DataError(field, str(path), "is nested too deeply", fix) from None
    except _Refused as error:
        raise DataError(field, str(path), str(error), fix) from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DataError(field, str(path), f"cannot be read as YAML ({error})", fix) from error
