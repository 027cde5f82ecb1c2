"""From options to settings: only what was given, so that no option is ignored in silence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from bild_bench.decoding.picking import Sampling
from bild_bench.errors import UsageError

# What the paper's released code does; its defects are not imitated.
_RELEASED_CODE = {"max_draft": 10, "first": "large"}


def method_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that were given, on the command line or in Python, by name.

    Args:
        options: options by name; missing, None or False where they were not given. Some stand for others:
            no_rollback for alpha_rb = inf, no_fallback with stride for alpha_fb = 0 with a cap, and compat for what the
            released code does.

    Raises:
        UsageError: two options contradict each other.
    """
    from bild_bench.decoding.methods import METHODS

    names = {field.name for method in METHODS.values() for field in fields(method.settings)}
    # By identity: 0 equals False, and zero means zero.
    given = {name: value for name in sorted(names) if (value := options.get(name)) is not None and value is not False}
    if options.get("no_rollback"):
        _put(given, "alpha_rb", math.inf, "--no-rollback")
    stride, compat = options.get("stride"), options.get("compat")
    if options.get("no_fallback"):
        if stride is None:
            raise UsageError("--no-fallback", True, "needs the number of drafts between hand-overs", "add --stride 5")
        if stride < 1:
            raise UsageError("--stride", stride, "must be 1 or more", "try 5")
        _put(given, "alpha_fb", 0.0, "--no-fallback")
        _put(given, "max_draft", stride, "--stride")
    elif stride is not None:
        raise UsageError("--stride", stride, "goes with --no-fallback", "add it, or use --max-draft")
    if compat is not None:
        for name, value in _RELEASED_CODE.items():
            _put(given, name, value, f"--compat {options['compat']}")
    return given


def sampling_of(options: Mapping[str, Any]) -> Sampling | None:
    """How tokens are drawn; None for greedy search, where no sampling option was given.

    Raises:
        UsageError: `sampling`, which only Python has, beside the options that it consists of.
    """
    given = {name: value for name in ("temperature", "top_k", "top_p") if (value := options.get(name)) is not None}
    whole: Sampling | None = options.get("sampling")
    if whole is not None and given:
        name, value = next(iter(given.items()))
        raise UsageError(name, value, "is given twice, in sampling too", "leave one out")
    return Sampling(**given) if given or options.get("sample") else whole


def _put(given: dict[str, Any], name: str, value: Any, because: str) -> None:
    if given.setdefault(name, value) != value:
        option = f"--{name.replace('_', '-')}"
        raise UsageError(option, given[name], f"contradicts {because} ({value})", "leave one out")
