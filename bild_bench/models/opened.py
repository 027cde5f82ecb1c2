"""Which session a loaded model gets: native, graphs, fast or the library's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bild_bench.errors import DataError
from bild_bench.models.agreement import require_agreement
from bild_bench.models.checkpoint import Checkpoint
from bild_bench.models.exit_classifier import load_exit_classifier
from bild_bench.models.fast import FAST_MODEL_TYPES, FastModel
from bild_bench.models.graphs.session import GraphModel
from bild_bench.models.native.build import native_library
from bild_bench.models.native.session import NATIVE_ACTIVATIONS, NativeModel
from bild_bench.models.reference import ReferenceModel

SESSION_KINDS = ("auto", "native", "graphs", "fast", "reference")
Model = NativeModel | GraphModel | FastModel | ReferenceModel


def open_model(
    checkpoint: Checkpoint,
    library_model: Any,
    vocabulary: int,
    start_id: int,
    session: str,
    option: str,
    announce: Callable[[str], None] = lambda line: None,
) -> tuple[Model, str | None]:
    """The model with its sessions, and why they are not native where they are not, though nobody asked for another.

    Args:
        checkpoint: where the model came from.
        library_model: loaded, in evaluation mode; it must not be used afterwards.
        vocabulary: ids at and beyond this are masked.
        start_id: the decoder's start token.
        session: one of `SESSION_KINDS`.
        option: names the model in an error.
        announce: called with one line where something slow starts, or the decoder cannot be compiled.

    Raises:
        DataError: that kind of session cannot run this model here, or not properly.
    """
    model_type = library_model.config.model_type
    if session in ("native", "graphs", "fast") and model_type not in FAST_MODEL_TYPES:
        raise DataError(
            option,
            checkpoint.name,
            f"is of type {model_type}; the {session} session knows {', '.join(FAST_MODEL_TYPES)}",
            "use --session reference, or auto",
        )
    if session == "reference" or model_type not in FAST_MODEL_TYPES:
        reference = ReferenceModel(library_model, vocabulary, start_id)
        require_agreement(reference, vocabulary, start_id, option, checkpoint.name)
        return reference, None
    classifier = load_exit_classifier(checkpoint, library_model.device, library_model.config.d_model)
    if session == "graphs" or (session == "auto" and library_model.device.type == "cuda"):
        return GraphModel(FastModel(library_model, vocabulary, classifier)), None
    problem = None if session == "fast" else _unfit(library_model)
    if session != "fast" and problem is None:
        native = native_library(announce, instead=session != "native")
        if native.library is not None:
            return NativeModel(native.library, library_model, vocabulary, classifier), None
        problem = native.problem
    if session == "native":
        raise DataError(option, checkpoint.name, f"the native session cannot run here: {problem}", "use --session auto")
    return FastModel(library_model, vocabulary, classifier), problem


def _unfit(library_model: Any) -> str | None:
    """Why the native decoder does not run this model, whatever the machine; None if it does."""
    weight = library_model.get_input_embeddings().weight
    activation = library_model.config.dense_act_fn
    if weight.device.type != "cpu":
        return f"it runs on the CPU, not on {weight.device.type}"
    if weight.dtype != torch.float32:
        return f"it computes in float32, not in {str(weight.dtype).removeprefix('torch.')}"
    expected = NATIVE_ACTIVATIONS[bool(library_model.config.is_gated_act)]
    if activation != expected:
        return f"it does not know the activation {activation} (known: gated gelu_new, relu)"
    return None
