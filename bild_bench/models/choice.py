"""Which pair of models is asked for: a preset's entry or anyone's paths and ids. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bild_bench.errors import UsageError, unknown_name

_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class ModelChoice:
    """Where one checkpoint comes from.

    Args:
        source: a folder, or a hub id such as "google/flan-t5-small".
        revision: of the hub repository; None for a folder, or for the default branch.
        tokenizer: folder or hub id of the tokenizer where it is not the checkpoint's own.
        tokenizer_revision: of the tokenizer's hub repository.
        pickled: only pickled weights are expected there.
    """

    source: str
    revision: str | None = None
    tokenizer: str | None = None
    tokenizer_revision: str | None = None
    pickled: bool = False

    @property
    def short_name(self) -> str:
        """The last part of the path or id."""
        return self.source.rstrip("/").rsplit("/", 1)[-1]


@dataclass(frozen=True)
class PairChoice:
    """A large and a small model for one task.

    Args:
        label: as shown in tables and results: "embedded", "paper", "paper-aligned", "flan", or "large+small".
        large: the target model; None where only the small one is needed.
        small: the draft model; None where only the large one is needed.
        prefix: put before every source text; None for what the checkpoint itself says.
        kind: of the task, "translation" or "summarization".
        notes: where prefix, revisions and settings come from, by field.
        smalls: several small models by name, where a sweep compares them; `small` is None then.
    """

    label: str
    large: ModelChoice | None
    small: ModelChoice | None
    prefix: str | None
    kind: str = "translation"
    notes: Mapping[str, str] = field(default_factory=dict)
    smalls: Mapping[str, ModelChoice] = field(default_factory=dict)

    @property
    def comes_with_package(self) -> bool:
        """Whether it is the embedded pair, aligned or not: tasks then take the sample texts by default."""
        return self.label in ("embedded", "embedded-aligned")

    def of(self, key: str) -> ModelChoice | None:
        """The model of a key: "large", "small", or "small:NAME" for one of several."""
        role, _, name = key.partition(":")
        if name:
            return self.smalls.get(name)
        return self.large if role == "large" else self.small


@cache
def load_presets() -> dict[str, Any]:
    """The presets by name, as in presets.yaml."""
    import yaml

    return dict(yaml.safe_load((Path(__file__).parent / "presets.yaml").read_text(encoding="utf-8"))["presets"])


def choose_pair(
    task: str,
    kind: str,
    *,
    preset: str | None = None,
    aligned: bool | None = None,
    large: str | Path | None = None,
    small: str | Path | None = None,
    smalls: Sequence[str] = (),
    prefix: str | None = None,
) -> PairChoice:
    """The pair for a task.

    Args:
        task: the task's name; `custom` takes the preset's entry for translation (or summarisation, by kind).
        kind: "translation" or "summarization".
        preset: a preset's name; None means "embedded" unless large or small is given.
        aligned: take the preset's aligned small model; None for what the preset does by default.
        large: folder or hub id instead of a preset's model.
        small: folder or hub id instead of a preset's model.
        smalls: several of them, to be compared.
        prefix: instead of the preset's; None for its own, or for what the checkpoints of --large and --small say.

    Raises:
        UsageError: the combination names no pair; the message says what to use instead.
    """
    large, small = _name("--large", large), _name("--small", small)
    if large is not None or small is not None or smalls:
        if preset is not None or aligned:
            raise UsageError(
                "--large/--small",
                large or small or list(smalls),
                "cannot be mixed with --preset or --aligned",
                "leave one out",
            )
        names = [ModelChoice(model).short_name for model in (large, small) if model is not None]
        names += ["several"] if smalls else []
        return PairChoice(
            "+".join(names),
            None if large is None else ModelChoice(large),
            None if small is None else ModelChoice(small),
            prefix,
            kind,
            smalls={name: ModelChoice(model) for name, model in zip(names_of(smalls), smalls, strict=True)},
        )
    name = "embedded" if preset is None else preset
    entry = _preset_entry(name, task, kind)
    if aligned is None:
        aligned = load_presets()[name]["aligned_by_default"]
    if aligned and entry["aligned"] is None:
        fix = "use --preset embedded or paper, or --no-aligned"
        raise UsageError("--aligned", name, "this preset has no aligned small model", fix)
    return PairChoice(
        f"{name}-aligned" if aligned else name,
        _model_choice(entry["large"]),
        _model_choice(entry["aligned" if aligned else "small"]),
        entry["prefix"] if prefix is None else prefix,
        kind,
        entry["sources"],
    )


def names_of(smalls: Sequence[str]) -> list[str]:
    """Short names for several small models; whole ones where short ones would be the same."""
    short = [ModelChoice(model).short_name for model in smalls]
    return short if len(set(short)) == len(short) else list(smalls)


def _name(option: str, model: object) -> str | None:
    if model is not None and not isinstance(model, str | Path):
        problem = f"is of type {type(model).__name__} (allowed: a folder or a hub id)"
        raise UsageError(option, model, problem, "give its path as a string or a Path")
    if model is not None and not str(model).strip():
        raise UsageError(option, str(model), "is empty", "give a folder or a hub id, or leave it out")
    return None if model is None else str(model)


def _preset_entry(name: str, task: str, kind: str) -> dict[str, Any]:
    presets = load_presets()
    if not isinstance(name, str) or name not in presets:
        raise unknown_name("--preset", name, presets)
    tasks = presets[name]["tasks"]
    stand_in = "iwslt17" if kind == "translation" else "xsum"
    return dict(tasks[task if task in tasks else stand_in])


def _model_choice(entry: Mapping[str, Any]) -> ModelChoice:
    if "path" in entry:
        return ModelChoice(str(_PACKAGE / entry["path"]))
    tokenizer = entry.get("tokenizer") or {}
    return ModelChoice(
        entry["id"],
        entry["revision"],
        tokenizer.get("id"),
        tokenizer.get("revision"),
        bool(entry.get("pickled", False)),
    )
