"""`bild-bench tune` from the command line: what it refuses, the grid it tries, and real pairs on a few texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import bild_bench
from tests.command_line import QUICK, call
from tests.made_data import jsonl

EMBEDDED = Path(bild_bench.__file__).parent / "embedded/data/de_en.jsonl"
REAL = Path(__file__).resolve().parents[1].parent / "shared"


def rows(*numbers: int) -> list[dict[str, str]]:
    return [{"source": f"Satz {number}.", "target": "the cat sat"} for number in numbers]


WRONG = [
    ("", "--validation-data: 'embedded': the embedded sample is one small split", 3),
    ("--validation-data val.jsonl", "--test-data: 'embedded': the embedded sample is one small split", 3),
    ("--data val.jsonl", "--test-data: 'val.jsonl': all 2 test texts are validation texts", 3),
    ("--validation-data val.jsonl --test-data no.jsonl", "--test-data: 'no.jsonl': there is no such file", 3),
    ("--data . --test-split dev", "--test-split: 'dev': not in .", 3),
    ("--data . --max-drop x", "--max-drop: 'x': ", 2),
    ("--data . --max-drop -1", "--max-drop: -1.0: must be 0 or more points of quality", 2),
    ("--data . --test-limit 0", "--test-limit: 0: must be at least 1", 2),
    ("--data . --mode vanilla --alpha-fb 0.5", "--alpha-fb: 0.5: does not apply to --mode vanilla", 2),
    ("--data . --mode speculative --alpha-rb 1,2", "--alpha-rb: [1.0, 2.0]: does not apply to --mode speculative", 2),
    ("--data . --mode speculative --gamma 1.5", "--gamma: '1.5': must be whole numbers", 2),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case[0])
def test_a_wrong_command_is_one_line(
    case: tuple[str, str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bild_bench.models.pair.load_pair", lambda *_, **__: pytest.fail("a model was loaded"))
    jsonl(tmp_path / "val.jsonl", rows(0, 1))
    jsonl(tmp_path / "validation.jsonl", rows(0, 1))
    jsonl(tmp_path / "test.jsonl", rows(2, 3))
    typed, said, code = case
    ended = call("tune", "--task", "custom", *typed.split())
    assert (ended.code, ended.out) == (code, "")
    (line,) = ended.err.splitlines()
    assert line.startswith(f"error: {said}")
    assert not [*tmp_path.rglob("*.parquet")]


def asked_points(monkeypatch: pytest.MonkeyPatch, *typed: str) -> list[str]:
    reached: list[str] = []

    def stop(request: Any, points: Any, *_: Any, **__: Any) -> Any:
        reached.extend(point.label for point in points)
        raise KeyboardInterrupt  # far enough: nothing has to be decoded

    monkeypatch.setattr("bild_bench.tuning.tune", stop)
    assert call("tune", "--task", "custom", *typed).code == 130
    return reached


def test_the_usual_grid_is_tried_where_nothing_else_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = asked_points(monkeypatch)
    assert len(usual) == len(set(usual)) == 7 * 4
    assert (usual[0], usual[-1]) == ("bild fb=0.3 rb=1", "bild fb=0.9 rb=5")
    assert asked_points(monkeypatch, "--mode", "bild,speculative", "--alpha-fb", "0", "--gamma", "3:4") == [
        *(f"bild fb=0 rb={rollback}" for rollback in (1, 2, 3, 5)),
        "speculative gamma=3",
        "speculative gamma=4",
    ]
    assert asked_points(monkeypatch, "--mode", "speculative", "--adaptive") == ["speculative gamma=5 adaptive"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    """The two halves of the embedded sentences, as anyone's own texts."""
    lines = [json.loads(line) for line in EMBEDDED.read_text(encoding="utf-8").splitlines()]
    sides = [jsonl(tmp_path / f"{name}.jsonl", lines[start::2]) for start, name in enumerate(("val", "test"))]
    return ("--validation-data", str(sides[0]), "--test-data", str(sides[1]))


def test_tuning_the_embedded_pair_from_the_command_line(
    tmp_path: Path, files: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    grid = ("--alpha-fb", "0.5,1", "--alpha-rb", "2", "--max-drop", "0,100", "--limit", "4", "--test-limit", "3")
    command = ("tune", "--task", "custom", *files, *grid, *QUICK, "--out", str(tmp_path / "out"))
    ended = call(*command, "--json")
    assert ended.code == 0
    told = json.loads(ended.out)
    assert [row["row"] for row in told["rows"]] == ["no loss on validation", "within 100 points on validation"]
    assert [told[side]["run"]["texts"] for side in ("validation", "test")] == [4, 3]
    for row in told["rows"]:
        base = told["vanilla"]["test"]["quality"]["value"]
        assert row["difference"]["difference"] == pytest.approx(row["reported_on"]["quality"]["value"] - base)
        assert row["chosen_on"]["quality"]["value"] >= (
            told["vanilla"]["validation"]["quality"]["value"] - row["max_drop"] - 1e-9
        )
    shown = call(*command)
    assert "is complete already" in shown.err
    for part in ("thresholds", "chosen on validation", "reported on test", "no loss on", "within 100", "fb="):
        assert part in shown.out
    table, _, remarks = shown.out.partition("\n\n")
    assert max(map(len, table.splitlines())) <= 80
    assert remarks.startswith("chosen on ")


def test_tuning_a_real_pair_on_real_texts(tmp_path: Path) -> None:
    texts, models = REAL / "data/multi30k", REAL / "models"
    if not (texts.is_dir() and (models / "multi30k-large").is_dir()):
        pytest.skip("no real pair and texts beside this checkout")
    pair = ("--large", models / "multi30k-large", "--small", models / "multi30k-small")
    data = ("--validation-data", texts / "val.jsonl", "--test-data", texts / "test_2016_flickr.jsonl")
    limits = ("--limit", "3", "--test-limit", "2", "--alpha-fb", "0.7,1", "--alpha-rb", "2", "--max-drop", "0")
    ended = call("tune", "--task", "custom", *pair, *data, *limits, *QUICK, "--out", tmp_path / "out", "--json")
    assert ended.code == 0
    told = json.loads(ended.out)
    (row,) = told["rows"]
    assert row["settings"]["alpha_rb"] == 2.0
    assert row["difference"]["texts"] == 2
    assert (told["validation"]["run"]["data"]["total"], told["test"]["run"]["data"]["total"]) == (1014, 1000)
