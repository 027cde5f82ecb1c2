"""What a stored run must look like inside its JSON fields: everything that the reports rest on, and its types.

Parquet says only that these fields are texts. A folder may come from another program, another version or a damaged
disk, and one such folder must not end the report of all the others.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from bild_bench.measure.metrics import is_bleu
from bild_bench.measure.quality import METRICS

# Deeper than anything that is recorded, and shallow enough for every reader.
_MOST_LEVELS = 20

_Count = Annotated[int, Field(ge=0)]
_Seconds = Annotated[float, Field(ge=0)]
_Rows = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,5}$")]
# A threshold may be infinite: --no-rollback.
_Threshold = Annotated[float, Field(allow_inf_nan=True)]
_Setting = str | int | _Threshold | bool | list[str | int | float] | None


class _Part(BaseModel):
    """Fields that are named must fit; others are kept as they are."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class _Point(_Part):
    point_id: str
    point: str
    method: str
    role: Literal["baseline", "point"]
    settings: dict[str, _Setting] = {}
    models: dict[str, str] = {}
    lossless: bool = False
    pruned: dict[str, Any] | None = None


class _Configuration(_Part):
    dtype: str | None = None
    device: str | None = None
    draws: Annotated[int, Field(ge=1)] = 1
    warmup: int | None = None
    source_limit: int | None = None
    target_limit: int | None = None
    sampling: dict[str, Any] | None = None


class _Model(_Part):
    fingerprint: str | None = None
    session: str | None = None
    objective: str | None = None


class _Data(_Part):
    total: _Count | None = None
    expected: _Count | None = None
    empty_references: _Count | None = None
    unknown_source_tokens: _Count | None = None
    texts_with_unknown: _Count | None = None
    source_column: str | None = None
    target_column: str | None = None


class _Environment(_Part):
    device: str | None = None
    threads: int | None = None
    gpu_name: str | None = None
    busy: str | None = None
    load: float | int | None = None
    gpu_throttle_reasons: str | None = None
    late_texts: _Count = 0


class _Costs(_Part):
    encode_seconds: _Seconds
    rows: dict[_Rows, _Seconds]


class _Drift(_Part):
    drift: _Seconds | None = None
    moments: list[dict[str, Any]] = []


class _Record(_Part):
    status: Literal["running", "complete"]
    metric: str
    texts: _Count
    configuration: _Configuration
    points: Annotated[list[_Point], Field(min_length=1)]
    models: dict[str, Any]
    data: _Data
    environment: _Environment
    environment_after: _Environment
    calibration: dict[str, Any]
    texts_expected: list[str]


def parsed(text: str, name: str) -> Any:
    """The value of a JSON field.

    Raises:
        ValueError: it is no JSON, holds NaN, or is nested too deeply.
    """
    try:
        value = json.loads(text, parse_constant=_constant)
    except RecursionError:
        raise ValueError(f"{name} is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{name} is not valid JSON ({error})") from error
    if _deeper(value, _MOST_LEVELS):
        raise ValueError(f"{name} is nested too deeply")
    return value


def check_record(row: dict[str, Any]) -> None:
    """Does a run's record hold what the reports rest on?

    Args:
        row: field -> value, JSON fields parsed.

    Raises:
        ValueError: it does not; the first field at fault is named.
    """
    try:
        record = _Record.model_validate(row)
        for name, model in record.models.items():
            if name.partition(":")[0] in ("large", "small"):
                _Model.model_validate(model)
        _Drift.model_validate(record.calibration)
        for role in ("large", "small"):
            if role in record.calibration:
                _Costs.model_validate(record.calibration[role])
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where or 'a part of it'}: {first['msg']}") from None
    ids = [point.point_id for point in record.points]
    rules = {
        f"metric: not known (allowed: {', '.join(METRICS)})": record.metric in METRICS or is_bleu(record.metric),
        "points: ids repeat": len(set(ids)) == len(ids),
        "points: more than one baseline": sum(point.role == "baseline" for point in record.points) <= 1,
        "texts_expected: ids repeat": len(set(record.texts_expected)) == len(record.texts_expected),
        "texts: not as many as texts_expected": record.texts == len(record.texts_expected),
    }
    problem = next((line for line, holds in rules.items() if not holds), None)
    if problem is not None:
        raise ValueError(problem)


def _constant(name: str) -> float:
    if name == "NaN":
        raise ValueError("NaN is no JSON")
    return float(name)


def _deeper(value: Any, levels: int) -> bool:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return levels == 0 or any(_deeper(item, levels - 1) for item in inner)
    return False
