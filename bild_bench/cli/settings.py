"""From the method's options to its settings: only what was given, so that no option is ignored in silence."""

from __future__ import annotations

import math
from typing import Any

from bild_bench.errors import UsageError

_RELEASED_CODE = {"max_draft": 10, "first": "large"}


def method_settings(
    *,
    alpha_fb: float | None,
    alpha_rb: float | None,
    no_rollback: bool,
    max_draft: int | None,
    first: str | None,
    verify_tail: bool,
    compat: str | None,
) -> dict[str, Any]:
    """Settings that were given on the command line, by name.

    Args:
        no_rollback: stands for alpha_rb = inf.
        compat: "released-code" stands for the paper's released code: a cap of 10 drafts, the large model first.

    Raises:
        UsageError: two options contradict each other.
    """
    given: dict[str, Any] = {
        name: value
        for name, value in (("alpha_fb", alpha_fb), ("alpha_rb", alpha_rb), ("max_draft", max_draft), ("first", first))
        if value is not None
    }
    if no_rollback:
        if alpha_rb is not None:
            raise UsageError("--alpha-rb", alpha_rb, "cannot be given together with --no-rollback", "leave one out")
        given["alpha_rb"] = math.inf
    if verify_tail:
        given["verify_tail"] = True
    if compat is not None:
        for name, value in _RELEASED_CODE.items():
            if given.setdefault(name, value) != value:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(option, given[name], f"contradicts --compat {compat} ({value})", "leave one out")
    return given
