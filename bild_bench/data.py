"""A task's texts: the embedded sample, the hub's data set or local files, as examples with stable ids."""

from __future__ import annotations

import hashlib
import json
import os
import random
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bild_bench.data_files import Located, locate
from bild_bench.data_reader import Columns, Pair, place, read_pairs
from bild_bench.errors import DataError, UsageError
from bild_bench.hub import fetch
from bild_bench.tasks import Task, load_task, task_names

EMBEDDED_FOLDER = Path(__file__).resolve().parent / "embedded" / "data"


@dataclass(frozen=True)
class Example:
    """One text.

    Args:
        index: its row in the data set, from 0, before any sampling.
        id: 16 hex digits over source and references (and, for a repeated row, over how often it came before): the same
            wherever the text stands, and unique within a data set.
        source: may be empty; that is the run's to report.
        references: as they stand there, empty ones too; none where the cell is null.
        null_source: the source's cell is null; `source` is "" then.
    """

    index: int
    id: str
    source: str
    references: tuple[str, ...]
    null_source: bool = False

    @property
    def answered(self) -> bool:
        """Whether there is a reference that is not empty, to train on or to score against."""
        return self.target != ""

    @property
    def target(self) -> str:
        """The first reference that is not empty, or ""."""
        return next((reference for reference in self.references if reference.strip()), "")


@dataclass(frozen=True)
class Examples:
    """The texts of one run.

    Args:
        label: what the texts are, so that nothing else is mistaken for the real set: "xsum" (the hub's files, or a
            folder laid out like them), "embedded/iwslt17", "custom/<file name>", or "xsum@path" for other local files.
        task: the task they were read for.
        split: the split's name.
        examples: the texts, in the data set's order.
        total: rows of the split before sampling.
        expected: rows that the task's file says the split has; None where it does not say, and for the embedded sample.
        fingerprint: sha256 over all kept examples, 64 hex digits.
        origin: data (as asked for), repository, revision, commit (each None where there is none), files (their names),
            source_column, target_column.
    """

    label: str
    task: Task
    split: str
    examples: tuple[Example, ...]
    total: int
    expected: int | None
    fingerprint: str
    origin: dict[str, str | None]


def load_examples(
    task: Task, data: str, split: str | None, limit: int | None, seed: int, announce: Callable[[str], None]
) -> Examples:
    """Read a task's texts.

    Args:
        task: says where the hub's files are and which columns to read.
        data: "embedded", "hub", or the path of a file or folder (a folder named hub is "./hub").
        split: None is the task's own split.
        limit: keep this many texts (>= 1), a sample drawn by `seed` and put back into the set's order; None keeps all.
        seed: of the sample.
        announce: called with one line before a download, and where rows of the split are not there.

    Raises:
        UsageError: a limit below 1, an empty split, or options that the data does not have.
        DataError: whatever is wrong with the data; one line that names the file, column or row.
    """
    if limit is not None and limit < 1:
        raise UsageError("--limit", limit, "must be at least 1", "leave it out to use every text")
    if split == "":
        raise UsageError("--split", split, "is empty", f"leave it out for the task's own, {task.split}")
    if data == "embedded":
        located, columns, label, commit = _embedded(task, split)
    elif data == "hub":
        located, commit = _from_hub(task, split, announce)
        columns, label = (task.source_column, task.target_column), task.name
    else:
        located, commit = _from_path(task, data, split), None
        columns, label = (task.source_column, task.target_column), _label(task, data, located)
    kept, total = _read(located.files, Columns(*columns), limit, seed)
    expected = None if data == "embedded" else task.sizes.get(located.split)
    if expected is not None and total < expected:
        announce(f"{total:,} of {expected:,} texts of the {located.split} split are there")
    origin = {
        "data": data,
        "repository": task.hub_id if data == "hub" else None,
        "revision": task.revision if data == "hub" else None,
        "commit": commit,
        "files": ",".join(file.name for file in located.files),
        "source_column": columns[0],
        "target_column": columns[1],
    }
    return Examples(label, task, located.split, kept, total, expected, _fingerprint(kept), origin)


def _embedded(task: Task, split: str | None) -> tuple[Located, tuple[str, str], str, None]:
    if task.embedded is None:
        fix = "give your own texts with --data PATH" + (
            "" if task.hub_id is None else ", or use --preset flan --data hub"
        )
        raise DataError("--data", "embedded", f"there is no embedded sample for task {task.name} yet", fix)
    if split is not None and split != task.split:
        raise DataError("--split", split, f"the embedded sample has one split, {task.split}", "leave --split out")
    columns = (task.embedded["source"], task.embedded["target"])
    _refuse_columns(task, columns)
    located = locate(EMBEDDED_FOLDER / task.embedded["file"], task, task.split)
    return located, columns, f"embedded/{task.name}", None


def _refuse_columns(task: Task, columns: tuple[str, str]) -> None:
    """The sample has columns of its own: a column asked for must not be ignored in silence."""
    if task.name not in task_names():
        return
    own = load_task(task.name)
    asked = {"--source-column": task.source_column, "--target-column": task.target_column}
    for (flag, column), usual in zip(asked.items(), (own.source_column, own.target_column), strict=True):
        if column != usual and column not in columns:
            raise UsageError(flag, column, f"the embedded sample has the columns {columns}", f"leave {flag} out")


def _from_hub(task: Task, split: str | None, announce: Callable[[str], None]) -> tuple[Located, str | None]:
    if task.hub_id is None or task.files is None:
        raise DataError("--data", "hub", f"task {task.name} has no data set on the hub", "give your texts: --data PATH")
    name = task.split if split is None else split
    if name not in task.splits:
        raise DataError("--split", name, f"{task.hub_id} has {', '.join(task.splits)}", "choose one of these")
    pattern = task.files.replace("{split}", task.splits[name])
    fetched = fetch(task.hub_id, task.revision, "dataset", [pattern], announce=announce)
    return locate(fetched.path, task, name), fetched.commit


def _from_path(task: Task, data: str, split: str | None) -> Located:
    if not data:
        raise UsageError("--data", data, "must be embedded, hub or a path", "leave it out to use the preset's")
    return locate(Path(os.path.expanduser(data)), task, split)


def _label(task: Task, data: str, located: Located) -> str:
    if task.name == "custom":
        return f"custom/{Path(data).absolute().name}"
    return task.name if located.layout == "hub" else f"{task.name}@path"


def _read(files: tuple[Path, ...], columns: Columns, limit: int | None, seed: int) -> tuple[tuple[Example, ...], int]:
    """The texts that are kept, and how many there are.

    A sample takes two readings, of which the first keeps 8 bytes a row: files may be larger than the memory.
    """
    if limit is None:
        everything = tuple(_examples(read_pairs(files, columns)))
        return everything, len(everything)
    contents = array("Q", (_content(pair) for pair in read_pairs(files, columns)))
    total = len(contents)
    rows = set(random.Random(seed).sample(range(total), limit)) if limit < total else set(range(total))
    drawn = {contents[row] for row in rows}
    kept, seen = [], Counter[int]()
    for row, pair in enumerate(read_pairs(files, columns)):
        if row >= total or contents[row] not in drawn:
            continue
        if row in rows:
            if _content(pair) != contents[row]:
                problem, fix = "was changed while it was read", "wait until nobody writes to it"
                raise DataError("--data", place(files), problem, fix)
            kept.append(_example(row, pair, seen[contents[row]]))
        seen[contents[row]] += 1
    return tuple(kept), total


def _examples(pairs: Iterable[Pair]) -> Iterator[Example]:
    seen: Counter[int] = Counter()
    for index, pair in enumerate(pairs):
        content = _content(pair)
        yield _example(index, pair, seen[content])
        seen[content] += 1


def _example(index: int, pair: Pair, repeats: int) -> Example:
    source, references = pair
    return Example(index, _text_id(pair, repeats), source or "", references, source is None)


def _content(pair: Pair) -> int:
    """The id of a row that never came before, as a number of 64 bits."""
    return int(_text_id(pair, 0), 16)


def _text_id(pair: Pair, repeats: int) -> str:
    # Real sets repeat rows ("Thank you."), and results are stored and paired by id.
    content = [*pair] if repeats == 0 else [*pair, repeats]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _fingerprint(examples: Iterable[Example]) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(json.dumps([example.source, example.references]).encode() + b"\n")
    return digest.hexdigest()
