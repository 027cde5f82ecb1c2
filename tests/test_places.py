"""Where things are put: in the folder that is meant, whole or not at all, through no link, under names that fit."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import yaml

from bild_bench import directories
from bild_bench.cli.training_options import default_out, sources_of
from bild_bench.tasks import load_task
from bild_bench.whole_files import file_name, whole_file, whole_folder, write_whole
from tests.checkpoints import save_t5
from tests.command_line import QUICK, call
from tests.made_training import texts, trained

OPTIONS = dict.fromkeys(
    ("source_column", "target_column", "prefix", "data", "weight", "validation_data", "limit"), None
) | {"hold_out": 0}


def _task(folder: Path, name: str) -> Path:
    """A task file of that name inside."""
    found = yaml.safe_load(Path("tasks/custom.yaml").read_text())
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "own.yaml"
    file.write_text(yaml.safe_dump(found | {"name": name}))
    return file


# --- names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("custom-standard-little", "custom-standard-little"),
        ("../../etc/passwd", "etc-passwd"),
        (".hidden", "hidden"),
        ("..", "unnamed"),
        ("a b\n\x1b[2Jc\u202e", "a-b-2Jc-"),
        ("Übersetzung+de=en@2", "Übersetzung+de=en@2"),
    ],
)
def test_any_text_becomes_the_name_of_one_file(text: str, name: str) -> None:
    assert file_name(text) == name


def test_long_names_are_cut_and_stay_apart() -> None:
    one, other = file_name("ü" * 300), file_name("ü" * 299 + "x")
    assert one != other
    assert max(len(one.encode()), len(other.encode())) <= 120
    assert one.startswith("ü" * 55)


def test_an_experiment_of_a_long_label_gets_a_directory(tmp_path: Path) -> None:
    made = directories.new_directory(tmp_path, "custom-" + "pair" * 200)
    assert made.is_dir()
    assert made.parent == tmp_path


def test_a_model_of_a_task_file_goes_into_models(tmp_path: Path) -> None:
    file = _task(tmp_path / "elsewhere", "../../own")
    sources = sources_of({**OPTIONS, "task": str(file)})
    assert default_out(sources, "standard", "little") == Path("models/own-standard-little")


def test_a_tuning_of_a_task_file_goes_into_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bild_bench.held_out import Texts
    from bild_bench.setup import Request
    from bild_bench.tuning import _directory

    file = _task(tmp_path, "../../own")
    place = _directory(Request(task=str(file)), load_task(str(file)), [], [0.0], [Texts("a", "test", None)])
    assert place.parent == Path("results")
    assert place.name.startswith("tune-own-")


# --- empty texts


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        (("run", "--large", "", "--small", "x/y"), "--large: '': is empty; give a folder or a hub id, or leave it out"),
        (
            ("run", "--mode", "small", "--no-baseline", "--small", ""),
            "--small: '': is empty; give a folder or a hub id, or leave it out",
        ),
        (("sweep", "--extend", ""), "--extend: '': is empty; give a directory, or leave it out"),
        (("sweep", "--config", ""), "--config: '': is empty; give a file, or leave it out"),
        (("report", "--html", ""), "--html: '': is empty; give a file, or leave it out"),
        (("report", "--plots", ""), "--plots: '': is empty; give a directory, or leave it out"),
        (("report", ""), "DIR: '': is empty; give a directory, or leave it out"),
        (("list", ""), "RESULTS: '': is empty; give a directory, or leave it out"),
        (("compare", "", "x"), "A: '': is empty; give a directory, or leave it out"),
        (("profile", "--out", ""), "--out: '': is empty; give a directory, or leave it out"),
    ],
)
def test_an_empty_text_is_no_working_directory(typed: tuple[str, ...], line: str) -> None:
    task = ("--task", "iwslt17") if typed[0] in ("run", "sweep", "profile") else ()
    ended = call(typed[0], *task, *typed[1:])
    assert (ended.code, ended.out, ended.err) == (2, "", f"error: {line}\n")


# --- whole files


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("precious")
    (tmp_path / "file.part").symlink_to(mine)
    (tmp_path / "file").symlink_to(mine)
    write_whole(tmp_path / "file", b"new")
    assert (mine.read_text(), (tmp_path / "file").read_bytes()) == ("precious", b"new")
    assert not (tmp_path / "file").is_symlink()
    assert not (tmp_path / "file.part").exists()


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with whole_file(tmp_path / "kept") as part:
        part.write_bytes(b"whole")
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "file") as part:
        (part.parent / "absent" / part.name).write_bytes(b"half")
    with pytest.raises(FileNotFoundError), whole_folder(tmp_path / "folder") as part:
        (part / "absent" / "half").write_bytes(b"half")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"old", "kept": b"whole"}


def test_a_planted_link_is_not_followed_by_a_folder(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (tmp_path / "folder.part").symlink_to(mine)
    with whole_folder(tmp_path / "folder") as part:
        (part / "x").write_bytes(b"x")
    assert list(mine.iterdir()) == []
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["x"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_permissions_are_those_of_any_new_file(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        with whole_file(tmp_path / "file") as part:
            # As safetensors leaves it.
            part.unlink()
            part.touch(0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_a_page_that_cannot_be_written_names_its_option(tmp_path: Path) -> None:
    out = tmp_path / "results"
    call("run", "--task", "iwslt17", "--limit", "1", *QUICK, "--out", out)
    for option, place in (("--html", tmp_path / "folder"), ("--plots", tmp_path / "file")):
        place.mkdir() if option == "--html" else place.write_text("")
        ended = call("report", out, option, place)
        assert ended.code == 2
        assert ended.last_remark.startswith(f"error: {option}: '{place}': cannot be written (")
    assert not list(tmp_path.rglob("*.part"))


def test_a_trained_models_weights_are_as_readable_as_its_card(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        trained(texts(tmp_path / "data"), tmp_path / "out", save_t5(tmp_path / "t5"))
    finally:
        os.umask(before)
    modes = {name: oct((tmp_path / "out" / name).stat().st_mode) for name in ("model.safetensors", "README.md")}
    assert set(modes.values()) == {"0o100644"}
    assert not list((tmp_path / "out").glob("*.part"))
