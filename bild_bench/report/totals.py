"""Sums and ratios in which unknown stays unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def total(values: pd.Series) -> float | None:
    """The sum, or None where there is nothing to sum or something in it is unknown."""
    return None if values.empty or values.isna().any() else float(values.sum())


def count(values: pd.Series) -> int | None:
    """The sum of whole numbers; None as in `total`."""
    summed = total(values)
    return None if summed is None else int(summed)


def ratio(numerator: float | None, denominator: float | None, scale: float = 1) -> float | None:
    """None where either is unknown or the denominator is 0."""
    if numerator is None or denominator is None or denominator == 0:
        return None
    return scale * numerator / denominator
