"""Which rows each table of docs/STUDY.md and docs/study/ shows, and which of the paper's figures each stands beside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bild_bench.report.paper import PaperPoint, paper_points
from study.choose import BEST, LIKE_LATENCY, NAMED, NO_LOSS, SPECULATIVE, WITHIN_ONE
from study.rows import Row
from study.trials import CAPTIONS, SYNOPSES

_PAPER_TASK = {"captions": CAPTIONS.paper_task, "nucleus": CAPTIONS.paper_task, "synopses": SYNOPSES.paper_task}
_PAPER_DROP = {NO_LOSS: "no drop", WITHIN_ONE: "about one point lower"}


@dataclass(frozen=True)
class Shown:
    """A row of a table.

    Args:
        what: the part that it plays there.
        row: its figures.
        paper: the paper's figures for that part; none where it has none.
    """

    what: str
    row: Row
    paper: tuple[PaperPoint, ...] = ()


def bild(rows: Sequence[Row], trial: str) -> list[Shown]:
    """Both models alone, and BiLD with the small one as it was and aligned."""
    shown = [Shown("large alone", row, _paper(trial, "vanilla", "baseline")) for row in _of(rows, trial, "vanilla")]
    shown += [Shown(_named("small alone", row), row) for row in _of(rows, trial, "small")]
    for row, rule in _ruled(rows, trial, "bild", (NO_LOSS, WITHIN_ONE)):
        paper = _paper(trial, "bild", _PAPER_DROP[rule], aligned=_aligned(row))
        shown.append(Shown(_named(f"BiLD, {NAMED[rule]}", row), row, paper))
    return shown


def speculative(rows: Sequence[Row], trial: str) -> list[Shown]:
    """Rejection sampling, and BiLD at its latency, at its quality, and at BiLD's best quality."""
    shown = []
    for small in _smalls(rows, trial):
        own = [row for row in rows if row.small == small]
        for row, _ in _ruled(own, trial, "speculative", (SPECULATIVE,)):
            shown.append(Shown(_named("speculative", row), row, _paper(trial, "speculative", "unaligned", row)))
        names = {
            LIKE_LATENCY: "at speculative's latency",
            NO_LOSS: "at speculative's quality on validation",
            BEST: "best quality on validation",
        }
        for row, rule in _ruled(own, trial, "bild", tuple(names)):
            setting = {LIKE_LATENCY: LIKE_LATENCY, NO_LOSS: "like speculative's quality"}.get(rule, "none")
            shown.append(Shown(_named(f"BiLD, {names[rule]}", row), row, _paper(trial, "bild", setting, row)))
    return shown


def early_exit(rows: Sequence[Row]) -> list[Shown]:
    """BiLD by early exit and CALM, each beside its own model run through all layers."""
    shown = [Shown("early-exit model, all layers", row) for row in _of(rows, "early-exit", "vanilla")]
    for row, rule in _ruled(rows, "early-exit", "bild-early-exit", (NO_LOSS, WITHIN_ONE)):
        paper = tuple(p for p in paper_points() if p.method == "bild-early-exit" and p.speedup is not None)
        shown.append(Shown(f"BiLD early exit, {NAMED[rule]}", row, paper if rule == WITHIN_ONE else ()))
    rest = [row for row in _of(rows, "early-exit", "bild-early-exit") if not _has(row, (NO_LOSS, WITHIN_ONE))]
    shown += [Shown("BiLD early exit", row) for row in rest]
    # The paper names its three points by the layers per token, and says nothing of measure or threshold.
    published = tuple(point for point in paper_points() if point.method == "calm")
    shown += [Shown("CALM model, all layers", row, published) for row in _of(rows, "calm", "vanilla")]
    for row in _of(rows, "calm", "calm"):
        rules = [NAMED[rule] for rule in (NO_LOSS, WITHIN_ONE) if _has(row, (rule,))]
        shown.append(Shown(", ".join(["CALM", *rules]), row))
    return shown


def ablations(rows: Sequence[Row], trial: str) -> list[Shown]:
    """The aligned pair without rollback, and without fallback at each stride, below what was chosen of the whole."""
    own = [row for row in _of(rows, trial, "bild") if _aligned(row)]
    shown = [Shown(f"BiLD, {NAMED[rule]}", row) for row, rule in _ruled(own, trial, "bild", (NO_LOSS, WITHIN_ONE))]
    shown += [Shown("no rollback", row) for row in own if "rb=never" in row.point]
    return shown + [Shown("no fallback", row) for row in own if "cap=" in row.point]


def alignment(rows: Sequence[Row], trial: str) -> list[Shown]:
    """The same thresholds and strides with the small model as it was and aligned."""
    points: dict[str, list[Row]] = {}
    for row in _of(rows, trial, "bild"):
        points.setdefault(row.point.partition(" small=")[0], []).append(row)
    pairs = [sorted(found, key=_aligned) for found in points.values() if len(found) == 2]
    chosen = [pair for pair in pairs if " rb=2" in pair[0].point]
    return [Shown("aligned" if _aligned(row) else "not aligned", row) for pair in chosen for row in pair]


def nucleus(rows: Sequence[Row]) -> list[Shown]:
    """Nucleus sampling: vanilla and the points that were chosen for greedy search."""
    paper = [_paper("nucleus", method, "nucleus p=0.8") for method in ("vanilla", "bild")]
    floor = min(point.quality for point in paper[0] if point.quality is not None)
    shown = [Shown("large alone", row, paper[0]) for row in _of(rows, "nucleus", "vanilla")]
    for row, rule in _ruled(rows, "nucleus", "bild", (NO_LOSS, WITHIN_ONE)):
        # The paper's points have no names; those at or above its vanilla are its "no loss".
        alike = tuple(p for p in paper[1] if p.quality is not None and (p.quality >= floor) == (rule == NO_LOSS))
        shown.append(Shown(_named(f"BiLD, greedy thresholds: {NAMED[rule]}", row), row, alike if _aligned(row) else ()))
    return shown


def oracle(rows: Sequence[Row], trial: str) -> list[Shown]:
    """Quality against the share of tokens that the large model replaces, between the models alone."""
    ends = [Shown("large alone", row) for row in _of(rows, trial, "vanilla")]
    ends += [Shown(_named("small alone", row), row) for row in _of(rows, trial, "small")]
    return ends + [Shown(_named("oracle", row), row) for row in _of(rows, trial, "oracle")]


def peers(rows: Sequence[Row]) -> list[Shown]:
    """The library's own generate beside ours."""
    return [Shown(_named(row.method, row), row) for row in rows if row.trial == "peers"]


def summary(rows: Sequence[Row], trial: str) -> list[Shown]:
    """The main result, with the aligned small model where there is one: both models alone, speculative and BiLD."""
    alone = bild(rows, trial)
    large = [one for one in alone if one.row.method == "vanilla"]
    small = [one for one in alone if one.row.method == "small" and _aligned(one.row)]
    rival = [one for one in speculative(rows, trial) if one.row.method == "speculative" and _aligned(one.row)]
    return large + small + rival + [one for one in alone if one.row.method == "bild" and _aligned(one.row)]


SECTIONS: dict[str, Callable[[Sequence[Row]], list[Shown]]] = {
    "captions-bild": lambda rows: bild(rows, "captions"),
    "synopses-bild": lambda rows: bild(rows, "synopses"),
    "captions-speculative": lambda rows: speculative(rows, "captions"),
    "synopses-speculative": lambda rows: speculative(rows, "synopses"),
    "early-exit": early_exit,
    "captions-ablations": lambda rows: ablations(rows, "captions"),
    "synopses-ablations": lambda rows: ablations(rows, "synopses"),
    "captions-alignment": lambda rows: alignment(rows, "captions"),
    "synopses-alignment": lambda rows: alignment(rows, "synopses"),
    "nucleus": nucleus,
    "captions-oracle": lambda rows: oracle(rows, "captions"),
    "synopses-oracle": lambda rows: oracle(rows, "synopses"),
    "peers": peers,
}


def _of(rows: Sequence[Row], trial: str, method: str) -> list[Row]:
    return [row for row in rows if row.trial == trial and row.method == method]


def _ruled(rows: Sequence[Row], trial: str, method: str, rules: Iterable[str]) -> list[tuple[Row, str]]:
    """A trial's rows that were chosen by one of the rules, by small model and then in the order of the rules."""
    own = _of(rows, trial, method)
    smalls = dict.fromkeys(row.small for row in own)
    return [
        (row, rule)
        for small in sorted(smalls, key="aligned".__eq__)
        for rule in rules
        for row in own
        if row.small == small and _has(row, (rule,))
    ]


def _has(row: Row, rules: Iterable[str]) -> bool:
    return any(rule in row.rules.split("; ") for rule in rules)


def _smalls(rows: Sequence[Row], trial: str) -> list[str]:
    return sorted({row.small for row in rows if row.trial == trial and row.small}, key="aligned".__eq__)


def _aligned(row: Row) -> bool:
    return row.small == "aligned"


def _named(what: str, row: Row) -> str:
    return f"{what} (aligned)" if _aligned(row) else what


def _paper(
    trial: str, method: str, setting: str, row: Row | None = None, aligned: bool | None = None
) -> tuple[PaperPoint, ...]:
    """The paper's figures on the task that stands beside this trial's; of an aligned pair none, where it has none."""
    wanted = aligned if row is None else _aligned(row)
    told = {None: ("no", "yes", "not applicable"), True: ("yes",), False: ("no",)}[wanted]
    return tuple(
        point
        for point in paper_points()
        if point.task == _PAPER_TASK[trial]
        and point.method == method
        and point.setting == setting
        and point.aligned in told
    )
