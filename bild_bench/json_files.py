"""Small JSON files that describe something: read whole, with one line for whatever is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bild_bench.errors import DataError


def read_json_object(path: Path, field: str) -> dict[str, Any]:
    """The object that a file holds.

    Args:
        field: the option that led to the file, for errors.

    Raises:
        DataError: not UTF-8, not JSON, nested too deeply, half a character (a lone surrogate), or no object.
    """
    fix = "restore the file"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(content, ensure_ascii=False).encode()
    except RecursionError:
        raise DataError(field, str(path), "is nested too deeply", fix) from None
    except UnicodeEncodeError:
        raise DataError(field, str(path), "holds half a character (a lone surrogate)", fix) from None
    except ValueError as error:
        raise DataError(field, str(path), f"is not valid JSON ({error})", fix) from error
    if not isinstance(content, dict):
        raise DataError(field, str(path), f"holds a {type(content).__name__}, no object", fix)
    return content
