"""Two result sets side by side: before and after a change, or two machines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bild_bench.errors import DataError
from bild_bench.report.collect import collect
from bild_bench.report.common_texts import Member
from bild_bench.report.compare_points import PointPair, Side, compare_point
from bild_bench.report.differences import Difference, configuration, differences
from bild_bench.report.unscored import empty_in_either, unanswered

if TYPE_CHECKING:
    import pandas as pd

_FEW_TEXTS = 30


@dataclass(frozen=True, repr=False)
class Section:
    """An experiment of A and one of B, with the points that were matched between them.

    Args:
        a, b: the experiments.
        differences: what they were not run alike with.
        texts: how many texts both decoded.
        same_machine: whether the machine's fingerprint is the same, so that seconds may be compared.
        points: in A's order.
        notes: what a reader must know before believing the figures, one line each.
    """

    a: Member
    b: Member
    differences: tuple[Difference, ...]
    texts: int
    same_machine: bool
    points: tuple[PointPair, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Section({str(self.a.directory)!r}, {str(self.b.directory)!r}, {len(self.points)} points)"


@dataclass(frozen=True, repr=False)
class Comparison:
    """All that two result sets have in common, and what only one has.

    only_a, only_b: (experiment's directory, point's label). damaged: what could not be read, file named.
    """

    sections: tuple[Section, ...]
    only_a: tuple[tuple[str, str], ...]
    only_b: tuple[tuple[str, str], ...]
    damaged: tuple[str, ...]

    def __repr__(self) -> str:
        only = f"{len(self.only_a)} points only in A, {len(self.only_b)} only in B"
        return f"Comparison({len(self.sections)} sections, {only})"


@dataclass(frozen=True)
class _Candidate:
    """An experiment with what it is matched by."""

    member: Member
    fields: dict[str, str]
    points: dict[str, dict[str, Any]]
    texts: frozenset[str]


def compare(a: Path, b: Path) -> Comparison:
    """Match the points of two result sets, and compare each pair over the texts that both decoded.

    A point of A and one of B match where they have the same label, the same metric and a text in common. Where a set
    has a label several times, experiments that differ in the fewest fields are matched first, then the newest; each
    point is matched once.

    Args:
        a, b: an experiment's directory, or one that holds several at any depth.

    Raises:
        UsageError: not a directory.
        DataError: no results in one; nothing matches; quality was scored in two ways; samples are damaged.
    """
    first, damaged_a = _candidates("A", a)
    second, damaged_b = _candidates("B", b)
    left_a, left_b = _all_points(first), _all_points(second)
    sections = []
    for one, two in _nearest_first(first, second):
        labels = [name for name in one.points if name in left_a[_key(one)] and name in left_b[_key(two)]]
        if not labels:
            continue
        section = _section(one, two, labels)
        for matched in section.points:
            del left_a[_key(one)][matched.point], left_b[_key(two)][matched.point]
        if section.points:
            sections.append(section)
    if not sections:
        raise _nothing_matches(first, second)
    # Two sets may overlap: what is damaged in both is said once.
    damaged = tuple(dict.fromkeys([*damaged_a, *damaged_b]))
    return Comparison(tuple(sections), _left(left_a), _left(left_b), damaged)


def _candidates(name: str, path: Path) -> tuple[list[_Candidate], tuple[str, ...]]:
    """The experiments of one set, newest first, and what is damaged."""
    found = collect([path])
    members = [member for group in found.groups for member in group.members]
    if not members:
        problem = f"holds no results ({found.damaged[0]})" if found.damaged else "holds no results"
        raise DataError(name, str(path), problem, "give a directory that bild-bench run or sweep wrote into")
    members.sort(key=lambda member: (member.run.created_at, str(member.directory)), reverse=True)
    candidates = [
        _Candidate(
            member,
            configuration(member),
            {point["point"]: point for point in member.run.points},
            frozenset(member.text_ids),
        )
        for member in members
    ]
    return candidates, found.damaged


def _nearest_first(
    first: Sequence[_Candidate], second: Sequence[_Candidate]
) -> Iterator[tuple[_Candidate, _Candidate]]:
    pairs = [
        (len(differences(one.fields, two.fields)), one, two)
        for one in first
        for two in second
        if one.member.run.metric == two.member.run.metric and not one.texts.isdisjoint(two.texts)
    ]
    # A stable sort: among equals the newest stay first.
    pairs.sort(key=lambda pair: pair[0])
    yield from ((one, two) for _, one, two in pairs)


def _section(one: _Candidate, two: _Candidate, labels: Sequence[str]) -> Section:
    a, b = one.member, two.member
    _require_same_signature(one, two)
    shared = one.texts & two.texts
    rows_a, rows_b = _shared_rows(a, shared), _shared_rows(b, shared)
    same = a.run.machine == b.run.machine
    points, notes = [], _notes(one, two, len(shared), same) + unanswered(rows_a, a.run.metric)
    for label in labels:
        side_a = Side(one.points[label], _baseline_id(a), rows_a)
        side_b = Side(two.points[label], _baseline_id(b), rows_b)
        found = compare_point(side_a, side_b, metric=a.run.metric, same_machine=same, seed=a.run.seed)
        if found is not None:
            points.append(found)
            notes += [f"{label}: {note}" for note in empty_in_either(side_a, side_b)]
            notes += [f"{label}: {note}" for note in _point_notes(found, len(shared), side_a.point["role"])]
    unlike = differences(one.fields, two.fields)
    return Section(a, b, unlike, len(shared), same, tuple(points), tuple(notes))


def _require_same_signature(one: _Candidate, two: _Candidate) -> None:
    # How many references there are goes with the texts, and their ids say that those are the same.
    stated = [re.sub(r"\bnrefs:[^|]*\|", "", each.fields["signature"]) for each in (one, two)]
    if stated[0] != stated[1] and all(stated):
        problem = f"differs: {stated[0]} in {one.member.directory}, {stated[1]} in {two.member.directory}"
        raise DataError("quality", "signature", problem, "score both with the same version: run one of them again")


def _shared_rows(member: Member, shared: frozenset[str]) -> pd.DataFrame:
    rows = member.samples()
    return rows[rows["text_id"].isin(shared)]


def _baseline_id(member: Member) -> str | None:
    return next((str(point["point_id"]) for point in member.run.points if point["role"] == "baseline"), None)


def _notes(one: _Candidate, two: _Candidate, shared: int, same_machine: bool) -> list[str]:
    found = []
    threads = [side.fields["threads"] for side in (one, two)]
    if not same_machine and threads[0] != threads[1]:
        why = f"A computed on {threads[0]} threads and B on {threads[1]}"
        found.append(f"{why}: seconds are not compared, only speed-ups; give both runs the same --threads")
    elif not same_machine:
        found.append("the machines differ: seconds are not compared, only speed-ups")
    if shared < max(len(one.texts), len(two.texts)):
        found.append(f"figures rest on the shared texts alone ({shared}): A has {len(one.texts)}, B {len(two.texts)}")
    if shared < _FEW_TEXTS:
        found.append(f"fewer than {_FEW_TEXTS} texts ({shared}): too few to tell small differences apart")
    for name, side in (("A", one), ("B", two)):
        run = side.member.run
        if run.status != "complete":
            found.append(f"{name} is not complete: {len(side.texts)} of {run.texts} texts so far")
        if run.environment_after.get("busy") is not None:
            found.append(f"{name}: {run.environment_after['busy']}")
        if run.configuration.get("draws", 1) > 1:
            found.append(f"{name} has several draws per text: quality is that of the first")
    return found


def _point_notes(point: PointPair, shared: int, role: str) -> list[str]:
    found = [f"{name} is {a} in A and {b} in B" for name, (a, b) in point.settings.items()]
    failed = [f"{rows} in {name}" for name, rows in (("A", point.failed_a), ("B", point.failed_b)) if rows]
    if failed:
        found.append(f"failed and left out: {', '.join(failed)}")
    if point.texts < shared:
        found.append(f"compared over {point.texts} of {shared} texts")
    time = point.decoding.time_ratio
    if role == "baseline" and time is not None and (time.low > 1 or time.high < 1):
        found.append(
            f"the baseline itself took {time.value:.2f} times A's seconds: its code or the machine's state is not the"
            " same; intervals cover the choice of texts, not such a change, which affects speed-ups less"
        )
    return found


def _key(candidate: _Candidate) -> str:
    return str(candidate.member.directory)


def _all_points(candidates: Sequence[_Candidate]) -> dict[str, dict[str, None]]:
    return {_key(candidate): dict.fromkeys(candidate.points) for candidate in candidates}


def _left(points: dict[str, dict[str, None]]) -> tuple[tuple[str, str], ...]:
    return tuple((directory, label) for directory, labels in points.items() for label in labels)


def _nothing_matches(first: Sequence[_Candidate], second: Sequence[_Candidate]) -> DataError:
    """Why, told of the two newest that are nearest."""
    one, two = min(
        ((one, two) for one in first for two in second),
        key=lambda pair: len(differences(pair[0].fields, pair[1].fields)),
    )
    metrics = one.member.run.metric, two.member.run.metric
    if metrics[0] != metrics[1]:
        return DataError("metric", metrics[0], f"A's, and B's is {metrics[1]}", "compare runs of one metric")
    if one.texts.isdisjoint(two.texts):
        about = [f"{each.member.run.data_label} ({each.member.run.split})" for each in (one, two)]
        problem = f"A has {about[0]}, B {about[1]}: no text is the same"
        return DataError("texts", str(two.member.directory), problem, "run both on the same texts")
    if set(one.points).isdisjoint(two.points):
        problem = f"B has none of A's points; it has {', '.join(two.points)}"
        return DataError("points", ", ".join(one.points), problem, "run the same points in both")
    problem = "no text was decoded without error in both by the same point"
    return DataError("texts", str(two.member.directory), problem, "see what failed: bild-bench report")
