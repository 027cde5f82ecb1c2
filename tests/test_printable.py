"""Names of any kind: shown as text by the terminal, plots, Markdown and CSV, and never acted on."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bild_bench.errors import DataError
from bild_bench.plan import Point
from bild_bench.printable import one_line, visible, visible_values
from bild_bench.report import charts
from bild_bench.report.collect import collect
from bild_bench.report.export import Findings, to_csv, to_markdown
from bild_bench.report.latex import to_latex
from tests.made_reports import experiment, only_group
from tests.made_results import BASELINE, POINT, made_sample, two_texts

EVIL = "bild  a\x1b[2J\x07\x00\ud800\u202eb\nc"
SHOWN = r"bild a\x1b[2J\x07\x00\ud800\u202eb c"


def _named(directory: Path, *names: str) -> None:
    points = [{**POINT, "point": name, "point_id": f"{place:016d}"} for place, name in enumerate(names, start=1)]
    texts = {name: [made_sample(BASELINE, text_id=name)] for name in two_texts()}
    for text_id, rows in texts.items():
        rows += [made_sample(point, text_id=text_id) for point in points]
    experiment(directory / "x", texts, points=[BASELINE, *points])


def test_what_is_not_seen_is_written_out_and_the_rest_stays() -> None:
    assert one_line(EVIL) == SHOWN
    assert visible("Grüße\t漢字 👩\u200d🔬\n\x9b\u2028") == "Grüße\t漢字 👩\u200d🔬\n\\x9b\\u2028"
    assert visible_values({"a\x00": ["\x1b", 1, None]}) == {"a\\x00": ["\\x1b", 1, None]}


def test_a_plan_s_label_is_on_one_line() -> None:
    class Odd:
        def label(self) -> str:
            return "a  b\x1b\n"

    method = type("M", (), {"name": "odd"})()
    assert Point(method, Odd()).label == "odd a b\\x1b"


def test_labels_that_only_differ_in_what_is_not_seen_are_numbered(tmp_path: Path) -> None:
    _named(tmp_path, "bild a", "bild  a", "bild\ta")

    assert [entry.label for entry in only_group(tmp_path).entries] == ["vanilla", "bild a", "bild a #2", "bild a #3"]


def test_plots_of_any_name_are_drawn(tmp_path: Path) -> None:
    # A NUL, or a character that XML forbids, ended the renderer and the whole process with it.
    _named(tmp_path, "bild a\x00\x0b\ufffe\x1b")
    spec = charts.pareto(only_group(tmp_path))

    assert r"a\x00 \ufffe\x1b" in charts.svg(spec)
    assert charts.png(spec).startswith(b"\x89PNG")


def test_a_terminal_gets_no_control_character_from_a_name(tmp_path: Path) -> None:
    _named(tmp_path, "bild \x1b]0;owned\x07 x")

    ran = subprocess.run(
        [sys.executable, "-m", "bild_bench", "report", str(tmp_path), "--draw"], capture_output=True, check=True
    )

    assert rb"bild \x1b]0;owned\x07 x" in ran.stdout
    assert re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", ran.stdout + ran.stderr) is None


def test_an_error_s_message_has_no_control_character() -> None:
    assert str(DataError("file", "x", "a \x1b[31mred\x1b[0m\nword", "see")) == (
        r"file: 'x': a \x1b[31mred\x1b[0m word; see"
    )


def test_a_line_end_in_a_command_stays_inside_the_code_block(tmp_path: Path) -> None:
    command = "bild-bench run --prefix 'a\n<script>x</script>\r\n\n# Title: '"
    experiment(tmp_path / "x", command=command)
    collected = collect([tmp_path])

    lines = to_markdown(collected, [Findings([], []) for _ in collected.groups]).splitlines()

    start = lines.index("    bild-bench run --prefix 'a")
    assert lines[start : start + 4] == [
        "    bild-bench run --prefix 'a",
        "    <script>x</script>\\x0d",
        "    ",
        "    # Title: '",
    ]


def test_markdown_makes_no_link_or_picture_of_a_name(tmp_path: Path) -> None:
    _named(tmp_path, "![x](http://a.example/p.png)")
    collected = collect([tmp_path])

    text = to_markdown(collected, [Findings([], []) for _ in collected.groups])

    [row] = [line for line in text.splitlines() if line.startswith("|") and "a.example" in line]
    assert "![x]\\(http" in row


@pytest.mark.parametrize("first", "=+-@")
def test_no_cell_of_the_csv_is_a_formula(tmp_path: Path, first: str) -> None:
    formula = first + "HYPERLINK(1)"
    _named(tmp_path, formula)

    _, row = csv.DictReader(io.StringIO(to_csv(collect([tmp_path]))))

    assert (row["label"], row["point"]) == ("'" + formula, "'" + formula)
    # A figure below 0 stays a number.
    assert float(row["quality_difference"]) <= 0


def test_a_difference_below_zero_is_a_number_in_the_csv(tmp_path: Path) -> None:
    experiment(tmp_path / "x")

    _, point = csv.DictReader(io.StringIO(to_csv(collect([tmp_path]))))

    assert float(point["quality_difference"]) == pytest.approx(78.571 - 100, abs=0.001)


def test_latex_comments_and_cells_have_no_control_character(tmp_path: Path) -> None:
    _named(tmp_path, "bild \x1b[2J")

    text = to_latex(collect([tmp_path]))

    assert r"bild \textbackslash{}x1b[2J" in text
    assert "\x1b" not in text
