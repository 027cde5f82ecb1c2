from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from bild_bench import directories, parquet, results
from bild_bench.errors import RunError
from bild_bench.schema import SAMPLE_SCHEMA, SampleRecord, run_table
from tests.made_results import ALL_ROWS, BASELINE, keys, made_run, made_sample, stored, two_texts

# --- reading while it runs and after


def test_rows_are_read_in_data_and_point_order_however_they_were_written(tmp_path: Path) -> None:
    texts = two_texts()
    directory = stored(tmp_path, texts={"b": texts["b"][::-1], "a": texts["a"][::-1]})
    assert keys(results.read(directory)) == ALL_ROWS
    results.complete(directory, made_run())
    assert keys(results.read(directory)) == ALL_ROWS


def test_a_running_experiment_shows_what_is_finished(tmp_path: Path) -> None:
    directory = stored(tmp_path, texts={"b": two_texts()["b"]})
    experiment = results.read(directory)
    assert experiment.run.status == "running"
    assert keys(experiment) == ALL_ROWS[2:]
    assert results.finished_texts(directory) == {"b"}


def test_an_experiment_without_texts_has_the_columns_and_no_rows(tmp_path: Path) -> None:
    samples = results.read(stored(tmp_path, texts={})).samples
    assert list(samples.columns) == SAMPLE_SCHEMA.names
    assert samples.empty


def test_folders_named_like_columns_add_no_columns(tmp_path: Path) -> None:
    directory = stored(tmp_path / "task=xsum" / "draw=9")
    assert results.read(directory).samples["draw"].tolist() == [0, 0, 0, 0]


def test_complete_leaves_three_files_and_the_final_record(tmp_path: Path) -> None:
    directory = stored(tmp_path)
    results.complete(directory, made_run(environment_after={"load": 1.0}))
    run = results.read(directory).run
    assert (run.status, run.environment_after) == ("complete", {"load": 1.0})
    assert run.completed_at is not None
    assert {path.name for path in directory.iterdir()} == {"run.parquet", "samples.parquet", "summary.parquet"}
    assert results.finished_texts(directory) == {"a", "b"}
    assert pd.read_parquet(directory / "summary.parquet")["speedup_total"].tolist() == pytest.approx([1.0, 2.0])


def test_complete_keeps_the_end_it_is_given(tmp_path: Path) -> None:
    directory = stored(tmp_path)
    results.complete(directory, made_run(completed_at="2026-11-29T13:00:00Z"))
    results.complete(directory, made_run(completed_at="2027-01-01T00:00:00Z"))
    assert results.read(directory).run.completed_at == "2026-11-29T13:00:00Z"


@pytest.mark.parametrize("listed_before", [True, False], ids=["shards vanish when read", "shards vanish when listed"])
def test_a_reader_is_not_disturbed_by_the_writer_merging_under_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed_before: bool
) -> None:
    directory = stored(tmp_path)
    listed = list((directory / "shards").glob("*.parquet")) if listed_before else []

    def merged_meanwhile(path: Path, *_: object) -> list[Path]:
        monkeypatch.undo()
        results.complete(directory, made_run())
        return listed

    monkeypatch.setattr(Path, "glob", merged_meanwhile)
    assert keys(results.read(directory)) == ALL_ROWS


# --- what may not be written


def test_a_text_is_never_written_twice(tmp_path: Path) -> None:
    directory = stored(tmp_path)
    with pytest.raises(RunError, match="written already"):
        results.write_text(directory, "a", two_texts()["a"])
    with pytest.raises(RunError, match="occurs twice"):
        results.write_text(directory, "b", [made_sample(text_id="b")] * 2)
    assert keys(results.read(directory)) == ALL_ROWS


def test_two_draws_of_a_point_are_two_rows(tmp_path: Path) -> None:
    directory = stored(tmp_path, texts={"a": [made_sample(draw=1), made_sample(draw=0)]})
    assert results.read(directory).samples["draw"].tolist() == [0, 1]


def test_a_complete_experiment_takes_no_more_texts(tmp_path: Path) -> None:
    directory = stored(tmp_path)
    results.complete(directory, made_run())
    with pytest.raises(RunError, match="never changed again"):
        results.write_text(directory, "a", two_texts()["a"])


def test_a_merged_experiment_takes_no_more_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = stored(tmp_path)
    shutil.copytree(directory / "shards", tmp_path / "kept")
    results.complete(directory, made_run())
    parquet.save_table(directory / "run.parquet", run_table(made_run()))  # as if killed before the last step
    with pytest.raises(RunError, match="written already"):
        results.write_text(directory, "a", two_texts()["a"])


@pytest.mark.parametrize(
    "samples", [[], [made_sample(text_id="b")], [made_sample(), made_sample(BASELINE, experiment_id="e2")]]
)
def test_a_shard_holds_one_text_of_one_experiment(tmp_path: Path, samples: list[SampleRecord]) -> None:
    with pytest.raises(ValueError, match="text a of experiment e1"):
        results.write_text(stored(tmp_path, texts={}), "a", samples)


def test_a_text_of_another_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not one of this run's texts"):
        results.write_text(stored(tmp_path), "c", [made_sample(text_id="c")])


def test_complete_refuses_missing_texts_and_other_experiments(tmp_path: Path) -> None:
    directory = stored(tmp_path, texts={"a": two_texts()["a"]})
    with pytest.raises(RunError, match="1 of 2 texts are missing"):
        results.complete(directory, made_run())
    with pytest.raises(RunError, match="holds experiment e1"):
        results.complete(directory, made_run(experiment_id="e2"))
    assert results.read(directory).run.status == "running"


def test_create_refuses_a_second_run_and_repeated_ids(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds a run already"):
        results.create(stored(tmp_path / "one"), made_run(experiment_id="e2"))
    with pytest.raises(RunError, match="ids repeat"):
        results.create(tmp_path / "two", made_run(texts_expected=["a", "a"]))


# --- directories and the lock


def test_new_directories_are_never_shared(tmp_path: Path) -> None:
    made = [directories.new_directory(tmp_path / "results", "embedded/iwslt17 fb=0.5") for _ in range(3)]
    assert len(set(made)) == 3
    for directory in made:
        assert directory.is_dir()
        assert directory.parent == tmp_path / "results"
        assert "embedded-iwslt17-fb-0.5" in directory.name


def test_the_unfinished_run_of_the_same_identity_is_found(tmp_path: Path) -> None:
    assert results.find_unfinished(tmp_path / "nowhere", "e1") is None
    stored(tmp_path / "20260101-other", made_run(experiment_id="e2"), {})
    stored(tmp_path / "20260102-old", made_run(), {})
    newest = stored(tmp_path / "20260103-new", made_run(), {})
    finished = stored(tmp_path / "20260104-finished")
    results.complete(finished, made_run())
    damaged = stored(tmp_path / "20260105-damaged", made_run(), {})
    (damaged / "run.parquet").write_bytes(b"PAR1")
    (tmp_path / "20260106-empty").mkdir()
    assert results.find_unfinished(tmp_path, "e1") == newest
    assert results.find_unfinished(tmp_path, "e3") is None


HOLD = """
import sys, time
from pathlib import Path
from bild_bench import directories
with directories.lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    root = Path(results.__file__).parents[1]
    holder = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True, cwd=root)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunError, match="another process is writing"), directories.lock(tmp_path):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with directories.lock(tmp_path):
        pass


def test_the_lock_is_free_again_after_an_error_and_refused_within_one_process(tmp_path: Path) -> None:
    with directories.lock(tmp_path), pytest.raises(RunError, match="another process"), directories.lock(tmp_path):
        pass
    with pytest.raises(KeyError), directories.lock(tmp_path):
        raise KeyError
    with directories.lock(tmp_path):
        pass


def test_the_store_needs_no_torch() -> None:
    code = "import sys, bild_bench.report.table, bild_bench.results; print('torch' in sys.modules)"
    root = Path(results.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout == "False\n"
