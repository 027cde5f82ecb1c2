"""Every way to ask for the impossible ends in one line: what, which value, what is allowed, what to do."""

from __future__ import annotations

import errno
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from bild_bench import results
from bild_bench.decoding.methods import METHODS
from tests.checkpoints import PIECES, save_bart, save_t5, save_tokenizer
from tests.command_line import QUICK, call, finish, start
from tests.made_data import jsonl, text

IWSLT = "run --task iwslt17"
CUSTOM = "run --task custom --data"
GOOD = "run --task custom --data good.jsonl --prefix x"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good and bad data files and checkpoints, by the names that the cases below use."""
    made = tmp_path_factory.mktemp("made")
    jsonl(made / "good.jsonl")
    jsonl(made / "columns.jsonl", [{"de": "Satz", "en": "sentence"}])
    jsonl(made / "number.jsonl", [{"source": "Satz", "target": "x"}, {"source": 5, "target": "x"}])
    text(made / "empty.jsonl", "")
    text(made / "cut.jsonl", '{"source": "a", "target": "b"}\n{"source": "a", "tar')
    text(made / "data.txt", "a\n")
    text(made / "bad.yaml", "name: [")
    (made / "hollow").mkdir()
    save_t5(made / "t5")
    save_bart(made / "bart")
    for name in ("weightless", "truncated", "gpt2", "other"):
        shutil.copytree(made / "t5", made / name)
    weights = (made / "t5" / "model.safetensors").read_bytes()
    (made / "truncated" / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    (made / "weightless" / "model.safetensors").unlink()
    (made / "gpt2" / "config.json").write_text(json.dumps({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}))
    save_tokenizer(made / "other", (*PIECES[:-1], "!"))
    return made


# What is typed, the exit code, and what the one line must say.
USAGE = [
    ("run", "Missing option '--task'"),
    ("rum", "No such command 'rum'", "'run'"),
    ("generate", "Missing argument", "bild-bench generate --help"),
    (f"{IWSLT} more", "unexpected extra argument", "more", "bild-bench run --help"),
    (f"{IWSLT} --alpha-bf 0.5", "No such option: --alpha-bf", "--alpha-fb"),
    (f"{IWSLT} --alpha-fb", "'--alpha-fb' requires an argument"),
    *(
        (f"{IWSLT} --alpha-fb {bad}", "--alpha-fb: ", "a number from 0 to 1; try 0.5")
        for bad in ("-0.1", "1.01", "inf")
    ),
    (f"{IWSLT} --alpha-fb nan", "--alpha-fb: nan: must be a number from 0 to 1; try"),
    (f"{IWSLT} --alpha-fb abc", "--alpha-fb: 'abc': ", "number", "; see 'bild-bench run --help'"),
    (f"{IWSLT} --alpha-rb -1", "--alpha-rb: -1.0: must be a number from 0 to inf; try 2, or --no-rollback"),
    (f"{IWSLT} --alpha-rb nan", "--alpha-rb: nan: must be a number from 0 to inf"),
    (
        f"{IWSLT} --alpha-fb 0.3:0.9:0.1",
        "--alpha-fb: '0.3:0.9:0.1': is a range or a list, and 'bild-bench run' takes one value",
        "use bild-bench sweep … --alpha-fb 0.3:0.9:0.1, or give one value",
    ),
    (f"{IWSLT} --mode speculative --gamma 3,5", "--gamma: '3,5': is a range or a list", "sweep … --gamma 3,5"),
    (f"{IWSLT} --limit 3,5", "--limit: '3,5': ", "integer", "; see 'bild-bench run --help'"),
    (f"{IWSLT} --max-draft 0", "--max-draft: 0: must be 1 or more; leave it out for no cap"),
    (f"{IWSLT} --max-draft 2.5", "--max-draft: '2.5': ", "integer"),
    (f"{IWSLT} --limit 0", "--limit: 0: must be at least 1; leave it out"),
    (f"{IWSLT} --limit many", "--limit: 'many': ", "integer"),
    (f"{IWSLT} --threads 0", "--threads: 0: must be 1 or more; leave it out"),
    (f"{IWSLT} --threads 100000", "--threads: 100000: must be at most ", "4 times the usable cores (", "leave it out"),
    (f"{IWSLT} --seed -1", "--seed: -1: must be a whole number from 0 to 4294967295; leave it out"),
    (f"{IWSLT} --seed 4294967296", "--seed: 4294967296: must be a whole number from 0 to 4294967295"),
    (f"{IWSLT} --split=", "--split: '': is empty; leave it out"),
    ("run --out= --task iwslt17", "--out: '': is empty; give a directory"),
    (f"{IWSLT} --prefix \udcff", "argument: '\\udcff': is not UTF-8 text"),
    (f"{IWSLT} --warmup -1", "--warmup: -1: must be 0 or more; leave it out"),
    (f"{IWSLT} --dtype float12", "--dtype: 'float12': ", "'float32', 'float16', 'bfloat16', 'float64'"),
    (f"{IWSLT} --session slow", "--session: 'slow': ", "'auto', 'native', 'graphs', 'fast', 'reference'"),
    (f"{IWSLT} --metric blue", "--metric: 'blue': ", "'bleu', 'rougeL', 'rougeLsum'"),
    (f"{IWSLT} --first big", "--first: 'big': ", "'small', 'large'"),
    (f"{IWSLT} --compat paper", "--compat: 'paper': ", "'released-code'"),
    (f"{IWSLT} --device tpu", "--device: 'tpu': ", "allowed: auto, cpu, cuda, cuda:N, mps", "try --device auto"),
    (f"{IWSLT} --device cuda:99", "--device: 'cuda:99': ", "try --device auto"),
    ("run --task iwslt18", "--task: 'iwslt18': not known (allowed: cnn_dm, ", "did you mean 'iwslt17'?"),
    ("run --task nowhere.yaml", "--task: 'nowhere.yaml': there is no such task file", "xsum"),
    (f"{IWSLT} --mode bilt", "--mode: 'bilt': not known (allowed: bild, ", "did you mean 'bild'?"),
    (f"{IWSLT} --mode spec", "--mode: 'spec': not known (allowed: bild, ", "did you mean 'speculative'?"),
    (f"{IWSLT} --preset faln", "--preset: 'faln': not known (allowed: ", "did you mean 'flan'?"),
    (f"{IWSLT} --mode vanilla --alpha-fb 0.5", "--alpha-fb: 0.5: does not apply to --mode vanilla", "bild", "leave it"),
    (f"{IWSLT} --mode small --no-rollback", "--alpha-rb: inf: does not apply to --mode small", "leave it out"),
    (f"{IWSLT} --no-rollback --alpha-rb 0", "--alpha-rb: 0.0: contradicts --no-rollback"),
    (f"{IWSLT} --compat released-code --max-draft 3", "--max-draft: 3: contradicts --compat released-code (10)"),
    (f"{IWSLT} --mode vanilla --small x/y", "--small: 'x/y': does not apply to --mode vanilla; leave it out"),
    (f"{IWSLT} --compat released-code --first small", "--first: 'small': contradicts --compat", "(large)"),
    (f"{IWSLT} --preset flan --large t5", "--large/--small: 't5': cannot be mixed with --preset", "leave one out"),
    (f"{IWSLT} --preset flan --aligned", "--aligned: 'flan': this preset has no aligned small model; use --preset"),
    (f"{IWSLT} --source-column de", "--source-column: 'de': the embedded sample has the columns", "leave"),
    (f"{IWSLT} --data embedded --large t5", "--small: not given: this mode needs a model", "add --small PATH"),
    ("generate Hallo --mode vanilla --max-draft 0", "--max-draft: 0: does not apply to --mode vanilla"),
    ("generate Hallo --alpha-fb 2", "--alpha-fb: 2.0: must be a number from 0 to 1"),
]
DATA_OR_MODEL = [
    ("run --task custom", "--data: 'embedded': there is no embedded sample for task custom yet; give your own texts"),
    ("run --task custom --data hub", "--data: 'hub': task custom has no data set on the hub; give your texts"),
    (f"{IWSLT} --split train", "--split: 'train': the embedded sample has one split, test; leave --split out"),
    ("run --task bad.yaml", "task file: 'bad.yaml': cannot be read as YAML", "correct the task file"),
    (f"{CUSTOM} nowhere.jsonl", "--data: 'nowhere.jsonl': there is no such file or folder; give"),
    (f"{CUSTOM} empty.jsonl", "--data: 'empty.jsonl': the file is empty; check"),
    (f"{CUSTOM} cut.jsonl", "--data: 'cut.jsonl': line 2 is not valid JSON", "correct the file"),
    (f"{CUSTOM} number.jsonl", "column source: 5: row 1 (counted from 0) is of type int", "name a column of texts"),
    (f"{CUSTOM} columns.jsonl", "--source-column: 'source': no such column (there are: de, en); set --source-column"),
    (f"{CUSTOM} columns.jsonl --source-column de", "--target-column: 'target': no such column (there are: de, en)"),
    (f"{CUSTOM} data.txt", "--data: 'data.txt': unknown kind of file; put both sides", ".parquet"),
    (f"{CUSTOM} hollow", "--data: 'hollow': the folder holds no data files", "expected"),
    (f"{GOOD} --large hollow --small t5", "--large: 'hollow': holds no config.json", "save_pretrained"),
    (f"{GOOD} --large ./nowhere --small t5", "--large: './nowhere': no such folder (allowed: ", "check the path"),
    (f"{GOOD} --large good.jsonl --small t5", "--large: 'good.jsonl': is a file", "give the folder"),
    (f"{GOOD} --large t5 --small weightless", "--small: 'weightless': holds no weights (allowed: ", "safetensors"),
    (
        f"{GOOD} --large gpt2 --small t5",
        "--large: 'gpt2': is of type gpt2, which is not an encoder-decoder",
        "(allowed: bart, bigbird_pegasus, ",
        "t5",
        "give a",
    ),
    (
        f"{GOOD} --large t5 --small other",
        "--large and --small: 't5 and other': their tokenizers differ: ",
        "the same tokenizer",
    ),
    (f"{GOOD} --large t5 --small bart --session fast", "--small: 'bart': is of type bart", "--session reference"),
]
CASES: list[tuple[Any, ...]] = [(2, *case) for case in USAGE] + [(3, *case) for case in DATA_OR_MODEL]


@pytest.mark.parametrize("case", CASES, ids=[str(case[1]) for case in CASES])
def test_what_cannot_be_ends_in_one_line(
    case: tuple[Any, ...], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, typed, *words = case
    monkeypatch.chdir(folder)
    command, *options = typed.split()
    out = ("--out", tmp_path / "out") if len(options) > 1 and command == "run" else ()
    ended = call(command, *out, *options)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert [word for word in words if word not in ended.err] == [], ended.err
    assert not list(tmp_path.rglob("*.parquet"))


def test_truncated_weights_are_one_line_and_no_chatter_of_the_libraries(folder: Path, tmp_path: Path) -> None:
    ended = finish(start(*f"{GOOD} --large t5 --small truncated --out".split(), tmp_path / "out", cwd=folder))
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith("error: --small: 'truncated': cannot be loaded (")
    assert ended.err.endswith("; download or save the checkpoint again\n")
    assert ended.err.count("\n") == 1


def test_a_file_where_the_results_should_go_is_one_line(folder: Path, tmp_path: Path) -> None:
    place = text(tmp_path / "file", "mine")
    ended = call(*IWSLT.split(), "--out", place)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        f"error: --out: {str(place)!r}: cannot be written (Not a directory); choose a directory that you may write to\n"
    )


def test_what_is_refused_leaves_no_directory(tmp_path: Path) -> None:
    empty = jsonl(tmp_path / "empty.jsonl", [{"source": " ", "target": "x"}])
    ended = call("run", "--task", "custom", "--data", empty, *QUICK, "--out", tmp_path / "new" / "out")
    assert (ended.code, "every source text is empty" in ended.err) == (3, True)
    assert [path.name for path in tmp_path.iterdir()] == ["empty.jsonl"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("command", ["tasks", "tasks --json", "run --task iwslt17 --limit 1 --out out"])
def test_a_stdout_that_takes_nothing_is_one_line_after_the_directory_is_told(command: str, tmp_path: Path) -> None:
    asked = [*command.split(), *(QUICK if "run" in command else ())]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "bild_bench", *asked], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )
    *before, last = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert last.startswith("error: stdout cannot be written (No space left on device); ")
    assert before[-1:] == (["written to out"] if "run" in command else [])


def test_a_panic_in_a_librarys_rust_code_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicError(BaseException):
        """As Rust's panics arrive in Python."""

    def panics(*arguments: object, **options: object) -> None:
        raise PanicError("index out of\nbounds")

    monkeypatch.setattr("bild_bench.cli.main.app", panics)
    ended = call("tasks")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "error: unexpected PanicError: index out of bounds; run again with --debug and report it\n"


def test_a_full_disk_is_one_line_and_a_failed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def save_table(path: Path, table: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(results, "save_table", save_table)
    ended = call(*IWSLT.split(), "--limit", "1", *QUICK, "--out", tmp_path / "out")
    assert (ended.code, ended.out) == (1, "")
    assert "cannot be written (No space left on device); free some space and run the same" in ended.last_remark
    assert ended.err.count("\n") == 1


def test_a_run_that_decodes_not_one_text_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def decode(*arguments: Any) -> Any:
        raise RuntimeError("no memory")

    monkeypatch.setitem(METHODS, "small", replace(METHODS["small"], decode=decode))
    arguments = f"{IWSLT} --mode small --no-baseline --limit 2".split()
    ended = call(*arguments, *QUICK, "--out", tmp_path / "out")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: texts: 2: not one of them could be decoded; see the errors in ")
    assert ended.err.count("\n") == 1


def test_an_error_of_ours_that_nobody_foresaw_is_one_line_too_and_debug_shows_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_task(*arguments: Any, **options: Any) -> Any:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr("bild_bench.setup.load_task", load_task)
    line = "error: unexpected ZeroDivisionError: two lines; run again with --debug and report it\n"
    ended = call(*IWSLT.split(), "--out", tmp_path / "out")
    assert (ended.code, ended.err) == (1, line)
    ended = call(*IWSLT.split(), "--debug", "--out", tmp_path / "out")
    assert ended.err.startswith("Traceback (most recent call last)")
    assert ended.err.endswith("ZeroDivisionError: two\nlines\n" + line)


@pytest.fixture
def no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In place of the hub a server that takes connections and never answers, as some networks do; an empty cache."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("NO_PROXY", "*")
        yield


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("arguments", "value", "way_on"),
    [
        ((), "IWSLT/iwslt2017@", "--data PATH for a local copy"),
        (("--data", "embedded"), "google/flan-t5-", "--large PATH --small PATH for local copies"),
    ],
)
def test_without_a_network_the_line_comes_within_eight_seconds_and_names_the_ways_on(
    arguments: tuple[str, ...], value: str, way_on: str, tmp_path: Path
) -> None:
    began = time.monotonic()
    ended = call(*IWSLT.split(), "--preset", "flan", *arguments, "--out", tmp_path / "out")
    assert time.monotonic() - began < 8
    assert (ended.code, ended.out) == (3, "")
    assert f": '{value}" in ended.err
    assert "not in the cache, and the hub cannot be reached" in ended.err
    assert ended.err.endswith(f"use {way_on}, or --preset embedded, which needs no network\n")
    assert ended.err.count("\n") == 1
