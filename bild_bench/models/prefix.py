"""The text that a checkpoint wants before every source, where the checkpoint itself says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bild_bench.models.checkpoint import Checkpoint

# What `bild-bench train` writes: a list of {"kind": "translation", "summarization" or null for either, "prefix": text}.
PREFIXES_KEY = "bild_bench_prefixes"


def read_prefix(checkpoint: Checkpoint, option: str, kind: str, announce: Callable[[str], None]) -> str:
    """The one prefix that a checkpoint names for a kind of task; "" where it names none, or several.

    config.json may name prefixes under our own key, or under `task_specific_params` as the T5 checkpoints do (Raffel et
    al. 2020, arXiv 1910.10683, appendix D), where the kind is the beginning of a task's name.

    Args:
        option: the flag that named the checkpoint, for the line that is announced.
        kind: "translation" or "summarization".
        announce: called with one line where a prefix is taken, and where several are possible and none is.
    """
    found = sorted(set(_named(checkpoint.file_json("config.json"), kind)))
    if not found or found == [""]:
        return ""
    if len(found) == 1:
        announce(f"--prefix: {found[0]!r} is put before every source, as config.json of {option} says")
        return found[0]
    named = ", ".join(map(repr, found[:4])) + (", …" if len(found) > 4 else "")
    announce(
        f"warning: --prefix: config.json of {option} names several for {kind} ({named}), so none is used; "
        f'choose one, or say --prefix ""'
    )
    return ""


def _named(config: Mapping[str, Any], kind: str) -> Iterator[str]:
    own = config.get(PREFIXES_KEY)
    for entry in own if isinstance(own, list) else []:
        if isinstance(entry, Mapping) and entry.get("kind") in (kind, None) and isinstance(entry.get("prefix"), str):
            yield entry["prefix"]
    tasks = config.get("task_specific_params")
    for name, settings in tasks.items() if isinstance(tasks, Mapping) else []:
        if str(name).startswith(kind) and isinstance(settings, Mapping) and isinstance(settings.get("prefix"), str):
            yield settings["prefix"]
