"""`bild-bench compare` as a person calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from bild_bench.cli.compare import compare
from bild_bench.errors import UsageError
from tests.made_comparisons import changed, slower, worse
from tests.made_reports import experiment, grid
from tests.made_results import BASELINE, POINT, two_texts

Output = Callable[[], tuple[str, str]]


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Output:
    """What was printed to stdout and stderr, on a terminal of 80 columns."""
    from rich.console import Console

    from bild_bench.cli import console

    monkeypatch.setattr(console, "out", Console(width=80))
    monkeypatch.setattr(console, "err", Console(width=80, stderr=True))
    return lambda: tuple(capsys.readouterr())  # type: ignore[return-value]


def test_the_tables_fit_80_columns_and_hold_every_figure(tmp_path: Path, output: Output) -> None:
    # Speed-ups of 50 and 12.5 on the texts, 4.5 / 0.27 over both; a label that has to be folded.
    point = {**POINT, "point": "bild fb=0.5 rb=2 max=10 first=large"}
    texts = changed("b", changed("a", decode_seconds=0.03), decode_seconds=0.24)
    renamed = {name: [rows[0], replace(rows[1], point=point["point"])] for name, rows in texts.items()}
    for side, dtype in (("a", "float32"), ("b", "bfloat16")):
        experiment(tmp_path / side, renamed, points=[BASELINE, point], configuration={"dtype": dtype})

    compare(tmp_path / "a", tmp_path / "b")
    printed, _ = output()
    tables = printed[printed.index("what differs") :].splitlines()

    assert max(map(len, tables)) <= 80
    assert "…" not in printed
    assert ["dtype", "float32", "bfloat16"] in map(str.split, tables)
    assert sum(line.count("16.67x [12.50, 50.00]") for line in tables) == 2


def test_a_regression_exits_1_with_a_line_each(tmp_path: Path, output: Output) -> None:
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", worse())

    with pytest.raises(typer.Exit) as end:
        compare(a, b, fail_on="quality:0.5,speed:5%")
    printed, said = output()

    assert end.value.exit_code == 1
    assert [line.partition(" worse")[0] for line in said.splitlines()] == ["regression: bild fb=0.5 rb=2: quality"]
    assert "-18.57 [-20.00, -17.14]" in printed


def test_a_loss_within_the_limit_or_without_one_exits_0(tmp_path: Path, output: Output) -> None:
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", slower())

    compare(a, b)
    assert output()[1] == ""
    compare(a, b, fail_on="speed:51%,quality:0")
    assert output()[1] == "no regression beyond speed:51%,quality:0\n"


def test_json_is_strict_and_alone_on_stdout(tmp_path: Path, output: Output) -> None:
    a, b = experiment(tmp_path / "a", {"a": two_texts()["a"]}), experiment(tmp_path / "b", slower())
    (tmp_path / "b" / "more").mkdir()
    (tmp_path / "b" / "more" / "run.parquet").write_bytes(b"no Parquet")

    compare(a, b, fail_on="speed:1", json_output=True)
    printed, said = output()
    found = json.loads(printed, parse_constant=pytest.fail)
    point = found["sections"][0]["points"][1]

    assert point["decoding"]["time_ratio"] == {"value": pytest.approx(2), "low": None, "high": None}
    assert point["quality"]["difference"]["low"] is None
    assert found["regressions"] == []
    assert found["untested"][1].startswith("bild fb=0.5 rb=2: not tested: decoding speed-up")
    assert "more/run.parquet" in found["damaged"][0]
    assert "left out: " in said
    assert "not tested" in said


def test_json_names_regressions_and_still_fails(tmp_path: Path, output: Output) -> None:
    a, b = experiment(tmp_path / "a"), experiment(tmp_path / "b", slower())

    with pytest.raises(typer.Exit):
        compare(a, b, fail_on="time:10", json_output=True)
    found = json.loads(output()[0])["regressions"]

    assert [(one["figure"], one["loss"]) for one in found] == [
        ("decoding time", pytest.approx(100)),
        ("total time", pytest.approx(100)),
    ]


def test_what_one_set_lacks_is_printed(tmp_path: Path, output: Output) -> None:
    a = grid(tmp_path / "a", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0)])
    b = grid(tmp_path / "b", [(0.5, 1.0, 1.0), (0.9, 3.0, 2.0)])

    compare(a, b)
    printed = output()[0]

    assert "only in A: bild fb=0.5 rb=2" in printed
    assert "only in B: bild fb=0.9 rb=3" in printed
    assert "no field of the configuration differs" in printed


def test_a_wrong_limit_is_said_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--fail-on"):
        compare(tmp_path / "nowhere", tmp_path / "nowhere", fail_on="speed")


def test_a_comparison_loads_no_torch(tmp_path: Path) -> None:
    a = experiment(tmp_path / "a")
    program = (
        "import sys; from pathlib import Path; from bild_bench.cli.compare import compare;"
        "early = {'pandas', 'pyarrow', 'numpy'} & set(sys.modules); compare(Path(sys.argv[1]), Path(sys.argv[1]));"
        "print('LOADED', early, {'torch', 'vl_convert', 'transformers'} & set(sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", program, str(a)], capture_output=True, text=True, check=True)

    assert "LOADED set() set()" in done.stdout
