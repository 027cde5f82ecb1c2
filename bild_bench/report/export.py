"""Collected results for other programs and for papers: CSV, strict JSON, Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bild_bench.measure.moments import NOT_PREDICTABLE
from bild_bench.printable import one_line, visible
from bild_bench.report.answers import Answer
from bild_bench.report.collect import Collected, Entry, Group
from bild_bench.report.columns import UNKNOWN
from bild_bench.report.paper import metric_name
from bild_bench.report.summary import Summary, summary_frame
from bild_bench.report.table import to_json

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Findings:
    """What was made of one group: its answers and warnings."""

    answers: list[Answer]
    warnings: list[str]


def frame(collected: Collected) -> pd.DataFrame:
    """One row per point: where it is from, its group and settings, then the columns of summary.parquet.

    settings: JSON. front: whether on its group's strict front. pruned: why it takes no part, or missing.
    """
    import pandas as pd

    rows, points = [], []
    for number, group in enumerate(collected.groups, start=1):
        # The figures have a column named texts too.
        shared = {"common texts" if name == "texts" else name: value for name, value in group.key.items()}
        rows += [{"group": number, **shared, **_about(entry)} for entry in group.entries]
        points += [entry.summary for entry in group.entries]
    about = pd.DataFrame(rows)
    if about.empty:
        return about
    about["settings"] = [json.dumps(_strict(row["settings"]), sort_keys=True) for row in rows]
    figures = summary_frame(Summary("", tuple(points), []))
    return pd.concat([about, figures.drop(columns="experiment_id")], axis=1)


def to_csv(collected: Collected) -> str:
    """`frame` as CSV with a header; unknown figures are empty.

    A text that a spreadsheet would take for a formula has an apostrophe before it, and none has a control character.
    """
    table = frame(collected)
    for name in table.select_dtypes(["object", "string"]):
        table[name] = table[name].map(_harmless)
    return str(table.to_csv(index=False, lineterminator="\n"))


def _harmless(cell: Any) -> Any:
    """A CSV cell, of which a spreadsheet makes no formula (OWASP, CSV Injection)."""
    if not isinstance(cell, str):
        return cell
    shown = visible(cell)
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@", "\t", "\n")) else shown


def to_strict_json(collected: Collected, findings: list[Findings]) -> dict[str, Any]:
    """Everything as strict JSON values: unknown is null, an infinite setting the string "inf".

    Args:
        findings: one per group, in the same order.
    """
    groups = []
    for group, found in zip(collected.groups, findings, strict=True):
        figures = to_json(Summary("", tuple(entry.summary for entry in group.entries), []), group.run)["points"]
        groups.append(
            {
                "title": group.title,
                "key": dict(group.key),
                "texts": list(group.text_ids),
                "warnings": found.warnings,
                "answers": [_strict(_answer(answer)) for answer in found.answers],
                "points": [
                    {**_strict(_about(entry)), **figure} for entry, figure in zip(group.entries, figures, strict=True)
                ],
            }
        )
    return {"groups": groups, "damaged": list(collected.damaged)}


def to_markdown(collected: Collected, findings: list[Findings]) -> str:
    """A section a group: table, answers, warnings, and the commands; `*` marks the strict front."""
    lines: list[str] = []
    for group, found in zip(collected.groups, findings, strict=True):
        lines += [f"## {_cell(group.title)}", "", *_table(group), ""]
        lines += ["Speed-ups are paired with the baseline, [95 % interval]; * marks the strict front on these texts."]
        lines += [f"Scored with `{group.key['signature']}`.", ""]
        lines += [f"- {_cell(line)}" for line in map(say, found.answers)]
        lines += [f"- warning: {_cell(warning)}" for warning in found.warnings]
        lines += ["", *_commands(group), ""]
    lines += [f"- left out: {_cell(problem)}" for problem in collected.damaged]
    return "\n".join(lines).rstrip() + "\n"


def say(answer: Answer) -> str:
    """An answer in one line."""
    mark = " (in-sample: chosen on these texts)" if answer.in_sample else ""
    if answer.entry is None:
        return f"{answer.question}{mark}: none"
    entry = answer.entry
    line = f"{answer.question}{mark}: {entry.label}, {figure(entry.quality, 2)}"
    if entry.summary.role == "baseline":
        return f"{line}; {beaten(answer)}"
    line += f" at {figure(entry.speedup, 2, 'x')} decoding"
    if answer.significance is not None:
        found = answer.significance
        p_value = "" if found.p_value is None else f", p = {found.p_value:.3f}"
        interval = "" if found.low != found.low else f" [{found.low:+.2f}, {found.high:+.2f}]"
        draw = "" if entry.summary.quality_spread is None else " of the first draw"
        line += f"; quality{draw} {found.difference:+.2f}{interval} against vanilla{p_value}"
    parts = answer.parts
    if parts is not None and not parts.plausible:
        line += f"; measured {parts.measured:.2f}x, {NOT_PREDICTABLE}"
    elif parts is not None:
        line += (
            f"; predicted {parts.predicted:.2f}x, measured {parts.measured:.2f}x (time in small calls"
            f" {parts.small_pct:.0f} %, large calls {parts.large_pct:.0f} %, rest {parts.rest_pct:.0f} %)"
        )
    return line


def beaten(answer: Answer) -> str:
    """Why the baseline answers: that no other point keeps to what is asked, or that the fastest is slower."""
    other = answer.runner_up
    if other is None:
        return "no other point keeps to that"
    return f"the fastest other point, {other.label}, is slower: {figure(other.speedup, 2, 'x')} decoding"


def figure(value: float | None, digits: int, unit: str = "") -> str:
    """A figure for people; "-" where it is unknown."""
    return UNKNOWN if value is None else f"{value:.{digits}f}{unit}"


def _table(group: Group) -> list[str]:
    heads = ["", "point", metric_name(group.run.metric), "decoding speed-up", "total speed-up", "ms/token"]
    heads += ["fallback %", "rollback %"]
    rows = [heads, ["---"] * 2 + ["---:"] * (len(heads) - 2)]
    for entry in group.entries:
        summary = entry.summary
        speeds = [
            UNKNOWN if speed is None else _interval(speed.value, speed.low, speed.high, "x")
            for speed in (summary.speedup_decoding, summary.speedup_total)
        ]
        quality = (
            UNKNOWN
            if entry.quality is None
            else _interval(entry.quality, summary.quality_low, summary.quality_high, "")
        )
        rates = [figure(summary.ms_per_token, 2), figure(summary.fallback_pct, 1), figure(summary.rollback_pct, 1)]
        rows.append(["*" if entry.front else "", _cell(entry.label), quality, *speeds, *rates])
    return ["| " + " | ".join(row) + " |" for row in rows]


def _commands(group: Group) -> list[str]:
    """The command of every point, as an indented block: each command once, its points before it."""
    lines = []
    for member in group.members:
        labels = [entry.label for entry in group.entries if entry.member is member]
        # A line end in a quoted argument stays in the command: without the indent it would end the block.
        command = visible(member.run.command).replace("\n", "\n    ")
        of_whom = one_line(f"# {', '.join(labels)} ({member.directory})")
        lines += [f"    {of_whom}", f"    {command}"]
    return lines


def _interval(value: float, low: float | None, high: float | None, unit: str) -> str:
    # A NaN (one text) is not below anything, and the baseline against itself has no width.
    if low is None or high is None or not low < high:
        return f"{value:.2f}{unit}"
    return f"{value:.2f}{unit} [{low:.2f}, {high:.2f}]"


def _cell(text: str) -> str:
    """Text that neither ends a cell nor starts markup: no element, emphasis, link or picture."""
    plain = one_line(text)
    for markup, shown in (("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;"), ("*", "\\*"), ("](", "]\\(")):
        plain = plain.replace(markup, shown)
    return plain


def _about(entry: Entry) -> dict[str, Any]:
    member = entry.member
    return {
        "label": entry.label,
        "front": entry.front,
        "pruned": entry.pruned,
        "settings": dict(entry.settings),
        "experiment_id": member.run.experiment_id,
        "status": member.run.status,
        "directory": str(member.directory),
        "command": member.run.command,
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "question": answer.question,
        "in_sample": answer.in_sample,
        "point": None if answer.entry is None else answer.entry.label,
        "quality": None if answer.entry is None else answer.entry.quality,
        "decoding_speedup": None if answer.entry is None else answer.entry.speedup,
        "runner_up": None if answer.runner_up is None else answer.runner_up.label,
        "significance": None if answer.significance is None else asdict(answer.significance),
        "speed_parts": None if answer.parts is None or not answer.parts.plausible else asdict(answer.parts),
        "speed_parts_missing": None if answer.parts is None or answer.parts.plausible else NOT_PREDICTABLE,
    }


def _strict(value: Any) -> Any:
    """The value with NaN as None and an infinite number as text, which strict JSON has no other way to say."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None if value != value else str(value)
    if isinstance(value, Mapping):
        return {key: _strict(item) for key, item in value.items()}
    return value
