"""Experiments from Python: the same as the commands of the same name do, by the same code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bild_bench
from bild_bench import compare, report, results, run, sweep, tune
from bild_bench.decoding.picking import Sampling
from bild_bench.errors import DataError, UsageError
from tests.command_line import QUICK, call
from tests.made_data import jsonl
from tests.made_reports import experiment, grid
from tests.made_results import stored

EMBEDDED = Path(bild_bench.__file__).parent / "embedded/data/de_en.jsonl"
SMALL: dict[str, Any] = {"limit": 2, "warmup": 0, "threads": 1}


def asked_by(command: tuple[str, ...], target: str, monkeypatch: pytest.MonkeyPatch, python: Any) -> list[Any]:
    """What the command and the call ask the engine for, one after the other, their own records apart."""
    reached: list[Any] = []

    def stop(*asked: Any, **_: Any) -> None:
        vars(asked[0])["command"] = ""
        reached.append(asked)
        raise KeyboardInterrupt

    monkeypatch.setattr(target, stop)
    assert call(*command).code == 130
    with pytest.raises(KeyboardInterrupt):
        python()
    return reached


RUNS = {
    "--alpha-fb 0.4 --alpha-rb 3 --limit 5 --seed 2": {"alpha_fb": 0.4, "alpha_rb": 3, "limit": 5, "seed": 2},
    "--no-rollback --no-baseline": {"no_rollback": True, "baseline": False},
    "--no-fallback --stride 3 --top-p 0.8 --draws 2": {"no_fallback": True, "stride": 3, "top_p": 0.8, "draws": 2},
    "--compat released-code --no-aligned": {"compat": "released-code", "aligned": False},
    "--mode speculative,small --gamma 3 --adaptive": {"mode": "speculative,small", "gamma": 3, "adaptive": True},
}


@pytest.mark.parametrize("typed", RUNS)
def test_run_asks_for_what_the_command_asks_for(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command, call_it = asked_by(
        ("run", "--task", "iwslt17", *typed.split()),
        "bild_bench.experiment.run_experiment",
        monkeypatch,
        lambda: run("iwslt17", **RUNS[typed]),
    )
    assert command == call_it


SWEEPS = {
    "--alpha-fb 0.3:0.5:0.1 --alpha-rb 1,inf": {"alpha_fb": [0.3, 0.4, 0.5], "alpha_rb": (1, float("inf"))},
    "--alpha-fb 0.3:0.9:0.2 --max-draft 3:5": {"alpha_fb": "0.3:0.9:0.2", "max_draft": range(3, 6)},
    "--mode calm --measure softmax,state --threshold 0.5": {
        "mode": "calm",
        "settings": {"measure": ["softmax", "state"]},
        "threshold": 0.5,
    },
    "--small a,b/c --large L --budget 2m --prune": {"small": ["a", "b/c"], "large": "L", "budget": 120, "prune": True},
    "--first small,large --verify-tail --budget 90s": {"first": "small,large", "verify_tail": True, "budget": "90s"},
}


@pytest.mark.parametrize("typed", SWEEPS)
def test_sweep_asks_for_what_the_command_asks_for(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command, call_it = asked_by(
        ("sweep", "--task", "iwslt17", *typed.split()),
        "bild_bench.experiment.run_experiment",
        monkeypatch,
        lambda: sweep("iwslt17", **SWEEPS[typed]),
    )
    assert command == call_it


TUNINGS: dict[str, dict[str, Any]] = {
    "": {},
    "--data d --max-drop 0.5 --limit 4 --test-limit 3": {"data": "d", "max_drop": 0.5, "limit": 4, "test_limit": 3},
    "--validation-data v --test-data t --test-split dev --alpha-rb 2": {
        "validation_data": Path("v"),
        "test_data": "t",
        "test_split": "dev",
        "alpha_rb": [2],
    },
    "--mode bild,speculative --gamma 3,4 --max-drop 0,1,2": {
        "mode": "bild,speculative",
        "gamma": [3, 4],
        "max_drop": "0:2",
    },
}


@pytest.mark.parametrize("typed", TUNINGS)
def test_tune_asks_for_what_the_command_asks_for(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command, call_it = asked_by(
        ("tune", "--task", "iwslt17", *typed.split()),
        "bild_bench.tuning.tune",
        monkeypatch,
        lambda: tune("iwslt17", **TUNINGS[typed]),
    )
    assert command == call_it


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (sweep, {"alpha_fbb": 0.5}, "sweep: 'alpha_fbb': not known .*did you mean 'alpha_fb'"),
        (sweep, {"alpha_fb": []}, r"--alpha-fb: \[\]: has no values"),
        (sweep, {"alpha_fb": "0.5,x"}, "--alpha-fb: '0.5,x': 'x' is not a usable number"),
        (sweep, {"alpha_fb": [0.5, "x"]}, "--alpha-fb: 'x': is of type str"),
        (sweep, {"alpha_fb": 2}, "--alpha-fb: 2.0: must be a number from 0 to 1"),
        (sweep, {"small": []}, r"--small: \[\]: names no model"),
        (sweep, {"budget": "soon"}, "--budget: 'soon': must be a duration"),
        (sweep, {"no_rollback": True}, "sweep: 'no_rollback': not known"),
        (tune, {"split": "dev"}, "tune: 'split': not known .*test_split"),
        (tune, {"max_drop": -1}, "--max-drop: -1: must be 0 or more"),
        (tune, {"max_drop": "a"}, "--max-drop: 'a': "),
        (tune, {"alpha_fb": 0.5, "settings": {"alpha_fb": 0.6}}, "alpha_fb: 0.5: is given twice"),
        (run, {"sampling": Sampling(), "top_p": 0.8}, "top_p: 0.8: is given twice, in sampling too"),
    ],
)
def test_what_cannot_be_is_refused(function: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        function("iwslt17", **options)


def test_a_sweep_from_python_has_its_figures_as_a_data_frame(tmp_path: Path) -> None:
    told: list[str] = []
    watched: list[tuple[int, int]] = []

    def track(texts: Any, done: int, total: int) -> Any:
        watched.append((done, total))
        return texts

    out = tmp_path / "out"
    found = sweep("iwslt17", alpha_fb=[0.4, 1], out=out, announce=told.append, track=track, **SMALL)
    assert list(found.summary["point"]) == ["vanilla", "bild fb=0.4 rb=2", "bild fb=1 rb=2"]
    pd.testing.assert_frame_equal(found.summary, pd.read_parquet(out / "summary.parquet"), check_dtype=False)
    assert watched == [(0, 2)]
    assert repr(found) == (
        f"Experiment({str(out)!r}: embedded/iwslt17 (test), pair embedded-aligned, 3 points, 2 texts, complete)"
    )
    assert found.run.command == (
        f"bild_bench.sweep('iwslt17', 'bild', alpha_fb=[0.4, 1], out={out!r}, limit=2, warmup=0, threads=1)"
    )
    # The command finds the same experiment, complete.
    typed = ("sweep", "--task", "iwslt17", "--alpha-fb", "0.4,1", "--limit", "2", *QUICK, "--out", out)
    assert f"{out} is complete already" in call(*typed).err


def test_an_unfinished_experiment_says_so_in_one_line(tmp_path: Path) -> None:
    found = results.read(stored(tmp_path / "x"))
    assert repr(found).endswith("embedded/iwslt17 (test), pair embedded, 2 points, 2 texts, running)")
    for shard in (tmp_path / "x/shards").iterdir():
        shard.unlink()
    assert repr(results.read(tmp_path / "x")).endswith(", 0 of 2 texts, running)")


def test_tuning_from_python(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in EMBEDDED.read_text(encoding="utf-8").splitlines()]
    sides = {
        f"{name}_data": jsonl(tmp_path / f"{name}.jsonl", lines[start::2])
        for start, name in enumerate(("validation", "test"))
    }
    tuned = tune("custom", alpha_fb=1, alpha_rb=2, max_drop=100, out=tmp_path / "out", test_limit=2, **sides, **SMALL)
    (choice,), (step,) = tuned.choices, tuned.following
    assert choice.point.label in ("bild fb=1 rb=2", "vanilla")
    assert step.command.startswith("bild-bench run --task custom --mode ")
    assert repr(tuned) == f"Tuned({str(tmp_path / 'out')!r}: {choice.point.label} for a drop of 100)"
    assert repr(tuned.test).startswith("Measured(Experiment(")
    assert repr(tuned.test.summary).startswith(f"Summary({tuned.test.experiment.run.experiment_id!r}, ")


def test_a_report_from_python_is_the_commands(tmp_path: Path) -> None:
    grid(tmp_path / "r/x", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0)])
    made = report(tmp_path / "r", max_drop=30, min_speedup=2.6, html=tmp_path / "p.html", plots=tmp_path / "plots")
    typed = ("report", tmp_path / "r", "--max-drop", "30", "--min-speedup", "2.6", "--format")
    assert made.as_dict() == json.loads(call(*typed, "json").out)
    assert made.to_csv() == call(*typed, "csv").out
    assert made.to_markdown() == call(*typed, "markdown").out
    assert list(made.summary["label"]) == ["vanilla", "bild fb=0.5 rb=1", "bild fb=0.5 rb=2"]
    assert made.summary.set_index("label").loc["bild fb=0.5 rb=1", "speedup_decoding"] == pytest.approx(3.0)
    assert [line.partition(":")[0] for line in made.answers] == [
        "fastest within 30 points of vanilla (in-sample",
        "best quality at a decoding speed-up of 2.6x or more (in-sample",
    ]
    assert made.answers[1].startswith(
        "best quality at a decoding speed-up of 2.6x or more (in-sample: chosen on these texts): bild fb=0.5 rb=1, "
    )
    assert "<html" in (tmp_path / "p.html").read_text(encoding="utf-8")
    assert (tmp_path / "plots/01-iwslt17-pareto.svg").exists()
    title = "embedded/iwslt17 (test), pair embedded, cpu, 2 texts"
    assert repr(made) == f"Report({title})"
    assert repr(made.collected) == "Collected(1 groups, 0 damaged)"
    assert repr(made.groups[0]) == f"Group({title!r}, 3 points)"
    assert repr(made.groups[0].entries[0]) == "Entry('vanilla', quality 100.0, decoding speed-up 1.0)"
    with pytest.raises(DataError, match="holds no results"):
        report(tmp_path / "plots")
    with pytest.raises(UsageError, match="--min-speedup: 0: must be more than 0"):
        report(tmp_path / "r", min_speedup=0)


def test_a_comparison_from_python_is_the_commands(tmp_path: Path) -> None:
    experiment(tmp_path / "a")
    grid(tmp_path / "b", [(0.5, 2.0, 4.0)])
    experiment(tmp_path / "c")
    found = compare(tmp_path / "a", str(tmp_path / "c"), fail_on="quality:0")
    typed = ("compare", tmp_path / "a", tmp_path / "c", "--fail-on", "quality:0", "--json")
    assert found.as_dict() == json.loads(call(*typed).out)
    assert list(found.summary["point"]) == ["vanilla", "bild fb=0.5 rb=2"]
    assert list(found.summary["quality.difference.value"]) == [0.0, 0.0]
    assert found.regressions == ()
    assert repr(found) == "Compared(2 points of both, 0 of one only, 0 regressions)"
    assert repr(found.comparison) == "Comparison(1 sections, 0 points only in A, 0 only in B)"
    sides = f"{str(tmp_path / 'a')!r}, {str(tmp_path / 'c')!r}"
    assert repr(found.comparison.sections[0]) == f"Section({sides}, 2 points)"
    with pytest.raises(UsageError, match="--fail-on"):
        compare(tmp_path / "a", tmp_path / "c", fail_on="quality")


def test_reading_results_from_python_loads_no_torch_and_report_stays_a_function(tmp_path: Path) -> None:
    experiment(tmp_path / "x")
    program = (
        "import sys, bild_bench; early = {'torch', 'pandas'} & set(sys.modules)\n"
        "from bild_bench.report.collect import collect\n"
        "from bild_bench import compare, report\n"
        "report(sys.argv[1]).summary; compare(sys.argv[1], sys.argv[1]).summary\n"
        "from bild_bench import results; results.read(__import__('pathlib').Path(sys.argv[1])).summary\n"
        "print(early, {'torch', 'transformers'} & set(sys.modules), bild_bench.report is report)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "x")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set() set() True\n"
