"""The front so far, below the progress bar, while a sweep runs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from bild_bench.schema import RunRecord, SampleRecord

# Between texts only, and seldom: looking must not take time from measuring.
_SECONDS_BETWEEN_LOOKS, _FIRST_LOOK, _ROWS = 15.0, 8, 8


class Front:
    """Collects finished texts and prints the points that nothing beats so far; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        self._samples: dict[str, list[SampleRecord]] = defaultdict(list)
        self._texts = 0
        self._looked = time.monotonic()

    def observe(self, run: RunRecord, samples: Sequence[SampleRecord]) -> None:
        """One finished text; see `experiment.Observe`."""
        from bild_bench.cli.console import err

        self._texts += 1
        for sample in samples:
            if sample.status == "ok":
                self._samples[sample.point].append(sample)
        due = time.monotonic() - self._looked >= _SECONDS_BETWEEN_LOOKS
        if err.is_terminal and due and self._texts >= _FIRST_LOOK:
            err.print(self._table(run))
            self._looked = time.monotonic()

    def _table(self, run: RunRecord) -> Any:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        from bild_bench.measure.answered import filled
        from bild_bench.measure.quality import score
        from bild_bench.report.pareto import strict_front

        baseline = next((point["point"] for point in run.points if point["role"] == "baseline"), None)
        rows = []
        for label, samples in self._samples.items():
            metric: Any = run.metric
            scored = [sample for sample in samples if filled(sample.references)]
            if not scored:
                continue
            texts = [str(sample.output_text) for sample in scored]
            quality = score(metric, texts, [filled(sample.references) for sample in scored]).value
            rows.append((label, quality, _speedup(self._samples, baseline, label)))
        table = Table("front so far", run.metric, "decoding", box=box.SIMPLE_HEAD, pad_edge=False)
        for index in strict_front([(quality, speed) for _, quality, speed in rows])[-_ROWS:]:
            label, quality, speed = rows[index]
            table.add_row(Text(label), f"{quality:.2f}", f"{speed:.2f}x")
        table.caption = f"{self._texts} of {run.texts} texts, without intervals"
        return table


def _speedup(samples: dict[str, list[SampleRecord]], baseline: str | None, label: str) -> float:
    """Over the texts that one process decoded by both."""
    if baseline is None:
        return 1.0
    base = {_paired_by(s): s.decode_seconds for s in samples[baseline]}
    both = [(base[_paired_by(s)], s.decode_seconds) for s in samples[label] if _paired_by(s) in base]
    return sum(b or 0 for b, _ in both) / max(sum(p or 0 for _, p in both), 1e-12)


def _paired_by(sample: SampleRecord) -> tuple[str, int, str]:
    return sample.text_id, sample.draw, sample.process_id
