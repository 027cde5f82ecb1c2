"""A row of the study: one point on test texts, in figures and counters without any text; and their Parquet file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.figures import unlike
from bild_bench.errors import DataError
from bild_bench.plan import Point
from bild_bench.report.significance import quality_significance
from bild_bench.report.summary import PointSummary, summarise
from study.choose import Chosen
from study.trials import EMBEDDED, NUCLEUS, Trial

if TYPE_CHECKING:
    import pandas as pd

    from bild_bench.measure.intervals import Estimate
    from bild_bench.results import Experiment

COUNTERS = (
    *("generated", "small_calls", "large_calls", "drafted", "discarded", "large_tokens"),
    *("fallbacks", "cap_handovers", "tail_checks", "rollbacks"),
)
Interval = tuple[float | None, float | None, float | None]


@dataclass(frozen=True)
class Row:
    """One point of a trial on its test texts; None where unknown.

    Args:
        rules: what it was chosen by on validation texts, "; " between; empty for points that are shown in any case.
        settings: JSON.
        command: the command that measures this row alone, with $DATA and $MODELS.
        quality, speedup (decoding), total_speedup, each with its 95 % interval over texts.
        difference: of quality to vanilla's, with its paired interval.
        counters: sums over texts and draws, by name, JSON.
    """

    trial: str
    point: str
    method: str
    small: str
    rules: str
    settings: str
    command: str
    texts: int
    draws: int
    metric: str
    signature: str
    quality: float | None
    quality_low: float | None
    quality_high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    total_speedup: float | None
    total_speedup_low: float | None
    total_speedup_high: float | None
    ms_per_token: float | None
    fallback_pct: float | None
    low_confidence_pct: float | None
    rollback_pct: float | None
    large_share_pct: float | None
    average_exit_layer: float | None
    counters: str


def rows_of(trial: Trial, points: Sequence[Point], chosen: Sequence[Chosen], experiment: Experiment) -> list[Row]:
    """The rows of a trial's test experiment, the baseline first.

    Args:
        points: as the experiment has them.
        chosen: by which rules some of them were taken.
    """
    summary = summarise(experiment)
    of_point = dict(iter(experiment.samples.groupby("point_id", sort=False)))
    baseline = of_point[summary.points[0].point_id]
    found = []
    for point, figures in zip(points, summary.points, strict=True):
        rows = of_point[figures.point_id]
        gap = quality_significance(
            experiment.run.metric, experiment.run.seed, baseline, rows, experiment.run.texts_expected
        )
        difference = (None, None, None) if gap is None else (gap.difference, gap.low, gap.high)
        found.append(_row(trial, point, figures, difference, chosen, rows))
    return found


def _row(
    trial: Trial,
    point: Point,
    figures: PointSummary,
    difference: Interval,
    chosen: Sequence[Chosen],
    rows: pd.DataFrame,
) -> Row:
    score = figures.quality
    speed, total = _interval(figures.speedup_decoding), _interval(figures.speedup_total)
    return Row(
        trial=trial.name,
        point=point.label,
        method=point.method.name,
        small=point.small or "",
        rules="; ".join(dict.fromkeys(one.rule for one in chosen if one.point == point)),
        settings=json.dumps(asdict(point.settings)),
        command=command(trial, point),
        texts=figures.texts,
        draws=max(1, trial.draws),
        metric=trial.texts.metric,
        signature="" if score is None else score.signature,
        **_three("quality", (None if score is None else score.value, figures.quality_low, figures.quality_high)),
        **_three("difference", difference),
        **_three("speedup", speed),
        **_three("total_speedup", total),
        **{name: getattr(figures, name) for name in _RATES},
        counters=json.dumps({name: _sum(rows, name) for name in COUNTERS}),
    )


_RATES = (
    *("ms_per_token", "fallback_pct", "low_confidence_pct", "rollback_pct", "large_share_pct", "average_exit_layer"),
)


def command(trial: Trial, point: Point) -> str:
    """What measures this point alone, paired with the large model."""
    words = ["bild-bench", "run", "--task", "custom", "--data", f"$DATA/{trial.texts.test}"]
    words += ["--metric", trial.texts.metric] if trial.texts.metric != "bleu" else []
    words += ["--prefix", trial.texts.prefix] if trial.texts.prefix else []
    words += ["--large", _shown(trial.large)]
    words += ["--small", _shown(_path(trial, point.small))] if point.small is not None else []
    words += ["--mode", point.method.name]
    defaults = point.method.settings()
    for name, value in asdict(point.settings).items():
        if value != getattr(defaults, name):
            words += [f"--{name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value)]
    words += ["--top-p", f"{NUCLEUS:g}", "--draws", str(trial.draws)] if trial.draws else []
    words += ["--session", trial.session] if trial.session != "auto" else []
    words += ["--limit", str(trial.test_limit)] if trial.test_limit is not None else []
    # Double quotes: it is the reader's shell that puts the folders in, and their names may have blanks.
    return " ".join(f'"{word}"' if word.startswith("$") else shlex.quote(word) for word in [*words, "--threads", "1"])


def save(path: Path, rows: Sequence[Row], date: str, environment: Mapping[str, Any]) -> None:
    """One row per point, with the date and the environment (JSON) on each."""
    import pandas as pd

    described = json.dumps(environment, sort_keys=True)
    table = pd.DataFrame([{**asdict(row), "date": date, "environment": described} for row in rows])
    # Columns without a figure on some row must not turn into objects.
    numbers = {field.name: "float64" for field in fields(Row) if field.type == "float | None"}
    path.parent.mkdir(parents=True, exist_ok=True)
    table.astype(numbers).to_parquet(path, index=False)


def load(path: Path) -> tuple[list[Row], str, dict[str, Any]]:
    """The rows of a file, its date and its environment.

    Raises:
        DataError: the file is not there, damaged, or holds something else.
    """
    import pandas as pd

    fix = "run `make study` first, or name a file that it wrote"
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "is not there"
        raise DataError("study results", str(path), problem, fix)
    try:
        table = pd.read_parquet(path)
        other = unlike(table, [*(field.name for field in fields(Row)), "date", "environment"])
        if other is not None:
            raise DataError("study results", str(path), other, fix)
        values = table.astype(object).where(table.notna(), None).to_dict("records")
        rows = [Row(**{field.name: value[field.name] for field in fields(Row)}) for value in values]
        return rows, str(values[0]["date"]), dict(json.loads(values[0]["environment"]))
    except (OSError, ValueError) as error:
        raise DataError("study results", str(path), f"cannot be read ({error})", fix) from error


def _interval(estimate: Estimate | None) -> Interval:
    return (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)


def _three(name: str, interval: Interval) -> dict[str, Any]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), interval, strict=True))


def _sum(rows: pd.DataFrame, name: str) -> int | None:
    """Null where a peer does not tell: never 0."""
    values = rows.loc[rows["status"] == "ok", name]
    return None if values.isna().any() else int(values.sum())


def _path(trial: Trial, small: str) -> str:
    return next(path for path in trial.smalls if Path(path).name == small)


def _shown(model: str) -> str:
    """No path of this machine goes into a row."""
    path = Path(model)
    return f"bild_bench/embedded/{path.name}" if path.parent == EMBEDDED else f"$MODELS/{model}"
