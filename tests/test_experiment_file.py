"""An experiment file says what flags say: its values are the texts that would be typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bild_bench.errors import BildBenchError, DataError, UsageError
from bild_bench.experiment_file import read_experiment_file

KNOWN = ("task", "alpha-fb", "alpha-rb", "gamma", "mode", "limit", "verify-tail", "prefix", "small")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "grid.yaml"


def written(file: Path, content: str) -> dict[str, str]:
    file.write_text(content, encoding="utf-8")
    return read_experiment_file(file, KNOWN)


@pytest.mark.parametrize(
    ("line", "option", "text"),
    [
        ("task: iwslt17", "task", "iwslt17"),
        ("alpha-fb: 0.3:0.9:0.1", "alpha-fb", "0.3:0.9:0.1"),
        # YAML 1.1 itself reads these as base 60, base 8, a thousand, a date and truth.
        ("gamma: 3:10", "gamma", "3:10"),
        ("alpha-rb: 1:5:0.5", "alpha-rb", "1:5:0.5"),
        ("limit: 010", "limit", "010"),
        ("limit: 1_000", "limit", "1_000"),
        ("task: 2026-11-29", "task", "2026-11-29"),
        ("task: no", "task", "no"),
        ("alpha-rb: .inf", "alpha-rb", ".inf"),
        ("alpha_rb: inf", "alpha-rb", "inf"),
        ("verify-tail: true", "verify-tail", "true"),
        ('limit: "3"', "limit", "3"),
        ('prefix: ""', "prefix", ""),
        ('prefix: "translate: "', "prefix", "translate: "),
        ("alpha-rb: [1, 2, inf]", "alpha-rb", "1,2,inf"),
        ("gamma: [3:5, 8]", "gamma", "3:5,8"),
        ("small:\n- models/a\n- models/b", "small", "models/a,models/b"),
        ("task: Übersetzung", "task", "Übersetzung"),
    ],
)
def test_values_are_taken_as_they_stand(file: Path, line: str, option: str, text: str) -> None:
    assert written(file, line) == {option: text}


def test_several_options_keep_their_order(file: Path) -> None:
    options = written(file, "# a sweep\ntask: iwslt17\nmode: [bild, small]\nalpha_fb: 0.5\n")
    assert list(options.items()) == [("task", "iwslt17"), ("mode", "bild,small"), ("alpha-fb", "0.5")]


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        ("", DataError, "must be a mapping of options; write lines such as"),
        ("- task", DataError, "must be a mapping"),
        ("task", DataError, "must be a mapping"),
        ("task: [", DataError, "cannot be read as YAML (while parsing"),
        ("a: b: c", DataError, "cannot be read as YAML ("),
        ("task: !!python/object/apply:os.system ['true']", DataError, "could not determine a constructor"),
        ("alpha-bf: 0.5", UsageError, "--config grid.yaml: 'alpha-bf': not known (allowed: alpha-fb, "),
        ("verify_tial: true", UsageError, "did you mean 'verify-tail'?"),
        ("7: 0.5", UsageError, "--config grid.yaml: '7': not known"),
        ("task:", DataError, "--config grid.yaml: task: not given: must be a value or a list"),
        ("task: ~", DataError, "must be a value or a list"),
        ("task: {name: x}", DataError, "task: {'name': 'x'}: must be a value or a list; correct it, or take it out"),
        ("gamma: []", DataError, "gamma: []: must be a list of numbers or names"),
        ("gamma: [3, [4]]", DataError, "must be a list of numbers or names"),
        ("gamma-: 2", UsageError, "'gamma-': not known"),
        ("alpha-fb: 0.5\nalpha_fb: 0.9", DataError, "grid.yaml: alpha_fb: '0.9': is given twice; leave one out"),
    ],
)
def test_a_file_that_does_not_say_what_flags_could_say_is_refused_in_one_line(
    file: Path, content: str, error: type[BildBenchError], says: str
) -> None:
    with pytest.raises(error) as refused:
        written(file, content)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_refused(file: Path) -> None:
    with pytest.raises(DataError, match=r"^--config: .*grid\.yaml': cannot be read as YAML \(.*No such file"):
        read_experiment_file(file, KNOWN)
    file.write_bytes(b"task: \xff\xfe")
    with pytest.raises(DataError, match=r"cannot be read as YAML \(.*utf-8.*\); correct the file"):
        read_experiment_file(file, KNOWN)
