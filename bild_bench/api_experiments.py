"""For notebooks: experiments and what is made of them, with the options and the code of the commands of the same name.

Nothing is printed; `announce` and `track` are there for whoever wants to see progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bild_bench.errors import UsageError

if TYPE_CHECKING:
    from bild_bench.experiment import Track
    from bild_bench.report.compared import Compared
    from bild_bench.report.report import Report
    from bild_bench.results import Experiment
    from bild_bench.setup import Announce
    from bild_bench.tuning import Tuned


def run(
    task: str,
    mode: str = "bild",
    *,
    baseline: bool = True,
    settings: dict[str, Any] | None = None,
    announce: Announce | None = None,
    track: Track | None = None,
    log_to: str | None = None,
    **options: Any,
) -> Experiment:
    """Run an experiment as `bild-bench run` does and read it back.

    Args:
        task: its name.
        mode: the method; several as "bild,small".
        baseline: decode by vanilla too.
        settings: of the methods, such as {"alpha_fb": 0.5}; each goes to the methods that know it.
        announce: called with one line on what happens, such as print.
        track: wraps the texts to do, with how many are done and how many there are, to show progress.
        log_to: a tracker that gets summary and page: "wandb", "mlflow" or "trackio"; see `trackers`.
        options: fields of `setup.Request`, such as limit, preset, device, out; settings, such as alpha_fb=0.5; and the
            command's no_rollback, no_fallback, stride, compat, sample, temperature, top_k and top_p.

    Raises:
        UsageError: no such name among the options, or a setting given twice; else as `experiment.run_experiment`.
        DataError, RunError: as `experiment.run_experiment`.
    """
    from bild_bench.asked import asked_run

    request, points = asked_run(_options("run", task, mode, settings, options) | {"baseline": baseline})
    return _measured(request, points, announce, track, log_to)


def sweep(
    task: str,
    mode: str = "bild",
    *,
    settings: dict[str, Any] | None = None,
    announce: Announce | None = None,
    track: Track | None = None,
    log_to: str | None = None,
    **options: Any,
) -> Experiment:
    """Run every combination of settings as `bild-bench sweep` does and read the experiment back.

    Args:
        task, mode, announce, track, log_to: as `run`.
        settings: of the methods; a value is text as on the command line ("0.3:0.9:0.1"), one value, or several.
        options: fields of `setup.Request`, among them budget (seconds, or text such as "20m"), prune and extend; small
            may name several models; settings; and the sampling options of `run`.

    Raises:
        UsageError, DataError, RunError: as `run`.
    """
    from bild_bench.asked import asked_sweep

    request, points = asked_sweep(_options("sweep", task, mode, settings, options))
    return _measured(request, points, announce, track, log_to)


def tune(
    task: str,
    mode: str = "bild",
    *,
    max_drop: str | float | Sequence[float] = (0, 1),
    settings: dict[str, Any] | None = None,
    announce: Announce | None = None,
    track: Track | None = None,
    **options: Any,
) -> Tuned:
    """Choose thresholds on validation texts and measure them on test texts, as `bild-bench tune` does.

    Args:
        task, mode, announce, track: as `run`.
        max_drop: points of quality that may be lost on the validation texts; one choice for each.
        settings: the grid, as for `sweep`; the usual one for what is not given.
        options: validation_data, test_data, validation_split, test_split, limit, test_limit; fields of
            `setup.Request` such as preset, data, device, out; settings.

    Raises:
        UsageError: no such name among the options, or a setting given twice; else as `tuning.tune`.
        DataError, RunError: as `tuning.tune`.
    """
    from bild_bench.asked import asked_tune
    from bild_bench.experiment import untracked
    from bild_bench.setup import silent
    from bild_bench.tuning import tune as tune_points

    asked = asked_tune(_options("tune", task, mode, settings, options) | {"max_drop": max_drop})
    return tune_points(
        asked.request,
        asked.points,
        asked.max_drops,
        asked.validation,
        asked.test,
        announce=silent if announce is None else announce,
        track=untracked if track is None else track,
    )


def report(
    *directories: str | Path,
    max_drop: str | float | Sequence[float] = (0, 1),
    min_speedup: float | None = None,
    together: bool = False,
    html: str | Path | None = None,
    plots: str | Path | None = None,
    log_to: str | None = None,
) -> Report:
    """Read all experiments at or below some directories, as `bild-bench report` does.

    Args:
        directories: "results" where none is given.
        max_drop: asks for the fastest point at most this many points of quality below vanilla; several, one each.
        min_speedup: asks for the best quality at this decoding speed-up or more.
        together: one comparison of all, over the texts that all have.
        html: write one self-contained page there.
        plots: write PNG and SVG plots into this folder.
        log_to: a tracker that gets summary and page: "wandb", "mlflow" or "trackio"; see `trackers`.

    Returns:
        summary (a data frame, one row per point), answers, groups, damaged, as_dict(), to_csv(), to_markdown(),
        write_page() and write_plots(); see `report.report.Report`.

    Raises:
        UsageError: a path that is not a directory, a number that cannot be, or a file that cannot be written.
        DataError: no results there, or results that cannot be shown together.
    """
    from bild_bench.asked import drops_of
    from bild_bench.report.report import make_report
    from bild_bench.trackers import check_tracker, log_report

    if log_to is not None:
        check_tracker(log_to)
    paths = [Path(directory) for directory in directories] or [Path("results")]
    made = make_report(paths, max_drops=drops_of(max_drop), min_speedup=min_speedup, together=together)
    if plots is not None:
        made.write_plots(plots)
    if html is not None:
        made.write_page(html)
    if log_to is not None:
        log_report(log_to, made, "report")
    return made


def compare(a: str | Path, b: str | Path, *, fail_on: str | None = None) -> Compared:
    """Compare the results in B with those in A point by point, as `bild-bench compare` does.

    Args:
        a, b: an experiment's directory, or a folder of some.
        fail_on: limits such as "quality:0.5,speed:5%"; what exceeds them is in `regressions`, and nothing is raised.

    Returns:
        summary (a data frame, one row per point of both), comparison, regressions, untested and as_dict(); see
        `report.compared.Compared`.

    Raises:
        UsageError: limits that cannot be read, or a path that is not a directory.
        DataError: nothing can be compared.
    """
    from bild_bench.report.compared import compare_results

    return compare_results(Path(a), Path(b), fail_on)


def _options(
    command: str, task: str, mode: str, settings: dict[str, Any] | None, options: dict[str, Any]
) -> dict[str, Any]:
    """All options by name, with the call itself for the record."""
    from bild_bench.asked import check_names

    check_names(command, options)
    given = {} if settings is None else settings
    for name in given.keys() & options.keys():
        raise UsageError(name, options[name], "is given twice, in settings too", "leave one out")
    words = [repr(task), repr(mode), *(f"{name}={value!r}" for name, value in (given | options).items())]
    return {**options, **given, "task": task, "mode": mode, "command": f"bild_bench.{command}({', '.join(words)})"}


def _measured(
    request: Any, points: Any, announce: Announce | None, track: Track | None, log_to: str | None
) -> Experiment:
    from bild_bench import results, trackers
    from bild_bench.experiment import run_experiment, untracked
    from bild_bench.setup import silent

    watch: dict[str, Any] = {
        "announce": silent if announce is None else announce,
        "track": untracked if track is None else track,
    }
    if log_to is not None:
        trackers.check_tracker(log_to)
    directory = run_experiment(request, points, **watch)
    if log_to is not None:
        trackers.log_experiment(log_to, directory)
    return results.read(directory)
