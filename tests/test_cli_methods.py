"""Options of the other methods and of sampling: ranges, contradictions, and what does not apply to a mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bild_bench import results
from bild_bench.decoding.methods import METHODS
from tests.command_line import QUICK, call

RUN = "run --task iwslt17"
SAY = "generate Hallo"

# What is typed, and what the one line must say.
WRONG = [
    (f"{RUN} --mode speculative --gamma 0", "--gamma: 0: must be 1 or more; try 5"),
    (f"{RUN} --mode speculative --gamma 1.5", "--gamma", "integer"),
    (f"{RUN} --mode calm --threshold -0.1", "--threshold: -0.1: must be 0 or more; try 0.9"),
    (f"{RUN} --mode calm --threshold nan", "--threshold: nan: must be 0 or more"),
    (f"{RUN} --mode calm --measure entropy", "--measure", "'softmax', 'state', 'classifier'"),
    (f"{RUN} --mode calm --min-layer 0", "--min-layer: 0: must be 1 or more; leave it out"),
    (f"{RUN} --mode calm --measure state --min-layer 1", "--min-layer: 1: must be 2 or more; leave it out"),
    (f"{RUN} --mode bild-early-exit --exit-layer 0", "--exit-layer: 0: must be 1 or more; the paper uses 1"),
    (f"{RUN} --mode bild-early-exit --exit-layer 99", "--exit-layer: 99: the decoder has ", "try a lower one"),
    (f"{RUN} --mode oracle --replace-below 1.1", "--replace-below: 1.1: must be a number from 0 to 1; try 0.1"),
    (f"{RUN} --mode hf-assisted --assistant-tokens 0", "--assistant-tokens: 0: must be 1 or more"),
    (f"{RUN} --mode hf-assisted --assistant-confidence 2", "--assistant-confidence: 2.0: must be a number from 0 to 1"),
    (f"{RUN} --temperature 0", "--temperature: 0.0: must be a number above 0; leave sampling options out"),
    (f"{RUN} --temperature nan", "--temperature: nan: must be a number above 0"),
    (f"{RUN} --top-k 0", "--top-k: 0: must be 1 or more; leave it out for all tokens"),
    (f"{RUN} --top-p 0", "--top-p: 0.0: must be above 0 and at most 1; try 0.8"),
    (f"{RUN} --top-p 1.1", "--top-p: 1.1: must be above 0 and at most 1"),
    (f"{RUN} --sample --draws 0", "--draws: 0: must be 1 or more; leave it out for 1"),
    (f"{RUN} --draws 2", "--draws: 2: greedy search gives the same text each time; add --top-p 0.8"),
    (f"{RUN} --no-fallback", "--no-fallback: True: needs the number of drafts between hand-overs; add --stride 5"),
    (f"{RUN} --no-fallback --stride 0", "--stride: 0: must be 1 or more; try 5"),
    (f"{RUN} --stride 5", "--stride: 5: goes with --no-fallback; add it, or use --max-draft"),
    (f"{RUN} --no-fallback --stride 5 --alpha-fb 0.3", "--alpha-fb: 0.3: contradicts --no-fallback (0.0)"),
    (f"{RUN} --no-fallback --stride 5 --max-draft 3", "--max-draft: 3: contradicts --stride (5); leave one out"),
    (f"{RUN} --no-fallback --stride 5 --compat released-code", "--max-draft: 5: contradicts --compat released-code"),
    (f"{RUN} --no-rollback --alpha-rb 0", "--alpha-rb: 0.0: ", "--no-rollback"),
    (f"{RUN} --mode hf-greedy --top-p 0.8", "--mode: 'hf-greedy': cannot draw tokens; leave the sampling options out"),
    (f"{RUN} --mode hf-assisted --sample", "--mode: 'hf-assisted': cannot draw tokens"),
    (f"{SAY} --mode hf-greedy --temperature 2", "--mode: 'hf-greedy': cannot draw tokens"),
    (f"{SAY} --mode hf-assisted --top-k 3", "--mode: 'hf-assisted': cannot draw tokens"),
    (f"{SAY} --mode speculative --gamma 0", "--gamma: 0: must be 1 or more"),
    (f"{SAY} --top-p 0", "--top-p: 0.0: must be above 0"),
    (f"{SAY} --stride 3", "--stride: 3: goes with --no-fallback"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case[0])
def test_what_cannot_be_is_one_line(case: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bild_bench.api.load_pair", lambda *_, **__: pytest.fail("a model was loaded"))
    typed, *said = case
    ended = call(*typed.split())
    assert ended.code == 2
    assert ended.out == ""
    (line,) = ended.err.splitlines()
    assert line.startswith("error: ")
    for part in said:
        assert part in line
    assert not [*tmp_path.rglob("*.parquet")], "nothing was started"


# Each method's own options, with a value that is in range.
OPTIONS = {
    "--alpha-fb": ("0.5", {"bild", "bild-early-exit"}),
    "--alpha-rb": ("2", {"bild", "bild-early-exit"}),
    "--max-draft": ("3", {"bild", "bild-early-exit"}),
    "--first": ("large", {"bild", "bild-early-exit"}),
    "--verify-tail": (None, {"bild", "bild-early-exit"}),
    "--exit-layer": ("1", {"bild-early-exit"}),
    "--gamma": ("3", {"speculative"}),
    "--adaptive": (None, {"speculative"}),
    "--threshold": ("0", {"calm"}),
    "--measure": ("state", {"calm"}),
    "--decay": (None, {"calm"}),
    "--min-layer": ("1", {"calm"}),
    "--replace-below": ("0", {"oracle"}),
    "--assistant-tokens": ("3", {"hf-assisted"}),
    "--assistant-confidence": ("0", {"hf-assisted"}),
}


@pytest.mark.parametrize("mode", METHODS)
@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_means_nothing_to_a_mode_is_refused(option: str, mode: str, monkeypatch: Any) -> None:
    value, modes = OPTIONS[option]
    reached: list[Any] = []

    def run_experiment(request: Any, points: Any, **_: Any) -> Any:
        reached.extend(points)
        raise KeyboardInterrupt  # far enough: nothing has to be decoded

    monkeypatch.setattr("bild_bench.experiment.run_experiment", run_experiment)
    ended = call(*RUN.split(), "--mode", mode, option, *([] if value is None else [value]))
    if mode in modes:
        assert ended.code == 130
        (point,) = [point for point in reached if point.role == "point"]
        expected: Any = {None: True, "large": "large", "state": "state"}.get(value) or float(value or 0)
        assert getattr(point.settings, option[2:].replace("-", "_")) == expected
    else:
        assert (ended.code, reached) == (2, [])
        assert f"{option}: " in ended.err
        assert f"does not apply to --mode {mode} (allowed with: {', '.join(sorted(modes))})" in ended.err


@pytest.mark.parametrize(
    ("typed", "sampling"),
    [
        ("", None),
        ("--sample", (1.0, None, None)),
        ("--temperature 0.7", (0.7, None, None)),
        ("--top-k 5", (1.0, 5, None)),
        ("--top-p 1 --sample", (1.0, None, 1.0)),
        ("--top-k 5 --top-p 0.8 --temperature 2 --draws 3", (2.0, 5, 0.8)),
    ],
)
def test_sampling_is_what_was_asked_for(typed: str, sampling: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def run_experiment(request: Any, points: Any, **_: Any) -> Any:
        asked.append(request)
        raise KeyboardInterrupt

    monkeypatch.setattr("bild_bench.experiment.run_experiment", run_experiment)
    call(*RUN.split(), *typed.split())
    (request,) = asked
    how = request.sampling
    assert (None if how is None else (how.temperature, how.top_k, how.top_p)) == sampling
    assert request.draws == (3 if "--draws" in typed else 1)


def test_speculative_decoding_from_the_command_line(tmp_path: Path) -> None:
    where = ("--limit", "2", "--out", tmp_path / "out", *QUICK)
    ended = call("run", "--task", "iwslt17", "--mode", "speculative", "--gamma", "2", "--dtype", "float64", *where)
    assert ended.code == 0
    assert "speculative gamma=2" in ended.out
    rows: Any = results.read(tmp_path / "out").samples
    vanilla, speculative = (rows[rows.method == name].sort_values("text_id") for name in ("vanilla", "speculative"))
    assert [list(ids) for ids in speculative.output_ids] == [list(ids) for ids in vanilla.output_ids]
    assert rows.diverged_at.isna().all()


def test_several_draws_from_the_command_line(tmp_path: Path) -> None:
    where = ("--limit", "2", "--out", tmp_path / "out", *QUICK)
    ended = call("run", "--task", "iwslt17", "--top-p", "0.8", "--draws", "2", "--json", *where)
    assert ended.code == 0
    told = json.loads(ended.out)
    assert told["run"]["configuration"]["sampling"] == {"temperature": 1.0, "top_k": None, "top_p": 0.8}
    assert [isinstance(point["quality_spread"], float) for point in told["points"]] == [True, True]
    assert len(results.read(tmp_path / "out").samples) == 2 * 2 * 2


def test_a_drawn_text_is_shown_and_its_seed_is_its_own() -> None:
    def drawn(seed: int, *options: str) -> str:
        ended = call("generate", "Zwei Hunde tragen einen roten Schuh über die Wiese.", "--seed", str(seed), *options)
        assert ended.code == 0
        return ended.out

    hot = ("--mode", "vanilla", "--temperature", "3")
    assert drawn(1, *hot) == drawn(1, *hot)
    assert drawn(1, *hot) != drawn(2, *hot)
    assert drawn(1, "--mode", "vanilla") == drawn(2, "--mode", "vanilla")
