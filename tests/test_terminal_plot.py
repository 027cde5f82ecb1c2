"""The plot in a terminal: every point stands where its figures say, and the front is named first."""

from __future__ import annotations

from bild_bench.report.terminal_plot import Mark, scatter

MARKS = [Mark("vanilla", 40.0, 1.0), Mark("bild fb=0.5", 39.0, 3.0), Mark("speculative", 38.0, 2.0)]


def test_corners_and_middle() -> None:
    lines = scatter(MARKS, "BLEU", width=21, height=3).plain.splitlines()
    assert lines == [
        "BLEU",
        "    40.0 ┤A                    ",
        "         │                    B",
        "    38.0 ┤          C          ",
        "         └─────────────────────",
        "          1.00x 3.00x decoding speed-up",
        "          A  vanilla",
        "          B  bild fb=0.5",
        "          C  speculative",
    ]


def test_the_front_is_bold_and_the_rest_dim() -> None:
    text = scatter(MARKS, "BLEU", width=21, height=3)
    styles = {text.plain[span.start : span.end].strip(): str(span.style) for span in text.spans}
    assert styles == {"A": "bold green", "B": "bold green", "C": "dim"}


def test_equal_figures_make_one_cell_and_no_division_by_zero() -> None:
    lines = scatter([Mark("one", 30.0, 1.0), Mark("two", 30.0, 1.0)], "BLEU", width=3, height=3).plain.splitlines()
    assert lines[1:4] == ["    30.5 ┤   ", "         │ A ", "    29.5 ┤   "]


def test_many_points_name_the_front_only() -> None:
    many = [Mark(f"p{number}", 100.0 - number, 1.0) for number in range(60)]
    lines = scatter(many, "BLEU", width=10, height=60).plain.splitlines()
    assert lines[-1] == "          A  p0"
    assert [line.strip(" │┤0123456789.") for line in lines[1:61]][-9:] == ["z", *["·"] * 8]
