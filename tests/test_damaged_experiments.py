"""One bad experiment is left out by name, and the others are shown: in `report`, in every form, and in `compare`."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet as pq

from bild_bench.report.collect import collect
from bild_bench.schema import RUN_SCHEMA, SAMPLE_SCHEMA
from tests.command_line import call
from tests.made_reports import experiment
from tests.made_results import BASELINE, POINT

Damage = Callable[[Path], object]


def _run(name: str, value: object) -> Damage:
    """run.parquet with another value of a field; what is no text becomes JSON."""

    def damage(directory: Path) -> None:
        [row] = pq.read_table(directory / "run.parquet").to_pylist()
        if isinstance(row[name], str) and not isinstance(value, str):
            row[name] = json.dumps(value)
        else:
            row[name] = value
        pq.write_table(pyarrow.Table.from_pylist([row], schema=RUN_SCHEMA), directory / "run.parquet")

    return damage


def _sample(name: str, value: object) -> Damage:
    """samples.parquet with another value in its last row, and no summary that would spare reading it."""

    def damage(directory: Path) -> None:
        rows = pq.read_table(directory / "samples.parquet").to_pylist()
        rows[-1][name] = value
        pq.write_table(pyarrow.Table.from_pylist(rows, schema=SAMPLE_SCHEMA), directory / "samples.parquet")
        (directory / "summary.parquet").unlink()

    return damage


def _summary(name: str, values: object) -> Damage:
    """summary.parquet with another column: the figures are made again from the samples."""

    def damage(directory: Path) -> None:
        table = pq.read_table(directory / "summary.parquet")
        place = table.column_names.index(name)
        held = table.remove_column(place)
        pq.write_table(
            held if values is None else held.add_column(place, name, [values]), directory / "summary.parquet"
        )

    return damage


def _pipe(name: str) -> Damage:
    def damage(directory: Path) -> None:
        (directory / name).unlink()
        os.mkfifo(directory / name)

    return damage


def _folder(directory: Path) -> None:
    (directory / "run.parquet").unlink()
    (directory / "run.parquet").mkdir()


def _point(**changes: Any) -> list[dict[str, Any]]:
    return [BASELINE, {**POINT, **changes}]


_DEEP = "[" * 5_000 + "]" * 5_000
_LEFT_OUT: dict[str, tuple[Damage, str]] = {
    "points: no JSON": (_run("points", "["), "points is not valid JSON"),
    "points: null": (_run("points", "null"), "damaged (points: Input should be a valid list)"),
    "points: none": (_run("points", "[]"), "damaged (points: List should have at least 1 item"),
    "points: numbers": (_run("points", "[1, 2]"), "damaged (points.0: "),
    "points: no id": (_run("points", '[{"point": "a"}]'), "damaged (points.0.point_id: Field required)"),
    "points: label of another type": (_run("points", _point(point=5)), "damaged (points.1.point: "),
    "points: a role of its own": (_run("points", _point(role="boss")), "damaged (points.1.role: "),
    "points: settings a list": (_run("points", _point(settings=[1])), "damaged (points.1.settings: "),
    "points: an id twice": (_run("points", _point(point_id=BASELINE["point_id"])), "damaged (points: ids repeat)"),
    "points: two baselines": (_run("points", _point(role="baseline")), "damaged (points: more than one baseline)"),
    "points: deep": (_run("points", _DEEP), "damaged (points is nested too deeply)"),
    "configuration: a list": (_run("configuration", "[]"), "damaged (configuration: "),
    "configuration: null": (_run("configuration", "null"), "damaged (configuration: "),
    "configuration: draws a word": (_run("configuration", {"draws": "many"}), "damaged (configuration.draws: "),
    "configuration: deep": (_run("configuration", f'{{"a": {_DEEP}}}'), "configuration is nested too deeply"),
    "configuration: 30 levels": (_run("configuration", "[" * 30 + "]" * 30), "configuration is nested too deeply"),
    "environment: NaN": (_run("environment", '{"load": NaN}'), "environment is not valid JSON (NaN is no JSON)"),
    "environment: infinite load": (_run("environment", '{"load": Infinity}'), "damaged (environment.load"),
    "environment: threads a list": (_run("environment", {"threads": [2]}), "damaged (environment.threads: "),
    "environment_after: a text": (_run("environment_after", '"x"'), "damaged (environment_after: "),
    "environment_after: busy a number": (_run("environment_after", {"busy": 5}), "damaged (environment_after.busy: "),
    "models: a text": (_run("models", '"x"'), "damaged (models: "),
    "models: large null": (_run("models", {"large": None}), "damaged (a part of it: "),
    "models: fingerprint a number": (_run("models", {"large": {"fingerprint": 5}}), "damaged (fingerprint: "),
    "data: a list": (_run("data", "[1]"), "damaged (data: "),
    "data: expected a word": (_run("data", {"expected": "all"}), "damaged (data.expected: "),
    "calibration: rows a list": (
        _run("calibration", {"large": {"rows": [1], "encode_seconds": 0.1}}),
        "damaged (rows: ",
    ),
    "calibration: rows by words": (
        _run("calibration", {"large": {"rows": {"one": 0.1}, "encode_seconds": 0.1}}),
        "damaged (rows.one",
    ),
    "calibration: below 0": (
        _run("calibration", {"large": {"rows": {"1": -0.1}, "encode_seconds": 0.1}}),
        "damaged (rows.1: ",
    ),
    "texts_expected: numbers": (_run("texts_expected", "[1, 2]"), "damaged (texts_expected.0: "),
    "texts_expected: one twice": (_run("texts_expected", '["a", "a"]'), "damaged (texts_expected: ids repeat)"),
    "texts: more than there are": (_run("texts", 7), "damaged (texts: not as many as texts_expected)"),
    "status: another word": (_run("status", "done"), "damaged (status: "),
    "metric: another word": (_run("metric", "meteor"), "damaged (metric: not known"),
    "rows of another experiment": (_sample("experiment_id", "e9"), "experiment_id 'e9' is not the run's"),
    "rows of another point": (_sample("point_id", "9" * 16), f"point_id '{'9' * 16}' is not the run's"),
    "rows of another text": (_sample("text_id", "z"), "text_id 'z' is not the run's"),
    "a status of its own": (_sample("status", "maybe"), "status 'maybe' is not the run's"),
    "a good row without its text": (_sample("output_text", None), "has 1 rows of status ok without output_text"),
    "a time below 0": (_sample("decode_seconds", -1.0), "-1.0: must be finite and at least 0"),
    "run.parquet is a pipe": (_pipe("run.parquet"), "is not a regular file"),
    "run.parquet is a folder": (_folder, "is not a regular file"),
}
_MADE_AGAIN: dict[str, Damage] = {
    "summary is a pipe": _pipe("summary.parquet"),
    "summary: a column lost": _summary("errors", None),
    "summary: words for counts": _summary("texts", pyarrow.array(["a", "b"])),
    "summary: words for a score": _summary("quality_value", pyarrow.array(["a", "b"])),
    "summary: a speed-up that is no number": _summary("speedup_decoding", pyarrow.array([1.0, float("nan")])),
    "summary: nulls for names": _summary("point", pyarrow.array([None, None], pyarrow.string())),
    "summary: another run's points": _summary("point_id", pyarrow.array(["x", "y"])),
    "summary: lists": _summary("ms_per_token", pyarrow.array([[1.0], [2.0]])),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return experiment(tmp_path_factory.mktemp("sound") / "one")


def beside_a_sound_one(sound: Path, folder: Path, damage: Damage) -> Path:
    shutil.copytree(sound, folder / "good")
    bad = Path(shutil.copytree(sound, folder / "bad"))
    damage(bad)
    return bad


@pytest.mark.parametrize("case", _LEFT_OUT)
def test_a_bad_experiment_is_left_out_by_name(sound: Path, tmp_path: Path, case: str) -> None:
    damage, problem = _LEFT_OUT[case]
    bad = beside_a_sound_one(sound, tmp_path, damage)

    found = collect([tmp_path])
    shown = [member.directory.name for group in found.groups for member in group.members]

    assert shown == ["good"]
    assert problem in found.damaged[-1]
    assert str(bad) in found.damaged[-1]


@pytest.mark.parametrize("case", _MADE_AGAIN)
def test_a_bad_summary_is_named_and_made_again(sound: Path, tmp_path: Path, case: str) -> None:
    beside_a_sound_one(sound, tmp_path, _MADE_AGAIN[case])

    found = collect([tmp_path])

    [group] = found.groups
    assert [entry.speedup for entry in group.entries] == [pytest.approx(x) for x in (1.0, 1.0, 3.0, 3.0)]
    [line] = found.damaged
    assert str(tmp_path / "bad" / "summary.parquet") in line


def test_report_and_compare_show_the_others(sound: Path, tmp_path: Path) -> None:
    shutil.copytree(sound, tmp_path / "all" / "good")
    for number, (damage, _) in enumerate(_LEFT_OUT.values()):
        damage(Path(shutil.copytree(sound, tmp_path / "all" / f"bad{number:02}")))

    for form in ("table", "json", "csv", "markdown"):
        ended = call("report", tmp_path / "all", "--format", form)
        assert ended.code == 0
        assert "unexpected" not in ended.err
        assert ended.err.count("left out: ") >= len(_LEFT_OUT) - 2
        assert "bild fb=0.5 rb=2" in ended.out
    page = call("report", tmp_path / "all", "--html", tmp_path / "page.html")
    assert (page.code, (tmp_path / "page.html").is_file()) == (0, True)
    compared = call("compare", tmp_path / "all", sound)
    assert (compared.code, "unexpected" in compared.err) == (0, False)
    assert "bild fb=0.5 rb=2" in compared.out


def test_no_advice_to_delete_what_could_not_be_read(sound: Path, tmp_path: Path) -> None:
    beside_a_sound_one(sound, tmp_path, lambda bad: (bad / "run.parquet").write_bytes(b"PAR1"))
    [line] = collect([tmp_path]).damaged
    assert "delete" not in line.partition("bad/run.parquet")[2]
    assert "restore it from a copy" in line
