"""What an experiment leaves behind: two records, their Parquet schemas, and the way there and back.

`run.parquet` holds one `RunRecord`, `samples.parquet` one `SampleRecord` a row (a text x point x draw).
Nested parts of a run are JSON strings in it, so that any Parquet reader gets at them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import pyarrow as pa

from bild_bench.decoding.records import Counters, TraceStep

# 2: summary.parquet has further columns; the other two files are as before.
SCHEMA_VERSION = 2
READABLE_VERSIONS = (1, 2)

_RESULT_FIELDS = (
    *("output_ids", "output_text", "encode_seconds", "decode_seconds", "total_seconds", "exit_layers"),
    *("diverged_at", "divergence_margin"),
    *Counters.names(),
)


@dataclass(frozen=True, kw_only=True)
class SampleRecord:
    """One text decoded once by one point; None means not known, never zero.

    role: "baseline" or "point". order: the place this decoding had in the text's shuffled order, from 0.
    started_at: ISO 8601, UTC. Seconds are wall-clock; encode_seconds covers every model the point uses, so shared
    encodings are counted for each point. Counters: see `decoding.records.Counters`. source_tokens: after truncation.
    pieces: the text of each step of the trace. exit_layers: kept tokens decided at layer 1, 2, …. diverged_at: for a
    method that claims vanilla's tokens, the first position where it has another one (None: the same), and
    divergence_margin by how much the large model prefers vanilla's token there, in logits.

    Raises:
        ValueError: a status other than "ok" and "error", an "ok" without an output or with an error message, or an
            "error" without a message or with any result (a failed text must never carry another text's figures).
    """

    experiment_id: str
    point_id: str
    point: str
    method: str
    role: str
    text_index: int
    text_id: str
    draw: int
    order: int
    process_id: str
    machine: str
    started_at: str
    source: str
    references: Sequence[str]
    output_ids: Sequence[int] | None = None
    output_text: str | None = None
    generated: int | None = None
    small_calls: int | None = None
    large_calls: int | None = None
    drafted: int | None = None
    discarded: int | None = None
    large_tokens: int | None = None
    fallbacks: int | None = None
    cap_handovers: int | None = None
    start_calls: int | None = None
    tail_checks: int | None = None
    rollbacks: int | None = None
    encode_seconds: float | None = None
    decode_seconds: float | None = None
    total_seconds: float | None = None
    trace: Sequence[TraceStep] | None = None
    pieces: Sequence[str] | None = None
    exit_layers: Sequence[int] | None = None
    diverged_at: int | None = None
    divergence_margin: float | None = None
    status: str
    error: str | None = None
    source_truncated: bool
    hit_limit: bool | None = None
    source_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.status == "ok":
            if self.output_ids is None or self.output_text is None or self.error is not None:
                raise ValueError("an ok sample has output_ids and output_text, and no error")
        elif self.status == "error":
            held = [name for name in _RESULT_FIELDS if getattr(self, name) is not None]
            if self.error is None or held:
                raise ValueError(f"an error sample has an error message and no result (found: {', '.join(held)})")
        else:
            raise ValueError(f"status is 'ok' or 'error', not {self.status!r}")


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """What was run, on what, where. Dicts and lists hold JSON values only.

    status: "running" or "complete". created_at, completed_at: ISO 8601, UTC. texts: how many texts the run covers.
    points: a list of {point_id, point, method, role, lossless, settings}, in the order in which they are reported;
    lossless: it claims the baseline's tokens, so that its rows say where they diverge.
    environment, environment_after: `measure.environment.describe_environment` before and after.
    texts_expected: the text ids, in the data set's order; each occurs once.
    """

    experiment_id: str
    schema_version: int
    status: str
    created_at: str
    completed_at: str | None
    task: str
    data_label: str
    split: str
    metric: str
    pair_label: str
    texts: int
    seed: int
    command: str
    code_version: str
    machine: str
    configuration: dict[str, Any]
    points: list[dict[str, Any]]
    models: dict[str, Any]
    data: dict[str, Any]
    environment: dict[str, Any]
    environment_after: dict[str, Any]
    calibration: dict[str, Any]
    texts_expected: list[str]


_STRING, _INT, _FLOAT, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_TRACE = pa.list_(
    pa.struct(
        [
            pa.field("position", _INT, nullable=False),
            pa.field("token", _INT, nullable=False),
            pa.field("author", _STRING, nullable=False),
            pa.field("kept", _BOOL, nullable=False),
            pa.field("small_max_prob", _FLOAT),
            pa.field("large_nll", _FLOAT),
        ]
    )
)


def _columns(kind: pa.DataType, names: Iterable[str], *, nullable: bool = False) -> list[pa.Field]:
    return [pa.field(name, kind, nullable=nullable) for name in names]


SAMPLE_SCHEMA = pa.schema(
    [
        *_columns(_STRING, ("experiment_id", "point_id", "point", "method", "role")),
        *_columns(_INT, ("text_index",)),
        *_columns(_STRING, ("text_id",)),
        *_columns(_INT, ("draw", "order")),
        *_columns(_STRING, ("process_id", "machine", "started_at", "source")),
        pa.field("references", pa.list_(_STRING), nullable=False),
        pa.field("output_ids", pa.list_(_INT)),
        pa.field("output_text", _STRING),
        *_columns(_INT, Counters.names(), nullable=True),
        *_columns(_FLOAT, ("encode_seconds", "decode_seconds", "total_seconds"), nullable=True),
        pa.field("trace", _TRACE),
        pa.field("pieces", pa.list_(_STRING)),
        pa.field("exit_layers", pa.list_(_INT)),
        pa.field("diverged_at", _INT),
        pa.field("divergence_margin", _FLOAT),
        pa.field("status", _STRING, nullable=False),
        pa.field("error", _STRING),
        pa.field("source_truncated", _BOOL, nullable=False),
        pa.field("hit_limit", _BOOL),
        pa.field("source_tokens", _INT),
    ]
)

_JSON_FIELDS = (
    *("configuration", "points", "models", "data", "environment", "environment_after", "calibration"),
    "texts_expected",
)

RUN_SCHEMA = pa.schema(
    [
        *_columns(_STRING, ("experiment_id",)),
        *_columns(_INT, ("schema_version",)),
        *_columns(_STRING, ("status", "created_at")),
        pa.field("completed_at", _STRING),
        *_columns(_STRING, ("task", "data_label", "split", "metric", "pair_label")),
        *_columns(_INT, ("texts", "seed")),
        *_columns(_STRING, ("command", "code_version", "machine")),
        *_columns(_STRING, _JSON_FIELDS),
    ]
)


def sample_table(samples: Iterable[SampleRecord]) -> pa.Table:
    """Samples -> a table of `SAMPLE_SCHEMA`, one row each, in the order given."""
    return pa.Table.from_pylist([_sample_row(sample) for sample in samples], schema=SAMPLE_SCHEMA)


def run_table(run: RunRecord) -> pa.Table:
    """A run -> a table of `RUN_SCHEMA` with one row."""
    row = asdict(run)
    row.update({name: json.dumps(row[name], ensure_ascii=False) for name in _JSON_FIELDS})
    return pa.Table.from_pylist([row], schema=RUN_SCHEMA)


def run_record(table: pa.Table) -> RunRecord:
    """The first row of a `RUN_SCHEMA` table -> the run; the inverse of `run_table`.

    Raises:
        ValueError: what it holds is not what the reports rest on; see `run_checks`.
    """
    from bild_bench.run_checks import check_record, parsed

    row = table.slice(0, 1).to_pylist()[0]
    row.update({name: parsed(row[name], name) for name in _JSON_FIELDS})
    check_record(row)
    return RunRecord(**row)


def sample_frame(table: pa.Table) -> Any:
    """A `SAMPLE_SCHEMA` table -> a pandas.DataFrame whose integers and flags stay so beside nulls.

    Integers are Int64 and flags boolean (missing: pandas.NA), seconds float64 (missing: NaN), lists numpy arrays.
    """
    import pandas as pd

    kinds = {_INT: pd.Int64Dtype(), _BOOL: pd.BooleanDtype()}
    return table.to_pandas(types_mapper=kinds.get)


def _sample_row(sample: SampleRecord) -> dict[str, object]:
    row = {field.name: getattr(sample, field.name) for field in fields(sample)}
    if sample.trace is not None:
        row["trace"] = [step._asdict() for step in sample.trace]
    return row
