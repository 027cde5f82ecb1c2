"""The command line as a whole: help without delay, results on stdout, remarks on stderr, every task."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bild_bench import __version__, results
from bild_bench.cli.console import track
from bild_bench.data import Example
from tests.checkpoints import save_t5
from tests.command_line import QUICK, call, finish, start
from tests.made_reports import experiment
from tests.made_results import two_texts

COMMANDS = (
    *("run", "sweep", "tune", "report", "compare", "list", "profile", "train", "align", "generate"),
    *("tasks", "presets", "doctor"),
)
HEAVY = ("torch", "transformers", "datasets", "pandas", "pyarrow", "numpy", "sacrebleu", "huggingface_hub")
HUB = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "hub"


def refuse(constant: str) -> None:
    pytest.fail(f"{constant} is not JSON")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_all_its_options(command: str) -> None:
    ended = call(command, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert call(command, "-h") == ended
    assert f"Usage: bild-bench {command} [OPTIONS]" in ended.out
    assert "--help" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80


def test_the_programs_help_names_every_command() -> None:
    for arguments in ((), ("--help",), ("-h",)):
        ended = call(*arguments)
        assert all(option in ended.out for option in ("--quiet", "--debug", "--install-completion"))
        assert (ended.code, ended.err) == (0, "")
        assert [command for command in COMMANDS if f" {command} " not in ended.out] == []


def test_the_version_is_the_packages() -> None:
    assert call("--version").out == f"bild-bench {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--help",), 0),
        *(((command, "--help"), 0) for command in COMMANDS),
        (("tasks", "--json"), 0),
        (("presets", "--json"), 0),
        (("run", "--task", "iwslt17", "--alpha-fb", "abc"), 2),
    ],
)
def test_nothing_heavy_is_imported_for_help_lists_and_mistyped_options(arguments: tuple[str, ...], code: int) -> None:
    program = (
        "import sys, atexit\n"
        f"sys.argv = ['bild-bench', *{arguments!r}]\n"
        f"atexit.register(lambda: print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr))\n"
        "from bild_bench.cli.main import main\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == code
    assert ended.stderr.splitlines()[-1] == "[]"


def test_help_answers_at_once(tmp_path: Path) -> None:
    # The processor's seconds, the best of several: what else the machine does must not decide. Help waits for nothing.
    def seconds() -> float:
        before = os.times()
        assert finish(start("--help", cwd=tmp_path)).code == 0
        after = os.times()
        return after.children_user - before.children_user + after.children_system - before.children_system

    assert 0 < min(seconds() for _ in range(5)) < 0.4


@pytest.mark.parametrize(("command", "name"), [("tasks", "iwslt17"), ("presets", "embedded")])
def test_lists_are_tables_for_people_and_json_for_programs(command: str, name: str) -> None:
    table, listed = call(command), call(command, "--json")
    assert (table.code, table.err, listed.code, listed.err) == (0, "", 0, "")
    assert name in table.out
    assert name in str(json.loads(listed.out, parse_constant=refuse))


def test_json_alone_goes_to_stdout_and_remarks_to_stderr(tmp_path: Path) -> None:
    arguments = ("run", "--task", "iwslt17", "--limit", "2", "--no-rollback", *QUICK, "--out", "out", "--json")
    ended = finish(start(*arguments, cwd=tmp_path))
    assert ended.code == 0
    found = json.loads(ended.out, parse_constant=refuse)
    assert [point["point"] for point in found["points"]] == ["vanilla", "bild fb=0.5 rb=never"]
    assert found["directory"] == "out"
    assert found["run"]["command"] == "bild-bench " + " ".join(arguments)
    assert ended.err.splitlines() == [
        "embedded/iwslt17 is a stand-in of our own texts: never compare it with the named data set",
        "written to out",
    ]


def test_a_table_for_people_goes_to_stdout(tmp_path: Path) -> None:
    ended = call("run", "--task", "iwslt17", "--limit", "2", *QUICK, "--out", tmp_path / "out")
    assert ended.code == 0
    assert "bild fb=0.5 rb=2" in ended.out
    assert "2 texts of embedded/iwslt17 (test), pair embedded-aligned, cpu, float32, 1 thread" in ended.out
    assert ended.last_remark == f"written to {tmp_path / 'out'}"


@pytest.mark.parametrize(
    "arguments",
    [
        ("tasks", "--json"),
        ("presets",),
        ("--help",),
        ("run", "--task", "iwslt17", "--limit", "1", *QUICK, "--out", "out", "--json"),
    ],
)
def test_a_reader_that_has_gone_leaves_no_traceback(arguments: tuple[str, ...], tmp_path: Path) -> None:
    with start(*arguments, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert "Error" not in process.stderr.read()
    # Neither a success that nobody saw nor the code of a mistake.
    assert process.returncode == 1
    if arguments[0] == "run":
        assert results.read(tmp_path / "out").run.status == "complete"


@pytest.mark.parametrize("task", ["iwslt17", "wmt14"])
def test_translation_runs_on_the_embedded_pair_and_sentences(task: str, tmp_path: Path) -> None:
    ended = call("run", "--task", task, "--limit", "4", *QUICK, "--out", tmp_path / "out")
    assert ended.code == 0
    experiment = results.read(tmp_path / "out")
    assert (experiment.run.data_label, experiment.run.metric) == (f"embedded/{task}", "bleu")
    assert set(experiment.samples.status) == {"ok"}
    assert len(experiment.samples) == 8


@pytest.mark.parametrize(
    ("task", "folder", "metric"),
    [
        ("xsum", "EdinburghNLP/xsum", "rougeL"),
        ("cnn_dm", "abisee/cnn_dailymail", "rougeLsum"),
        ("wmt14", "wmt/wmt14", "bleu"),
        ("iwslt17", "IWSLT/iwslt2017", "bleu"),
    ],
)
def test_every_task_runs_on_a_copy_of_the_hubs_files(task: str, folder: str, metric: str, tmp_path: Path) -> None:
    if not (HUB / folder).is_dir():
        pytest.skip(f"no copy of {folder} on this machine")
    large, small = save_t5(tmp_path / "big"), save_t5(tmp_path / "little", seed=1, num_decoder_layers=1)
    models = ("--large", large, "--small", small)
    data = ("--data", HUB / folder, "--limit", "2")
    ended = call("run", "--task", task, *data, *models, *QUICK, "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    experiment = results.read(tmp_path / "out")
    run, samples = experiment.run, experiment.samples
    assert (run.data_label, run.metric, run.pair_label, len(samples)) == (task, metric, "big+little", 4)
    assert set(samples.status) == {"ok"}
    assert (samples.source_tokens <= 1024).all()
    assert (samples.generated <= 128).all()
    assert samples.hit_limit[samples.generated < 128].eq(False).all()


def test_progress_hands_on_every_text(capsys: pytest.CaptureFixture[str]) -> None:
    texts = [Example(index, str(index), "source", ("target",)) for index in range(3)]
    assert list(track(texts, 2, 5)) == texts
    # No terminal, no bar.
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("task", ["iwslt17", "cnn_dm"])
def test_the_aligned_pair_has_the_same_texts_without_a_network(task: str, tmp_path: Path) -> None:
    ended = call("run", "--task", task, "--aligned", "--limit", "2", "--warmup", "0", "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert results.read(tmp_path / "out").run.data_label == f"embedded/{task}"


def test_quiet_leaves_results_and_errors_alone(tmp_path: Path) -> None:
    run = ("run", "--task", "iwslt17", "--limit", "2", *QUICK, "--out", "out")
    ended = finish(start(*run, "--quiet", cwd=tmp_path))
    assert (ended.code, ended.err) == (0, "")
    assert "bild fb=0.5 rb=2" in ended.out
    assert results.read(tmp_path / "out").run.command.endswith(" --quiet")
    loud = finish(start(*run, cwd=tmp_path))
    assert loud.err.splitlines()[0] == "out is complete already: nothing is decoded, its figures follow"
    wrong = finish(start("--quiet", "run", "--task", "iwslt18", cwd=tmp_path))
    assert wrong.code == 2
    assert wrong.err.startswith("error: --task: 'iwslt18': not known")


def test_quiet_hides_no_regression(tmp_path: Path) -> None:
    texts = two_texts()
    experiment(tmp_path / "a", texts)
    slower = {
        text: [sample if sample.role == "baseline" else replace(sample, decode_seconds=9.0) for sample in samples]
        for text, samples in texts.items()
    }
    experiment(tmp_path / "b", slower)
    ended = finish(start("compare", "a", "b", "--fail-on", "speed:5%", "--quiet", cwd=tmp_path))
    assert ended.code == 1
    lines = ended.err.splitlines()
    assert lines
    assert all(line.startswith("regression: bild fb=0.5 rb=2: ") for line in lines)


@pytest.mark.parametrize(
    ("words", "at", "offered"),
    [
        ("bild-bench sw", 1, "sweep"),
        ("bild-bench run --alpha-r", 2, "--alpha-rb"),
        ("bild-bench run --dtype bf", 3, "bfloat16"),
    ],
)
def test_a_shell_completes_commands_options_and_values(words: str, at: int, offered: str, tmp_path: Path) -> None:
    asked = {"_BILD_BENCH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    ended = finish(start(cwd=tmp_path, **asked))
    assert (ended.code, ended.out.split(), ended.err) == (0, [offered], "")


def test_the_completion_script_is_the_programs(tmp_path: Path) -> None:
    # Which shell is asked for is found out from the parent process, which in a test may be none.
    asked = {"_BILD_BENCH_COMPLETE": "source_bash"}
    ended = finish(start(cwd=tmp_path, **asked))
    assert (ended.code, ended.err) == (0, "")
    assert "_BILD_BENCH_COMPLETE=complete_bash $1" in ended.out
    assert "complete -o default -F _bild_bench_completion bild-bench" in ended.out
