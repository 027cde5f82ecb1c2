"""What two experiments were run with that is not the same, field by field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bild_bench.report.collect import comparable
from bild_bench.report.common_texts import Member

# Where something was written, and the words of the command, do not change what comes out.
_NO_MATTER = {"command", "out", "results"}
# What changes from minute to minute is no setting.
_PASSING = {
    *("load", "threads_timed", "memory_available_bytes", "gpu_sm_clock_mhz", "gpu_memory_clock_mhz", "gpu_power_w"),
    *("gpu_temperature_c", "gpu_throttle_reasons", "gpu_utilisation_percent", "gpu_other_processes"),
}
_NONE = "none"


@dataclass(frozen=True)
class Difference:
    """A field and its value on either side, as text."""

    field: str
    a: str
    b: str


def configuration(member: Member) -> dict[str, str]:
    """Every field that can change a text or a time, by name, as text; the weightiest first.

    What was in force stands before what was asked for: the threads are torch's, the session that of the large model.
    """
    run = member.run
    fields: dict[str, Any] = dict(comparable(member))
    fields |= {"code_version": run.code_version, "pair": run.pair_label, "seed": run.seed}
    fields |= {f"{name} model": model["fingerprint"] for name, model in run.models.items() if _is_small(name, model)}
    fields["rules"] = run.models.get("rules")
    asked = {name: value for name, value in run.configuration.items() if name not in _NO_MATTER}
    lasting = {name: value for name, value in run.environment.items() if name not in _PASSING}
    said: dict[str, str] = {}
    for name, value in [*fields.items(), *asked.items(), *lasting.items()]:
        said.setdefault(name.replace("_", " "), _as_text(value))
    return said


def differences(one: Mapping[str, str], two: Mapping[str, str]) -> tuple[Difference, ...]:
    """The fields of two `configuration`s that differ, in their order; a field that one lacks is "none" there."""
    pairs = [(name, one.get(name, _NONE), two.get(name, _NONE)) for name in dict.fromkeys([*one, *two])]
    return tuple(Difference(name, a, b) for name, a, b in pairs if a != b)


def _is_small(name: str, model: Any) -> bool:
    # The large model is among the fields of `comparable`.
    return name != "large" and isinstance(model, Mapping) and "fingerprint" in model


def _as_text(value: Any) -> str:
    if value is None:
        return _NONE
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else str(value)
