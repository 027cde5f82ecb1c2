"""A profile's figures for people and programs: rates a generated token, predicted against measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bild_bench.measure.moments import MOST_DRIFT, NOT_PREDICTABLE

UNKNOWN = "-"
# The least that a prediction must be worth: the mark that docs/PROFILE.md holds it to.
TOLERANCE_PCT = 15.0
# Method of one model alone -> that model.
_ALONE = {"vanilla": "large", "small": "small"}

# Part of a point -> how deep it is set in below the point's own row, which is all of it.
_PARTS = {"all": 0, "decoding": 1, "small": 2, "large": 2, "encoders": 1}
OPERATION_HEADINGS = ("a generated token", "calls", "rows/call", "MFLOP", "MB", "FLOP/byte")
TIME_HEADINGS = ("decoding, ms/token", "measured", "predicted", "error", "limit", "over limit")


def with_rates(profile: Mapping[str, Any]) -> dict[str, Any]:
    """The profile with rates beside the integers that they are derived from; None where a denominator is 0."""
    points = []
    for point in profile["points"]:
        tokens = point["generated"]
        parts = {name: {**part, **_part_rates(part, tokens)} for name, part in point["parts"].items()}
        points.append({**point, "parts": parts, "timing": {**point["timing"], **_time_rates(point["timing"])}})
    marks = [
        {**mark, "intensity": _ratio(mark["flops"], mark["bytes"]), "achieved": _ratio(mark["flops"], mark["seconds"])}
        for mark in profile["marks"]
    ]
    return {**profile, "points": points, "marks": marks}


def operation_rows(profile: Mapping[str, Any]) -> list[list[str]]:
    """Cells under `OPERATION_HEADINGS`, of a profile with rates: each point in all, then its parts."""
    rows = []
    for point in profile["points"]:
        for name, depth in _PARTS.items():
            part = point["parts"].get(name)
            if part is not None:
                label = point["point"] if name == "all" else "  " * depth + name
                rows.append([label, *_operation_cells(part)])
    return rows


def _operation_cells(part: Mapping[str, Any]) -> list[str]:
    return [
        _figure(part.get("calls_per_token"), 2),
        _figure(part.get("rows_per_call"), 2),
        _figure(part["flops_per_token"], 2, 1e-6),
        _figure(part["bytes_per_token"], 2, 1e-6),
        _figure(part["intensity"], 2),
    ]


def time_rows(profile: Mapping[str, Any]) -> list[list[str]]:
    """Cells under `TIME_HEADINGS`, of a profile with rates."""
    rows = []
    for point in profile["points"]:
        timing = point["timing"]
        error = timing["decode_error_pct"]
        cells = [_figure(timing[f"{name}_ms_per_token"], 2) for name in ("measured", "predicted")]
        cells += [UNKNOWN if error is None else f"{error:+.1f} %"]
        cells += [_figure(timing["limit_ms_per_token"], 2), _figure(timing["over_limit"], 1, unit="x")]
        rows.append([point["point"], *cells])
    return rows


def remarks(profile: Mapping[str, Any]) -> list[str]:
    """What the figures rest on, and what must be known before they are believed; one line each."""
    ceilings, environment = profile["ceilings"], profile["environment"]
    resident = ", ".join(f"{role} {value / 1e9:.1f}" for role, value in ceilings["resident"].items())
    held, calibrating = profile["held_out_texts"], profile["calibration_texts"]
    alone = [point for point in profile["points"] if point["method"] in _ALONE]
    lines = [
        f"{profile['texts']} texts of {profile['data_label']} ({profile['split']}), pair {profile['pair']['label']}, "
        f"{environment['device']}, {profile['dtype']}, threads: {environment['threads']}",
        f"ceilings: {ceilings['bandwidth'] / 1e9:.1f} GB/s from memory, {ceilings['flops'] / 1e9:.1f} GFLOP/s; "
        f"GB/s of arrays as large as the decoders' weights: {resident}",
        f"times: decoding of {held} texts, predicted from single calls and from the models alone on {calibrating} "
        f"others; medians of {profile['repeats']}",
        *(_encoder_line(point) for point in alone),
    ]
    drift = profile["calibration"].get("drift")
    if drift is not None and drift > MOST_DRIFT:
        lines.append(f"warning: {NOT_PREDICTABLE} (up to {drift:.1f} times as long at some moments as at others)")
    if environment["busy"] is not None:
        lines.append(f"warning: {environment['busy']}")
    beyond = [point["point"] for point in profile["points"] if _misses(point["timing"]["decode_error_pct"])]
    if beyond:
        lines.append(f"warning: predicted decoding is more than {TOLERANCE_PCT:g} % off for {', '.join(beyond)}")
    beyond = [_ALONE[point["method"]] for point in alone if _misses(point["timing"]["encode_error_pct"])]
    if beyond:
        whose = " and the ".join(beyond)
        lines.append(f"warning: predicted encoding is more than {TOLERANCE_PCT:g} % off for the {whose} model")
    beaten = [point["point"] for point in profile["points"] if _beats(point["timing"]["over_limit"])]
    if beaten:
        lines.append(
            f"warning: faster than the limit, which is impossible: {', '.join(beaten)}. The measured ceilings are too "
            "low: the machine was busy, or the weights came from a nearer cache; measure again when it is idle"
        )
    errors: Sequence[str] = profile["errors"]
    if errors:
        lines.append(f"warning: {len(errors)} decodings failed and are left out (the first: {errors[0]})")
    return lines


def _encoder_line(point: Mapping[str, Any]) -> str:
    timing = point["timing"]
    measured, predicted = (timing[f"{name}_encode_ms_per_text"] for name in ("measured", "predicted"))
    model = _ALONE[point["method"]]
    line = f"{model} encoder: {measured:.2f} ms per text"
    if predicted is None:
        return line
    return f"{line}, predicted {predicted:.2f} ({timing['encode_error_pct']:+.1f} %)"


def _misses(error: float | None) -> bool:
    return error is not None and abs(error) > TOLERANCE_PCT


def _beats(over_limit: float | None) -> bool:
    # As it is shown: what the table rounds to 1.0x needs no explanation.
    return over_limit is not None and round(over_limit, 1) < 1


def _part_rates(part: Mapping[str, int], tokens: int) -> dict[str, float | None]:
    rates = {f"{name}_per_token": _ratio(part[name], tokens) for name in ("flops", "bytes")}
    rates["intensity"] = _ratio(part["flops"], part["bytes"])
    if "calls" in part:
        rates |= {
            "calls_per_token": _ratio(part["calls"], tokens),
            "rows_per_call": _ratio(part["rows"], part["calls"]),
        }
    return rates


def _time_rates(timing: Mapping[str, Any]) -> dict[str, float | None]:
    rates: dict[str, float | None] = {}
    for name in ("measured", "predicted", "limit"):
        rates[f"{name}_ms_per_token"] = _ratio(timing[f"{name}_decode_seconds"], timing["generated"], 1000)
    for name in ("measured", "predicted"):
        rates[f"{name}_encode_ms_per_text"] = _ratio(timing[f"{name}_encode_seconds"], timing["texts"], 1000)
    rates["over_limit"] = _ratio(timing["measured_decode_seconds"], timing["limit_decode_seconds"])
    for part in ("decode", "encode"):
        ratio = _ratio(timing[f"predicted_{part}_seconds"], timing[f"measured_{part}_seconds"], 100)
        rates[f"{part}_error_pct"] = None if ratio is None else ratio - 100
    return rates


def _ratio(numerator: float | None, denominator: float, scale: float = 1) -> float | None:
    return None if numerator is None or denominator == 0 else scale * numerator / denominator


def _figure(value: float | None, digits: int, scale: float = 1, unit: str = "") -> str:
    return UNKNOWN if value is None else f"{value * scale:.{digits}f}{unit}"
