"""Collected results as LaTeX: a booktabs table per group, to be pasted into a paper."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bild_bench.printable import one_line
from bild_bench.report.columns import UNKNOWN, cell, told_columns
from bild_bench.report.paper import metric_name
from bild_bench.report.point import Summary
from bild_bench.report.table import signatures_of

if TYPE_CHECKING:
    from bild_bench.report.collect import Collected, Entry, Group

_COLUMNS = (
    *("quality", "vs vanilla", "chrF", "decoding speed-up", "total speed-up"),
    *("fallback %", "rollback %", "accepted %", "accepted length", "exit layer"),
)
_ESCAPES = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
)
_FRONT = r"$^{\ast}$"


def to_latex(collected: Collected) -> str:
    r"""A `table` environment per group, with caption and label; needs \usepackage{booktabs} and nothing else.

    An asterisk after a label marks the strict front. Signatures and commands stand above each table as comments.
    """
    lines = [r"% \usepackage{booktabs}"]
    for number, group in enumerate(collected.groups, start=1):
        lines += ["", *_comments(group), *_table(group, number)]
    lines += [f"% left out: {one_line(problem)}" for problem in collected.damaged]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Text that LaTeX prints as it is, on one line."""
    return one_line(text).translate(_ESCAPES)


def _table(group: Group, number: int) -> list[str]:
    told = told_columns(Summary("", tuple(entry.summary for entry in group.entries), []))
    columns = [name for name in _COLUMNS if name in told]
    heads = [metric_name(group.run.metric) if name == "quality" else name for name in columns]
    caption = f"{group.title}. In brackets: 95 % intervals over texts; differences and speed-ups are paired."
    marked = f" {_FRONT}: on the strict front." if any(entry.front for entry in group.entries) else ""
    return [
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{escape(caption)}{marked}}}",
        f"\\label{{tab:bild-bench-{number}}}",
        f"\\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        _row(["method", *map(escape, heads)]),
        r"\midrule",
        *(_row([_label(entry), *(_figures(cell(name, entry.summary)) for name in columns)]) for entry in group.entries),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def _row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _label(entry: Entry) -> str:
    label = escape(entry.label)
    # After the end of a row a bracket would be the distance to the next one, and an asterisk forbid a page break.
    guard = "{}" if label.startswith(("[", "*")) else ""
    return f"{guard}{label}{_FRONT if entry.front else ''}"


def _figures(text: str) -> str:
    """A table's cell such as "-0.64 [-0.97, +0.32]" or "1.43x [1.38, 1.49]", set as LaTeX sets numbers."""
    if text == UNKNOWN:
        return "--"
    signed = re.sub(r"([+-])(?=\d)", r"$\1$", text)
    return re.sub(r"(?<=\d)x", r"$\\times$", signed).replace("±", r"$\pm$")


def _comments(group: Group) -> list[str]:
    lines = signatures_of([entry.summary for entry in group.entries])
    for member in group.members:
        labels = ", ".join(entry.label for entry in group.entries if entry.member is member)
        lines.append(f"{labels} ({member.directory}): {member.run.command}")
    return [f"% {one_line(line)}" for line in lines]
