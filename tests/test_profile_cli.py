"""`bild-bench profile` as a command; the ceilings, which take seconds to measure, are put there by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bild_bench import profiling
from bild_bench.measure.ceilings import Ceilings
from bild_bench.measure.timing import Outcome, time_text
from bild_bench.plan import Point, make_point
from bild_bench.profiling import with_models_alone
from tests.checkpoints import save_bart
from tests.command_line import QUICK, call

CEILINGS = Ceilings(3e10, 1e11, 1 << 30, {"large": 3e10, "small": 3e10})
ASK = ("profile", "--task", "iwslt17", *QUICK, "--repeats", "1")


@pytest.fixture(autouse=True)
def made_ceilings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, int]]:
    """Returns where the weights' sizes go that the ceilings are asked for."""
    asked: list[dict[str, int]] = []

    def measured(device: str, dtype: str, weights: dict[str, int]) -> Ceilings:
        asked.append(weights)
        return CEILINGS

    monkeypatch.setattr(profiling, "measure_ceilings", measured)
    monkeypatch.chdir(tmp_path)
    return asked


def test_a_profile_is_a_table_and_its_files_and_no_experiment(
    tmp_path: Path, made_ceilings: list[dict[str, int]]
) -> None:
    ended = call(*ASK, "--mode", "bild,speculative", "--limit", "3", "--out", "made")

    assert ended.code == 0, ended.err
    for words in (
        "bild fb=0.5 rb=2",
        "speculative gamma=5",
        "MFLOP",
        "FLOP/byte",
        "large encoder:",
        "ceilings: 30.0 GB/s",
    ):
        assert words in ended.out
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        "profile.json",
        "roofline.png",
        "roofline.svg",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    stored = json.loads((tmp_path / "made" / "profile.json").read_text())
    assert [point["point"] for point in stored["points"]] == [
        "vanilla",
        "small",
        "bild fb=0.5 rb=2",
        "speculative gamma=5",
    ]
    assert (stored["texts"], stored["calibration_texts"], stored["held_out_texts"]) == (3, 2, 1)
    # Float32 weights of the embedded pair: 8 layers of 192, 6 x 32 and 512, or one of 80, 2 x 32 and 192; the head.
    large = 8 * (6 * 192 * 192 + 3 * 192 * 512) + 6000 * 192
    small = 6 * 80 * 64 + 3 * 80 * 192 + 6000 * 80
    assert made_ceilings == [{"large": 4 * (large + 192), "small": 4 * (small + 80)}]


def test_json_on_stdout_is_the_file(tmp_path: Path) -> None:
    ended = call(*ASK, "--limit", "2", "--json", "--out", "made")

    assert json.loads(ended.out) == json.loads((tmp_path / "made" / "profile.json").read_text())


def test_counters_of_the_experiment_and_calls_of_the_profile_are_the_same(tmp_path: Path) -> None:
    profiled = json.loads(call(*ASK, "--limit", "3", "--json").out)
    ran = json.loads(call("run", "--task", "iwslt17", *QUICK, "--limit", "3", "--json", "--out", "run").out)

    counted = {point["point"]: (point["small_calls"], point["large_calls"]) for point in ran["points"]}
    for point in profiled["points"]:
        if point["point"] in counted:
            parts = point["parts"]
            found = tuple(parts.get(role, {"calls": 0})["calls"] for role in ("small", "large"))
            assert found == counted[point["point"]]


def test_a_pair_of_another_family_is_profiled_on_the_librarys_modules(tmp_path: Path) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(f'{{"source": "the dog sees {word}", "target": "x"}}\n' for word in ("a cat", "a tree")))
    large, small = save_bart(tmp_path / "large"), save_bart(tmp_path / "small", seed=1, decoder_layers=1)
    ask = ("profile", "--task", "custom", "--data", texts, "--large", large, "--small", small, *QUICK, "--repeats", "1")
    ended = call(*ask, "--limit", "2", "--json")

    assert ended.code == 0, ended.err
    models = json.loads(ended.out)["models"]
    assert models["large"]["decoder"] == {"layers": 2, "inner": 32, "d_ff": 48, "gated": False}
    assert models["small"]["reads_all"] is True


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--mode", "hf-greedy"), 2, "--mode: 'hf-greedy': cannot be profiled: its model calls are not visible"),
        (
            ("--mode", "bild,hf-assisted"),
            2,
            "--mode: 'hf-assisted': cannot be profiled: its model calls are not visible",
        ),
        (("--limit", "1"), 2, "--limit: 1: leaves no text to predict (allowed: 2 or more); raise it"),
        (("--repeats", "0"), 2, "--repeats: 0: must be 1 or more; leave it out for 3"),
        (("--alpha-fb", "2"), 2, "--alpha-fb: 2.0: must be a number from 0 to 1"),
        (("--gamma", "3"), 2, "--gamma: 3: does not apply to --mode bild"),
    ],
)
def test_what_cannot_be_is_one_line(options: Sequence[str], code: int, said: str) -> None:
    # Of an option given twice the last one counts.
    ended = call(*ASK, "--limit", "2", *options)

    assert (ended.code, ended.out) == (code, "")
    assert said in ended.last_remark


def test_a_file_of_one_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('{"source": "Hallo.", "target": "Hello."}\n{"source": " ", "target": "x"}\n')
    ended = call("profile", "--task", "custom", "--data", "one.jsonl", "--preset", "embedded", *QUICK)

    assert ended.code == 3, ended.err
    assert "has fewer than 2 texts that are not empty; give more texts" in ended.last_remark


def test_the_models_alone_stand_first_and_once() -> None:
    bild, calm = make_point("bild", {}), make_point("calm", {})

    assert [point.label for point in with_models_alone([bild])] == ["vanilla", "small", bild.label]
    assert [point.label for point in with_models_alone([make_point("small", {}), bild])] == [
        "vanilla",
        "small",
        bild.label,
    ]
    assert [point.label for point in with_models_alone([calm])] == ["vanilla", calm.label]


def _failing(monkeypatch: pytest.MonkeyPatch, fails: Any) -> None:
    """Makes a method's decoding fail where a function of the number of texts so far says so."""
    seen: list[int] = []

    def timed(pair: Any, source: Any, points: Sequence[Point], limits: Any) -> list[Outcome]:
        seen.append(1)
        outcomes = time_text(pair, source, points, limits)
        return [
            Outcome(one.point, one.order, error="no memory")
            if one.point.method.name == "bild" and fails(len(seen))
            else one
            for one in outcomes
        ]

    monkeypatch.setattr(profiling, "time_text", timed)


def test_a_text_that_failed_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(monkeypatch, lambda number: number == 4)
    found = json.loads(call(*ASK, "--limit", "4", "--json").out)

    assert [point["texts"] for point in found["points"]] == [4, 4, 3]
    assert found["points"][-1]["timing"]["texts"] == 1
    assert len(found["errors"]) == 1
    assert found["errors"][0].startswith("bild fb=0.5 rb=2, ")
    assert found["errors"][0].endswith(": no memory")


def test_a_point_that_decoded_nothing_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(monkeypatch, lambda number: True)
    ended = call(*ASK, "--limit", "2")

    assert ended.code == 1
    assert "decoded no text of one half (first error: bild fb=0.5 rb=2, " in ended.last_remark


def test_the_median_of_repeats_counts_and_the_order_is_shuffled(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[tuple[str, ...]] = []
    seconds = {"vanilla": [4.0, 2.0, 90.0], "small": [1.0, 1.0, 1.0], "bild": [2.0, 9.0, 3.0]}

    def timed(pair: Any, source: Any, points: Sequence[Point], limits: Any) -> list[Outcome]:
        place = len(orders) % 3
        orders.append(tuple(point.method.name for point in points))
        outcomes = time_text(pair, source, points, limits)
        return [
            replace(one, encode_seconds=1.0, decode_seconds=seconds[one.point.method.name][place]) for one in outcomes
        ]

    monkeypatch.setattr(profiling, "time_text", timed)
    found = json.loads(call(*ASK, "--repeats", "3", "--limit", "4", "--json").out)

    measured = {point["method"]: point["timing"]["measured_decode_seconds"] for point in found["points"]}
    assert measured == {"vanilla": 8.0, "small": 2.0, "bild": 6.0}, "of two held-out texts"
    assert len(orders) == 12
    assert len(set(orders)) > 1


def test_help_fits_and_imports_nothing_heavy() -> None:
    ended = call("profile", "--help")
    assert (ended.code, ended.err) == (0, "")
    assert max(map(len, ended.out.splitlines())) <= 80
    program = (
        "import sys; sys.argv = ['bild-bench', 'profile', '--help']\n"
        "from bild_bench.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('torch', 'transformers', 'pandas', 'numpy') if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_measured(
    tmp_path: Path, made_ceilings: list[dict[str, int]]
) -> None:
    (tmp_path / "file").write_text("in the way")
    ended = call(*ASK, "--limit", "2", "--out", "file/inside")

    assert ended.code == 2, ended.err
    assert "file/inside" in ended.last_remark
    assert made_ceilings == []
