"""`bild-bench report` as a person calls it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bild_bench.cli.report import Format, report
from bild_bench.errors import DataError, UsageError
from tests.command_line import call
from tests.made_reports import experiment, grid
from tests.made_results import two_texts

Output = Callable[[], str]


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Output:
    """What was printed, on a wide terminal."""
    from rich.console import Console

    from bild_bench.cli import console

    monkeypatch.setattr(console, "out", Console(width=200))
    monkeypatch.setattr(console, "err", Console(width=200, stderr=True))
    return lambda: "".join(capsys.readouterr())


def test_the_table_marks_the_front_and_answers(tmp_path: Path, output: Output) -> None:
    grid(tmp_path / "x", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0)])

    report([tmp_path], max_drop=["30"], min_speedup=2.6)
    lines = output().splitlines()

    assert any(line.startswith("* bild fb=0.5 rb=1") for line in lines)
    assert any(line.startswith("  bild fb=0.5 rb=2") for line in lines)
    assert any("within 30 points of vanilla" in line and "bild fb=0.5 rb=1" in line for line in lines)
    assert any("speed-up of 2.6x or more" in line and "bild fb=0.5 rb=1" in line for line in lines)
    assert any("warning: fewer than 30 texts (2)" in line for line in lines)


def test_a_plot_is_drawn_where_it_is_asked_for(tmp_path: Path, output: Output) -> None:
    grid(tmp_path / "x", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0)])

    report([tmp_path], draw=True)
    drawn = output().splitlines()
    report([tmp_path])
    without = output().splitlines()

    assert any(re.fullmatch(r" {10}[A-C]  bild fb=0\.5 rb=1", line.rstrip()) for line in drawn)
    assert any(line.endswith("x decoding speed-up") for line in drawn)
    report([tmp_path], form=Format.PLOT)
    alone = output().splitlines()
    assert alone[0] == "ROUGE-L"
    assert alone == drawn[-len(alone) :]
    # Nobody reads a plot in a file or a pipe.
    assert not any(line.endswith("x decoding speed-up") for line in without)


def test_each_set_that_may_be_compared_has_a_section(tmp_path: Path, output: Output) -> None:
    experiment(tmp_path / "one")
    experiment(tmp_path / "two", split="validation")

    report([tmp_path])
    printed = output()

    assert "embedded/iwslt17 (test), pair embedded" in printed
    assert "embedded/iwslt17 (validation), pair embedded" in printed
    with pytest.raises(DataError, match=r"'split': differs: test in .*one, validation in .*two"):
        report([tmp_path], together=True)


def test_damaged_files_are_named_and_nothing_else_is_an_error(tmp_path: Path, output: Output) -> None:
    experiment(tmp_path / "good")
    experiment(tmp_path / "bad")
    (tmp_path / "bad" / "run.parquet").write_bytes(b"no Parquet")

    report([tmp_path])
    printed = output()

    assert "left out:" in printed
    assert "run.parquet" in printed
    assert "bild fb=0.5 rb=2" in printed
    with pytest.raises(DataError, match="damaged"):
        report([tmp_path / "bad"])


def test_lost_samples_cost_the_answers_and_are_named(tmp_path: Path, output: Output) -> None:
    experiment(tmp_path / "x")
    (tmp_path / "x" / "samples.parquet").unlink()

    report([tmp_path], max_drop=["30"])
    printed = output()

    assert "3.00x" in printed
    assert "samples.parquet is missing" in printed


@pytest.mark.parametrize("form", [Format.JSON, Format.CSV, Format.MARKDOWN, Format.LATEX])
def test_other_formats_are_the_only_thing_on_stdout(
    tmp_path: Path, form: Format, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    from bild_bench.cli import console

    monkeypatch.setattr(console, "out", Console())
    experiment(tmp_path / "x")

    report([tmp_path], form=form)
    printed = capsys.readouterr().out

    if form is Format.JSON:
        assert json.loads(printed)["groups"][0]["points"][1]["label"] == "bild fb=0.5 rb=2"
    else:
        starts = {
            Format.CSV: "group,task,",
            Format.MARKDOWN: "## embedded/iwslt17",
            Format.LATEX: "% \\usepackage{booktabs}",
        }
        assert printed.startswith(starts[form])


def test_plots_are_written_as_png_and_svg(tmp_path: Path, output: Output) -> None:
    grid(tmp_path / "x", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0), (0.9, 1.0, 1.0)])

    report([tmp_path], plots=tmp_path / "plots")

    plots = ["heatmaps", "pareto-difference", "pareto"]
    names = sorted(f"01-iwslt17-{name}.{ending}" for name in plots for ending in ("png", "svg"))
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == names


def test_the_page_answers_the_questions_that_were_asked(tmp_path: Path, output: Output) -> None:
    grid(tmp_path / "x", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0)])

    report([tmp_path], html=tmp_path / "report.html", max_drop=["30"], min_speedup=2.6)

    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    inlined = re.findall(r'type="application/json">(.*?)</script>', page, re.DOTALL)
    [group] = json.loads(inlined[0])["groups"]
    asked = [answer["question"] for answer in group["answers"]]
    assert asked == ["fastest within 30 points of vanilla", "best quality at a decoding speed-up of 2.6x or more"]


def test_an_empty_folder_and_impossible_numbers_are_said_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no results"):
        report([tmp_path])
    for wrong in ("-1", "nan", "inf", "0,", "0;1"):
        with pytest.raises(UsageError, match="--max-drop"):
            report([tmp_path], max_drop=[wrong])
    for impossible in (-1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="--min-speedup"):
            report([tmp_path], min_speedup=impossible)


def test_a_list_of_drops_has_an_answer_for_each_value(tmp_path: Path) -> None:
    grid(tmp_path / "x", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0)])

    listed = call("report", tmp_path, "--max-drop", "0,1,30", "--format", "json")
    repeated = call("report", tmp_path, "--max-drop", "0", "--max-drop", "1,30", "--max-drop", "30", "--format", "json")

    asked = [answer["question"] for answer in json.loads(listed.out)["groups"][0]["answers"]]
    assert asked == [
        "fastest at no loss (vanilla's score or above)",
        "fastest within 1 point of vanilla",
        "fastest within 30 points of vanilla",
    ]
    assert (listed.code, repeated.code) == (0, 0)
    assert repeated.out == listed.out
    refused = call("report", tmp_path, "--max-drop", "0,x")
    assert refused.code == 2
    assert refused.last_remark.startswith("error: --max-drop: '0,x': 'x' is not a usable number")


def test_a_long_group_is_cut_on_a_terminal_and_says_so(tmp_path: Path, output: Output) -> None:
    grid(tmp_path / "x", [(0.5, float(rb), 50.0 - rb) for rb in range(45)])

    report([tmp_path], max_drop=["30"])
    printed = output()

    assert "* bild fb=0.5 rb=44" in printed
    assert "6 more points: --format csv has all" in printed


def test_reading_results_loads_neither_torch_nor_the_plot_library(tmp_path: Path) -> None:
    experiment(tmp_path / "x", {"a": two_texts()["a"]})
    program = (
        "import sys; from pathlib import Path; from bild_bench.cli.report import report;"
        "early = {'pandas', 'pyarrow', 'numpy'} & set(sys.modules); report([Path(sys.argv[1])]);"
        "print('LOADED', early, {'torch', 'vl_convert', 'transformers'} & set(sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)

    assert "LOADED set() set()" in done.stdout
