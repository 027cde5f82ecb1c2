"""What the graphs session asks of CUDA, with stand-ins for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from bild_bench.models.graphs.capture import cuda_capture
from bild_bench.models.graphs.session import GraphModel
from tests.checkpoints import save_t5
from tests.forward import SOURCE
from tests.graph_models import graph_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("t5"), gated=True, tied=False, num_heads=3, num_decoder_layers=3)


@pytest.fixture(scope="module")
def model(folder: Path) -> GraphModel:
    return graph_model(folder)


class FakeCuda:
    """The part of torch.cuda that a capture uses; `told` is what was asked of it, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[str] = []
        self.current = "main"
        for name in ("graph_pool_handle", "Stream", "current_stream", "device", "stream", "CUDAGraph", "graph"):
            monkeypatch.setattr(torch.cuda, name, getattr(self, name))

    def graph_pool_handle(self) -> str:
        self.told.append("pool")
        return "the pool"

    def Stream(self, device: Any) -> Any:
        return SimpleNamespace(name="side", wait_stream=lambda other: self.told.append(f"side waits for {other.name}"))

    def current_stream(self, device: Any) -> Any:
        name = self.current
        return SimpleNamespace(name=name, wait_stream=lambda other: self.told.append(f"{name} waits for {other.name}"))

    def device(self, device: Any) -> Any:
        return nullcontext()

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        before, self.current = self.current, stream.name
        try:
            yield
        finally:
            self.current = before

    def CUDAGraph(self) -> Any:
        return SimpleNamespace(replay=lambda: self.told.append("replay"))

    @contextmanager
    def graph(self, graph: Any, pool: str, stream: Any) -> Iterator[None]:
        assert pool == "the pool"
        self.told.append(f"capture on {stream.name}")
        # As torch does: after a failure the side stream stays current.
        self.current = stream.name
        yield
        self.current = "main"


def test_a_step_is_warmed_up_on_a_side_stream_and_then_captured_there(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = FakeCuda(monkeypatch)
    capture = cuda_capture(torch.device("cuda"))
    replays = [capture(lambda: cuda.told.append(f"run on {cuda.current}")) for _ in range(2)]
    once = ["side waits for main", *["run on side"] * 3, "main waits for side", "capture on side", "run on side"]
    assert cuda.told == ["pool", *once, *once], "one pool and one side stream for all"
    replays[0]()
    assert cuda.told[-1] == "replay"
    assert cuda.current == "main"


def test_a_capture_that_fails_puts_the_stream_back(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = FakeCuda(monkeypatch)
    runs = iter([None, None, None, RuntimeError("not permitted")])

    def run() -> None:
        problem = next(runs)
        if problem is not None:
            raise problem

    with pytest.raises(RuntimeError, match="not permitted"):
        cuda_capture(torch.device("cuda"))(run)
    assert cuda.current == "main"


def test_staged_ids_are_not_overwritten_before_they_were_sent(
    model: GraphModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = model.session(model.encode(SOURCE))
    slot, told = session._slot, []

    class Event:
        def synchronize(self) -> None:
            told.append(("waited", slot._staged[1].item()))

        def record(self, stream: Any) -> None:
            told.append(("sent", slot._staged[1].item()))

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: "stream")
    slot._sent = Event()  # type: ignore[assignment]
    try:
        session.extend([7])
        session.extend([9])
    finally:
        slot._sent = None
    assert told[1:] == [("sent", 7), ("waited", 7), ("sent", 9)]
