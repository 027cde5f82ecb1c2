"""The recorder sees what methods ask for: its calls are the counters', and its FLOPs those that torch counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch.utils.flop_counter import FlopCounterMode

from bild_bench.decoding.picking import Greedy
from bild_bench.decoding.records import Decoded
from bild_bench.measure.call_record import Recorded
from bild_bench.measure.operations import Work
from bild_bench.models.opening import open_sessions
from bild_bench.models.pair import Pair
from bild_bench.plan import Point, make_point
from bild_bench.profile_figures import model_of, work_of
from bild_bench.profiling import record, shape_of_model
from tests.checkpoints import VOCABULARY, save_bart, save_t5
from tests.method_pairs import TEXTS, limits_of, load_both, save_deep

LIMITS = limits_of(24, 999)  # no token ends a text, so that every text has 24 of them

POINTS = [
    make_point("vanilla", {}),
    make_point("small", {}),
    make_point("bild", {"alpha_fb": 0.3, "alpha_rb": 1.0}),
    make_point("bild", {"alpha_fb": 0.0, "alpha_rb": 3.0, "max_draft": 4, "first": "large", "verify_tail": True}),
    make_point("bild", {"alpha_fb": 0.1, "alpha_rb": 0.5, "verify_tail": True}),
    make_point("speculative", {"gamma": 3}),
    make_point("speculative", {"gamma": 4, "adaptive": True}),
    make_point("oracle", {"replace_below": 0.2}),
    make_point("calm", {"threshold": 0.3}),
    make_point("calm", {"threshold": 0.95, "measure": "state"}),
    make_point("calm", {"threshold": 0.2, "min_layer": 2}),
    make_point("bild-early-exit", {"alpha_fb": 0.3, "alpha_rb": 1.0}),
    make_point("bild-early-exit", {"exit_layer": 2, "alpha_fb": 0.0, "alpha_rb": 2.0, "max_draft": 3}),
    make_point("bild-early-exit", {"alpha_fb": 0.2, "alpha_rb": 0.5, "verify_tail": True}),
]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """In float64, which only sessions made of torch's own operations decode."""
    large = save_deep(tmp_path_factory.mktemp("large"), 3)
    small = save_t5(tmp_path_factory.mktemp("small"), num_decoder_layers=1, d_model=16, vocab_size=VOCABULARY, seed=1)
    return load_both(large, small)


def _recorded(pair: Pair, point: Point, text: str) -> tuple[list[Recorded], dict[str, Any]]:
    shapes = {role: shape_of_model(pair, role) for role in pair.models}
    return record(pair, shapes, pair.tokenise(text, 50), point, LIMITS), shapes


def _decoded(pair: Pair, point: Point, text: str) -> tuple[Decoded, int]:
    """Without a recorder: the outcome, and the FLOPs that torch counted."""
    seen, source = pair.using(point.models), pair.tokenise(text, 50)
    encoded = {role: seen.encode(role, source) for role in point.models}
    sessions = open_sessions(seen, point.method, point.settings, source, encoded, LIMITS)
    with FlopCounterMode(display=False) as counter:
        decoded = point.method.decode(sessions, point.settings, LIMITS, Greedy())
    return decoded, counter.get_total_flops()


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.label)
def test_recorded_calls_are_those_that_the_method_counts(pair: Pair, point: Point) -> None:
    for text in TEXTS:
        calls, _ = _recorded(pair, point, text)
        counters = _decoded(pair, point, text)[0].counters
        roles = [call.role for call in calls]
        assert (roles.count("small"), roles.count("large")) == (counters.small_calls, counters.large_calls)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.label)
def test_flops_of_whole_decodings_agree_with_torchs_counter(pair: Pair, point: Point) -> None:
    for text in TEXTS:
        calls, shapes = _recorded(pair, point, text)
        flops = sum((work_of(shapes[model_of(point, call.role)], call) for call in calls), Work()).flops
        assert flops == pytest.approx(_decoded(pair, point, text)[1], rel=0.01)


def test_vanilla_feeds_one_token_a_call_behind_all_before(pair: Pair) -> None:
    calls, _ = _recorded(pair, POINTS[0], TEXTS[0])

    assert [(call.rows, call.passes[0].cached) for call in calls] == [(1, n) for n in range(24)]
    assert {call.passes[0].projected for call in calls} == {1}


def test_a_window_is_one_call_of_as_many_rows_and_all_of_them_are_read(pair: Pair) -> None:
    calls, _ = _recorded(pair, make_point("bild", {"alpha_fb": 0, "alpha_rb": 1e9, "max_draft": 4}), TEXTS[0])
    large = [call for call in calls if call.role == "large"]

    # Start token and four drafts; then L's own token and four drafts.
    assert [call.rows for call in large] == [5] * len(large)
    assert {call.passes[0].projected for call in large} == {5}
    # S has not seen its fourth draft, nor L's token: two tokens are new, one row is read.
    assert [call.rows for call in calls if call.role == "small"][:6] == [1, 1, 1, 1, 2, 1]
    assert {call.passes[0].projected for call in calls if call.role == "small"} == {1}


def test_the_librarys_modules_project_every_row_that_is_fed(tmp_path: Path) -> None:
    bart = load_both(save_bart(tmp_path / "large"), save_bart(tmp_path / "small", seed=1, decoder_layers=1))
    calls, _ = _recorded(bart, make_point("bild", {"alpha_fb": 0, "alpha_rb": 1e9, "max_draft": 3}), TEXTS[0])

    assert any(call.role == "small" and call.rows > 1 for call in calls)
    assert [call.passes[0].projected for call in calls] == [call.rows for call in calls]


def test_rules_look_at_every_row(tmp_path: Path) -> None:
    save_t5(tmp_path / "large", vocab_size=VOCABULARY)
    save_t5(tmp_path / "small", vocab_size=VOCABULARY, seed=1)
    rules = tmp_path / "large" / "generation_config.json"
    rules.write_text(rules.read_text().replace("{", '{"no_repeat_ngram_size": 3,', 1))
    ruled = load_both(tmp_path / "large", tmp_path / "small")
    point = make_point("bild", {"alpha_fb": 0, "alpha_rb": 1e9, "max_draft": 3})

    calls, shapes = _recorded(ruled, point, TEXTS[0])
    assert [call.passes[0].projected for call in calls] == [call.rows for call in calls]
    flops = sum((work_of(shapes[call.role], call) for call in calls), Work()).flops
    assert flops == pytest.approx(_decoded(ruled, point, TEXTS[0])[1], rel=0.01)
