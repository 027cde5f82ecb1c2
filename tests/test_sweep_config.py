"""`sweep --config`: the file says the same as the flags, flags win over it, and the record stands without it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from bild_bench import results
from tests.command_line import QUICK, Ended, call
from tests.made_data import jsonl
from tests.made_experiments import TEXTS, figures_by_hand


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "texts.jsonl", TEXTS)


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    return figures_by_hand(monkeypatch)


def labels(directory: Path) -> list[str]:
    return [point["point"] for point in results.read_run(directory).points]


def succeeded(*arguments: str | Path) -> Ended:
    ended = call(*arguments)
    assert ended.code == 0, ended.err
    return ended


FILE = """\
task: custom
data: {data}
mode: [bild, speculative]
alpha-fb: 0.3:0.5:0.1
alpha_rb: [2, inf]
gamma: 3:5
adaptive: true
threads: 1
warmup: 0
prefix: "a: "
json: true
"""


def test_an_experiment_file_says_the_same_as_the_flags(texts: Path, by_hand: list[list[str]], tmp_path: Path) -> None:
    file = tmp_path / "grid.yaml"
    file.write_text(FILE.format(data=texts))
    ended = succeeded("sweep", "--config", file, "--out", tmp_path / "file")
    json.loads(ended.out)
    grid = ("--mode", "bild,speculative", "--alpha-fb", "0.3:0.5:0.1", "--alpha-rb", "2,inf", "--gamma", "3:5")
    flags = ("--task", "custom", "--data", str(texts), *grid, "--adaptive", *QUICK, "--prefix", "a: ")
    succeeded("sweep", *flags, "--out", tmp_path / "flags")
    by_file, by_flags = (results.read_run(tmp_path / name) for name in ("file", "flags"))
    assert by_file.experiment_id == by_flags.experiment_id
    assert by_file.points == by_flags.points
    own = {"out", "command"}
    assert {k: v for k, v in by_file.configuration.items() if k not in own} == {
        k: v for k, v in by_flags.configuration.items() if k not in own
    }
    assert labels(tmp_path / "file")[1::2] == [
        *("bild fb=0.3 rb=2", "bild fb=0.4 rb=2", "bild fb=0.5 rb=2"),
        *("speculative gamma=3 adaptive", "speculative gamma=5 adaptive"),
    ]


def test_flags_win_over_the_file_and_the_record_spells_out_what_both_said(
    texts: Path, by_hand: list[list[str]], tmp_path: Path
) -> None:
    file = tmp_path / "grid.yaml"
    file.write_text(FILE.format(data=texts))
    # Zero is a value like any other.
    flags = ("--mode", "bild", "--alpha-fb", "0", "--seed", "3", "--limit", "2")
    no_gamma = file.with_name("bild.yaml")
    no_gamma.write_text(
        "".join(line for line in FILE.splitlines(True) if line[:5] not in ("gamma", "adapt")).format(data=texts)
    )
    succeeded("sweep", f"--config={no_gamma}", *flags, "--out", tmp_path / "out")
    run = results.read_run(tmp_path / "out")
    assert labels(tmp_path / "out") == ["vanilla", "bild fb=0 rb=2", "bild fb=0 rb=never"]
    assert (run.seed, run.texts, run.configuration["prefix"]) == (3, 2, "a: ")
    assert run.command == (
        f"bild-bench sweep --mode bild --alpha-fb 0 --seed 3 --limit 2 --out {tmp_path}/out "
        f"--task custom --alpha-rb 2,inf --prefix 'a: ' --data {texts} --threads 1 --warmup 0 --json"
    )
    # Typed as it stands it is the same experiment, complete already, without the file.
    by_hand.clear()
    no_gamma.unlink()
    assert "is complete already" in succeeded(*shlex.split(run.command)[1:]).err
    assert by_hand == []


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("limit: many", 2, "--limit: 'many': "),
        ("limit: 2.5", 2, "--limit: '2.5': "),
        ("dtype: float12", 2, "--dtype: 'float12': "),
        ("adaptive: perhaps", 2, "--adaptive: 'perhaps': "),
        ("alpha-fb: 0.5:0.3", 2, "--alpha-fb: '0.5:0.3': is not a range"),
        ("gamma: 3", 2, "--gamma: 3: does not apply to --mode bild"),
        ("budget: soon", 2, "--budget: 'soon': must be a duration (allowed: 90s, 20m, 1.5h)"),
        ("alpha-bf: 1", 2, "--config grid.yaml: 'alpha-bf': not known (allowed: adaptive, aligned, alpha-fb, "),
        ("config: other.yaml", 2, "'config': not known"),
        ("dry-run: true", 2, "'dry-run': not known"),
        ("alpha-fb: {a: b}", 3, "--config grid.yaml: alpha-fb: {'a': 'b'}: must be a value or a list"),
    ],
)
def test_what_is_wrong_in_an_experiment_file_is_said_in_one_line(
    line: str, code: int, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "grid.yaml"
    file.write_text(f"task: iwslt17\n{line}\n")
    ended = call("sweep", "--config", file, "--out", tmp_path / "out")
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith(f"error: {says}") or says in ended.err
    assert ended.err.count("\n") == 1
    assert not (tmp_path / "out").exists()
