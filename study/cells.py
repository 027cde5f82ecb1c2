"""The study's rows as Markdown: figures, and behind them counters and commands."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bild_bench.report.paper import PaperPoint, metric_name
from study.choose import NAMED
from study.operations import Operations
from study.rows import COUNTERS, Row
from study.sections import Shown

_COUNTED = {
    "generated": "generated",
    "small_calls": "S calls",
    "large_calls": "L calls",
    "drafted": "drafted",
    "discarded": "discarded",
    "large_tokens": "by L",
    "fallbacks": "fallbacks",
    "cap_handovers": "cap hand-overs",
    "tail_checks": "tail checks",
    "rollbacks": "rollbacks",
}


def figures_table(shown: Sequence[Shown]) -> str:
    """Quality, speed-up and rates, one line per row; layers where a method leaves early."""
    layers = any(one.row.average_exit_layer is not None for one in shown)
    paper = any(one.paper for one in shown)
    metric = metric_name(shown[0].row.metric) if shown else "quality"
    header = ["#", "row", "thresholds", metric, "against vanilla", "decoding speed-up", "with encoders"]
    header += ["fallback %", "rollback %", "tokens by L %"]
    header += ["layers per token"] if layers else []
    header += ["the paper"] if paper else []
    lines = []
    for number, one in enumerate(shown, 1):
        cells = [str(number), one.what, _thresholds(one.row), *_figures(one.row)]
        cells += [_number(one.row.average_exit_layer, 2)] if layers else []
        cells += ["; ".join(_paper(point) for point in one.paper)] if paper else []
        lines.append(cells)
    return _table(header, lines)


def short_table(shown: Sequence[Shown], wide: bool = True) -> str:
    """Quality and speed-up alone, for the first screen of a page.

    Args:
        wide: with the speed-up of encoders and decoders together, and the large model's share of the tokens.
    """
    metric = metric_name(shown[0].row.metric) if shown else "quality"
    header = ["decoding", metric, "difference from the large model", "decoding speed-up"]
    header += ["speed-up with encoders", "tokens by the large model"] if wide else []
    lines = []
    for one in shown:
        _, difference, decoding, total, *_, share = _figures(one.row)
        cells = [one.what, _number(one.row.quality, 2), difference, decoding]
        cells += [total, f"{share} %"] if wide else []
        lines.append([*cells, "; ".join(_paper(point) for point in one.paper)])
    return _table([*header, "the paper"], lines)


def behind(shown: Sequence[Shown]) -> str:
    """Counters, summed over texts and draws, and each row's command; folded away."""
    counted = []
    for number, one in enumerate(shown, 1):
        counters = json.loads(one.row.counters)
        cells = [_integer(counters[name]) for name in COUNTERS]
        counted.append([str(number), f"{one.row.texts:,}", *cells, _number(one.row.ms_per_token, 3)])
    commands = [f"{number:2}  {one.row.command}" for number, one in enumerate(shown, 1)]
    header = ["#", "texts", *(_COUNTED[name] for name in COUNTERS), "ms per token"]
    parts = [
        "<details><summary>counters and commands</summary>",
        _table(header, counted),
        "```\n" + "\n".join(commands),
    ]
    return "\n\n".join(parts) + "\n```\n\n</details>"


def operations_table(rows: Sequence[Operations]) -> str:
    """FLOPs, bytes and intensity per token, and their ratios to vanilla's."""
    header = ["texts", "small model", "point", "chosen by", "MFLOP", "MB", "FLOP/byte"]
    header += ["FLOPs over vanilla", "bytes over vanilla", "intensity over vanilla", "ms per token", "predicted"]
    return _table(
        header,
        [
            [
                *(row.trial, row.small, row.point, "; ".join(NAMED.get(rule, rule) for rule in row.rules.split("; "))),
                *(f"{row.flops / 1e6:.2f}", f"{row.moved_bytes / 1e6:.2f}", f"{row.intensity:.2f}"),
                *(f"{ratio:.2f}x" for ratio in (row.flops_ratio, row.bytes_ratio, row.intensity_ratio)),
                *(_number(row.measured_ms, 3), _number(row.predicted_ms, 3)),
            ]
            for row in rows
        ],
    )


def _thresholds(row: Row) -> str:
    """The point's label without its method and small model."""
    return row.point.removeprefix(row.method).partition(" small=")[0].strip()


def _figures(row: Row) -> list[str]:
    quality = _spread(row.quality, row.quality_low, row.quality_high, "{:.2f}")
    # Vanilla against itself says nothing, and one draw's difference nothing of a mean over draws.
    told = row.method != "vanilla" and row.draws == 1
    beside = _spread(row.difference, row.difference_low, row.difference_high, "{:+.2f}") if told else ""
    speeds = ["1.00x", "1.00x"]
    if row.method != "vanilla":
        speeds = [
            _spread(row.speedup, row.speedup_low, row.speedup_high, "{:.2f}", "x"),
            _spread(row.total_speedup, row.total_speedup_low, row.total_speedup_high, "{:.2f}", "x"),
        ]
    return [
        quality,
        beside,
        *speeds,
        *(_number(rate, 1) for rate in (row.fallback_pct, row.rollback_pct, row.large_share_pct)),
    ]


def _spread(value: float | None, low: float | None, high: float | None, form: str, unit: str = "") -> str:
    if value is None:
        return ""
    ends = "" if low is None or high is None else f" [{form.format(low)}, {form.format(high)}]"
    return form.format(value) + unit + ends


def _paper(point: PaperPoint) -> str:
    """Such as "40.24, 1.62x, fallback 21.09 %, rollback 1.56 % (iwslt17)"."""
    parts = [
        f"{point.quality:.2f}" if point.quality is not None else "",
        f"{point.speedup:.2f}x" if point.speedup is not None else "",
    ]
    for name, rate in (("fallback", point.fallback_pct), ("rollback", point.rollback_pct)):
        parts.append(f"{name} {rate:.2f} %" if rate is not None else "")
    parts.append(f"{point.average_layers:g} layers" if point.average_layers is not None else "")
    return f"{', '.join(part for part in parts if part)} ({point.task})"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _integer(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, ["---"] * len(header), *lines])
