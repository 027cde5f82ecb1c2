"""`bild-bench tasks` and `bild-bench presets`: what is there to be copied is whole at every width."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bild_bench.cli import console
from bild_bench.models.choice import load_presets
from bild_bench.tasks import load_task, task_names
from tests.command_line import call


def preset_ids() -> set[str]:
    entries = [entry for preset in load_presets().values() for entry in preset["tasks"].values() if entry is not None]
    models = [entry[role] for entry in entries for role in ("large", "small", "aligned")]
    return {model["id"] for model in models if model is not None and "id" in model}


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_ids_and_titles_are_whole_at_every_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.out, "_width", width)
    presets, tasks = call("presets").out, call("tasks").out
    assert preset_ids()
    assert [name for name in preset_ids() if name not in presets] == []
    for task in map(load_task, task_names()):
        assert task.title in tasks
        assert task.hub_id is None or task.hub_id in tasks


def test_a_wide_terminal_gets_tables_and_a_narrow_one_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.out, "_width", 200)
    assert "hub data set: " not in call("tasks").out
    monkeypatch.setattr(console.out, "_width", 40)
    assert "iwslt17\n  what: IWSLT 2017, German to English (TED talks)\n  hub data set: " in call("tasks").out


@pytest.mark.parametrize(("command", "wanted"), [("tasks", list), ("presets", dict)])
def test_the_lists_are_there_as_json_and_the_help_says_so(command: str, wanted: type[Any]) -> None:
    assert isinstance(json.loads(call(command, "--json").out), wanted)
    assert "--json" in call(command, "--help").out
