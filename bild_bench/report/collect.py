"""Experiments found below directories, in groups of what may be compared.

Only run.parquet and summary.parquet are read here; samples only where a point lacks texts that others have.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bild_bench import results
from bild_bench.errors import DataError, UsageError
from bild_bench.printable import one_line
from bild_bench.report.common_texts import Member, Shown, on_common_texts
from bild_bench.report.pareto import strict_front
from bild_bench.report.stored import stored_points
from bild_bench.report.summary import PointSummary
from bild_bench.schema import SAMPLE_SCHEMA, RunRecord

__all__ = ["Collected", "Entry", "Group", "Member", "collect", "comparable"]

TOGETHER = "--together"


@dataclass(frozen=True, kw_only=True, repr=False)
class Entry:
    """One point of a group.

    Args:
        label: the point's on one line, with its pair or directory where two of the group have the same.
        summary: its figures over the group's texts; over its own where it is pruned.
        settings: the method's, from the run.
        member: its experiment, whose baseline it is paired with.
        front: no other point of the group is at least as good in quality and decoding speed-up and better in one.
        pruned: why it takes no part in the comparison; None where it does.
    """

    label: str
    summary: PointSummary
    settings: Mapping[str, Any]
    member: Member
    front: bool
    pruned: str | None

    @property
    def quality(self) -> float | None:
        """In points; None where unknown."""
        return None if self.summary.quality is None else self.summary.quality.value

    @property
    def speedup(self) -> float | None:
        """Of decoding, paired with the baseline of its experiment; None where unknown."""
        return None if self.summary.speedup_decoding is None else self.summary.speedup_decoding.value

    @property
    def shown(self) -> bool:
        """Whether it has a place on a plot."""
        return self.pruned is None and self.quality is not None and self.speedup is not None

    def __repr__(self) -> str:
        return f"Entry({self.label!r}, quality {self.quality}, decoding speed-up {self.speedup})"


@dataclass(frozen=True, repr=False)
class Group:
    """What may stand on one plot.

    Args:
        key: field -> value that all members share; see `comparable`.
        members: the experiments, oldest first.
        entries: baselines first, then points as their runs have them.
        text_ids: the texts that every figure rests on.
        texts_left_out: texts that some point lacks, which therefore count for none.
    """

    key: Mapping[str, str]
    members: tuple[Member, ...]
    entries: tuple[Entry, ...]
    text_ids: tuple[str, ...]
    texts_left_out: int

    @property
    def run(self) -> RunRecord:
        """The first member's, for what all share."""
        return self.members[0].run

    @property
    def title(self) -> str:
        """Such as "iwslt17 (test), pair embedded, cpu, 40 texts"."""
        pairs = ", ".join(dict.fromkeys(member.run.pair_label for member in self.members))
        count = len(self.text_ids)
        texts = f"{count} text" if count == 1 else f"{count} texts"
        return one_line(f"{self.run.data_label} ({self.run.split}), pair {pairs}, {self.key['device']}, {texts}")

    def __repr__(self) -> str:
        return f"Group({self.title!r}, {len(self.entries)} points)"


@dataclass(frozen=True, repr=False)
class Collected:
    """groups: by task and data, then the oldest first. damaged: what could not be read, one line each, file named."""

    groups: tuple[Group, ...]
    damaged: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Collected({len(self.groups)} groups, {len(self.damaged)} damaged)"


def collect(paths: Sequence[Path] = (Path("results"),), *, together: bool = False) -> Collected:
    """Every experiment at or below the paths, grouped by what may be compared.

    Args:
        paths: directories; each is an experiment or holds some at any depth.
        together: one group of all, over the texts that all have.

    Raises:
        UsageError: a path that is not a directory.
        DataError: `together`, and a field differs that must not; or no text is common to all.
    """
    members: list[Member] = []
    damaged: list[str] = []
    for directory in _directories(paths):
        try:
            members.append(_member(directory, damaged))
        except DataError as error:
            # A figure that cannot be knows of no directory.
            damaged.append(str(error) if str(directory) in str(error) else f"{directory}: {error}")
    members.sort(key=lambda member: (member.run.created_at, str(member.directory)))
    sets: dict[tuple[str, ...], list[Member]] = {}
    for member in members:
        key = comparable(member)
        if together:
            _require_same(comparable(members[0]), key, members[0], member)
            del key["texts"]
        sets.setdefault(tuple(key.values()), []).append(member)
    groups = []
    for alike in sets.values():
        try:
            groups.append(_group(alike, together))
        except DataError as error:
            if together:
                raise
            sound = _readable(alike, damaged)
            if len(sound) == len(alike):
                damaged.append(str(error))
            elif sound:
                groups.append(_group(sound, together))
    groups.sort(key=lambda group: (group.run.task, group.run.data_label, group.run.split))
    return Collected(tuple(groups), tuple(damaged))


def comparable(member: Member) -> dict[str, str]:
    """The fields that must agree between points of one plot, by name, as text.

    The session is among them: another implementation of the baseline gives another speed-up.
    """
    run, large = member.run, member.run.models.get("large", {})
    signatures = {point.quality.signature for point in member.points if point.quality is not None}
    texts = hashlib.sha256("\n".join(sorted(member.text_ids)).encode()).hexdigest()[:8]
    found = {
        **{name: getattr(run, name) for name in ("task", "data_label", "split", "metric")},
        "signature": ", ".join(sorted(signatures)),
        "texts": f"{len(member.text_ids)} ({texts})",
        # Before the machine, whose fingerprint differs wherever the threads do: what can be changed is named.
        "threads": run.environment.get("threads"),
        "machine": run.machine,
        "device": run.configuration.get("device", run.environment.get("device")),
        "dtype": run.configuration.get("dtype"),
        "large model": large.get("fingerprint"),
        "session": large.get("session"),
        "source limit": run.configuration.get("source_limit"),
        "target limit": run.configuration.get("target_limit"),
        "sampling": run.configuration.get("sampling"),
        "prefix": repr(run.models.get("prefix", "")),
    }
    return {name: "none" if value is None else str(value) for name, value in found.items()}


def _directories(paths: Sequence[Path]) -> Iterator[Path]:
    seen = set()
    for path in paths:
        if not path.is_dir():
            raise UsageError("DIR", str(path), "is not a directory", "give a directory that bild-bench wrote into")
        for file in sorted(path.rglob(results.RUN)):
            if file.parent.resolve() not in seen:
                seen.add(file.parent.resolve())
                yield file.parent


def _member(directory: Path, damaged: list[str]) -> Member:
    run = results.read_run(directory)
    if run.status == "complete":
        try:
            return Member(run, directory, stored_points(directory, run), tuple(run.texts_expected))
        except DataError as error:
            # Derived from the samples and nothing else: named, and made again.
            damaged.append(str(error))
    return Member.from_samples(results.read(directory))


def _readable(members: Sequence[Member], damaged: list[str]) -> list[Member]:
    """Those whose samples can be read; the others are added to the damaged."""
    sound = []
    for member in members:
        try:
            member.samples([name for name in SAMPLE_SCHEMA.names if name not in ("trace", "pieces")])
            sound.append(member)
        except DataError as error:
            damaged.append(str(error))
    return sound


def _require_same(first: Mapping[str, str], other: Mapping[str, str], one: Member, two: Member) -> None:
    for name, value in first.items():
        if name != "texts" and other[name] != value:
            problem = f"differs: {value} in {one.directory}, {other[name]} in {two.directory}"
            raise DataError(TOGETHER, name, problem, f"leave {TOGETHER} out for a section each, or give one of them")


def _group(members: list[Member], together: bool) -> Group:
    shown, text_ids, left_out = on_common_texts(members, TOGETHER)
    key = comparable(members[0])
    if together:
        key["texts"] = str(len(text_ids))
    shown.sort(key=lambda point: point.summary.role != "baseline")
    entries = [
        Entry(
            label=label,
            summary=point.summary,
            settings=next(
                described.get("settings", {})
                for described in point.member.run.points
                if described["point_id"] == point.summary.point_id
            ),
            member=point.member,
            front=False,
            pruned=point.pruned,
        )
        for point, label in zip(shown, _labels(shown), strict=True)
    ]
    return Group(key, tuple(members), tuple(_marked(entries)), text_ids, left_out)


def _marked(entries: list[Entry]) -> list[Entry]:
    """The entries, those on the front marked."""
    figures = [
        (place, entry.quality, entry.speedup)
        for place, entry in enumerate(entries)
        if entry.pruned is None and entry.quality is not None and entry.speedup is not None
    ]
    front = {figures[at][0] for at in strict_front([(quality, speed) for _, quality, speed in figures])}
    return [replace(entry, front=place in front) for place, entry in enumerate(entries)]


def _labels(shown: list[Shown]) -> list[str]:
    """Each point's name on one line, and only where that is taken twice what tells them apart; at last a number."""
    labels = [one_line(point.summary.point) for point in shown]
    tellers: tuple[Callable[[Member], str], ...] = (
        lambda member: member.run.pair_label,
        lambda member: member.directory.name,
        lambda member: str(member.directory),
    )
    for tell in tellers:
        told: dict[str, set[str]] = {}
        for point, label in zip(shown, labels, strict=True):
            told.setdefault(label, set()).add(tell(point.member))
        labels = [
            one_line(f"{label} ({tell(point.member)})") if len(told[label]) > 1 else label
            for point, label in zip(shown, labels, strict=True)
        ]
    times: Counter[str] = Counter()
    for place, label in enumerate(labels):
        times[label] += 1
        if times[label] > 1:
            labels[place] = f"{label} #{times[label]}"
    return labels
