"""Points over the same texts: a comparison rests only on texts that all of its points have."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bild_bench import results
from bild_bench.errors import DataError
from bild_bench.parquet import load_table
from bild_bench.report.summary import PointSummary, summarise
from bild_bench.results import Experiment
from bild_bench.schema import SAMPLE_SCHEMA, RunRecord, sample_frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Member:
    """One experiment: its run, where it lies, its points' figures over all of its own texts, and these texts' ids."""

    run: RunRecord
    directory: Path
    points: tuple[PointSummary, ...]
    text_ids: tuple[str, ...]

    @classmethod
    def from_samples(cls, experiment: Experiment) -> Member:
        """Of an experiment that still runs, or whose summary is lost.

        Raises:
            DataError: not one text is finished.
        """
        text_ids = tuple(dict.fromkeys(experiment.samples["text_id"]))
        if not text_ids:
            problem, fix = "no text is finished yet", "wait for the first, or go on with it"
            raise DataError("results", str(experiment.directory), problem, fix)
        return cls(experiment.run, experiment.directory, summarise(experiment).points, text_ids)

    def samples(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Every row of the experiment; see `results.read`.

        Args:
            columns: those that are needed, since traces take most of the time; there may be more. None for all.

        Raises:
            DataError: samples.parquet is missing or damaged.
        """
        if columns is not None:
            # While the experiment runs, and where the file is lost, `results.read` has the rows or the error.
            with suppress(FileNotFoundError):
                table = load_table(self.directory / results.SAMPLES, SAMPLE_SCHEMA, list(columns))
                results.check_rows(table, self.run, self.directory)
                frame: pd.DataFrame = sample_frame(table)
                return frame
        return results.read(self.directory).samples


@dataclass(frozen=True)
class Shown:
    """A point with its figures over the common texts, or over its own and why it is not compared (`pruned`)."""

    member: Member
    summary: PointSummary
    pruned: str | None


def on_common_texts(members: Sequence[Member], request: str) -> tuple[list[Shown], tuple[str, ...], int]:
    """All points of the members over the texts that all of them have.

    A point that was stopped before its experiment's last text, or that has not one good text, is set aside: it would
    take the others' texts away.

    Args:
        request: what asked for these members together, for the error.

    Returns:
        The points; the common texts, in the first member's order; how many texts that some member has are left out.

    Raises:
        DataError: no text is common to all; or samples that are needed cannot be read.
    """
    shown: list[Shown] = []
    common = dict.fromkeys(members[0].text_ids)
    every: set[str] = set()
    for member in members:
        mine, texts = _of_member(member)
        shown += mine
        every.update(member.text_ids)
        common = {text: None for text in common if text in texts}
    if not common:
        where = ", ".join(str(member.directory) for member in members[:3])
        fix = f"leave {request} out, or run the points on the same texts"
        raise DataError("texts", where, "no text was decoded by all points", fix)
    cut = [member for member in members if len(common) < len(member.text_ids)]
    again = {id(member): _restricted(member, set(common)) for member in cut}
    shown = [
        replace(point, summary=again[id(point.member)][point.summary.point_id])
        if point.pruned is None and id(point.member) in again
        else point
        for point in shown
    ]
    return shown, tuple(common), len(every) - len(common)


def _of_member(member: Member) -> tuple[list[Shown], set[str]]:
    """The member's points, and the texts that all of those that are compared have."""
    every = set(member.text_ids)
    if all(point.texts == len(every) and point.errors == 0 for point in member.points):
        return [Shown(member, point, None) for point in member.points], every
    samples = member.samples(("point_id", "text_id", "status"))
    failed = samples["status"] == "error"
    shown, common = [], every
    for point in member.points:
        own = samples["point_id"] == point.point_id
        there = set(samples.loc[own, "text_id"])
        good = there - set(samples.loc[own & failed, "text_id"])
        pruned = None
        if len(there) < len(every):
            pruned = f"stopped after {len(there)} of {len(every)} texts"
        elif not good:
            pruned = "every text failed"
        else:
            common = common & good
        shown.append(Shown(member, point, pruned))
    return shown, common


def _restricted(member: Member, texts: set[str]) -> dict[str, PointSummary]:
    samples = member.samples([name for name in SAMPLE_SCHEMA.names if name not in ("trace", "pieces")])
    part = samples[samples["text_id"].isin(texts)]
    return {point.point_id: point for point in summarise(Experiment(member.run, part, member.directory)).points}
