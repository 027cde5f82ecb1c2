from __future__ import annotations

import json
import tempfile
from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench import results
from bild_bench.decoding.records import Counters, TraceStep
from bild_bench.schema import RUN_SCHEMA, SAMPLE_SCHEMA, RunRecord, SampleRecord
from tests.made_results import BASELINE, POINT, failed_sample, made_run, made_sample, stored

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | FLOATS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.dictionaries(WORDS, JSON, max_size=3)


def test_the_schemas_hold_the_records_fields_in_their_order() -> None:
    assert SAMPLE_SCHEMA.names == [field.name for field in fields(SampleRecord)]
    assert RUN_SCHEMA.names == [field.name for field in fields(RunRecord)]
    first = SAMPLE_SCHEMA.names.index("generated")
    assert tuple(SAMPLE_SCHEMA.names[first : first + len(Counters.names())]) == Counters.names()


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "error", "error": "out of memory"},  # with another text's outputs and times
        {"output_text": None},
        {"output_ids": None},
        {"error": "out of memory"},
        {"status": "done"},
    ],
)
def test_a_sample_is_a_whole_result_or_none(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"ok sample|error sample|status"):
        made_sample(**changes)


@pytest.mark.parametrize("name", ["total_seconds", "decode_seconds", "generated", "large_calls", "output_text"])
def test_an_error_sample_keeps_no_figure(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        failed_sample(**{name: "x"})


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_samples_come_back_as_they_were_written(data: st.DataObject) -> None:
    nullable = {name: data.draw(st.none() | NUMBERS) for name in (*Counters.names(), "source_tokens")}
    nullable |= {name: data.draw(st.none() | FLOATS) for name in ("encode_seconds", "decode_seconds", "total_seconds")}
    step = st.builds(TraceStep, NUMBERS, NUMBERS, st.sampled_from("SL"), st.booleans(), *[st.none() | FLOATS] * 2)
    sample = made_sample(
        **nullable,
        **{name: data.draw(WORDS) for name in ("source", "output_text", "process_id", "point")},
        references=data.draw(st.lists(WORDS, max_size=3)),
        output_ids=data.draw(st.lists(NUMBERS, max_size=5)),
        trace=data.draw(st.none() | st.lists(step, max_size=4)),
        hit_limit=data.draw(st.none() | st.booleans()),
    )
    with tempfile.TemporaryDirectory() as folder:
        directory = stored(Path(folder), texts={"a": [sample]})
        (row,) = pq.ParquetFile(directory / "shards" / "a.parquet").read().to_pylist()
    expected = {field.name: getattr(sample, field.name) for field in fields(sample)}
    if sample.trace is not None:
        expected["trace"] = [step._asdict() for step in sample.trace]
    assert row == expected


@settings(max_examples=40, deadline=None)
@given(configuration=RECORDS, environment=RECORDS, command=WORDS, completed_at=st.none() | WORDS, seed=NUMBERS)
def test_a_run_comes_back_as_it_was_written(
    configuration: dict, environment: dict, command: str, completed_at: str | None, seed: int
) -> None:
    run = made_run(
        configuration=configuration, environment=environment, command=command, completed_at=completed_at, seed=seed
    )
    with tempfile.TemporaryDirectory() as folder:
        assert results.read(stored(Path(folder), run, {})).run == run


def test_nested_parts_of_a_run_are_json_text_for_any_reader(tmp_path: Path) -> None:
    (row,) = pd.read_parquet(stored(tmp_path, made_run()) / "run.parquet").to_dict("records")
    assert json.loads(row["points"]) == [BASELINE, POINT]
    assert json.loads(row["texts_expected"]) == ["a", "b"]


def test_an_unknown_counter_is_read_as_missing_and_a_zero_as_zero(tmp_path: Path) -> None:
    samples = [made_sample(BASELINE, rollbacks=0), made_sample(POINT, rollbacks=None, decode_seconds=None)]
    frame = results.read(stored(tmp_path, texts={"a": samples})).samples
    assert frame["rollbacks"].dtype == pd.Int64Dtype()
    assert frame["rollbacks"][0] == 0
    assert frame["rollbacks"][1] is pd.NA
    assert frame["decode_seconds"].isna().tolist() == [False, True]


def test_a_record_cannot_be_changed_by_accident() -> None:
    sample = made_sample()
    assert replace(sample, draw=1).draw == 1
    with pytest.raises(AttributeError):
        sample.draw = 1  # type: ignore[misc]
