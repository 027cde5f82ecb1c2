"""Summary and page of some results into an experiment tracker: wandb, mlflow or trackio, through its own package.

Nothing leaves the machine unless the tracker's own environment variables say so (WANDB_MODE=online,
MLFLOW_TRACKING_URI, TRACKIO_SPACE_ID): wandb, which would ask for an account, is started offline; the others are local
by themselves. Each package is imported only when it is asked for, and after everything is measured.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bild_bench.errors import RunError, UsageError, unknown_name

if TYPE_CHECKING:
    import pandas as pd

    from bild_bench.report.report import Report

_PROJECT, _PAGE = "bild-bench", "report.html"
# Logged as single numbers, so that runs can be plotted against each other; the table has all figures.
_METRICS = (
    *("quality_value", "speedup_decoding", "speedup_total", "ms_per_token", "fallback_pct", "rollback_pct"),
    *("texts", "errors"),
)
# More in one request are refused by mlflow's servers.
_MOST_METRICS, _MOST_PARAMS, _LONGEST_PARAM = 500, 100, 6000


@dataclass(frozen=True)
class Logged:
    """What is handed to a tracker.

    Args:
        name: of the tracker's run.
        params: the configuration, flat: name -> number, text or flag.
        metrics: "point/figure" -> number.
        table: one row per point, all figures.
        page: the HTML page.
    """

    name: str
    params: Mapping[str, Any]
    metrics: Mapping[str, float]
    table: pd.DataFrame
    page: Path


def check_tracker(tracker: str) -> None:
    """Is the tracker known and its package installed? Looked up and not imported: measuring comes first.

    Raises:
        UsageError: it is not.
    """
    if tracker not in _LOG:
        raise unknown_name("--log-to", tracker, _LOG)
    found = find_spec(tracker)
    # A folder of that name where the program was started, such as the one that wandb writes, is no package.
    if found is None or found.origin is None:
        raise UsageError("--log-to", tracker, f"the package {tracker} is not installed", f"pip install {tracker}")


def log_report(tracker: str, report: Report, name: str) -> None:
    """Log a report's rows as metrics and a table, its page as an artifact, the configuration as parameters.

    Args:
        tracker: "wandb", "mlflow" or "trackio"; see `check_tracker`.
        name: of the tracker's run.

    Raises:
        RunError: the tracker failed; the results are kept.
    """
    with tempfile.TemporaryDirectory() as folder:
        page = report.write_page(Path(folder) / _PAGE)
        logged = Logged(name, _params(report), _metrics(report.summary), _plain(report.summary), page)
        try:
            # Trackers print what people should see; stdout is for results.
            with redirect_stdout(sys.stderr):
                _LOG[tracker](logged)
        except (Exception, SystemExit) as error:
            directories = sorted({str(member.directory) for group in report.groups for member in group.members})
            again = shlex.join(["bild-bench", "report", *directories, "--log-to", tracker])
            problem = f"could not log ({type(error).__name__}: {error})"
            raise RunError("--log-to", tracker, problem, f"the results are kept; try again with {again}") from error


def log_experiment(tracker: str, directory: Path) -> None:
    """`log_report` of one experiment, under its directory's name."""
    from bild_bench.report.report import make_report

    log_report(
        tracker, make_report([directory], max_drops=(0.0, 1.0), min_speedup=None, together=False), directory.name
    )


def to_wandb(logged: Logged) -> None:
    """One run, offline unless WANDB_MODE says otherwise; WANDB_PROJECT and WANDB_NAME win over our names."""
    wandb = import_module("wandb")
    with wandb.init(
        project=os.environ.get("WANDB_PROJECT", _PROJECT),
        name=os.environ.get("WANDB_NAME", logged.name),
        mode=os.environ.get("WANDB_MODE", "offline"),
        config=dict(logged.params),
    ) as run:
        run.log({**logged.metrics, "summary": wandb.Table(dataframe=logged.table)})
        artifact = wandb.Artifact(_file_name(logged.name), type="report")
        artifact.add_file(str(logged.page), name=_PAGE)
        run.log_artifact(artifact)


def to_mlflow(logged: Logged) -> None:
    """One run, where MLFLOW_TRACKING_URI says, else on this machine; MLFLOW_EXPERIMENT_NAME wins over our name."""
    mlflow = import_module("mlflow")
    if not os.environ.get("MLFLOW_EXPERIMENT_NAME") and not os.environ.get("MLFLOW_EXPERIMENT_ID"):
        mlflow.set_experiment(_PROJECT)
    params = [(_mlflow_name(name), str(value)[:_LONGEST_PARAM]) for name, value in logged.params.items()]
    metrics = [(_mlflow_name(name), value) for name, value in logged.metrics.items()]
    with mlflow.start_run(run_name=logged.name):
        for start in range(0, len(params), _MOST_PARAMS):
            mlflow.log_params(dict(params[start : start + _MOST_PARAMS]))
        for start in range(0, len(metrics), _MOST_METRICS):
            mlflow.log_metrics(dict(metrics[start : start + _MOST_METRICS]))
        mlflow.log_table(logged.table, "summary.json")
        mlflow.log_artifact(str(logged.page))


def to_trackio(logged: Logged) -> None:
    """One run on this machine, or where TRACKIO_SPACE_ID says; the machine's own load is not logged."""
    trackio = import_module("trackio")
    trackio.init(
        project=_PROJECT,
        name=logged.name,
        config=dict(logged.params),
        embed=False,
        auto_log_gpu=False,
        auto_log_cpu=False,
    )
    try:
        trackio.log({**logged.metrics, "summary": trackio.Table(dataframe=logged.table)})
        trackio.log_artifact(str(logged.page), name=_file_name(logged.name), type="report")
    finally:
        trackio.finish()


_LOG = {"wandb": to_wandb, "mlflow": to_mlflow, "trackio": to_trackio}


def _params(report: Report) -> dict[str, Any]:
    """Of every experiment; with its number in front where there are several."""
    members = [member for group in report.groups for member in group.members]
    found: dict[str, Any] = {}
    for number, member in enumerate(members, start=1):
        run, before = member.run, "" if len(members) == 1 else f"{number}/"
        # What was found wins over what was asked for, which may be "auto" or nothing.
        about = {
            **run.configuration,
            **{name: getattr(run, name) for name in ("task", "split", "metric", "texts", "seed", "machine", "command")},
            **{name: run.environment.get(name) for name in ("device", "threads")},
            "data": run.data_label,
            "pair": run.pair_label,
            "experiment_id": run.experiment_id,
            "code_version": run.code_version,
            "directory": str(member.directory),
        }
        known = {name: value for name, value in about.items() if value is not None}
        plain = {
            name: value if isinstance(value, bool | int | float | str) else str(value) for name, value in known.items()
        }
        found |= {f"{before}{name}": value for name, value in plain.items()}
    return found


def _metrics(summary: pd.DataFrame) -> dict[str, float]:
    """Known figures by point; with the group's number in front where there are several."""
    if summary.empty:
        return {}
    several = summary["group"].nunique() > 1
    found = {}
    for row in summary.to_dict("records"):
        before = f"{row['group']}/" if several else ""
        for name in _METRICS:
            value = row[name]
            # NA, which a missing figure is, equals nothing, itself neither.
            if isinstance(value, int | float) and value == value:
                found[f"{before}{row['label']}/{name}"] = float(value)
    return found


def _plain(summary: pd.DataFrame) -> pd.DataFrame:
    """Columns of plain Python values: trackers know neither nullable numbers nor None among them."""
    return summary.astype(object).where(summary.notna(), None)


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)


def _mlflow_name(name: str) -> str:
    """Its names have no other characters than these."""
    return re.sub(r"[^A-Za-z0-9_./ :-]+", "_", name)
