"""What came out, in figures: each of the paper's claims with what the study's rows say of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from study.choose import LIKE_LATENCY, NO_LOSS, SPECULATIVE, WITHIN_ONE
from study.operations import Operations
from study.rows import Row

SETS = ("captions", "synopses")
# Thresholds and stride at which both small models were decoded, whatever validation said.
_FALLBACK, _ROLLBACK, _STRIDE = 0.5, 2.0, 5
# "Twice as fast", where early exit and CALM are compared, and the loss that counts as none on the oracle's curve.
_TWICE, _HALF = 2.0, 0.5


def findings_table(rows: Sequence[Row], operations: Sequence[Operations]) -> str:
    """One line per claim, as Markdown; a claim that no row speaks to has an empty cell."""
    claims: list[tuple[str, Callable[[], Iterator[str]]]] = [
        ("BiLD is faster than the large model at no loss, and faster still at one point", lambda: _gains(rows)),
        ("alignment makes it faster at the same quality", lambda: _alignment(rows)),
        ("at speculative decoding's latency its quality is better", lambda: _at_latency(rows)),
        ("at speculative decoding's quality it is faster", lambda: _at_quality(rows)),
        ("speculative decoding rolls back far more often", lambda: _rollbacks(rows)),
        ("BiLD by early exit beats CALM", lambda: _early_exit(rows)),
        ("without rollback it is worse", lambda: _ablated(rows, "rb=never")),
        ("without fallback it is worse", lambda: _ablated(rows, "cap=")),
        ("it works with nucleus sampling", lambda: _nucleus(rows)),
        ("few tokens need the large model", lambda: _oracle(rows)),
        ("it does a little more arithmetic and moves far fewer bytes", lambda: _operations(operations)),
    ]
    lines = ["| the paper says | here |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {claim} | {'; '.join(figures())} |" for claim, figures in claims)])


def _gains(rows: Sequence[Row]) -> Iterator[str]:
    for name in SETS:
        for rule in (NO_LOSS, WITHIN_ONE):
            for row in _ruled(rows, name, "bild", rule, "aligned"):
                yield f"{name}, aligned, {rule}: {_speed(row)} at {_loss(row)}"


def _alignment(rows: Sequence[Row]) -> Iterator[str]:
    for name in SETS:
        for what, wanted in (
            ("fallback % at equal thresholds", {"alpha_fb": _FALLBACK, "alpha_rb": _ROLLBACK, "max_draft": None}),
            (f"rollback % at a stride of {_STRIDE}", {"alpha_fb": 0.0, "max_draft": _STRIDE}),
        ):
            rates = {}
            for row in _of(rows, name, "bild"):
                if wanted.items() <= json.loads(row.settings).items():
                    rates[row.small] = row.fallback_pct if "fallback" in what else row.rollback_pct
            if None not in rates.values() and len(rates) == 2:
                yield f"{name}: {what}: {rates['small']:.1f} as it was, {rates['aligned']:.1f} aligned"


def _at_latency(rows: Sequence[Row]) -> Iterator[str]:
    for name in SETS:
        for row in _ruled(rows, name, "bild", LIKE_LATENCY, "aligned"):
            yield f"{name}, aligned: {_loss(row)} against vanilla and so against speculative decoding"


def _at_quality(rows: Sequence[Row]) -> Iterator[str]:
    for name in SETS:
        for small in ("small", "aligned"):
            pair = [*_ruled(rows, name, "bild", NO_LOSS, small), *_ruled(rows, name, "speculative", SPECULATIVE, small)]
            if len(pair) == 2:
                yield f"{name}, {small}: {_speed(pair[0])} ({_loss(pair[0])}) against {_speed(pair[1])}"


def _rollbacks(rows: Sequence[Row]) -> Iterator[str]:
    for name in SETS:
        pair = [
            *_ruled(rows, name, "bild", NO_LOSS, "aligned"),
            *_ruled(rows, name, "speculative", SPECULATIVE, "aligned"),
        ]
        if len(pair) == 2:
            yield f"{name}, aligned: {pair[0].rollback_pct:.1f} % against {pair[1].rollback_pct:.1f} %"


def _early_exit(rows: Sequence[Row]) -> Iterator[str]:
    told = []
    for trial, method in (("early-exit", "bild-early-exit"), ("calm", "calm")):
        fast = [row for row in _of(rows, trial, method) if row.speedup is not None and row.speedup >= _TWICE]
        if fast:
            best = max(fast, key=lambda row: row.quality or 0.0)
            told.append(f"{best.quality:.1f} BLEU at {best.speedup:.2f}x ({best.point})")
    if len(told) == 2:
        yield f"best at {_TWICE:g}x or faster: {told[0]} against {told[1]}"


def _ablated(rows: Sequence[Row], mark: str) -> Iterator[str]:
    """The fastest ablated point that loses no more than the whole method does within a point, beside that."""
    for name in SETS:
        for whole in _ruled(rows, name, "bild", WITHIN_ONE, "aligned"):
            ablated = [row for row in _of(rows, name, "bild") if mark in row.point and row.small == "aligned"]
            able = [row for row in ablated if (row.quality or 0.0) >= (whole.quality or 0.0)]
            if able:
                best = max(able, key=lambda row: row.speedup or 0.0)
                yield f"{name}: {_speed(best)} at {_loss(best)}, with it {_speed(whole)} at {_loss(whole)}"
            elif ablated:
                closest = max(ablated, key=lambda row: row.quality or 0.0)
                yield f"{name}: {_loss(closest)} at best ({_speed(closest)}), with it {_loss(whole)} ({_speed(whole)})"


def _nucleus(rows: Sequence[Row]) -> Iterator[str]:
    for rule in (NO_LOSS, WITHIN_ONE):
        base = next(iter(_of(rows, "nucleus", "vanilla")), None)
        for row in _ruled(rows, "nucleus", "bild", rule, "aligned"):
            if base is not None:
                yield f"{rule} when greedy: {_speed(row)}, {row.quality:.2f} BLEU against {base.quality:.2f}"


def _oracle(rows: Sequence[Row]) -> Iterator[str]:
    """The least share of replaced tokens whose score is within half a point of the large model's."""
    for name in SETS:
        for small in ("small", "aligned"):
            near = [
                row.large_share_pct
                for row in _of(rows, name, "oracle")
                if row.small == small and row.difference is not None and row.difference >= -_HALF
            ]
            shares = [share for share in near if share is not None]
            if shares:
                yield f"{name}, {small}: {min(shares):.0f} % of tokens for a score within half a point"


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


def _speed(row: Row) -> str:
    return f"{row.speedup:.2f}x"


def _loss(row: Row) -> str:
    return f"{row.difference:+.2f} [{row.difference_low:+.2f}, {row.difference_high:+.2f}]"


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.2f}x" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f}x to {high:.2f}x"
