"""Drops points that cannot reach the front any more, while an experiment runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from bild_bench.measure.answered import filled
from bild_bench.measure.intervals import ratio_of_sums
from bild_bench.measure.quality import Metric
from bild_bench.measure.quality_intervals import paired_quality_difference
from bild_bench.schema import RunRecord, SampleRecord

# Fewer texts cannot tell points apart; looking after every text would make chance findings more likely.
_FIRST_LOOK, _LOOK_EVERY = 16, 8
# Stricter than the table's 95 %: each look compares many points.
_LEVEL, _RESAMPLES = 0.99, 500


@dataclass(frozen=True)
class Beaten:
    """A point that another one beats in speed and in quality, each with confidence.

    Args:
        by: the other point's label.
        texts: how many texts had been decoded then.
    """

    by: str
    texts: int


class Pruner:
    """Collects samples and says which points are beyond reach of the front.

    Args:
        run: for the metric, the points and the seed. The baseline is never dropped.
    """

    def __init__(self, run: RunRecord) -> None:
        self._metric, self._seed = cast("Metric", run.metric), run.seed
        self._points = {point["point_id"]: point["point"] for point in run.points if point["role"] != "baseline"}
        self._samples: dict[str, dict[tuple[str, str], SampleRecord]] = {point_id: {} for point_id in self._points}
        self._texts = 0

    def add(self, samples: Iterable[SampleRecord]) -> None:
        """One finished text."""
        self._texts += 1
        for sample in samples:
            # Further draws of a text are no further texts; counted as such they would make the intervals too narrow.
            if sample.status == "ok" and sample.point_id in self._samples and sample.draw == 0:
                self._samples[sample.point_id][sample.text_id, sample.process_id] = sample

    def beaten(self, running: Sequence[str]) -> dict[str, Beaten]:
        """Point id -> what beats it, of the points still running; empty where it is not the time to look."""
        if self._texts < _FIRST_LOOK or (self._texts - _FIRST_LOOK) % _LOOK_EVERY:
            return {}
        points = [point_id for point_id in running if point_id in self._points]
        found: dict[str, Beaten] = {}
        for point in points:
            rival = next((other for other in points if other != point and self._beats(other, point)), None)
            if rival is not None:
                found[point] = Beaten(self._points[rival], self._texts)
        return found

    def _beats(self, rival: str, point: str) -> bool:
        # By text and process: rows that were kept from an earlier experiment must not be paired with those of this one.
        shared = sorted(self._samples[rival].keys() & self._samples[point].keys())
        if len(shared) < _FIRST_LOOK:
            return False
        ours, theirs = ([self._samples[which][key] for key in shared] for which in (point, rival))
        seconds = [np.array([sample.decode_seconds for sample in rows], dtype=np.float64) for rows in (ours, theirs)]
        faster = ratio_of_sums(*seconds, seed=self._seed, resamples=_RESAMPLES, level=_LEVEL)
        if not faster.low > 1:
            return False
        scored = [(one, other) for one, other in zip(ours, theirs, strict=True) if filled(one.references)]
        if len(scored) < _FIRST_LOOK:
            return False
        _, low, _ = paired_quality_difference(
            self._metric,
            [str(one.output_text) for one, _ in scored],
            [str(other.output_text) for _, other in scored],
            [filled(one.references) for one, _ in scored],
            seed=self._seed,
            resamples=_RESAMPLES,
            level=_LEVEL,
        )
        return low > 0
