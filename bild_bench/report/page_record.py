"""How a group was measured, for the page: what all its experiments share once, then each with what is its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bild_bench.report.collect import Entry, Group, Member
    from bild_bench.schema import RunRecord

Lines = list[list[str]]
Sections = dict[str, Lines]


def records(group: Group) -> dict[str, Any]:
    """Commands, signatures and environments.

    Returns:
        shared: section -> [name, text] lines that are the same for all experiments of the group. experiments: one each,
        with its directory, id, command, labels of its points, signatures, and the lines that are its own.
    """
    of_members = [_sections(member.run) for member in group.members]
    # With many experiments of one machine, the same environment each time would be most of the file.
    shared = {
        name: [line for line in lines if all(line in other[name] for other in of_members[1:])]
        for name, lines in of_members[0].items()
    }
    entries: dict[int, list[Entry]] = {}
    for entry in group.entries:
        entries.setdefault(id(entry.member), []).append(entry)
    experiments = [
        _experiment(member, entries.get(id(member), []), _without(sections, shared))
        for member, sections in zip(group.members, of_members, strict=True)
    ]
    return {"shared": shared, "experiments": experiments}


def _experiment(member: Member, entries: list[Entry], own: Sections) -> dict[str, Any]:
    run = member.run
    return {
        "id": run.experiment_id,
        "directory": str(member.directory),
        "command": run.command,
        "points": [entry.label for entry in entries],
        "created": run.created_at,
        "completed": run.completed_at,
        "code_version": run.code_version,
        "signatures": sorted({entry.summary.quality.signature for entry in entries if entry.summary.quality}),
        "sections": own,
    }


def _sections(run: RunRecord) -> Sections:
    before = _flat(run.environment)
    return {
        "environment": before,
        # Versions and the machine are the same: what has changed is the news.
        "changed after the run": [line for line in _flat(run.environment_after) if line not in before],
        "configuration": _flat(run.configuration),
        "models": _flat(run.models),
        "data": _flat(run.data),
    }


def _without(sections: Sections, shared: Sections) -> Sections:
    return {name: [line for line in lines if line not in shared[name]] for name, lines in sections.items()}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Lines:
    """[dotted name, text] of everything that is known."""
    found: Lines = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{prefix}{name}.")
        elif value is not None:
            found.append([prefix + name, str(value)])
    return found
