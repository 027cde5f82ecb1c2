"""The graphs session replayed from a recorded capture, and what happens where a step cannot be captured."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
import torch

from bild_bench.errors import RunError
from bild_bench.models.graphs import session as graph_session
from bild_bench.models.graphs.session import GraphModel
from bild_bench.models.graphs.step import MOST, SIZES, step
from tests.checkpoints import save_t5
from tests.forward import OTHER_SOURCE, SOURCE, assert_near, library_logits, load, random_tokens
from tests.graph_models import VARIANTS, captured_model, graph_model, in_steps, source_of
from tests.recorded import FakeCapture, storage


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("t5"), gated=True, tied=False, num_heads=3, num_decoder_layers=3)


@pytest.fixture(scope="module")
def model(folder: Path) -> GraphModel:
    return graph_model(folder)


@pytest.mark.parametrize("variant", ["T5 1.0", "T5 1.1", "mT5"])
def test_a_replay_reads_all_it_needs_from_static_buffers(variant: str, tmp_path: Path) -> None:
    """The capture sees one text and one position; the replays another source, other ids, other positions."""
    VARIANTS[variant](tmp_path)
    capture = FakeCapture()
    model = captured_model(tmp_path, capture)
    whole, tokens = load(tmp_path, "float64"), random_tokens(60)
    for source in (SOURCE, OTHER_SOURCE, source_of(64)):
        session = model.session(model.encode(source))
        found = in_steps(session, tokens, [1, 1, 2, 3, 5, 8, 16, 20, 4])
        assert_near(found, library_logits(whole, source, tokens), 1e-9)
        session.truncate(17)
        rows = session.extend(tokens[20:25])
        assert_near(rows.logits, library_logits(whole, source, [*tokens[:17], *tokens[20:25]])[17:], 1e-9)
        del session, rows
    assert len(capture.recordings) == len(SIZES), "one slot served all texts"
    assert capture.replays > 30


def test_a_step_touches_nothing_but_its_buffers_and_the_weights(folder: Path) -> None:
    capture = FakeCapture()
    model = captured_model(folder, capture)
    session = model.session(model.encode(SOURCE))
    weights = model.fast.weights
    known = [*vars(session._slot.buffers).values(), weights.embedding, weights.head, weights.final_norm]
    known += [tensor for layer in weights.layers for tensor in vars(layer).values()]
    for recording in capture.recordings:
        assert recording.outside() <= {storage(tensor) for tensor in known}


def test_a_step_run_by_hand_follows_its_input_buffer_alone(folder: Path) -> None:
    """Run once, then change the inputs in place and replay."""
    model = graph_model(folder)
    encoded, capture = model.encode(SOURCE), FakeCapture()
    session = model.session(encoded)
    session.extend([0, 5])
    buffers = session._slot.buffers
    with torch.inference_mode():
        buffers.inputs[:3] = torch.tensor([2, 9, 0])
    replay = capture(lambda: step(model.fast.weights, buffers, 1))
    assert_near(buffers.logits[:1], model.fast.session(encoded).extend([0, 5, 9]).logits[-1:], 1e-9)
    with torch.inference_mode():
        buffers.inputs[:3] = torch.tensor([3, 4, 0])
        replay()
    assert_near(buffers.logits[:1], model.fast.session(encoded).extend([0, 5, 9, 4]).logits[-1:], 1e-9)


def test_the_loop_makes_no_buffers_and_captures_nothing(folder: Path) -> None:
    capture = FakeCapture()
    model = captured_model(folder, capture)
    session = model.session(model.encode(SOURCE))
    slot = session._slot
    pinned = [slot._staged, slot._read]
    before = [tensor.data_ptr() for tensor in [*vars(slot.buffers).values(), *pinned]]
    steps = list(slot._replays.values())
    for _ in range(3):
        for count in range(1, MOST + 1):
            rows = session.extend(random_tokens(count))
            rows.argmax()
            session.truncate(3)
    assert [tensor.data_ptr() for tensor in [*vars(slot.buffers).values(), *pinned]] == before
    assert list(slot._replays.values()) == steps
    assert len(capture.recordings) == len(SIZES)


def test_outside_the_replay_a_step_allocates_nothing(folder: Path) -> None:
    """By torch's own profiler, on rows already captured: ids in, scores out, no tensor made on the way."""
    model = captured_model(folder, lambda run: lambda: None)
    session = model.session(model.encode(SOURCE))
    session.extend([0]).argmax()
    blocks = [random_tokens(count) for count in (1, 2, 7, 16)]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        for tokens in blocks:
            session.extend(tokens).logprob(tokens[1:])
    names = [event.key for event in profile.key_averages()]
    assert "aten::copy_" in names, "ids go in and scores come out by copies"
    assert not [name for name in names if "empty" in name or "clone" in name or "_to_copy" in name], names
    assert sum(max(0, event.self_cpu_memory_usage) for event in profile.key_averages()) == 0


def test_growth_captures_anew_and_keeps_the_text(folder: Path) -> None:
    capture, tokens = FakeCapture(), random_tokens(100)
    model = captured_model(folder, capture)
    session = model.session(model.encode(SOURCE), 20)
    found = in_steps(session, tokens, [10] * 10)
    assert_near(found, library_logits(load(folder, "float64"), SOURCE, tokens), 1e-9)
    assert len(capture.recordings) == 2 * len(SIZES)
    assert session._slot.buffers.capacity == 128
    del session
    # The next text finds the room that this one needed.
    assert model.session(model.encode(SOURCE), 20)._slot.buffers.capacity == 128
    assert len(capture.recordings) == 2 * len(SIZES)


def test_many_texts_need_no_more_slots_than_sessions_open_at_a_time(folder: Path) -> None:
    model = graph_model(folder, "float32")
    for count in range(30):
        first, second = model.session(model.encode(SOURCE)), model.session(model.encode(OTHER_SOURCE))
        assert first.extend([0, 3 + count]).argmax()
        assert second.extend([0]).argmax()
        del first, second
    gc.collect()
    assert {width: len(free) for width, free in model._free.items()} == {64: 2}


# What happens where steps cannot be captured


def test_on_the_cpu_steps_run_eagerly_and_the_reason_is_told(model: GraphModel) -> None:
    assert (model.kind, model.why_eager) == ("graphs-eager", "no CUDA graphs on cpu")


def on_cuda(model: GraphModel, capture: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the model finds out at its opening, on a machine with this capture."""
    monkeypatch.setattr(graph_session, "cuda_capture", lambda device: capture)
    monkeypatch.setattr(model, "device", torch.device("cuda"))
    model.why_eager = None
    model._choose()


def test_a_first_capture_that_fails_leaves_eager_steps_and_the_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(run: Any) -> Any:
        raise RuntimeError("CUDA error: operation not permitted\nwhen stream is capturing")

    model = graph_model(folder)
    on_cuda(model, fails, monkeypatch)
    assert model.kind == "graphs-eager"
    assert model.why_eager == (
        "a step cannot be captured here: RuntimeError: CUDA error: operation not permitted when stream is capturing"
    )
    tokens = random_tokens(9)
    expected = library_logits(load(folder, "float64"), SOURCE, tokens)
    assert_near(model.session(model.encode(SOURCE)).extend(tokens).logits, expected, 1e-9)


def test_where_capture_works_the_first_slot_is_there_before_the_first_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, capture = graph_model(folder), FakeCapture()
    on_cuda(model, capture, monkeypatch)
    assert (model.kind, model.why_eager) == ("graphs", None)
    assert len(capture.recordings) == len(SIZES)
    model.session(model.encode(SOURCE)).extend([0])
    assert len(capture.recordings) == len(SIZES)


def test_a_later_capture_that_fails_is_that_texts_error_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, capture = graph_model(folder), FakeCapture()
    left = 2 * len(SIZES)

    def scarce(run: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise torch.OutOfMemoryError("no memory")
        return capture(run)

    on_cuda(model, scarce, monkeypatch)
    session = model.session(model.encode(source_of(70)))
    tokens = random_tokens(12)
    expected = session.extend(tokens).logits
    with pytest.raises(RunError, match=r"no step for this many tokens can be captured .*no memory.*--session fast"):
        session.extend(random_tokens(300))
    assert session.length == 12
    with pytest.raises(RunError, match="captured"):
        model.session(model.encode(source_of(130)))
    del session
    assert torch.equal(model.session(model.encode(source_of(70))).extend(tokens).logits, expected)
    assert model.kind == "graphs"
