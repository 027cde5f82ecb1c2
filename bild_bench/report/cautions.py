"""What a reader must know before believing a group's figures, beyond what each experiment says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bild_bench.report.answers import Samples
from bild_bench.report.caveats import caveats
from bild_bench.report.collect import Group, Member
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


def cautions(group: Group, samples: Samples) -> list[str]:
    """One line each, the group's first, then those of the experiments that have a point on the front.

    Args:
        samples: see `answers.sample_reader`; `COLUMNS` are enough.

    Raises:
        DataError: samples of one of these are damaged.
    """
    found = []
    if group.texts_left_out:
        texts = len(group.text_ids)
        found.append(f"figures rest on the {texts} texts that all points have; {group.texts_left_out} are left out")
    versions = {member.run.code_version for member in group.members}
    if len(versions) > 1:
        found.append(f"measured by {len(versions)} versions of bild-bench: {', '.join(sorted(versions))}")
    found += [f"{entry.label} takes no part: {entry.pruned}" for entry in group.entries if entry.pruned is not None]
    on_front = {str(entry.member.directory) for entry in group.entries if entry.front}
    checked = [member for member in group.members if str(member.directory) in on_front]
    for member in checked:
        prefix = "" if len(group.members) == 1 else f"{member.directory.name}: "
        found += [prefix + line for line in _of_member(group, member, samples(member))]
    if len(checked) < len(group.members):
        rest = len(group.members) - len(checked)
        found.append(f"not checked for warnings: {rest} experiments without a point on the front")
    return found


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


def _of_member(group: Group, member: Member, rows: pd.DataFrame) -> list[str]:
    rows = rows[rows["text_id"].isin(set(group.text_ids))]
    mine = [entry.summary for entry in group.entries if entry.member is member and entry.pruned is None]
    found = caveats(Experiment(member.run, rows, member.directory), mine)
    slower = drift(rows)
    if slower is not None and abs(slower) > _DRIFT:
        word = "slower" if slower > 0 else "faster"
        found.append(
            f"drift: vanilla was {abs(slower):.0%} {word} a token in the last third of the run than in the first; "
            "paired speed-ups bear it, times and ms/token do not"
        )
    states = ((member.run.environment, "before"), (member.run.environment_after, "after"))
    throttled = [_throttled(environment, when) for environment, when in states]
    return found + [line for line in throttled if line is not None]


def _throttled(environment: dict[str, Any], when: str) -> str | None:
    reasons = environment.get("gpu_throttle_reasons")
    held = [] if reasons is None else [word for word in str(reasons).split(", ") if word.strip() not in _HARMLESS]
    return f"the GPU was throttled {when} the run ({', '.join(held)}): times are too long" if held else None
