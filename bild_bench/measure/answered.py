"""Which texts can be scored: a null or empty reference is no answer, and no output can be wrong against it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def filled(references: Iterable[str | None]) -> list[str]:
    """The references that are not empty; a text of several may lack some."""
    return [text for text in references if text is not None and text.strip()]


def answered_rows(rows: pd.DataFrame, column: str = "references") -> pd.DataFrame:
    """The rows whose text has a reference, and of their references those that are not empty.

    Args:
        column: holds each row's references.
    """
    kept = rows.copy()
    kept[column] = [filled(references) for references in rows[column]]
    # Of booleans even where there are no rows: an empty list of another type would choose columns.
    found: pd.DataFrame = kept[np.array([bool(references) for references in kept[column]], dtype=bool)]
    return found


def empty_outputs(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that succeeded and have no text."""
    empty = [status == "ok" and not str(text).strip() for status, text in rows[["status", "output_text"]].values]
    found: pd.DataFrame = rows[np.array(empty, dtype=bool)]
    return found
