"""The bench's command line: its parts together, its options, and the product's commands."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench import commands, cpu, figures, table
from bench.figures import Figure
from bild_bench.errors import DataError
from tests.made_benches import ROW, TINY, quiet


def test_commands_that_fail_leave_rows_that_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_COMMAND", (sys.executable, "-c", "import sys; sys.exit('broken: no')"))
    rows = commands.command_figures(tmp_path, quiet)
    assert [(row.name, row.ratio, row.note) for row in rows] == [
        ("--help", None, "broken: no"),
        ("report on 100 experiments", None, "broken: no"),
    ]


def test_commands_are_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_RUNS", 1)
    rows = commands.command_figures(tmp_path, quiet, experiments=2)
    assert [row.name for row in rows] == ["--help", "report on 2 experiments"]
    assert all(row.ratio is not None and row.unit == "s" for row in rows), rows
    assert not list(tmp_path.iterdir())


def test_a_busy_machine_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cpu, "load_average", lambda: 0.8)
    assert cpu.main([]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "a load of 0.8" in printed.err
    assert "--force" in printed.err


def test_what_is_measured_is_kept_when_a_later_part_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def part(name: str, *_: object) -> list[Figure]:
        if name == "embedded":
            raise DataError("model", name, "is damaged", "restore it")
        return [replace(ROW, shape=name)]

    loads = iter([0.0, 2.9])
    monkeypatch.setattr(cpu, "load_average", lambda: next(loads))
    monkeypatch.setattr(cpu, "_part", part)
    assert cpu.main(["--only", "t5-small", "embedded", "--out", str(tmp_path), "--threads", "2"]) == 3
    found, _, environment = figures.load(table.newest(tmp_path))
    assert [row.shape for row in found] == ["t5-small"]
    # Of a load of 2.9 two are our own threads.
    assert "a load of 0.9" in environment["busy"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--pair-large", "a"], "needs --pair-small"),
        (["--pair-small", "a"], "needs --pair-small"),
        (["--pair-large", "a", "--pair-small", "b"], "needs texts"),
        (["--texts", "-3"], "must be 2 or more"),
        (["--memory-texts", "0"], "must be 2 or more"),
        (["--no-loss-at", "2", "1"], "--alpha-fb"),
        (["--pair-large", "a", "--pair-small", "b", "--data", "c"], "texts that are not measured"),
        (["--only", "trained"], "needs a pair"),
    ],
)
def test_half_a_pair_is_refused(
    options: list[str], problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cpu, "load_average", lambda: 0.0)
    assert cpu.main(options) == 2
    assert problem in capsys.readouterr().err


def test_a_run_writes_figures_that_the_table_can_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "load_average", lambda: 0.8)
    monkeypatch.setattr(cpu, "RANDOM_SHAPES", {"t5-small": TINY})
    monkeypatch.setattr(cpu, "_TEXTS", {"t5-small": 2})
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    monkeypatch.setattr(cpu, "PARTS", ("t5-small", "trained"))
    folders = ["--bench-dir", str(tmp_path / "cache"), "--out", str(tmp_path)]
    assert cpu.main(["--threads", "1", "--force", *folders]) == 0
    found, _, environment = figures.load(table.newest(tmp_path))
    assert {row.shape for row in found} == {"t5-small", "trained pair"}
    assert found[-1].note == "no pair was given: --pair-large, --pair-small and --data"
    assert "load of 0.8" in environment["busy"]
    assert environment["threads"] == 1
    assert environment["options"]["forced"] is True
