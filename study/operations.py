"""FLOPs, memory operations and intensity of the chosen points: `bild-bench profile` on both test sets."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from bild_bench.errors import DataError
from bild_bench.plan import Point
from bild_bench.profiling import profile
from bild_bench.report.profile_table import with_rates
from bild_bench.setup import Request
from study.choose import NO_LOSS, WITHIN_ONE, Chosen
from study.trials import Trial, located, trials

FILE = "study-operations.parquet"
_TEXTS = 100


@dataclass(frozen=True)
class Operations:
    """What a point computes and moves per generated token, decoders and encoders of both models together.

    Args:
        rules: what the point was chosen by; empty for the models alone.
        flops, moved_bytes: per generated token. intensity: FLOPs per byte.
        flops_ratio, bytes_ratio, intensity_ratio: over vanilla's.
        measured_ms, predicted_ms: decoding per token, on texts that did not calibrate the prediction; limit_ms: the
            least that the measured ceilings allow.
    """

    trial: str
    point: str
    small: str
    rules: str
    texts: int
    flops: float
    moved_bytes: float
    intensity: float
    flops_ratio: float
    bytes_ratio: float
    intensity_ratio: float
    measured_ms: float | None
    predicted_ms: float | None
    limit_ms: float | None


def run(given: argparse.Namespace, chosen: Mapping[str, Sequence[Chosen]], path: Path) -> None:
    """Profile every pair of models that a trial compares, and write the rows.

    Raises:
        DataError, RunError: see `profiling.profile`.
    """
    import pandas as pd

    rows = [row for trial in trials() if trial.smalls and trial.candidates for row in _trial(trial, chosen, given)]
    pd.DataFrame([asdict(row) for row in rows]).to_parquet(path, index=False)


def load(path: Path) -> list[Operations]:
    """The rows of a file.

    Raises:
        DataError: the file is not there, damaged, or holds something else.
    """
    import pandas as pd

    try:
        table = pd.read_parquet(path)
        values = table.astype(object).where(table.notna(), None).to_dict("records")
        return [Operations(**{field.name: value[field.name] for field in fields(Operations)}) for value in values]
    except (OSError, ValueError, KeyError) as error:
        fix = "run `make study` first, or name a file that it wrote"
        raise DataError("study results", str(path), f"cannot be read ({error})", fix) from error


def _trial(trial: Trial, chosen: Mapping[str, Sequence[Chosen]], given: argparse.Namespace) -> Iterator[Operations]:
    for small in trial.smalls:
        name = Path(small).name
        rules: dict[Point, list[str]] = {}
        for one in chosen[trial.name]:
            if one.point.small == name and one.rule in (NO_LOSS, WITHIN_ONE):
                rules.setdefault(replace(one.point, small=None), []).append(one.rule)
        request = Request(
            task="custom",
            data=str(given.data / trial.texts.test),
            limit=_TEXTS if given.limit is None else given.limit,
            metric=trial.texts.metric,
            large=located(trial.large, given.models),
            small=located(small, given.models),
            prefix=trial.texts.prefix,
            threads=1,
        )
        found = with_rates(profile(request, list(rules)))
        of_label = {point.label: "; ".join(names) for point, names in rules.items()}
        yield from rows_of(found, trial.name, name, of_label)


def rows_of(found: Mapping[str, Any], trial: str, small: str, rules: Mapping[str, str]) -> Iterator[Operations]:
    """The rows of a profile with rates, the large model alone first.

    Args:
        rules: label of a point -> what it was chosen by.
    """
    base = found["points"][0]["parts"]["all"]
    for point in found["points"]:
        part, timing = point["parts"]["all"], point["timing"]
        yield Operations(
            trial=trial,
            point=point["point"],
            small=small,
            rules=rules.get(point["point"], ""),
            texts=point["texts"],
            flops=part["flops_per_token"],
            moved_bytes=part["bytes_per_token"],
            intensity=part["intensity"],
            flops_ratio=part["flops_per_token"] / base["flops_per_token"],
            bytes_ratio=part["bytes_per_token"] / base["bytes_per_token"],
            intensity_ratio=part["intensity"] / base["intensity"],
            **{f"{name}_ms": timing[f"{name}_ms_per_token"] for name in ("measured", "predicted", "limit")},
        )
