"""What a reader came for: the point to choose, whether its quality differs, and what its speed-up is made of.

The texts a point is chosen on are the texts it is shown on, so every choice here is labelled in-sample: thresholds for
a paper are chosen on validation texts (`bild-bench tune`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bild_bench.measure.cost_model import MODELLED, Calls, Costs, predict, read_costs
from bild_bench.measure.moments import MOST_DRIFT
from bild_bench.report.collect import Entry, Group, Member
from bild_bench.report.significance import Significance, quality_significance

if TYPE_CHECKING:
    import pandas as pd

Samples = Callable[[Member], "pd.DataFrame"]

# A score printed as equal must not count as lower for a rounding in its last bits.
_TIE = 1e-9


# Calls timed on their own may come out a little slower than within a text.
_SLACK_PCT = 5.0


@dataclass(frozen=True)
class SpeedParts:
    """A point's decoding speed-up as the calibrated calls predict it, and where its measured time went.

    predicted, measured: decoding speed-up over the baseline on the same texts. small_pct, large_pct: the share of the
    measured decode time that the calls of each model explain; rest_pct: what remains (the loop, opening the sessions,
    contexts longer than calibrated, a busy machine); below 0 where the calls were cheaper than calibrated. drift: how
    many times slower single calls were at the slowest moment of the run at which they were timed; None: not known.
    """

    predicted: float
    measured: float
    small_pct: float
    large_pct: float
    rest_pct: float
    drift: float | None = None

    @property
    def plausible(self) -> bool:
        """Whether the calls explain the time, and took about as long at all moments of the run.

        They do with no part beyond all of it, and no rest below 0 by more than 5 %.

        Where they do not, other programs had the machine while calls were timed, and nothing is predicted.
        """
        parts = (self.small_pct, self.large_pct, self.rest_pct)
        steady = self.drift is None or self.drift <= MOST_DRIFT
        return steady and max(parts) <= 100 and self.rest_pct >= -_SLACK_PCT


@dataclass(frozen=True)
class Answer:
    """A question, and the point that answers it; None where no point does.

    Where the baseline answers, nothing is compared: significance and parts are None, and runner_up is the fastest other
    point that keeps to what is asked, slower than the baseline; None where none does.
    """

    question: str
    entry: Entry | None
    significance: Significance | None
    parts: SpeedParts | None
    in_sample: bool = True
    runner_up: Entry | None = None


def sample_reader(columns: Sequence[str] | None = None) -> Samples:
    """A reader of members' samples that reads each only once; of some columns where only these are needed."""
    read: dict[str, pd.DataFrame] = {}

    def samples(member: Member) -> pd.DataFrame:
        key = str(member.directory)
        if key not in read:
            read[key] = member.samples(columns)
        return read[key]

    return samples


def answers(
    group: Group, *, max_drops: Sequence[float] = (0.0, 1.0), min_speedup: float | None = None, samples: Samples
) -> list[Answer]:
    """The choices of a group.

    Args:
        max_drops: one question each: the fastest point at most this many points of quality below vanilla.
        min_speedup: one question more: the best quality at this decoding speed-up or more; None for none.
        samples: see `sample_reader`.

    Raises:
        DataError: samples that are needed are damaged.
    """
    chosen = [(_within_question(drop), _within(group, drop)) for drop in max_drops]
    if min_speedup is not None:
        question = f"best quality at a decoding speed-up of {min_speedup:g}x or more"
        best = best_quality_at(group, min_speedup)
        chosen.append((question, [] if best is None else [best]))
    found: dict[int, tuple[Significance | None, SpeedParts | None]] = {}
    for _, entries in chosen:
        for entry in entries[:1]:
            if not _is_baseline(entry) and id(entry) not in found:
                found[id(entry)] = significance(group, entry, samples), speed_parts(group, entry, samples)
    return [_answer(question, entries, found) for question, entries in chosen]


def _answer(
    question: str, entries: Sequence[Entry], found: Mapping[int, tuple[Significance | None, SpeedParts | None]]
) -> Answer:
    """The first entry answers; where that is a baseline, the first other one is the runner-up."""
    if not entries:
        return Answer(question, None, None, None)
    if not _is_baseline(entries[0]):
        return Answer(question, entries[0], *found[id(entries[0])])
    others = (entry for entry in entries if not _is_baseline(entry))
    return Answer(question, entries[0], None, None, runner_up=next(others, None))


def best_within(group: Group, max_drop: float) -> Entry | None:
    """The fastest point whose quality is at most `max_drop` points below that of its own experiment's baseline.

    The baseline itself, where no other such point is at least as fast; None where a quality is unknown.
    """
    return next(iter(_within(group, max_drop)), None)


def _within(group: Group, max_drop: float) -> list[Entry]:
    """The points within the drop, baselines among them, the fastest first, of equally fast ones the better."""
    floor = {
        str(entry.member.directory): entry.quality - max_drop
        for entry in group.entries
        if entry.summary.role == "baseline" and entry.quality is not None
    }
    able = [
        (entry.speedup, entry.quality, entry)
        for entry in group.entries
        if entry.shown
        and entry.speedup is not None
        and entry.quality is not None
        and entry.quality >= floor.get(str(entry.member.directory), float("inf")) - _TIE
    ]
    # Where a point is exactly as fast and as good, it says no less than the baseline does.
    able.sort(key=lambda found: (*found[:2], not _is_baseline(found[2])), reverse=True)
    return [entry for *_, entry in able]


def best_quality_at(group: Group, min_speedup: float) -> Entry | None:
    """The point of the highest quality whose decoding speed-up is at least this; the baseline has a speed-up of 1."""
    able = [
        (entry.quality, entry.speedup, entry)
        for entry in group.entries
        if entry.shown and entry.speedup is not None and entry.quality is not None and entry.speedup >= min_speedup
    ]
    return max(able, key=lambda found: found[:2])[2] if able else None


def significance(group: Group, entry: Entry, samples: Samples) -> Significance | None:
    """The entry's quality against its own experiment's baseline; None where there is no baseline."""
    run, rows = entry.member.run, samples(entry.member)
    baseline, point = _baseline_and_point(entry, rows)
    return quality_significance(run.metric, run.seed, baseline, point, group.text_ids)


def speed_parts(group: Group, entry: Entry, samples: Samples) -> SpeedParts | None:
    """Predicted against measured; None where a counter or a call's cost is unknown."""
    costs = read_costs(entry.member.run.calibration)
    rows = samples(entry.member)
    rows = rows[rows["text_id"].isin(set(group.text_ids)) & (rows["status"] == "ok")]
    baseline, point = _baseline_and_point(entry, rows)
    both = [*baseline["method"].unique(), entry.summary.method]
    if costs is None or entry.speedup is None or not MODELLED.issuperset(both):
        return None
    base, own = _predicted(costs, baseline), _predicted(costs, point)
    measured = float(point["decode_seconds"].sum())
    if base is None or own is None or sum(own) == 0 or not measured > 0:
        return None
    small, large = (100 * seconds / measured for seconds in own)
    drift = entry.member.run.calibration.get("drift")
    return SpeedParts(sum(base) / sum(own), entry.speedup, small, large, 100 - small - large, drift)


def _within_question(drop: float) -> str:
    if drop == 0:
        return "fastest at no loss (vanilla's score or above)"
    return f"fastest within {drop:g} {'point' if drop == 1 else 'points'} of vanilla"


def _is_baseline(entry: Entry) -> bool:
    return entry.summary.role == "baseline"


def _baseline_and_point(entry: Entry, rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    return rows[rows["role"] == "baseline"], rows[rows["point_id"] == entry.summary.point_id]


def _predicted(costs: Costs, rows: pd.DataFrame) -> tuple[float, float] | None:
    """Seconds in calls of S and of L."""
    counters = rows[["small_calls", "large_calls", "generated", "discarded"]]
    if counters.empty or counters.isna().any(axis=None):
        return None
    texts = [
        Calls(int(small), int(large), tokens_fed(trace, int(kept + cut)))
        for (small, large, kept, cut), trace in zip(counters.itertuples(index=False), rows["trace"], strict=True)
    ]
    predicted = predict(costs, texts)
    return None if predicted is None else (predicted.small_seconds, predicted.large_seconds)


def tokens_fed(trace: Sequence[Mapping[str, Any]] | None, written: int) -> int:
    """How many tokens L was given over a text: the start token, and all that was generated before L's last own token.

    Drafts after that were accepted unseen. A last pass that only checks the tail is not told by a trace and not
    counted.

    Args:
        trace: the text's steps in the order in which they were generated; without one all tokens count.
        written: tokens that were ever generated, those rolled back included.
    """
    if trace is None or len(trace) == 0:
        return written
    return max((place + 1 for place, step in enumerate(trace) if step["author"] == "L"), default=0)
