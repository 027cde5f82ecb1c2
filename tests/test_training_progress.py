"""What people see of training: what lies ahead, how far it is, and hints that fit the command."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bild_bench import hub
from bild_bench.training.progress import tracked
from bild_bench.training.run import train
from tests.checkpoints import save_t5
from tests.command_line import call
from tests.made_training import job_of, texts


def test_the_length_of_a_run_is_told_in_steps_and_epochs(tmp_path: Path) -> None:
    lines: list[str] = []
    job = job_of(texts(tmp_path / "data"), tmp_path / "out", save_t5(tmp_path / "t5"), steps=3, accumulate=2)
    train(job, lines.append)
    # 6 batches of 4 are 24 of 16 texts.
    assert "3 steps of 2 batches over 16 texts, 1.5 epochs" in lines
    # Half of the texts are an epoch.
    half = replace(job, sources=(replace(job.sources[0], weight=0.5),), out=tmp_path / "half")
    train(replace(half, recipe=replace(job.recipe, steps=1, accumulate=1)), lines.append)
    assert "1 step of 1 batch over 16 texts, 0.5 epochs" in lines


@dataclass(frozen=True)
class Portion:
    examples: tuple[str, ...]


@pytest.mark.parametrize(("world", "share"), [("1", ""), ("2", ", one of 2 processes")])
def test_decoding_is_told_in_texts(
    world: str, share: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", world)
    portions = [Portion(("a",) * 1000), Portion(("b",) * 200)]
    assert list(tracked("decoding", portions, show=True)) == portions
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"decoding{share}: 1,000 of 1,200 texts, about ")
    assert second == f"decoding{share}: 1,200 of 1,200 texts, about 0.0 min left"
    assert list(tracked("decoding", portions, show=False)) == portions
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (("train", "--task", "xsum", "--init", "google/none"), "give a local copy: --init PATH"),
        (("train", "--task", "xsum", "--size", "little", "--vocab-size", "64"), "give a local copy: --data PATH"),
        (("align", "--task", "xsum", "--large", "google/none", "--small", "x/y"), "give a local copy: --large PATH"),
    ],
)
def test_a_hint_names_no_preset(
    given: tuple[str, ...], hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> hub.Listing:
        raise OSError("no network")

    monkeypatch.setattr(hub, "look_up", unreachable)
    monkeypatch.setattr(hub, "_from_cache", lambda wanted: None)
    ended = call(*given, "--out", tmp_path / "out")
    assert ended.code == 3
    assert "not in the cache" in ended.last_remark
    assert ended.last_remark.endswith(hint)
