"""The report of some results: figures, answers and warnings, as a data frame, JSON, Markdown, a page and plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bild_bench.checks import folder as named_folder
from bild_bench.errors import DataError, UsageError
from bild_bench.parquet import writing
from bild_bench.report.collect import Collected, Group, collect
from bild_bench.whole_files import file_name, write_whole

if TYPE_CHECKING:
    import pandas as pd

    from bild_bench.report.export import Findings


@dataclass(frozen=True, repr=False)
class Report:
    """What is known of all experiments below some directories.

    Args:
        collected: the experiments, in groups of what may be compared, and what was damaged.
        max_drops, min_speedup: the questions that are answered; see `answers.answers`.
    """

    collected: Collected
    max_drops: tuple[float, ...] = (0.0, 1.0)
    min_speedup: float | None = None

    @property
    def groups(self) -> tuple[Group, ...]:
        """Sets of experiments that may be compared, by task and data."""
        return self.collected.groups

    @property
    def damaged(self) -> tuple[str, ...]:
        """What could not be read, one line each, the file named."""
        return self.collected.damaged

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row per point of every group; columns: see `export.frame`."""
        from bild_bench.report.export import frame

        return frame(self.collected)

    @cached_property
    def answers(self) -> list[str]:
        """The answers to the questions asked, one line each, group by group."""
        from bild_bench.report.export import say

        return [say(answer) for found in map(self.findings, self.groups) for answer in found.answers]

    def findings(self, group: Group) -> Findings:
        """A group's answers and warnings; where samples are damaged a warning says so instead."""
        from bild_bench.report.answers import answers, sample_reader
        from bild_bench.report.cautions import COLUMNS, cautions
        from bild_bench.report.export import Findings

        questions: dict[str, Any] = {"max_drops": self.max_drops, "min_speedup": self.min_speedup}
        try:
            found = answers(group, **questions, samples=sample_reader())
            return Findings(found, cautions(group, sample_reader(COLUMNS)))
        except DataError as error:
            return Findings([], [f"neither answers nor warnings: {error}"])

    def to_csv(self) -> str:
        """`summary` as CSV with a header; unknown figures are empty."""
        from bild_bench.report.export import to_csv

        return to_csv(self.collected)

    def to_latex(self) -> str:
        """A `booktabs` table per group."""
        from bild_bench.report.latex import to_latex

        return to_latex(self.collected)

    def to_markdown(self) -> str:
        """A section per group: table, answers, warnings and commands."""
        from bild_bench.report.export import to_markdown

        return to_markdown(self.collected, [self.findings(group) for group in self.groups])

    def as_dict(self) -> dict[str, Any]:
        """Everything as strict JSON values, as `--format json` prints it."""
        from bild_bench.report.export import to_strict_json

        return to_strict_json(self.collected, [self.findings(group) for group in self.groups])

    def write_page(self, path: str | Path) -> Path:
        """Write one self-contained HTML page, and return its path.

        Raises:
            UsageError: it cannot be written there. RunError: the disk is full.
        """
        from bild_bench.report.page import write_page

        path = named_folder("--html", path, kind="file")
        with writing(path, "--html"):
            write_page(self.collected, path, max_drops=self.max_drops, min_speedup=self.min_speedup)
        return path

    def write_plots(self, folder: str | Path) -> Path:
        """Write PNG and SVG plots of every group into a folder, and return it.

        Raises:
            UsageError: they cannot be written there. RunError: the disk is full.
        """
        from bild_bench.report import charts

        folder = named_folder("--plots", folder)
        with writing(folder, "--plots"):
            folder.mkdir(parents=True, exist_ok=True)
            for number, group in enumerate(self.groups, start=1):
                for name, spec in charts.all_plots(group).items():
                    stem = file_name(f"{number:02d}-{group.run.task}-{name}")
                    write_whole(folder / f"{stem}.png", charts.png(spec))
                    write_whole(folder / f"{stem}.svg", charts.svg(spec).encode())
        return folder

    def __repr__(self) -> str:
        titles = "; ".join(group.title for group in self.groups[:2])
        more = f"; and {len(self.groups) - 2} more" if len(self.groups) > 2 else ""
        damaged = f"; {len(self.damaged)} damaged" if self.damaged else ""
        return f"Report({titles}{more}{damaged})"


def make_report(
    paths: Sequence[Path], *, max_drops: Sequence[float], min_speedup: float | None, together: bool
) -> Report:
    """Read every experiment at or below the paths.

    Args:
        max_drops: points of quality, 0 or more; see `asked.drops_of`.
        min_speedup: asks for the best quality at this decoding speed-up or more; None for no such question.
        together: one comparison of all, over the texts that all have.

    Raises:
        UsageError: a path that is not a directory, or a number that cannot be.
        DataError: no results there, or see `collect`.
    """
    if min_speedup is not None and not 0 < min_speedup < float("inf"):
        raise UsageError("--min-speedup", min_speedup, "must be more than 0", "try 1.5")
    collected = collect(paths, together=together)
    if not collected.groups and not collected.damaged:
        where = ", ".join(str(path) for path in paths)
        raise DataError("DIR", where, "holds no results", "run an experiment first: bild-bench run --task iwslt17")
    return Report(collected, tuple(max_drops), min_speedup)
