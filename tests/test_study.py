"""The study on a few texts and tiny models; and its page, whose every figure is that of results/reference."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from bild_bench.cli.main import app
from bild_bench.errors import DataError
from study import operations, page, run
from study.rows import load, save
from study.trials import STRIDES, trials
from tests.checkpoints import save_t5
from tests.made_data import jsonl

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / page.REFERENCE
WIDTH = 16


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options of a study over two texts of each set."""
    folder = tmp_path_factory.mktemp("study")
    for number, trial in enumerate({trial.texts.test: trial for trial in trials()}.values()):
        for place, name in enumerate((trial.texts.validation, trial.texts.test)):
            (folder / "data" / name).parent.mkdir(parents=True, exist_ok=True)
            rows = [{"source": f"ein Hund {10 * number + place} {text}", "target": "a dog"} for text in range(2)]
            jsonl(folder / "data" / name, rows)
    for seed, model in enumerate(run.MODELS):
        layers = 1 if model in ("small", "aligned") else 2
        save_t5(
            folder / "models" / model, gated=True, seed=seed, d_model=WIDTH, num_decoder_layers=layers, num_layers=1
        )
    classifier = {"weight": torch.ones(WIDTH), "bias": torch.tensor(0.0)}
    save_file(classifier, folder / "models" / "calm" / "exit_classifier.safetensors")
    options = {"data": folder / "data", "models": folder / "models", "out": folder / "out"}
    return [*(f"--{name}={path}" for name, path in options.items()), "--limit=2", "--force"]


@pytest.fixture(scope="module")
def studied(given: list[str]) -> Path:
    """The folder of a whole study, with the operations of one profile only: ceilings take seconds to measure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "trials", lambda: trials()[:1])
        assert run.main(given) == 0
    return Path(given[2].removeprefix("--out="))


def test_every_table_has_rows_and_every_row_counters(studied: Path) -> None:
    tables = page.all_tables(studied)
    assert all(table.count("\n") > 2 for name, table in tables.items() if name != "measured"), tables.keys()
    rows = load(studied / run.ROWS)[0]
    for found in rows:
        counters = json.loads(found.counters)
        if found.method.startswith("hf-"):
            continue
        assert counters["generated"] == counters["drafted"] - counters["discarded"] + counters["large_tokens"], found
    assert {found.trial for found in rows} == {trial.name for trial in trials()}


def test_a_trial_has_one_baseline_and_every_stride(studied: Path) -> None:
    rows = load(studied / run.ROWS)[0]
    for trial in trials():
        assert [found.method for found in rows if found.trial == trial.name].count("vanilla") == 1
    strides = {found.point.split("cap=")[1].split()[0] for found in rows if "cap=" in found.point}
    assert strides == {str(stride) for stride in STRIDES}


def test_no_row_tells_a_text_or_a_path(studied: Path) -> None:
    for found in load(studied / run.ROWS)[0]:
        assert "Hund" not in str(found)
        assert str(studied.parent) not in str(found)


def test_a_rows_command_is_one_that_runs(studied: Path, given: list[str]) -> None:
    folders = {f"${name.upper()}": given[place].split("=")[1] for place, name in enumerate(("data", "models"))}
    rows = {found.method: found for found in load(studied / run.ROWS)[0]}
    assert len(rows) > 6
    for found in rows.values():
        line = found.command
        for name, folder in folders.items():
            line = line.replace(name, folder)
        words = shlex.split(line.replace("bild_bench/embedded", str(ROOT / "bild_bench" / "embedded")))[1:]
        if "--limit" in words:
            words[words.index("--limit") + 1] = "1"
        done = CliRunner().invoke(app, [*words, "--warmup", "0", "--out", str(studied / "again" / found.method)])
        assert done.exit_code == 0, (line, done.output, done.exception)


def test_a_second_run_beside_the_first_is_told(studied: Path, tmp_path: Path) -> None:
    for name in (run.ROWS, operations.FILE):
        shutil.copy(studied / name, tmp_path / name)
    assert "Run again" not in page.all_tables(tmp_path)["measured"]
    shutil.copy(studied / run.ROWS, tmp_path / page.AGAIN)
    told = page.all_tables(tmp_path)["measured"].partition("Run again ")[2]
    within, compared = told.partition(": ")[2].split()[:3:2]
    assert within == compared != "0"


def test_a_second_call_reads_what_is_complete(studied: Path, given: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    before = load(studied / run.ROWS)[0]
    monkeypatch.setattr(operations, "run", lambda *_: None)
    assert run.main(given) == 0
    assert load(studied / run.ROWS)[0] == before


@pytest.mark.parametrize(
    ("place", "option", "missing"),
    [(0, "--data", "multi30k/val.jsonl"), (1, "--models", "large"), (1, "--models", "calm")],
)
def test_what_is_missing_is_named(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], place: int, option: str, missing: str
) -> None:
    if missing == "calm":
        for model in run.MODELS[:-1]:
            (tmp_path / model).mkdir()
            (tmp_path / model / "config.json").write_text("{}")
    options = [*given[:place], f"{option}={tmp_path}", *given[place + 1 :]]
    assert run.main(options) == 3
    assert f"{option}: '{tmp_path}': lacks {missing}" in capsys.readouterr().err


@pytest.mark.parametrize("path", page.PAGES, ids=str)
def test_the_pages_tables_are_those_of_results_reference(path: Path) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert page.rewritten(text, page.all_tables(REFERENCE)) == text


def test_a_table_that_there_is_not_is_named() -> None:
    with pytest.raises(Exception, match=r"nothing.*is no table"):
        page.rewritten("<!-- study: nothing -->\n<!-- study: end -->", {"something": ""})


def test_a_part_of_a_study_makes_no_page(tmp_path: Path) -> None:
    rows, date, environment = load(REFERENCE / run.ROWS)
    save(tmp_path / run.ROWS, [row for row in rows if row.trial != "calm"], date, environment)
    with pytest.raises(DataError, match="is a part of a study: it lacks calm;"):
        page.all_tables(tmp_path)


def test_a_folder_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        load(tmp_path)


def test_the_reference_holds_every_row_of_the_plan() -> None:
    rows = load(REFERENCE / run.ROWS)[0]
    for trial in trials():
        points = {found.point for found in rows if found.trial == trial.name}
        assert {point.label for point in trial.fixed} <= points
