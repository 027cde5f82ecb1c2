"""Records for the tests of the store and the report: a baseline and a point over two texts, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bild_bench import results
from bild_bench.schema import SCHEMA_VERSION, RunRecord, SampleRecord

BASELINE = {"point_id": "0" * 16, "point": "vanilla", "method": "vanilla", "role": "baseline", "settings": {}}
POINT = {
    "point_id": "1" * 16,
    "point": "bild fb=0.5 rb=2",
    "method": "bild",
    "role": "point",
    "settings": {"alpha_fb": 0.5, "alpha_rb": 2.0},
}

# Output ids, output, reference, counters and seconds of each text; generated = drafted - discarded + large_tokens.
VANILLA_A = {
    "text_id": "a",
    "text_index": 0,
    "references": ["the cat sat"],
    "output_text": "the cat sat",
    "output_ids": [5, 6, 1],
    "generated": 10,
    "small_calls": 0,
    "large_calls": 10,
    "drafted": 0,
    "discarded": 0,
    "large_tokens": 10,
    "fallbacks": 0,
    "cap_handovers": 0,
    "start_calls": 0,
    "tail_checks": 0,
    "rollbacks": 0,
    "encode_seconds": 0.5,
    "decode_seconds": 1.5,
    "total_seconds": 2.0,
    "hit_limit": False,
    "source_tokens": 7,
}
VANILLA_B = {
    **VANILLA_A,
    "text_id": "b",
    "text_index": 1,
    "references": ["the cat lay down"],
    "output_text": "the cat lay down",
    "output_ids": [5, 6, 7, 1],
    "generated": 30,
    "large_calls": 30,
    "large_tokens": 30,
    "encode_seconds": 1.0,
    "decode_seconds": 3.0,
    "total_seconds": 4.0,
}
BILD_A = {
    **VANILLA_A,
    "small_calls": 11,
    "large_calls": 4,
    "drafted": 9,
    "discarded": 2,
    "large_tokens": 3,
    "fallbacks": 2,
    "cap_handovers": 1,
    "rollbacks": 1,
    "encode_seconds": 0.2,
    "decode_seconds": 0.3,
    "total_seconds": 0.5,
}
BILD_B = {
    **VANILLA_B,
    "output_text": "the cat sat",
    "output_ids": [5, 6, 1],
    "generated": 20,
    "small_calls": 20,
    "large_calls": 7,
    "drafted": 17,
    "discarded": 3,
    "large_tokens": 6,
    "fallbacks": 3,
    "cap_handovers": 0,
    "rollbacks": 2,
    "encode_seconds": 1.3,
    "decode_seconds": 1.2,
    "total_seconds": 2.5,
}


def made_sample(point: dict[str, Any] = POINT, /, **changes: Any) -> SampleRecord:
    """An ok sample of text a, with changes."""
    record = {
        "experiment_id": "e1",
        "draw": 0,
        "order": 0,
        "process_id": "p1",
        "machine": "m1",
        "source": "die Katze",
        "started_at": "2026-11-29T12:00:00Z",
        "status": "ok",
        "source_truncated": False,
        **{name: point[name] for name in ("point_id", "point", "method", "role")},
        **(VANILLA_A if point is BASELINE else BILD_A),
    }
    return SampleRecord(**{**record, **changes})


def failed_sample(point: dict[str, Any] = POINT, /, **changes: Any) -> SampleRecord:
    """An error sample of text a, with changes."""
    record = {name: getattr(made_sample(point), name) for name in SampleRecord.__dataclass_fields__}
    known = ("source_tokens", "hit_limit", "trace", "error")
    results_of_it = [name for name in VANILLA_A if name not in ("text_id", "text_index", "references", *known)]
    nulls = dict.fromkeys([*results_of_it, "hit_limit"])
    return SampleRecord(**{**record, **nulls, "status": "error", "error": "out of memory", **changes})


def made_run(**changes: Any) -> RunRecord:
    """A running run of two texts, a and b, by a baseline and a point."""
    record = {
        "experiment_id": "e1",
        "schema_version": SCHEMA_VERSION,
        "status": "running",
        "completed_at": None,
        "created_at": "2026-11-29T11:59:00Z",
        "task": "iwslt17",
        "data_label": "embedded/iwslt17",
        "split": "test",
        "metric": "rougeL",
        "pair_label": "embedded",
        "texts": 2,
        "seed": 0,
        "command": "bild-bench run",
        "code_version": "0.1.0",
        "machine": "m1",
        "configuration": {"dtype": "float32"},
        "points": [BASELINE, POINT],
        "models": {},
        "data": {},
        "environment": {"device": "cpu", "threads": 2},
        "environment_after": {},
        "calibration": {},
        "texts_expected": ["a", "b"],
    }
    return RunRecord(**{**record, **changes})


def two_texts() -> dict[str, list[SampleRecord]]:
    """The hand-worked rows by text id."""
    return {
        "a": [made_sample(BASELINE), made_sample(POINT, **BILD_A)],
        "b": [made_sample(BASELINE, **VANILLA_B), made_sample(POINT, **BILD_B)],
    }


def stored(directory: Path, run: RunRecord | None = None, texts: dict[str, list[SampleRecord]] | None = None) -> Path:
    """A running experiment in `directory`, the hand-worked one unless told otherwise."""
    results.create(directory, made_run() if run is None else run)
    for text_id, samples in (two_texts() if texts is None else texts).items():
        results.write_text(directory, text_id, samples)
    return directory


ALL_ROWS = [("a", "vanilla"), ("a", "bild fb=0.5 rb=2"), ("b", "vanilla"), ("b", "bild fb=0.5 rb=2")]


def keys(experiment: results.Experiment) -> list[tuple[str, str]]:
    """Which text and point each row is of; `ALL_ROWS` for the hand-worked experiment."""
    return list(zip(experiment.samples["text_id"], experiment.samples["point"], strict=True))
