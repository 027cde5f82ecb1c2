"""What a reader must know before believing a group's figures, beyond what each experiment says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bild_bench.report.answers import Samples
from bild_bench.report.caveats import reasons_for_doubt
from bild_bench.report.collect import Group, Member
from bild_bench.report.point_problems import slower
from bild_bench.results import Experiment

if TYPE_CHECKING:
    import pandas as pd

# What `cautions` needs of the samples.
COLUMNS = (
    *("text_id", "point_id", "role", "status", "error", "source_truncated"),
    *("started_at", "generated", "decode_seconds", "output_text", "references"),
)
# Fewer texts make thirds of a run differ by their texts alone.
_FEWEST_TEXTS = 12
_DRIFT = 0.1
# Clocks that were chosen, not forced; see `measure.gpu`.
_HARMLESS = {"none", "idle", "application clocks setting", "sync boost", "display clock setting"}


@dataclass(frozen=True)
class Cautions:
    """warnings: reasons to doubt a figure. notes: what is merely to be known of the points."""

    warnings: list[str]
    notes: list[str]


def cautions(group: Group, samples: Samples) -> list[str]:
    """One line each: the warnings of `sorted_cautions`, then its notes."""
    found = sorted_cautions(group, samples)
    return found.warnings + found.notes


def sorted_cautions(group: Group, samples: Samples) -> Cautions:
    """The group's own lines first, then those of the experiments that have a point on the front.

    Args:
        samples: see `answers.sample_reader`; `COLUMNS` are enough.

    Raises:
        DataError: samples of one of these are damaged.
    """
    warnings = []
    if group.texts_left_out:
        texts = len(group.text_ids)
        warnings.append(f"figures rest on the {texts} texts that all points have; {group.texts_left_out} are left out")
    versions = {member.run.code_version for member in group.members}
    if len(versions) > 1:
        warnings.append(f"measured by {len(versions)} versions of bild-bench: {', '.join(sorted(versions))}")
    notes = _pruned(group)
    on_front = {str(entry.member.directory) for entry in group.entries if entry.front}
    checked = [member for member in group.members if str(member.directory) in on_front]
    found = [(member.directory.name, _of_member(group, member, samples(member))) for member in checked]
    warnings += _by_line([(name, one.warnings) for name, one in found], len(group.members))
    notes += _by_line([(name, one.notes) for name, one in found], len(group.members))
    if len(checked) < len(group.members):
        rest = len(group.members) - len(checked)
        experiments = "experiment" if rest == 1 else "experiments"
        notes.append(f"not checked for warnings: {rest} {experiments} without a point on the front")
    return Cautions(warnings, notes)


def _by_line(found: Sequence[tuple[str, Sequence[str]]], members: int) -> list[str]:
    """Each line once, after the experiments that it is of; without them where it is of all."""
    tellers: dict[str, list[str]] = {}
    for name, lines in found:
        for line in lines:
            tellers.setdefault(line, []).append(name)
    return [line if len(names) == members else f"{', '.join(names)}: {line}" for line, names in tellers.items()]


def _pruned(group: Group) -> list[str]:
    """The points that are left out, one line per reason."""
    reasons: dict[str, list[str]] = {}
    for entry in group.entries:
        if entry.pruned is not None:
            reasons.setdefault(entry.pruned, []).append(entry.label)
    return [
        f"{', '.join(labels)} {'is' if len(labels) == 1 else 'are'} left out: {reason}"
        for reason, labels in reasons.items()
    ]


def drift(rows: pd.DataFrame) -> float | None:
    """How much slower the baseline was in the last third of the run than in the first: 0.1 for a tenth.

    By decode seconds per generated token, since later texts may be longer. None with fewer than 12 texts or where a
    figure is unknown.

    Args:
        rows: a run's samples.
    """
    baseline = rows[(rows["role"] == "baseline") & (rows["status"] == "ok")].sort_values("started_at", kind="stable")
    third = len(baseline) // 3
    if len(baseline) < _FEWEST_TEXTS or baseline["generated"].isna().any():
        return None
    first, last = (
        part["decode_seconds"].sum() / part["generated"].sum() for part in (baseline[:third], baseline[-third:])
    )
    return float(last / first - 1) if first > 0 else None


def _of_member(group: Group, member: Member, rows: pd.DataFrame) -> Cautions:
    rows = rows[rows["text_id"].isin(set(group.text_ids))]
    mine = [entry.summary for entry in group.entries if entry.member is member and entry.pruned is None]
    found = reasons_for_doubt(Experiment(member.run, rows, member.directory), mine)
    change = drift(rows)
    if change is not None and abs(change) > _DRIFT:
        word = "slower" if change > 0 else "faster"
        found.append(
            f"drift: vanilla was {abs(change):.0%} {word} per token in the last third of the run than in the first; "
            "paired speed-ups are hardly affected, times and ms/token are"
        )
    states = ((member.run.environment, "before"), (member.run.environment_after, "after"))
    throttled = [_throttled(environment, when) for environment, when in states]
    found += [line for line in throttled if line is not None]
    return Cautions(found, slower(mine))


def _throttled(environment: dict[str, Any], when: str) -> str | None:
    reasons = environment.get("gpu_throttle_reasons")
    held = [] if reasons is None else [word for word in str(reasons).split(", ") if word.strip() not in _HARMLESS]
    return f"the GPU was throttled {when} the run ({', '.join(held)}): times are too long" if held else None
