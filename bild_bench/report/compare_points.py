"""One point as two experiments measured it: the same texts side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bild_bench.measure.answered import answered_rows
from bild_bench.measure.intervals import Estimate, percentile_interval, ratio_of_sums, resampled_sums
from bild_bench.measure.quality import score
from bild_bench.measure.quality_intervals import paired_quality_difference

if TYPE_CHECKING:
    import pandas as pd

    from bild_bench.measure.intervals import Floats
    from bild_bench.measure.quality import Metric

_LEVEL, _RESAMPLES = 0.95, 2000
# A speed-up pairs rows that the same process decoded on the same machine; see `report.summary`.
_WITH_BASELINE = ["text_id", "draw", "process_id", "machine"]
_TIMES = {"decoding": "decode_seconds", "total": "total_seconds"}


@dataclass(frozen=True)
class Quality:
    """Scores of the first draw over the texts that both decoded, in points, and what B has more than A.

    difference: with its paired bootstrap interval over texts (Koehn 2004).
    """

    a: float
    b: float
    difference: Estimate
    signature: str


@dataclass(frozen=True)
class Speed:
    """One kind of time (decoding or total), over the texts that both decoded; None where unknown.

    a, b: speed-up over the own baseline. speedup_ratio: b over a. time_ratio: B's seconds over A's, more than 1 where B
    is slower; None unless both ran on the same machine.
    """

    a: Estimate | None
    b: Estimate | None
    speedup_ratio: Estimate | None
    time_ratio: Estimate | None


@dataclass(frozen=True, kw_only=True)
class PointPair:
    """A point that both sets have.

    texts: decoded well in both. failed_a, failed_b: rows that failed, on shared texts. identical_pct: the share of
    texts and draws with the same token ids. ms_per_token_a, ms_per_token_b: decode milliseconds per generated token.
    settings: fields of the method's settings that differ, though the label is the same: name -> A's and B's value.
    """

    point: str
    texts: int
    failed_a: int
    failed_b: int
    identical_pct: float
    quality: Quality
    decoding: Speed
    total: Speed
    ms_per_token_a: float | None
    ms_per_token_b: float | None
    settings: Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True)
class Side:
    """A point in one set: as its run describes it, its run's baseline's id (None without one), and the run's rows."""

    point: Mapping[str, Any]
    baseline_id: str | None
    rows: pd.DataFrame


def compare_point(a: Side, b: Side, *, metric: str, same_machine: bool, seed: int) -> PointPair | None:
    """The figures of one point; None where no text was decoded well in both.

    Args:
        a, b: with rows of shared texts only.
        metric: of both runs.
        same_machine: only then are seconds compared.
        seed: of every resampling.

    Raises:
        DataError: a recorded time is negative or not finite.
    """
    both = _ok_with_baseline(a).merge(_ok_with_baseline(b), on=["text_id", "draw"], suffixes=("_a", "_b"))
    if both.empty:
        return None
    known = both
    for end, side in (("a", a), ("b", b)):
        # Both speed-ups rest on the same texts, so that a text without baseline in one counts for neither.
        if side.baseline_id is not None and both[f"decode_seconds_base_{end}"].notna().any():
            known = known[known[f"decode_seconds_base_{end}"].notna()]
    speeds = {name: _speed(both, known, column, same_machine, seed) for name, column in _TIMES.items()}
    ids = zip(both["output_ids_a"], both["output_ids_b"], strict=True)
    return PointPair(
        point=str(a.point["point"]),
        texts=both["text_id"].nunique(),
        failed_a=_failed(a),
        failed_b=_failed(b),
        identical_pct=100 * sum(np.array_equal(one, two) for one, two in ids) / len(both),
        quality=_quality(both, cast("Metric", metric), seed),
        **speeds,
        ms_per_token_a=_ms_per_token(both, "a"),
        ms_per_token_b=_ms_per_token(both, "b"),
        settings=_changed(a.point.get("settings", {}), b.point.get("settings", {})),
    )


def _ok_with_baseline(side: Side) -> pd.DataFrame:
    """The point's good rows, with the seconds of the baseline's row of the same text and process beside them."""
    good = side.rows[side.rows["status"] == "ok"]
    own = good[good["point_id"] == side.point["point_id"]]
    baseline = good[good["point_id"] == side.baseline_id]
    seconds = baseline[[*_WITH_BASELINE, *_TIMES.values()]]
    beside: pd.DataFrame = own.merge(seconds, on=_WITH_BASELINE, how="left", suffixes=("", "_base"))
    return beside


def _failed(side: Side) -> int:
    return int(((side.rows["point_id"] == side.point["point_id"]) & (side.rows["status"] == "error")).sum())


def _quality(both: pd.DataFrame, metric: Metric, seed: int) -> Quality:
    # Draws of one text are no further texts.
    first = both.drop_duplicates("text_id")
    answered = answered_rows(first, "references_a")
    # Where there is no reference at all, both score nothing, and a note says so.
    first = first if answered.empty else answered
    a, b = list(first["output_text_a"]), list(first["output_text_b"])
    references = [[""]] * len(first) if answered.empty else [list(texts) for texts in first["references_a"]]
    before, after = score(metric, a, references), score(metric, b, references)
    difference, low, high = paired_quality_difference(metric, a, b, references, seed=seed)
    return Quality(before.value, after.value, Estimate(difference, low, high), after.signature)


def _speed(both: pd.DataFrame, known: pd.DataFrame, column: str, same_machine: bool, seed: int) -> Speed:
    base_a, own_a, base_b, own_b = columns = [f"{column}_base_a", f"{column}_a", f"{column}_base_b", f"{column}_b"]
    return Speed(
        _ratio(known, base_a, own_a, seed),
        _ratio(known, base_b, own_b, seed),
        _ratio_of_ratios(known, columns, seed),
        _ratio(both, own_b, own_a, seed) if same_machine else None,
    )


def _ratio(rows: pd.DataFrame, top: str, bottom: str, seed: int) -> Estimate | None:
    figures = _by_text(rows, [top, bottom])
    if figures is None:
        return None
    return ratio_of_sums(figures[:, 0], figures[:, 1], seed=seed, resamples=_RESAMPLES, level=_LEVEL)


def _ratio_of_ratios(rows: pd.DataFrame, columns: list[str], seed: int) -> Estimate | None:
    """Speed-up of B over that of A. All four sums share a draw: a text that is slow everywhere widens nothing."""
    figures = _by_text(rows, columns)
    if figures is None:
        return None
    sums = np.vstack([figures.sum(axis=0), resampled_sums(figures, seed=seed, resamples=_RESAMPLES)])
    base_a, own_a, base_b, own_b = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (base_b / own_b) / (base_a / own_a)
    return Estimate(float(ratios[0]), *percentile_interval(ratios[1:], texts=len(figures), level=_LEVEL))


def _by_text(rows: pd.DataFrame, columns: list[str]) -> Floats | None:
    """Each text's sums over its draws, shape (texts, columns); None where one is unknown or nothing can be divided."""
    if rows.empty or rows[columns].isna().any(axis=None):
        return None
    figures = rows.groupby("text_id", sort=False)[columns].sum().to_numpy(dtype=np.float64)
    return None if (figures.sum(axis=0) == 0).any() else figures


def _ms_per_token(both: pd.DataFrame, end: str) -> float | None:
    seconds, generated = both[f"decode_seconds_{end}"], both[f"generated_{end}"]
    if seconds.isna().any() or generated.isna().any() or generated.sum() == 0:
        return None
    return float(1000 * seconds.sum() / generated.sum())


def _changed(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    names = dict.fromkeys([*a, *b])
    return {name: (a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name)}
