"""The commands that a sweep and a tuning end with: pasted, they ask for exactly what was measured."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bild_bench
from bild_bench import results
from bild_bench.decoding.picking import Sampling
from bild_bench.grid import expand
from bild_bench.held_out import Texts
from bild_bench.next_commands import after_sweep, after_tune, run_command
from bild_bench.plan import Point, make_point, with_baseline, with_smalls
from bild_bench.setup import Request
from bild_bench.tasks import load_task
from tests.command_line import QUICK, call
from tests.made_data import jsonl
from tests.test_tuning_choice import VANILLA, figures

EMBEDDED = Path(bild_bench.__file__).parent / "embedded/data/de_en.jsonl"
ASKED = Request(
    task="custom",
    data="my texts/it's.jsonl",
    split="dev",
    limit=7,
    source_column="a b",
    metric="rougeL",
    large="big model",
    small="-little",
    prefix="",
    device="cpu",
    dtype="float64",
    threads=1,
    session="reference",
    seed=3,
    warmup=0,
    command="not this",
)
POINTS = [
    make_point("bild", {"alpha_fb": 0.35, "alpha_rb": float("inf")}),
    make_point("bild", {"max_draft": 4, "first": "large", "verify_tail": True}),
    make_point("speculative", {"gamma": 3, "adaptive": True}),
    make_point("oracle", {"replace_below": 0.25}),
    make_point("hf-assisted", {"assistant_tokens": 4}),
    make_point("calm", {"threshold": 0.8, "measure": "state", "decay": True, "min_layer": 2}),
    make_point("bild-early-exit", {"exit_layer": 2}),
    make_point("vanilla", {}, "baseline"),
    make_point("small", {}),
]


def asked_by(command: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Request, list[Point]]:
    """What a command asks for, its own record apart."""
    reached: list[Any] = []

    def stop(request: Request, points: list[Point], **_: Any) -> Path:
        reached.extend((replace(request, command=""), list(points)))
        raise KeyboardInterrupt  # far enough: nothing has to be decoded

    monkeypatch.setattr("bild_bench.experiment.run_experiment", stop)
    program, *words = shlex.split(command)
    assert (program, call(*words).code) == ("bild-bench", 130)
    return reached[0], reached[1]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.label)
def test_the_command_of_a_point_asks_for_it(point: Point, monkeypatch: pytest.MonkeyPatch) -> None:
    request, points = asked_by(run_command(ASKED, point), monkeypatch)
    # A model that the method does not use would be refused.
    small = ASKED.small if "small" in point.method.uses else None
    assert request == replace(ASKED, command="", small=small)
    assert points == with_baseline([point])


def test_a_command_is_quoted_and_says_no_more_than_it_must() -> None:
    point = make_point("bild", {"alpha_fb": 0.5})
    assert run_command(Request(task="iwslt17"), point) == (
        "bild-bench run --task iwslt17 --mode bild --alpha-fb 0.5 --alpha-rb 2"
    )
    asked = Request(task="my task.yaml", aligned=False, out=Path("old"), limit=60)
    assert run_command(asked, point) == (
        "bild-bench run --task 'my task.yaml' --mode bild --alpha-fb 0.5 --alpha-rb 2 --limit 60 --no-aligned"
    )


def test_sampling_and_one_of_several_small_models_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = Request(task="iwslt17", sampling=Sampling(temperature=0.7, top_k=5, top_p=0.8), draws=3)
    request, _ = asked_by(run_command(sampled, POINTS[0]), monkeypatch)
    assert request == sampled
    several = Request(task="iwslt17", large="L", smalls=("x/a", "y/b"))
    (first, second) = with_smalls([make_point("bild", {})], ["a", "b"])
    assert asked_by(run_command(several, second), monkeypatch)[0].small == "y/b"
    assert asked_by(run_command(several, first), monkeypatch)[0].small == "x/a"


def test_a_sweep_ends_with_the_page_and_its_best_point() -> None:
    points = with_baseline(expand(["bild"], {"alpha_fb": [0.3, 0.5, 0.9], "alpha_rb": [2.0]}))
    # Quality and speed-up of the three points, beside a vanilla of 30 points of quality.
    cases = {
        ((28, 2.0), (29.5, 1.5), (30, 1.2)): ("0.9", "at no loss"),
        ((28, 2.0), (29.5, 1.5), (30, 0.9)): ("0.5", "within 1 point of vanilla"),
        ((28, 2.0), (28.5, 1.5), (30, 0.9)): None,
    }
    for case, best in cases.items():
        request, task = Request(task="iwslt17", limit=9), load_task("iwslt17")
        summaries = [VANILLA, *(figures(f"p{number}", *figure) for number, figure in enumerate(case))]
        found = after_sweep(Path("out dir"), request, points, summaries, task, "embedded")
        assert found[0].command == "bild-bench report 'out dir' --html report.html"
        if best is None:
            assert len(found) == 1
        else:
            threshold, loss = best
            assert found[1].what == f"run the fastest point {loss} on these texts"
            assert found[1].command == (
                f"bild-bench run --task iwslt17 --mode bild --alpha-fb {threshold} --alpha-rb 2 --limit 9"
            )
            assert len(found) == 2


def test_a_sweep_of_texts_with_a_validation_split_ends_with_the_same_grid_for_tune(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    jsonl(tmp_path / "d/test.jsonl", [{"source": "a", "target": "b"}])
    grid = expand(["bild", "speculative"], {"alpha_fb": [0.3, 0.5], "alpha_rb": [1.0, float("inf")], "gamma": [3, 4]})
    request, points = Request(task="custom", data="d", split="test", limit=9, seed=2), with_baseline(grid)

    def found(asked: Request = request, points: list[Point] = points) -> list[str]:
        steps = after_sweep(Path("out"), asked, points, [], load_task("custom"), "d")
        return [step.command for step in steps][1:]

    assert found() == []  # no validation texts there
    jsonl(tmp_path / "d/validation.jsonl", [{"source": "c", "target": "d"}])
    (command,) = found()
    reached: list[Any] = []

    def stop(*asked: Any, **_: Any) -> None:
        reached.extend(asked)
        raise KeyboardInterrupt

    monkeypatch.setattr("bild_bench.tuning.tune", stop)
    assert call(*shlex.split(command)[1:]).code == 130
    assert reached[1] == grid
    assert (reached[0].seed, reached[3], reached[4]) == (2, Texts("d", "validation", 9), Texts("d", "test", 9))
    # What tune refuses, or its options cannot say, is not offered.
    assert found(replace(request, sampling=Sampling())) == []
    assert found(points=with_baseline([*grid, make_point("bild", {"max_draft": 3})])) == []


def test_a_point_chosen_for_two_drops_is_one_command() -> None:
    point = make_point("bild", {})
    (step,) = after_tune(Request(task="iwslt17"), Texts("t.jsonl", "test", 5), [("no loss", point), ("1 point", point)])
    assert step.what == "run the point chosen for no loss and 1 point"
    assert step.command.endswith("--alpha-fb 0.5 --alpha-rb 2 --data t.jsonl --split test --limit 5")


def test_the_command_that_tune_ends_with_runs_the_point_it_chose(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in EMBEDDED.read_text(encoding="utf-8").splitlines()]
    folder = tmp_path / "it's here"
    folder.mkdir()
    sides = [jsonl(folder / f"{name}.jsonl", lines[start::2]) for start, name in enumerate(("val", "test"))]
    files = ("--validation-data", sides[0], "--test-data", sides[1], "--limit", "3", "--test-limit", "2")
    grid = ("--alpha-fb", "0.6,1", "--alpha-rb", "2", "--max-drop", "100")
    ended = call("tune", "--task", "custom", *files, *grid, *QUICK, "--out", tmp_path / "tuned", "--json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    (step,) = told["next"]
    assert ended.err.splitlines()[-2:] == [f"next, to {step['what']}:", f"  {step['command']}"]

    program = f'bild-bench() {{ {shlex.quote(sys.executable)} -m bild_bench "$@"; }}; {step["command"]}'
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    (directory,) = (tmp_path / "results").iterdir()
    again, tested = results.read(directory), results.read(tmp_path / "tuned/test")
    assert again.run.points == tested.run.points
    assert told["rows"][0]["point"] in {point["point"] for point in again.run.points}
    assert list(again.samples.text_id) == list(tested.samples.text_id)
    assert [list(ids) for ids in again.samples.output_ids] == [list(ids) for ids in tested.samples.output_ids]


def test_a_sweep_tells_them_to_people_and_to_programs(tmp_path: Path) -> None:
    command = ("sweep", "--task", "iwslt17", "--alpha-fb", "1", "--limit", "2", *QUICK, "--out", tmp_path / "out")
    people, programs = call(*command), call(*command, "--json")
    steps = json.loads(programs.out)["next"]
    assert steps[0] == {
        "what": "show all points as a page",
        "command": f"bild-bench report {tmp_path / 'out'} --html report.html",
    }
    told = [line for step in steps for line in (f"next, to {step['what']}:", f"  {step['command']}")]
    for ended in (people, programs):
        assert ended.err.splitlines()[-len(told) :] == told
        assert "next, to" not in ended.out
