"""Figures of the methods that leave a decoder early, or that claim the baseline's own tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def average_exit_layer(ok: pd.DataFrame) -> float | None:
    """The mean over tokens of the layer, from 1, at which each was decided; None where some row does not tell.

    Args:
        ok: a point's rows.
    """
    if ok.empty or ok["exit_layers"].isna().any():
        return None
    tokens = np.sum(np.stack(list(ok["exit_layers"])), axis=0)
    decided = int(tokens.sum())
    return None if decided == 0 else float(tokens @ np.arange(1, len(tokens) + 1) / decided)


def divergence(point: Mapping[str, Any], ok: pd.DataFrame, baseline: pd.DataFrame) -> tuple[int | None, float | None]:
    """How many texts differ from the baseline's, and the largest margin among them, in logits.

    Args:
        point: as in the run's record; only where it is "lossless" is anything claimed.
        ok: its rows.
        baseline: the baseline's rows; without them nothing was compared.
    """
    if not point.get("lossless", False) or ok.empty or baseline.empty:
        return None, None
    diverged = ok[ok["diverged_at"].notna()]
    margin = None if diverged.empty else float(diverged["divergence_margin"].max())
    return int(diverged["text_id"].nunique()), margin
