"""Small experiments for the tests: three points over the embedded texts or over eight of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bild_bench.decoding.records import Counters, Decoded
from bild_bench.measure.timing import Outcome
from bild_bench.plan import Point, make_point, with_baseline
from bild_bench.setup import Request

POINTS = with_baseline([make_point("bild", {}), make_point("bild", {"alpha_fb": 0.9})])
TEXTS = [{"source": f"Satz {number}.", "target": f"Sentence {number}."} for number in range(8)]


def request(texts: Path | None, out: Path, **fields: Any) -> Request:
    """One thread and no warm-up; three of the embedded texts where no file of texts is given."""
    asked: dict[str, Any] = {"task": "iwslt17", "limit": 3}
    if texts is not None:
        asked = {"task": "custom", "data": str(texts)}
    return Request(**(asked | {"aligned": False, "threads": 1, "warmup": 0, "out": out} | fields))


def figures_by_hand(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Replaces the decoding of a text by figures made by hand; returns where the points' order of each text goes."""
    seen: list[list[str]] = []

    def time_text(pair: Any, source: Any, points: list[Point], *limits: Any) -> list[Outcome]:
        seen.append([point.label for point in points])
        decoded = Decoded((7, 1), Counters(generated=2, drafted=3, discarded=1, large_tokens=0), False, ())
        return [Outcome(point, place, decoded, 0.5, 0.25 + place) for place, point in enumerate(points)]

    monkeypatch.setattr("bild_bench.passes.time_text", time_text)
    monkeypatch.setattr("bild_bench.watch.calibrate", lambda *_: {"made": "up"})
    return seen
