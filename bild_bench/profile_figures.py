"""From calls and times to a profile's figures: operations by part, and predicted against measured seconds.

Sums are integers over all texts; seconds are of the held-out texts alone. Rates are derived in the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bild_bench.measure.call_costs import (
    CallCosts,
    EncoderCosts,
    fit_encoder,
    fit_loop,
    predict_decoding,
)
from bild_bench.measure.call_record import Recorded
from bild_bench.measure.ceilings import Ceilings
from bild_bench.measure.moments import MOST_DRIFT
from bild_bench.measure.operations import Shape, Work, decoder_call, encoding
from bild_bench.plan import Point

_ALONE = {"vanilla": "large", "small": "small"}


@dataclass(frozen=True)
class Bench:
    """What was measured apart from the texts: shapes, ceilings and single calls, by role.

    drift: how many times slower calls were at the slowest moment than at the fastest; None where it is not known.
    """

    shapes: Mapping[str, Shape]
    ceilings: Ceilings
    costs: Mapping[str, CallCosts]
    drift: float | None = None

    @property
    def steady(self) -> bool:
        """Whether anything can be predicted from the calls."""
        return self.drift is None or self.drift <= MOST_DRIFT


@dataclass(frozen=True)
class Taken:
    """One text decoded by one point.

    Args:
        point: which.
        generated: tokens, the end token included.
        source: source tokens.
        encode_seconds, decode_seconds: medians over repeats; encoders of all models that the point uses.
        small_calls, large_calls: the method's own counters.
        calls: every call, as `call_record` saw it.
        held_out: the text is predicted, and calibrates nothing.
    """

    point: Point
    generated: int
    source: int
    encode_seconds: float
    decode_seconds: float
    small_calls: int
    large_calls: int
    calls: tuple[Recorded, ...]
    held_out: bool = False


def figures(bench: Bench, points: Sequence[Point], taken: Sequence[Taken]) -> dict[str, Any]:
    """Ceilings, models, calibration, points and the roofline's marks, as JSON values."""
    by_point = {point: [one for one in taken if one.point == point] for point in points}
    alone = {_ALONE[point.method.name]: texts for point, texts in by_point.items() if point.method.name in _ALONE}
    loops = {role: fit_loop(bench.costs[role], role, _calibrating(texts)) for role, texts in alone.items()}
    encoders = {role: _fit_encoder(bench, role, texts) for role, texts in alone.items()}
    rows = [
        {
            "point": point.label,
            "method": point.method.name,
            "settings": asdict(point.settings),
            "texts": len(texts),
            "generated": sum(one.generated for one in texts),
            "parts": _parts(bench, point, texts),
            "timing": _timing(bench, point, [one for one in texts if one.held_out], loops, encoders),
        }
        for point, texts in by_point.items()
    ]
    return {
        "ceilings": asdict(bench.ceilings),
        "models": {role: asdict(shape) for role, shape in bench.shapes.items()},
        "calibration": {
            "calls": {role: asdict(cost) for role, cost in loops.items()},
            "encoders": {role: asdict(cost) for role, cost in encoders.items()},
            "drift": bench.drift,
        },
        "points": rows,
        "marks": _marks(bench, by_point, alone),
    }


def model_of(point: Point, role: str) -> str:
    """Whose weights a role's calls read: an early exit's small model is the large one's lower layers."""
    return role if role in point.models else "large"


def _parts(bench: Bench, point: Point, texts: Sequence[Taken]) -> dict[str, dict[str, int]]:
    """Operations of each model's calls and encoder, of decoding, of encoding, and in all."""
    parts: dict[str, dict[str, int]] = {}
    works: dict[str, Work] = {}
    for role in ("small", "large"):
        calls = [call for one in texts for call in one.calls if call.role == role]
        if calls:
            works[role] = _sum(work_of(bench.shapes[model_of(point, role)], call) for call in calls)
            counted = sum(one.small_calls if role == "small" else one.large_calls for one in texts)
            parts[role] = {"calls": counted, "rows": sum(call.rows for call in calls), **_operations(works[role])}
    decoding = _sum(works.values())
    encoders = {role: _sum(encoding(bench.shapes[role], one.source) for one in texts) for role in point.models}
    parts["decoding"] = _operations(decoding)
    parts |= {f"{role} encoder": _operations(work) for role, work in encoders.items()}
    parts["encoders"] = _operations(_sum(encoders.values()))
    parts["all"] = _operations(decoding + _sum(encoders.values()))
    return parts


def _timing(
    bench: Bench,
    point: Point,
    texts: Sequence[Taken],
    loops: Mapping[str, CallCosts],
    encoders: Mapping[str, EncoderCosts],
) -> dict[str, Any]:
    """Measured, predicted and least possible seconds of the held-out texts."""
    calls = [call for one in texts for call in one.calls]
    limit = 0.0
    for call in calls:
        model = model_of(point, call.role)
        work = work_of(bench.shapes[model], call)
        limit += bench.ceilings.seconds(model, work.flops, work.bytes)
    encode = sum(
        encoders[role].seconds(encoding(bench.shapes[role], one.source).flops) for one in texts for role in point.models
    )
    predicted = None
    # Calls that are parts of a pass were not calibrated.
    if point.method.opens == "plain" and bench.steady:
        own = {role: loops[role] for role in point.models}
        predicted = sum(predict_decoding(own, one.calls) for one in texts)
    return {
        "texts": len(texts),
        "generated": sum(one.generated for one in texts),
        "measured_decode_seconds": sum(one.decode_seconds for one in texts),
        "predicted_decode_seconds": predicted,
        "limit_decode_seconds": limit,
        "measured_encode_seconds": sum(one.encode_seconds for one in texts),
        "predicted_encode_seconds": encode if bench.steady else None,
    }


def _marks(
    bench: Bench, by_point: Mapping[Point, Sequence[Taken]], alone: Mapping[str, Sequence[Taken]]
) -> list[dict[str, Any]]:
    """Points of the roofline plot: FLOPs, bytes and calibrated seconds of each kind of call."""
    marks = []
    for point, texts in by_point.items():
        name = _ALONE.get(point.method.name)
        role = "large" if name is None else name
        calls = [call for one in texts for call in one.calls if call.role == role]
        if point.method.opens == "plain" and calls:
            work = _sum(work_of(bench.shapes[role], call) for call in calls)
            rows = sum(call.rows for call in calls) / len(calls)
            label = f"{role}, 1 row" if name is not None else f"{role}, {rows:.1f} rows: {point.label}"
            marks.append(_mark(label, role, "decoder", work, sum(bench.costs[role].of(call) for call in calls)))
    for role, texts in alone.items():
        work = _sum(encoding(bench.shapes[role], one.source) for one in texts)
        marks.append(_mark(f"{role} encoder", role, "encoder", work, sum(one.encode_seconds for one in texts)))
    return marks


def _mark(label: str, role: str, part: str, work: Work, seconds: float) -> dict[str, Any]:
    return {"label": label, "model": role, "part": part, "flops": work.flops, "bytes": work.bytes, "seconds": seconds}


def work_of(shape: Shape, call: Recorded) -> Work:
    """The work of one call, all its passes."""
    return _sum(decoder_call(shape, one) for one in call.passes)


def _sum(works: Iterable[Work]) -> Work:
    return sum(works, Work())


def _operations(work: Work) -> dict[str, int]:
    return {**asdict(work), "bytes": work.bytes}


def _calibrating(texts: Sequence[Taken]) -> list[tuple[tuple[Recorded, ...], float]]:
    return [(one.calls, one.decode_seconds) for one in texts if not one.held_out]


def _fit_encoder(bench: Bench, role: str, texts: Sequence[Taken]) -> EncoderCosts:
    own = [one for one in texts if not one.held_out]
    flops = [encoding(bench.shapes[role], one.source).flops for one in own]
    return fit_encoder(flops, [one.encode_seconds for one in own])
