"""What a run measures beside its texts: single calls at several moments, and texts whose threads waited for a core."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from bild_bench import results
from bild_bench.measure.moments import merged, moments_after
from bild_bench.measure.timing import calibrate, in_one_line
from bild_bench.models.native.library import team_counts
from bild_bench.models.native.session import NativeModel
from bild_bench.models.pair import Pair, Source
from bild_bench.passes import warm_up
from bild_bench.schema import RunRecord
from bild_bench.setup import Announce, Setup

_LONG_START_SECONDS = 60.0
# Of a text's calls. Fewer that lack a thread are what an idle machine shows, such as after a pause.
_LATE_SHARE = 0.2


class Watch:
    """Keeps in the run's record what is measured between texts, so that a run that is stopped and resumed has it all.

    Args:
        directory: the experiment's.
        setup: what is decoded.
        todo: texts that are still to be decoded.
    """

    def __init__(self, directory: Path, setup: Setup, todo: int, announce: Announce) -> None:
        self._directory, self._setup, self._announce = directory, setup, announce
        self._todo, self._done = todo, 0
        self._moments = moments_after(todo)
        self._source: Source | None = None
        self._before = (0, 0)

    def begin(self, run: RunRecord) -> RunRecord:
        """Warm up, time calls for the first time, and say how long the rest will take where that is long."""
        seconds, self._source = warm_up(self._setup)
        if seconds * self._todo > _LONG_START_SECONDS:
            minutes = f"{seconds * self._todo / 60:.0f} min"
            self._announce(f"about {minutes} for {self._todo} texts, estimated from the last warm-up text")
        return self._kept(self._with_moment(run))

    def before_text(self) -> None:
        """Remember what the threads had done so far."""
        self._before = _team_state(self._setup.pair)

    def after_text(self, run: RunRecord) -> RunRecord:
        """The run with what the text showed, stored where that is news."""
        self._done += 1
        news = run
        if waited(self._before, _team_state(self._setup.pair)):
            late = int(run.environment_after.get("late_texts", 0)) + 1
            news = replace(run, environment_after=run.environment_after | {"late_texts": late})
        if self._done in self._moments:
            news = self._with_moment(news)
        return run if news is run else self._kept(news)

    def _kept(self, run: RunRecord) -> RunRecord:
        results.update(self._directory, run)
        return run

    def _with_moment(self, run: RunRecord) -> RunRecord:
        if self._source is None:
            return run
        try:
            moment = calibrate(self._setup.pair, self._source, self._setup.limits)
        # It is for predictions alone, and no reason to end a run.
        except Exception as error:
            self._announce(f"single calls could not be timed, so nothing is predicted ({in_one_line(error)})")
            self._source = None
            return replace(run, calibration={})
        before: list[dict[str, Any]] = run.calibration.get("moments", [])
        # Texts of a resumed run may have another one to time calls behind.
        alike = [one for one in before if one.get("source_tokens") == moment.get("source_tokens")]
        return replace(run, calibration=merged([*alike, moment]))


def waited(before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Whether threads waited for a busy core, or did without one, in more than a fifth of their calls.

    Args:
        before, after: see `native.library.team_counts`.
    """
    calls, late = (then - earlier for earlier, then in zip(before, after, strict=True))
    return late > _LATE_SHARE * calls


def _team_state(pair: Pair) -> tuple[int, int]:
    for loaded in pair.models.values():
        if isinstance(loaded.model, NativeModel):
            return team_counts(loaded.model.library)
    return 0, 0
