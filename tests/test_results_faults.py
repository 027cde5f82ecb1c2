from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bild_bench import directories, results, whole_files
from bild_bench.errors import DataError, RunError, UsageError
from bild_bench.schema import RUN_SCHEMA, run_table
from tests.made_results import ALL_ROWS, keys, made_run, stored, two_texts


class Killed(BaseException):
    """Stands for the end of the process: nothing catches it."""


# --- killed between any two steps


def finish_after_crash(directory: Path) -> None:
    """What any later process must find and be able to do."""
    assert keys(results.read(directory)) == ALL_ROWS
    assert results.finished_texts(directory) == {"a", "b"}
    results.complete(directory, made_run())
    assert keys(results.read(directory)) == ALL_ROWS
    assert results.read(directory).run.status == "complete"
    assert {path.name for path in directory.iterdir()} == {"run.parquet", "samples.parquet", "summary.parquet"}


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("target", ["samples.parquet", "summary.parquet", "run.parquet"])
def test_complete_survives_being_killed_around_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, moment: str
) -> None:
    directory = stored(tmp_path)
    replace_file = os.replace

    def killing(source: Path, destination: Path) -> None:
        if Path(destination).name != target or moment == "after":
            replace_file(source, destination)
        if Path(destination).name == target:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(whole_files.os, "replace", killing)
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # a killed process does not tidy up
        with pytest.raises(Killed):
            results.complete(directory, made_run())
    finish_after_crash(directory)


def test_complete_survives_being_killed_while_shards_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = stored(tmp_path)

    def killing(folder: Path, **_: object) -> None:
        next(iter(folder.glob("*.parquet"))).unlink()
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killing)
        with pytest.raises(Killed):
            results.complete(directory, made_run())
    assert results.read(directory).run.status == "complete"
    finish_after_crash(directory)


def test_a_text_killed_while_it_is_written_is_not_there_and_can_be_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = two_texts()
    directory = stored(tmp_path, texts={"a": texts["a"]})

    def killing(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(whole_files.os, "fsync", killing)
        patch.setattr(Path, "unlink", killing)
        with pytest.raises(Killed):
            results.write_text(directory, "b", texts["b"])
    assert (directory / "shards" / "b.parquet.part").exists()
    assert keys(results.read(directory)) == ALL_ROWS[:2]
    results.write_text(directory, "b", texts["b"])
    finish_after_crash(directory)


# --- full disk, no permission


def test_a_full_disk_names_the_directory_and_loses_no_finished_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = two_texts()
    directory = stored(tmp_path, texts={"a": texts["a"]})

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(whole_files.os, "fsync", full)
        with pytest.raises(RunError, match="No space left on device") as caught:
            results.write_text(directory, "b", texts["b"])
    assert str(directory) in str(caught.value)
    assert keys(results.read(directory)) == ALL_ROWS[:2]
    assert [path.name for path in (directory / "shards").iterdir()] == ["a.parquet"]
    results.write_text(directory, "b", texts["b"])
    finish_after_crash(directory)


@pytest.mark.parametrize("target", ["samples.parquet", "summary.parquet", "run.parquet"])
def test_a_disk_that_is_full_at_the_end_loses_nothing(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = stored(tmp_path)

    def sync(path: Path) -> None:
        if path.name == f"{target}.part":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(whole_files, "_sync", sync)
        with pytest.raises(RunError, match="No space left on device"):
            results.complete(directory, made_run())
    assert not list(directory.rglob("*.part"))
    finish_after_crash(directory)


def test_a_file_in_the_way_is_a_usage_error_that_names_it(tmp_path: Path) -> None:
    blocked = tmp_path / "results"
    blocked.write_text("not a folder")
    for write in (
        lambda: directories.new_directory(blocked, "run"),
        lambda: results.create(blocked, made_run()),
        lambda: directories.lock(blocked).__enter__(),
    ):
        with pytest.raises(UsageError, match=r"cannot be written.*choose a directory") as caught:
            write()
        assert str(blocked) in str(caught.value)


def test_no_permission_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = stored(tmp_path, texts={})

    def forbidden(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(whole_files.os, "replace", forbidden)
    with pytest.raises(UsageError, match="Permission denied"):
        results.write_text(directory, "a", two_texts()["a"])


# --- damaged and foreign files


def damage_truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_bytes(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[40:60] = bytes(byte ^ 0xFF for byte in content[40:60])
    path.write_bytes(content)


def damage_other_format(path: Path) -> None:
    path.write_text("text_id,output\n1,hello\n")


def damage_foreign(path: Path) -> None:
    pq.write_table(pa.table({"answer": [42]}), path)


def damage_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage",
    [damage_truncate, damage_empty, damage_bytes, damage_other_format, damage_foreign, damage_folder],
    ids=lambda damage: damage.__name__,
)
@pytest.mark.parametrize("target", ["run.parquet", "samples.parquet", "shards/b.parquet"])
def test_a_damaged_or_foreign_file_is_named(tmp_path: Path, target: str, damage: Callable[[Path], None]) -> None:
    directory = stored(tmp_path)
    if target == "samples.parquet":
        results.complete(directory, made_run())
    damage(directory / target)
    with pytest.raises(DataError) as caught:
        results.read(directory)
    assert str(directory / target) in str(caught.value)


def test_a_file_of_another_schema_version_says_which(tmp_path: Path) -> None:
    directory = stored(tmp_path)
    newer = pa.table({"schema_version": [3], "something_new": ["x"]})
    pq.write_table(newer, directory / "run.parquet")
    with pytest.raises(DataError, match="schema version 3, this program reads versions 1 and 2"):
        results.read(directory)


def test_a_run_file_with_broken_json_is_damaged(tmp_path: Path) -> None:
    directory = stored(tmp_path)
    table = run_table(made_run())
    place = table.column_names.index("points")
    pq.write_table(table.set_column(place, RUN_SCHEMA.field("points"), pa.array(["[{"])), directory / "run.parquet")
    with pytest.raises(DataError, match=r"run\.parquet.: damaged \(points is not valid JSON"):
        results.read(directory)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for nothing in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(DataError, match=r"no run\.parquet in it"):
            results.read(nothing)
    directory = stored(tmp_path / "one")
    results.complete(directory, made_run())
    (directory / "samples.parquet").unlink()
    with pytest.raises(DataError, match=r"samples\.parquet is missing"):
        results.read(directory)


def test_a_damaged_merge_can_be_deleted_and_done_again(tmp_path: Path) -> None:
    directory = stored(tmp_path)
    (directory / "samples.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"samples\.parquet.*move it away and run again"):
        results.complete(directory, made_run())
    (directory / "samples.parquet").unlink()
    finish_after_crash(directory)


def test_one_changed_letter_is_noticed(tmp_path: Path) -> None:
    directory = stored(tmp_path)
    shard = directory / "shards" / "b.parquet"
    content = shard.read_bytes()
    place = content.index(b"the cat lay down")
    shard.write_bytes(content[:place] + b"T" + content[place + 1 :])
    with pytest.raises(DataError, match=r"b\.parquet.*damaged"):
        results.read(directory)
