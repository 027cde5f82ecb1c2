"""Complete experiments on disk for the tests of the report, from the hand-worked records.

Over texts a and b the point has a decoding speed-up of 4.5 / 1.5 = 3, a total one of 6 / 3 = 2, and a ROUGE-L of
(100 + 57.14) / 2 = 78.57 against vanilla's 100.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

from bild_bench import directories, results
from bild_bench.report.collect import Group, collect
from bild_bench.schema import SampleRecord
from tests.made_results import BASELINE, BILD_A, BILD_B, VANILLA_B, made_run, made_sample, stored

CALIBRATION = {
    "large": {"encode_seconds": 0.05, "rows": {"1": 0.1, "16": 0.25}},
    "small": {"encode_seconds": 0.01, "rows": {"1": 0.01}},
}
MODELS = {"prefix": "", "large": {"fingerprint": "L1", "session": "fast"}, "small": {"fingerprint": "S1"}}


def experiment(
    directory: Path, samples: dict[str, list[SampleRecord]] | None = None, *, finish: bool = True, **changes: Any
) -> Path:
    """An experiment of the hand-worked records, complete unless told otherwise."""
    held = {} if samples is None else {"texts": len(samples), "texts_expected": list(samples)}
    run = made_run(**{"models": MODELS, "calibration": CALIBRATION, **held, **changes})
    stored(directory, run, samples)
    if finish:
        with directories.lock(directory):
            results.complete(directory, run)
    return directory


def point(name: str, **settings: float) -> dict[str, Any]:
    """A described point of a run."""
    return {
        "point_id": f"{crc32(name.encode()):016x}",
        "point": f"bild {name}",
        "method": "bild",
        "role": "point",
        "settings": settings,
    }


def grid(directory: Path, cells: Sequence[tuple[float, float, float]], **changes: Any) -> Path:
    """An experiment of several points: (alpha_fb, alpha_rb, seconds per text a takes as a share of 0.3)."""
    points = [point(f"fb={fb:g} rb={rb:g}", alpha_fb=fb, alpha_rb=rb) for fb, rb, _ in cells]
    texts: dict[str, list[SampleRecord]] = {"a": [made_sample(BASELINE)], "b": [made_sample(BASELINE, **VANILLA_B)]}
    for described, (_, _, share) in zip(points, cells, strict=True):
        a = made_sample(described, **BILD_A)
        texts["a"].append(replace(a, decode_seconds=0.3 * share, total_seconds=0.2 + 0.3 * share))
        texts["b"].append(made_sample(described, **BILD_B))
    return experiment(directory, texts, points=[BASELINE, *points], **changes)


def only_group(directory: Path) -> Group:
    """The one group below a directory."""
    collected = collect([directory])
    assert collected.damaged == ()
    [group] = collected.groups
    return group
