"""A small collection for the tests of the HTML page: a baseline and a grid of four points, with traces and pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bild_bench.decoding.records import TraceStep
from bild_bench.report.collect import Collected, collect
from bild_bench.schema import SampleRecord
from tests.made_results import BASELINE, BILD_A, VANILLA_A, made_run, made_sample, stored

EVIL = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"

# "the" drafted, "dog" drafted and cut with what followed it, "cat" by the large model, "sat" drafted again.
TRACE = [
    TraceStep(0, 5, "S", True, 0.9, 0.1),
    TraceStep(1, 6, "S", False, 0.6, 3.5),
    TraceStep(2, 8, "S", False, 0.7, float("inf")),
    TraceStep(1, 7, "L", True, None, 0.2),
    TraceStep(2, 8, "S", True, 0.8, None),
]
PIECES = ["the", " dog", " sat", " cat", " sat"]
VANILLA_TRACE = [TraceStep(place, token, "L", True, None, None) for place, token in enumerate([5, 7, 8])]
VANILLA_PIECES = ["the", " cat", " sat"]

POINTS = [BASELINE] + [
    {
        "point_id": f"{number:016d}",
        "point": f"bild fb={fb} rb={rb}",
        "method": "bild",
        "role": "point",
        "settings": {"alpha_fb": fb, "alpha_rb": rb},
    }
    for number, (fb, rb) in enumerate([(0.3, 1.0), (0.3, 2.0), (0.6, 1.0), (0.6, 2.0)], start=1)
]


ORACLE = {"point_id": "o" * 16, "point": "oracle below=0.1", "method": "oracle", "role": "point", "settings": {}}


def made_samples(
    texts: int, source: str = "die Katze", pieces: bool = True, points: list[dict[str, Any]] = POINTS
) -> dict[str, list[SampleRecord]]:
    """Rows of all points by text id; each point is faster than the one before, and the third writes another text."""
    return {
        f"t{text:03d}": [_sample(point, place, text, source, pieces) for place, point in enumerate(points)]
        for text in range(texts)
    }


def made_collected(
    directory: Path,
    *,
    texts: int = 4,
    source: str = EVIL,
    pieces: bool = True,
    oracle: bool = False,
    rename: str | None = None,
) -> Collected:
    """What `collect` finds of them, stored below the directory; text with markup in it is the first text's source.

    Args:
        oracle: whether the oracle is one more point.
        rename: another name for the last point.
    """
    points = [*POINTS, ORACLE] if oracle else list(POINTS)
    if rename is not None:
        points[-1] = {**points[-1], "point": rename}
    samples = made_samples(texts, source, pieces, points)
    run = made_run(points=points, texts=texts, texts_expected=list(samples), command=f"bild-bench run # {source}")
    stored(directory / "grid", run, samples)
    return collect([directory])


def _sample(point: dict[str, Any], place: int, text: int, source: str, pieces: bool) -> SampleRecord:
    figures = dict(VANILLA_A if place == 0 else BILD_A)
    seconds = float(figures["decode_seconds"]) * (1 + text / 10) / (1 + place / 10)  # type: ignore[arg-type]
    changes: dict[str, Any] = {
        "text_id": f"t{text:03d}",
        "text_index": text,
        "source": f"{text}: {source}",
        "output_text": "the dog sat" if place == 3 else "the cat sat",
        "decode_seconds": seconds,
        "total_seconds": seconds + float(figures["encode_seconds"]),  # type: ignore[arg-type]
        "trace": TRACE if place else VANILLA_TRACE,
        "pieces": (PIECES if place else VANILLA_PIECES) if pieces else None,
    }
    return made_sample(point, **{**figures, **changes})
