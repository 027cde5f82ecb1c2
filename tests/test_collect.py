"""Experiments in groups of what may be compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bild_bench import results
from bild_bench.errors import DataError, UsageError
from bild_bench.report.collect import Collected, Entry, collect
from bild_bench.report.stored import stored_points
from bild_bench.report.summary import summarise
from tests.made_reports import MODELS, experiment, grid, only_group
from tests.made_results import BASELINE, BILD_A, POINT, VANILLA_B, failed_sample, made_sample, two_texts


def _by_label(collected: Collected) -> dict[str, Entry]:
    [group] = collected.groups
    return {entry.label: entry for entry in group.entries}


def test_one_experiment_is_one_group_with_its_figures(tmp_path: Path) -> None:
    experiment(tmp_path / "x")

    group = only_group(tmp_path)
    baseline, bild = group.entries

    assert group.title == "embedded/iwslt17 (test), pair embedded, cpu, 2 texts"
    assert group.text_ids == ("a", "b")
    assert (baseline.label, baseline.quality, baseline.speedup) == ("vanilla", 100.0, 1.0)
    assert bild.speedup == pytest.approx(3.0)
    assert bild.quality == pytest.approx(100 * (1 + 4 / 7) / 2)
    assert bild.settings == {"alpha_fb": 0.5, "alpha_rb": 2.0}
    assert baseline.front
    assert bild.front


def test_what_is_stored_is_what_the_samples_say(tmp_path: Path) -> None:
    directory = experiment(tmp_path / "x")

    assert stored_points(directory) == summarise(results.read(directory)).points


def test_an_interval_that_one_text_cannot_have_stays_unknown(tmp_path: Path) -> None:
    experiment(tmp_path / "x", {"a": two_texts()["a"]})

    speed = only_group(tmp_path).entries[1].summary.speedup_decoding

    assert speed is not None
    assert speed.low != speed.low


def test_a_point_beaten_in_both_is_not_on_the_front(tmp_path: Path) -> None:
    grid(tmp_path / "x", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0)])

    front = {entry.label: entry.front for entry in only_group(tmp_path).entries}

    assert front == {"vanilla": True, "bild fb=0.5 rb=1": True, "bild fb=0.5 rb=2": False}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"task": "wmt14"}, "task"),
        ({"data_label": "iwslt17"}, "data_label"),
        ({"split": "validation"}, "split"),
        ({"metric": "rougeLsum"}, "metric"),
        ({"machine": "m2"}, "machine"),
        ({"environment": {"device": "cpu", "threads": 1}}, "threads"),
        ({"environment": {"device": "cuda", "threads": 2}}, "device"),
        ({"configuration": {"dtype": "bfloat16"}}, "dtype"),
        ({"configuration": {"dtype": "float32", "source_limit": 99}}, "source limit"),
        ({"configuration": {"dtype": "float32", "target_limit": 99}}, "target limit"),
        ({"configuration": {"dtype": "float32", "sampling": {"top_p": 0.8}}}, "sampling"),
        ({"models": {**MODELS, "large": {"fingerprint": "L2", "session": "fast"}}}, "large model"),
        ({"models": {**MODELS, "large": {"fingerprint": "L1", "session": "reference"}}}, "session"),
        ({"models": {**MODELS, "prefix": "translate: "}}, "prefix"),
    ],
)
def test_runs_that_differ_are_separate_and_cannot_be_put_together(
    tmp_path: Path, changes: dict[str, Any], field: str
) -> None:
    experiment(tmp_path / "one")
    experiment(tmp_path / "two", **changes)

    assert len(collect([tmp_path]).groups) == 2
    with pytest.raises(DataError) as caught:
        collect([tmp_path], together=True)
    assert caught.value.field == "--together"
    assert caught.value.value == field
    assert "one" in str(caught.value)
    assert "two" in str(caught.value)


def test_other_texts_are_another_section_unless_asked_for_together(tmp_path: Path) -> None:
    experiment(tmp_path / "both", created_at="2026-11-29T11:00:00Z")
    experiment(tmp_path / "one", {"a": two_texts()["a"]}, created_at="2026-11-29T12:00:00Z")

    assert [len(group.text_ids) for group in collect([tmp_path]).groups] == [2, 1]
    [group] = collect([tmp_path], together=True).groups

    assert group.text_ids == ("a",)
    assert group.texts_left_out == 1
    # Text a alone: 1.5 / 0.3.
    speeds = [entry.speedup for entry in group.entries if entry.summary.role == "point"]
    assert speeds == [pytest.approx(5.0), pytest.approx(5.0)]


def test_no_common_text_is_an_error_that_names_the_field(tmp_path: Path) -> None:
    experiment(tmp_path / "one", {"a": two_texts()["a"]})
    experiment(tmp_path / "two", {"b": two_texts()["b"]})

    with pytest.raises(DataError, match=r"^texts: .*no text was decoded by all points"):
        collect([tmp_path], together=True)


def test_each_point_is_paired_with_its_own_experiments_baseline(tmp_path: Path) -> None:
    slow = {
        text: [replace(sample, decode_seconds=10 * (sample.decode_seconds or 0)) for sample in samples]
        for text, samples in two_texts().items()
    }
    experiment(tmp_path / "cold", created_at="2026-11-29T11:00:00Z")
    experiment(tmp_path / "warm", slow, created_at="2026-11-29T12:00:00Z")

    entries = _by_label(collect([tmp_path]))

    # Against the other's baseline it would be 0.3 or 30.
    assert entries["bild fb=0.5 rb=2 (cold)"].speedup == pytest.approx(3.0)
    assert entries["bild fb=0.5 rb=2 (warm)"].speedup == pytest.approx(3.0)
    assert [entry.front for entry in entries.values()] == [True, False, True, False]


def test_a_text_that_failed_for_one_point_counts_for_none(tmp_path: Path) -> None:
    texts = {"a": two_texts()["a"], "b": [made_sample(BASELINE, **VANILLA_B), failed_sample(text_id="b", text_index=1)]}
    experiment(tmp_path / "x", texts)

    group = only_group(tmp_path)

    assert (group.text_ids, group.texts_left_out) == (("a",), 1)
    assert {entry.summary.texts for entry in group.entries} == {1}


def test_a_point_that_was_stopped_early_is_set_aside_and_takes_no_texts_away(tmp_path: Path) -> None:
    stopped = {**POINT, "point_id": "2" * 16, "point": "bild fb=0.9 rb=2"}
    texts = two_texts()
    texts["a"].append(made_sample(stopped, **BILD_A))
    experiment(tmp_path / "x", texts, points=[BASELINE, POINT, stopped])

    group = only_group(tmp_path)
    entries = {entry.label: entry for entry in group.entries}

    assert group.text_ids == ("a", "b")
    assert entries["bild fb=0.9 rb=2"].pruned == "stopped after 1 of 2 texts"
    assert not entries["bild fb=0.9 rb=2"].front
    assert not entries["bild fb=0.9 rb=2"].shown
    assert entries["bild fb=0.5 rb=2"].pruned is None


def test_a_point_whose_every_text_failed_is_set_aside(tmp_path: Path) -> None:
    texts = {
        "a": [made_sample(BASELINE), failed_sample()],
        "b": [made_sample(BASELINE, **VANILLA_B), failed_sample(text_id="b", text_index=1)],
    }
    experiment(tmp_path / "x", texts)

    group = only_group(tmp_path)

    assert group.text_ids == ("a", "b")
    assert [entry.pruned for entry in group.entries] == [None, "every text failed"]


def test_a_running_experiment_is_shown_over_its_finished_texts(tmp_path: Path) -> None:
    experiment(tmp_path / "x", {"a": two_texts()["a"]}, finish=False, texts=2, texts_expected=["a", "b"])

    assert only_group(tmp_path).text_ids == ("a",)


def test_damaged_files_are_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    experiment(tmp_path / "good")
    experiment(tmp_path / "cut")
    (tmp_path / "cut" / "run.parquet").write_bytes(b"PAR1 and no more")
    experiment(tmp_path / "empty", {}, finish=False, texts=1, texts_expected=["a"])

    collected = collect([tmp_path])

    assert len(collected.groups) == 1
    assert len(collected.damaged) == 2
    assert str(tmp_path / "cut" / "run.parquet") in collected.damaged[0]
    assert "no text is finished yet" in collected.damaged[1]


def test_a_lost_summary_is_named_and_made_again_from_the_samples(tmp_path: Path) -> None:
    directory = experiment(tmp_path / "x")
    (directory / "summary.parquet").write_bytes(b"not Parquet")

    collected = collect([tmp_path])

    assert collected.groups[0].entries[1].speedup == pytest.approx(3.0)
    assert "summary.parquet" in collected.damaged[0]


def test_an_experiment_named_twice_is_there_once(tmp_path: Path) -> None:
    experiment(tmp_path / "deep" / "x")

    [group] = collect([tmp_path, tmp_path / "deep", tmp_path / "deep" / "x"]).groups

    assert len(group.members) == 1


def test_a_path_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a directory"):
        collect([tmp_path / "none"])


def test_nothing_there_is_an_empty_collection(tmp_path: Path) -> None:
    assert collect([tmp_path]) == Collected((), ())


def test_pairs_tell_points_of_the_same_name_apart(tmp_path: Path) -> None:
    experiment(tmp_path / "one", pair_label="tiny", created_at="2026-11-29T11:00:00Z")
    experiment(tmp_path / "two", pair_label="mini", created_at="2026-11-29T12:00:00Z")

    labels = list(_by_label(collect([tmp_path])))

    assert labels == ["vanilla (tiny)", "vanilla (mini)", "bild fb=0.5 rb=2 (tiny)", "bild fb=0.5 rb=2 (mini)"]


def test_samples_are_not_read_where_every_point_has_every_text(tmp_path: Path) -> None:
    directory = experiment(tmp_path / "x")
    (directory / "samples.parquet").unlink()

    assert only_group(tmp_path).entries[1].speedup == pytest.approx(3.0)
