"""A small collection for the tests of the HTML page: a baseline and a grid of four points, with traces and pieces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from bild_bench.decoding.records import TraceStep
from bild_bench.report.collect import Collected, collect
from bild_bench.report.common_texts import Member
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


@dataclass(frozen=True)
class WithPieces(Member):
    """A member whose every trace has the pieces of `TRACE`."""

    def samples(self) -> pd.DataFrame:
        """The rows, with the column."""
        rows = super().samples()
        return rows.assign(pieces=[None if trace is None else PIECES for trace in rows["trace"]])


def made_samples(texts: int, source: str = "die Katze") -> dict[str, list[SampleRecord]]:
    """Rows of all points by text id; each point is faster than the one before, and the third writes another text."""
    return {f"t{text:03d}": [_sample(place, text, source) for place in range(len(POINTS))] for text in range(texts)}


def made_collected(directory: Path, *, texts: int = 4, source: str = EVIL, pieces: bool = True) -> Collected:
    """What `collect` finds of them, stored below the directory; text with markup in it is the first text's source."""
    samples = made_samples(texts, source)
    run = made_run(points=POINTS, texts=texts, texts_expected=list(samples), command=f"bild-bench run # {source}")
    stored(directory / "grid", run, samples)
    found = collect([directory])
    return replace(found, groups=tuple(map(_with_pieces, found.groups))) if pieces else found


def _with_pieces(group: Any) -> Any:
    known = {id(member): WithPieces(**vars(member)) for member in group.members}
    entries = tuple(replace(entry, member=known[id(entry.member)]) for entry in group.entries)
    return replace(group, members=tuple(known.values()), entries=entries)


def _sample(place: int, text: int, source: str) -> SampleRecord:
    point = POINTS[place]
    figures = dict(VANILLA_A if place == 0 else BILD_A)
    seconds = float(figures["decode_seconds"]) * (1 + text / 10) / (1 + place / 10)  # type: ignore[arg-type]
    changes: dict[str, Any] = {
        "text_id": f"t{text:03d}",
        "text_index": text,
        "source": f"{text}: {source}",
        "output_text": "the dog sat" if place == 3 else "the cat sat",
        "decode_seconds": seconds,
        "total_seconds": seconds + float(figures["encode_seconds"]),  # type: ignore[arg-type]
        "trace": TRACE
        if place
        else [TraceStep(number, token, "L", True, None, None) for number, token in enumerate([5, 7, 8, 2, 1])],
    }
    return made_sample(point, **{**figures, **changes})
