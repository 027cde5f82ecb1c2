"""`--log-to`: what a tracker's package is told, by packages of the same names that only take notes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bild_bench import api_experiments, trackers
from tests.command_line import QUICK, call, finish, start
from tests.made_reports import experiment, grid

# Notes each call as [name, keyword or positional values]; a table as its rows, a file as its content.
_NOTING = """
import json
from pathlib import Path

notes = []

def note(name):
    def called(*given, **named):
        notes.append([name, *given, named])
        Path("notes.json").write_text(json.dumps(notes, default=str))
    return called

def rows(frame):
    return json.loads(json.dumps(frame.to_dict("records")))
"""
_PACKAGES = {
    "wandb": """
class Artifact:
    def __init__(self, name, type):
        self.told = [name, type]
    def add_file(self, path, name):
        self.told += [name, Path(path).read_text("utf-8")[:15]]
    def __str__(self):
        return json.dumps(self.told)

def Table(dataframe):
    return rows(dataframe)

class Run:
    def __enter__(self):
        return self
    def __exit__(self, kind, *_):
        note("finish")(str(kind))
    log, log_artifact = staticmethod(note("log")), staticmethod(note("log_artifact"))

def init(**named):
    note("init")(**named)
    print("wandb: a line for people")
    return Run()
""",
    "mlflow": """
from contextlib import contextmanager

log_params, log_metrics, set_experiment = note("log_params"), note("log_metrics"), note("set_experiment")

@contextmanager
def start_run(run_name):
    note("start_run")(run_name)
    yield
    note("end_run")()

def log_table(frame, file):
    note("log_table")(rows(frame), file)

def log_artifact(path):
    note("log_artifact")(Path(path).name, Path(path).read_text("utf-8")[:15])
""",
    "trackio": """
init, log, finish = note("init"), note("log"), note("finish")

def Table(dataframe):
    return rows(dataframe)

def log_artifact(path, name, type):
    note("log_artifact")(name, type, Path(path).read_text("utf-8")[:15])
""",
}
_PAGE = "<!doctype html>"
# Worked out by hand in made_reports: 4.5 / 1.5, 6 / 3, (100 + 57.14) / 2, 1.5 s for 30 tokens, 6 of 30, 3 of 30.
FIGURES = {
    "quality_value": pytest.approx(78.5714, abs=1e-4),
    "speedup_decoding": pytest.approx(3),
    "speedup_total": pytest.approx(2),
    "ms_per_token": pytest.approx(50),
    "fallback_pct": pytest.approx(20),
    "rollback_pct": pytest.approx(10),
    "texts": 2,
    "errors": 0,
}
PARAMS = {
    "dtype": "float32",
    "task": "iwslt17",
    "split": "test",
    "metric": "rougeL",
    "texts": 2,
    "seed": 0,
    "machine": "m1",
    "command": "bild-bench run",
    "device": "cpu",
    "threads": 2,
    "data": "embedded/iwslt17",
    "pair": "embedded",
    "experiment_id": "e1",
    "code_version": "0.1.0",
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of its own, no variables of the trackers, and no package of another test."""
    monkeypatch.chdir(tmp_path)
    for variable in ("WANDB_MODE", "WANDB_PROJECT", "WANDB_NAME", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.delenv(variable, raising=False)
    yield
    for tracker in _PACKAGES:
        sys.modules.pop(tracker, None)


def install(tracker: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of this name that takes notes, for this process and those that it starts."""
    folder.mkdir(exist_ok=True)
    (folder / f"{tracker}.py").write_text(_NOTING + _PACKAGES[tracker], encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))


def notes() -> list[list[Any]]:
    found: list[list[Any]] = json.loads(Path("notes.json").read_text(encoding="utf-8"))
    return found


def logged(tracker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """The notes on a report of one experiment."""
    install(tracker, tmp_path / "packages", monkeypatch)
    experiment(tmp_path / "r/x")
    ended = call("report", "r", "--log-to", tracker)
    assert ended.code == 0, ended.err
    assert ended.last_remark == f"logged to {tracker}"
    assert "for people" not in ended.out
    return notes()


def metrics(before: str = "bild fb=0.5 rb=2/") -> dict[str, Any]:
    return {f"{before}{name}": value for name, value in FIGURES.items()}


def points_of(values: dict[str, Any], before: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name.startswith(before)}


def check_table(rows: list[dict[str, Any]]) -> None:
    assert [row["label"] for row in rows] == ["vanilla", "bild fb=0.5 rb=2"]
    assert {name: rows[1][name] for name in FIGURES} == FIGURES
    assert rows[0]["quality_spread"] is None


def test_wandb_gets_config_metrics_table_and_page_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init, log, artifact, finished = logged("wandb", tmp_path, monkeypatch)
    assert init == [
        "init",
        {"project": "bild-bench", "name": "report", "mode": "offline", "config": PARAMS | {"directory": "r/x"}},
    ]
    values = log[1]
    check_table(values.pop("summary"))
    assert points_of(values, "bild") == metrics()
    assert values["vanilla/speedup_decoding"] == 1
    assert json.loads(artifact[1]) == ["report", "report", "report.html", _PAGE]
    assert finished[:2] == ["finish", "None"]


def test_wandbs_own_variables_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MODE", "online"), ("PROJECT", "mine"), ("NAME", "this one")):
        monkeypatch.setenv(f"WANDB_{name}", value)
    told = logged("wandb", tmp_path, monkeypatch)[0][1]
    assert (told["mode"], told["project"], told["name"]) == ("online", "mine", "this one")


def test_mlflow_gets_params_metrics_table_and_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, begun, params, numbers, table, page, ended = logged("mlflow", tmp_path, monkeypatch)
    assert (project[:2], begun[:2], ended[0]) == (["set_experiment", "bild-bench"], ["start_run", "report"], "end_run")
    assert params[1] == {name: str(value) for name, value in (PARAMS | {"directory": "r/x"}).items()}
    # Its names may hold no equals sign.
    assert points_of(numbers[1], "bild") == metrics("bild fb_0.5 rb_2/")
    check_table(table[1])
    assert table[2] == "summary.json"
    assert page[1:3] == ["report.html", _PAGE]
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    del sys.modules["mlflow"]
    assert call("report", "r", "--log-to", "mlflow").code == 0
    assert notes()[0][0] == "start_run"


def test_trackio_gets_config_metrics_table_and_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init, log, page, finished = logged("trackio", tmp_path, monkeypatch)
    told = init[1]
    assert (told["project"], told["name"], told["config"]) == ("bild-bench", "report", PARAMS | {"directory": "r/x"})
    values = log[1]
    check_table(values.pop("summary"))
    assert points_of(values, "bild") == metrics()
    assert page[1:4] == ["report", "report", _PAGE]
    assert finished[0] == "finish"


def test_groups_and_experiments_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install("trackio", tmp_path / "packages", monkeypatch)
    experiment(tmp_path / "r/x")
    grid(tmp_path / "r/y", [(0.5, 2.0, 1.0)], split="validation", experiment_id="e1")
    assert call("report", "r", "--log-to", "trackio").code == 0
    init, log, *_ = notes()
    assert {init[1]["config"]["1/split"], init[1]["config"]["2/split"]} == {"test", "validation"}
    assert {name.split("/")[0] for name in log[1] if name != "summary"} == {"1", "2"}
    assert points_of(log[1], "1/bild") == metrics("1/bild fb=0.5 rb=2/")


def test_a_run_logs_its_own_experiment_after_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install("trackio", tmp_path / "packages", monkeypatch)
    typed = ("run", "--task", "iwslt17", "--limit", "2", *QUICK, "--out", "out", "--log-to", "trackio", "--json")
    paths = f"{tmp_path / 'packages'}:{Path(__file__).resolve().parents[1]}"
    ended = finish(start(*typed, cwd=tmp_path, PYTHONPATH=paths))
    assert ended.code == 0, ended.err
    told = {point["point"]: point for point in json.loads(ended.out)["points"]}
    init, log, *_ = notes()
    assert (init[1]["name"], init[1]["config"]["limit"], init[1]["config"]["threads"]) == ("out", 2, 1)
    for label, point in told.items():
        assert log[1][f"{label}/quality_value"] == point["quality"]["value"]
        assert log[1][f"{label}/ms_per_token"] == point["ms_per_token"]
    assert ended.last_remark == "logged to trackio"


@pytest.mark.parametrize("tracker", ["wandb", "mlflow", "trackio"])
@pytest.mark.parametrize("command", ["run --task iwslt17", "sweep --task iwslt17 --alpha-fb 0.5", "report"])
def test_a_missing_package_is_named_before_anything_is_done(
    tracker: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bild_bench.experiment.run_experiment", lambda *_, **__: pytest.fail("decoded"))
    monkeypatch.setattr("bild_bench.report.report.make_report", lambda *_, **__: pytest.fail("read"))
    if any((Path(place) / tracker / "__init__.py").exists() for place in sys.path):
        pytest.skip(f"{tracker} is installed")
    # wandb leaves a folder of its name where it ran: that is no package.
    (tmp_path / tracker).mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    ended = call(*command.split(), "--log-to", tracker)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: --log-to: '{tracker}': the package {tracker} is not installed; pip install {tracker}\n"


def test_an_unknown_tracker_is_refused_on_both_ways(tmp_path: Path) -> None:
    ended = call("run", "--task", "iwslt17", "--log-to", "tensorboard")
    assert (ended.code, ended.out) == (2, "")
    assert "'wandb', 'mlflow', 'trackio'" in ended.err
    with pytest.raises(trackers.UsageError, match=r"--log-to: 'wandbb': not known .*did you mean 'wandb'"):
        api_experiments.run("iwslt17", log_to="wandbb")


def test_a_tracker_that_fails_costs_nothing_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("trackio", tmp_path / "packages", monkeypatch)
    experiment(tmp_path / "it's")
    broken = (tmp_path / "packages/trackio.py").read_text("utf-8") + "\ndef log(values): raise OSError('no network')\n"
    (tmp_path / "packages/trackio.py").write_text(broken, encoding="utf-8")
    ended = call("report", "it's", "--log-to", "trackio")
    assert ended.code == 1
    assert "bild fb=0.5 rb=2" in ended.out
    assert ended.last_remark == (
        "error: --log-to: 'trackio': could not log (OSError: no network); the results are kept; try again with"
        " bild-bench report 'it'\"'\"'s' --log-to trackio"
    )
    # The run is closed all the same.
    assert notes()[-1][0] == "finish"


def test_many_metrics_go_to_mlflow_in_several_requests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install("mlflow", tmp_path / "packages", monkeypatch)
    import pandas as pd

    page = tmp_path / "report.html"
    page.write_text("x", encoding="utf-8")
    values = {f"m{number}": float(number) for number in range(1001)}
    params = {f"p{number}": "y" * 7000 for number in range(150)}
    trackers.to_mlflow(trackers.Logged("n", params, values, pd.DataFrame([{"a": 1}]), page))
    sizes = {name: [len(note[1]) for note in notes() if note[0] == name] for name in ("log_params", "log_metrics")}
    assert sizes == {"log_params": [100, 50], "log_metrics": [500, 500, 1]}
    assert {len(value) for note in notes() if note[0] == "log_params" for value in note[1].values()} == {6000}


def test_python_logs_as_the_command_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install("trackio", tmp_path / "packages", monkeypatch)
    experiment(tmp_path / "x")
    api_experiments.report("x", log_to="trackio")
    assert points_of(notes()[1][1], "bild") == metrics()
