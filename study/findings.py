"""What came out, in figures: each of the paper's claims with what the study's rows say of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bild_bench.report.paper import metric_name
from study.choose import LIKE_LATENCY, NAMED, NO_LOSS, SPECULATIVE, WITHIN_ONE
from study.operations import Operations
from study.rows import Row

SETS = ("captions", "synopses")
# Thresholds and stride at which both small models were decoded, whatever validation said.
_FALLBACK, _ROLLBACK, _STRIDE = 0.5, 2.0, 5
# "Twice as fast", where early exit and CALM are compared, and the loss that counts as none on the oracle's curve.
_TWICE, _HALF = 2.0, 0.5
_HOLDS, _PARTLY, _FAILS = "holds", "holds in part", "does not hold"


@dataclass(frozen=True)
class Claim:
    """One of the paper's claims.

    Args:
        text: what the paper says.
        verdict: what we make of the figures in results/reference. Judged by hand: read them again after a new study.
        figures: what the rows say, one line per set or pair.
    """

    text: str
    verdict: str
    figures: Callable[[], Iterator[str]]


def claims(rows: Sequence[Row], operations: Sequence[Operations]) -> list[Claim]:
    """All of the paper's claims that this study can speak to, in the order of its tables."""
    return [
        Claim(
            "BiLD is faster than the large model without loss, and faster still at a loss of one point",
            f"{_HOLDS} for speed; the loss on test texts can exceed that on validation texts",
            lambda: _gains(rows),
        ),
        Claim("alignment makes BiLD faster at the same quality", _HOLDS, lambda: _alignment(rows)),
        Claim("at speculative decoding's latency, BiLD's quality is better", _FAILS, lambda: _at_latency(rows)),
        Claim(
            "at speculative decoding's quality, BiLD is faster",
            f"{_PARTLY}: with the aligned model, near its quality",
            lambda: _at_quality(rows),
        ),
        Claim("speculative decoding rolls back far more often", _HOLDS, lambda: _rollbacks(rows)),
        Claim("BiLD by early exit beats CALM", f"{_PARTLY}: at 2x and faster", lambda: _early_exit(rows)),
        Claim("without rollback, BiLD is worse", f"{_FAILS} clearly", lambda: _ablated(rows, "rb=never")),
        Claim("without fallback, BiLD is worse", _HOLDS, lambda: _ablated(rows, "cap=")),
        Claim("BiLD works with nucleus sampling", f"{_HOLDS}, at smaller gains", lambda: _nucleus(rows)),
        Claim("few tokens need the large model", _HOLDS, lambda: _oracle(rows)),
        Claim(
            "BiLD does slightly more arithmetic and moves far fewer bytes",
            f"{_PARTLY}: bytes yes; arithmetic is not always more",
            lambda: _operations(operations),
        ),
    ]


def findings_table(rows: Sequence[Row], operations: Sequence[Operations]) -> str:
    """One line per claim, as Markdown; a claim that no row speaks to has no figures."""
    lines = ["| # | the paper says | here | measured |", "| --- | --- | --- | --- |"]
    for number, claim in enumerate(claims(rows, operations), 1):
        lines.append(f"| {number} | {claim.text} | {claim.verdict} | {'<br>'.join(claim.figures())} |")
    return "\n".join(lines)


def _gains(rows: Sequence[Row]) -> Iterator[str]:
    for name in SETS:
        for rule in (NO_LOSS, WITHIN_ONE):
            for row in _ruled(rows, name, "bild", rule, "aligned"):
                yield f"{name}, {NAMED[rule]}: {_speed(row)}, {_loss(row)}"


def _alignment(rows: Sequence[Row]) -> Iterator[str]:
    for name in SETS:
        pair = [_ruled(rows, name, "bild", NO_LOSS, small) for small in ("small", "aligned")]
        if all(pair):
            (before,), (after,) = pair
            yield f"{name}, not aligned: {_speed(before)}, {_loss(before)}; aligned {_speed(after)}, {_loss(after)}"
        for what, wanted in (
            ("fallbacks at equal thresholds", {"alpha_fb": _FALLBACK, "alpha_rb": _ROLLBACK, "max_draft": None}),
            (f"rollbacks at a stride of {_STRIDE}", {"alpha_fb": 0.0, "max_draft": _STRIDE}),
        ):
            rates = {}
            for row in _of(rows, name, "bild"):
                if wanted.items() <= json.loads(row.settings).items():
                    rates[row.small] = row.fallback_pct if "fallback" in what else row.rollback_pct
            if None not in rates.values() and len(rates) == 2:
                yield f"{name}, {what}: {rates['small']:.1f} % of tokens; aligned {rates['aligned']:.1f} %"


def _at_latency(rows: Sequence[Row]) -> Iterator[str]:
    for name in SETS:
        pair = _beside_speculative(rows, name, LIKE_LATENCY, "aligned")
        if pair is not None:
            yield f"{name}: {_speed(pair[0])}, {_loss(pair[0])}; speculative {_speed(pair[1])}, no loss"


def _at_quality(rows: Sequence[Row]) -> Iterator[str]:
    for name in SETS:
        for small, what in (("small", "not aligned"), ("aligned", "aligned")):
            pair = _beside_speculative(rows, name, NO_LOSS, small)
            if pair is not None:
                yield f"{name}, {what}: {_speed(pair[0])}, {_loss(pair[0])}; speculative {_speed(pair[1])}, no loss"


def _rollbacks(rows: Sequence[Row]) -> Iterator[str]:
    for name in SETS:
        pair = _beside_speculative(rows, name, NO_LOSS, "aligned")
        if pair is not None:
            yield f"{name}: {pair[1].rollback_pct:.1f} % of tokens; BiLD {pair[0].rollback_pct:.1f} %"


def _early_exit(rows: Sequence[Row]) -> Iterator[str]:
    for trial, method, what in (("early-exit", "bild-early-exit", "BiLD by early exit"), ("calm", "calm", "CALM")):
        fast = [row for row in _of(rows, trial, method) if row.speedup is not None and row.speedup >= _TWICE]
        if fast:
            best = max(fast, key=lambda row: row.quality or 0.0)
            yield f"{what}, best at {_TWICE:g}x or faster: {_quality(best)} at {_speed(best)}, {_loss(best)}"


def _ablated(rows: Sequence[Row], mark: str) -> Iterator[str]:
    """The fastest ablated point that loses no more than the whole method does within a point, beside that."""
    for name in SETS:
        for whole in _ruled(rows, name, "bild", WITHIN_ONE, "aligned"):
            ablated = [row for row in _of(rows, name, "bild") if mark in row.point and row.small == "aligned"]
            able = [row for row in ablated if (row.quality or 0.0) >= (whole.quality or 0.0)]
            if ablated:
                best = (
                    max(able, key=lambda row: row.speedup or 0.0)
                    if able
                    else max(ablated, key=lambda row: row.quality or 0.0)
                )
                yield f"{name}: {_speed(best)}, {_loss(best)}; whole method {_speed(whole)}, {_loss(whole)}"


def _nucleus(rows: Sequence[Row]) -> Iterator[str]:
    base = next(iter(_of(rows, "nucleus", "vanilla")), None)
    for rule in (NO_LOSS, WITHIN_ONE):
        for row in _ruled(rows, "nucleus", "bild", rule, "aligned"):
            if base is not None:
                yield f"greedy thresholds, {NAMED[rule]}: {_speed(row)}, {_quality(row)}; vanilla {_quality(base)}"


def _oracle(rows: Sequence[Row]) -> Iterator[str]:
    """The least share of replaced tokens whose score is within half a point of the large model's."""
    for name in SETS:
        for small, what in (("small", "not aligned"), ("aligned", "aligned")):
            near = [
                row
                for row in _of(rows, name, "oracle")
                if row.small == small
                and row.large_share_pct is not None
                and row.difference is not None
                and row.difference >= -_HALF
            ]
            if near:
                least = min(near, key=lambda row: row.large_share_pct or 0.0)
                yield f"{name}, {what}: {least.large_share_pct:.0f} % of tokens, {_loss(least)}"


def _operations(operations: Sequence[Operations]) -> Iterator[str]:
    for name in SETS:
        found = [row for row in operations if row.trial == name and row.rules]
        if found:
            flops, moved = ([getattr(row, ratio) for row in found] for ratio in ("flops_ratio", "bytes_ratio"))
            yield f"{name}: FLOPs {_range(flops)} of vanilla's, bytes {_range(moved)}"


def _of(rows: Sequence[Row], trial: str, method: str) -> list[Row]:
    return [row for row in rows if row.trial == trial and row.method == method]


def _ruled(rows: Sequence[Row], trial: str, method: str, rule: str, small: str) -> list[Row]:
    """The row of one small model that was chosen by a rule; none if there is none."""
    return [row for row in _of(rows, trial, method) if row.small == small and rule in row.rules.split("; ")][:1]


def _beside_speculative(rows: Sequence[Row], name: str, rule: str, small: str) -> tuple[Row, Row] | None:
    """BiLD's row that a rule chose, and speculative decoding's with the same small model; None without both."""
    pair = [*_ruled(rows, name, "bild", rule, small), *_ruled(rows, name, "speculative", SPECULATIVE, small)]
    return (pair[0], pair[1]) if len(pair) == 2 else None


def _speed(row: Row) -> str:
    ends = "" if row.speedup_low is None else f" [{row.speedup_low:.2f}, {row.speedup_high:.2f}]"
    return f"{row.speedup:.2f}x{ends}"


def _loss(row: Row) -> str:
    return f"{metric_name(row.metric)} {row.difference:+.2f} [{row.difference_low:+.2f}, {row.difference_high:+.2f}]"


def _quality(row: Row) -> str:
    ends = "" if row.quality_low is None else f" [{row.quality_low:.2f}, {row.quality_high:.2f}]"
    return f"{metric_name(row.metric)} {row.quality:.2f}{ends}"


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.2f}x" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f}x to {high:.2f}x"
