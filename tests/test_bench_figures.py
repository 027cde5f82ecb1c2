"""The bench's figures, their file and their page; by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import pytest

from bench import figures, table
from bench.figures import Figure
from bild_bench.errors import DataError
from tests.made_benches import ENVIRONMENT, ROW


def test_a_figure_is_a_ratio_of_sums_with_an_interval_around_it() -> None:
    found = figures.figure("vanilla", "t5", "over x", [2.0, 4.0], [1.0, 1.0], target=3.0)
    assert (found.ratio, found.reached, found.texts) == (3.0, True, 2)
    # Either text alone gives 2 or 4: no resample lies outside.
    assert found.low is not None
    assert found.high is not None
    assert 2.0 <= found.low <= 3.0 <= found.high <= 4.0


def test_one_text_has_no_interval() -> None:
    found = figures.figure("vanilla", "t5", "over x", [2.0], [1.0])
    assert (found.ratio, found.low, found.high, found.reached) == (2.0, None, None, None)


def test_times_that_have_no_ratio_cost_one_row() -> None:
    found = figures.figure("vanilla", "t5", "over x", [2.0, 1.0], [0.0, 0.0], target=1.0)
    assert (found.ratio, found.reached, found.target) == (None, None, 1.0)
    assert "must sum to more than 0" in found.note


@pytest.mark.parametrize(
    ("value", "bound", "expected"),
    [(1.5, "at least", True), (1.49, "at least", False), (1.5, "at most", True), (1.51, "at most", False)],
)
def test_a_target_is_reached_on_the_right_side_of_it_and_on_it(value: float, bound: Any, expected: bool) -> None:
    assert figures.holds(value, 1.5, bound) is expected


def test_a_further_condition_can_only_take_a_target_away() -> None:
    assert figures.on_condition(ROW, True).reached is True
    assert figures.on_condition(ROW, False).reached is False
    assert figures.on_condition(replace(ROW, reached=None), False).reached is None


def test_figures_come_back_from_their_file_as_they_were(tmp_path: Path) -> None:
    absent = figures.missing("vanilla", "t5", "over y", "not installed", target=1.0)
    path = tmp_path / "new" / "bench.parquet"
    figures.save(path, [ROW, absent], "2026-11-29", ENVIRONMENT)
    assert figures.load(path) == ([ROW, absent], "2026-11-29", ENVIRONMENT)


def test_a_file_of_absent_figures_alone_keeps_its_types(tmp_path: Path) -> None:
    absent = figures.missing("vanilla", "t5", "over y", "not installed")
    figures.save(tmp_path / "a.parquet", [absent], "2026-11-29", ENVIRONMENT)
    assert figures.load(tmp_path / "a.parquet")[0] == [absent]


def test_what_is_no_file_of_figures_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no Parquet")
    for path in (tmp_path / "a.parquet", tmp_path / "none.parquet"):
        with pytest.raises(DataError, match=r"bench results: .*cannot be read"):
            figures.load(path)


def test_another_programs_table_and_an_empty_one_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pandas.DataFrame({"name": [1]}).to_parquet(path)
    with pytest.raises(DataError, match="another program's: it has no column shape, contestant"):
        figures.load(path)
    figures.save(path, [ROW], "2026-11-29", ENVIRONMENT)
    pandas.read_parquet(path).head(0).to_parquet(path)
    with pytest.raises(DataError, match="holds no rows"):
        figures.load(path)


# The page


def test_the_table_has_a_line_per_figure_with_units_and_escaped_bars() -> None:
    share = Figure("outside", "t5", "vanilla", 0.0314, None, None, 0.03, "at most", False, "share", 2, "")
    lines = table.markdown([ROW, share, figures.missing("a", "b", "c", "why")], "2026-11-29", ENVIRONMENT).splitlines()
    assert lines[0] == (
        "Measured 2026-11-29 on a CPU, 2 cores; 2 threads; float32, torch 2.13.0, transformers 5.24.0; "
        "commit 0123456789."
    )
    assert lines[4] == "| vanilla | t5 | over x | 3.00x | 2.50x to 3.50x | at least 2.00x | yes | a\\|b |"
    assert lines[5] == "| outside | t5 | vanilla | 3.1 % |  | at most 3.0 % | no |  |"
    assert lines[6] == "| a | b | c | not measured |  |  |  | why |"


def test_a_ratio_that_would_do_says_what_stands_in_its_way() -> None:
    lost = figures.on_condition(ROW, False)
    assert "| no: quality lost |" in table.markdown([lost], "2026-11-29", ENVIRONMENT)
    slow = replace(ROW, ratio=1.5, reached=False)
    assert "| no |" in table.markdown([slow], "2026-11-29", ENVIRONMENT)


def test_a_busy_machine_is_told_above_the_table() -> None:
    assert table.described("d", {**ENVIRONMENT, "busy": "The machine was busy."}).endswith(" **The machine was busy.**")


def test_the_cpus_page_names_no_gpu() -> None:
    environment = {"cpu_model": "a CPU", "cores": 2, "threads": 2, "git_revision": "0", "git_dirty": False}
    assert table.described("d", {**environment, "gpu_name": None}).startswith("Measured d on a CPU, 2 cores; 2 threads")
    on_gpu = table.described("d", {**environment, "gpu_name": "T4", "gpu_driver": "570"})
    assert on_gpu.startswith("Measured d on T4 (driver 570, host a CPU, 2 cores); 2 threads; ")


def test_only_what_lies_between_the_markers_is_rewritten() -> None:
    page = f"before\n<!-- bench: table -->\nold\n{table.END}\nafter\n"
    once = table.rewritten(page, {"table": "new"})
    assert once == f"before\n<!-- bench: table -->\nnew\n{table.END}\nafter\n"
    assert table.rewritten(once, {"table": "new"}) == once
    with pytest.raises(DataError, match="lacks the markers"):
        table.rewritten("no markers", {"table": "new"})
    with pytest.raises(DataError, match="page: 'other': is no table"):
        table.rewritten(f"<!-- bench: other -->\n{table.END}", {"table": "new"})


def test_the_newest_file_is_shown_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for page in (table.PAGE, table.ROWS):
        page.parent.mkdir(exist_ok=True)
        page.write_text(f"<!-- bench: table -->\n{table.END}")
    assert table.main([]) == 3
    for name, shape in (("20261128T000000Z", "old"), ("20261129T000000Z", "new")):
        figures.save(table.RESULTS / f"{name}.parquet", [replace(ROW, shape=shape)], "2026-11-29", ENVIRONMENT)
    assert table.main([]) == 0
    assert "| vanilla | new |" in table.ROWS.read_text()


def test_files_that_are_named_are_shown_each_with_its_own_machine(tmp_path: Path) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, threads in zip(paths, (1, 2), strict=True):
        figures.save(path, [ROW], "2026-11-29", {**ENVIRONMENT, "threads": threads})
    made = table.all_tables(paths)
    assert made["table"].count("| vanilla | t5 |") == 2
    assert made["table"].index("; 1 thread;") < made["table"].index("; 2 threads;")
    assert [line.startswith("- Measured 2026-11-29 on a CPU") for line in made["machine"].splitlines()] == [True, True]
