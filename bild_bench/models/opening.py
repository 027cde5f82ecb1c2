"""Opens what a method decodes one source with: plain sessions, layered ones, or another implementation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bild_bench.decoding.methods import Method
from bild_bench.decoding.records import Limits
from bild_bench.decoding.session import Sessions
from bild_bench.errors import DataError, UsageError
from bild_bench.models.fast import FastModel
from bild_bench.models.graphs.session import GraphModel
from bild_bench.models.layered import LayeredModel, LayeredSession, early_exit_sessions
from bild_bench.models.native.session import NativeModel
from bild_bench.models.pair import Pair, Source
from bild_bench.models.peer import LibraryPeer


def open_sessions(
    pair: Pair, method: Method, settings: Any, source: Source, encoded: Mapping[str, Any], limits: Limits
) -> Sessions:
    """Fresh sessions for one text.

    Args:
        pair: the models.
        method: says what it needs (`Method.opens`).
        settings: the method's.
        source: the tokenised text.
        encoded: role -> what `Pair.encode` returned, for the roles that the method uses.
        limits: for the generation rules.
    """
    if method.opens == "library":
        states = [part for role in method.uses for part in (pair.library[role], encoded[role].content.states)]
        return Sessions(peer=LibraryPeer(source.ids, *states))
    if method.opens == "layered":
        return Sessions(layered=LayeredSession(_layered_model(pair), encoded["large"].content))
    if method.opens == "early-exit":
        model = _layered_model(pair)
        lower, whole = early_exit_sessions(model, encoded["large"].content, settings.exit_layer)
        small, large = (pair.rules.wrap(session, limits, source.ids) for session in (lower, whole))
        return Sessions(small=small, large=large, depth=model.depth)
    sessions = {role: pair.session(role, encoded[role], limits) for role in method.uses}
    return Sessions(large=sessions.get("large"), small=sessions.get("small"))


def check_method(pair: Pair, method: Method, settings: Any) -> None:
    """What can be known before a text is decoded.

    Raises:
        DataError, UsageError: this pair cannot be decoded by this method with these settings.
    """
    _require_loaded(pair, method)
    if method.opens in ("layered", "early-exit"):
        model = _layered_model(pair)
        layer = getattr(settings, "exit_layer", getattr(settings, "min_layer", None))
        depth = model.depth
        if layer is not None and layer >= depth:
            option = "--exit-layer" if method.opens == "early-exit" else "--min-layer"
            raise UsageError(option, layer, f"the decoder has {depth} layers (allowed: below that)", "try a lower one")
        if method.opens == "layered" and pair.rules.applied:
            rules = ", ".join(pair.rules.applied)
            raise DataError(
                "--mode", method.name, f"cannot follow the checkpoint's rules ({rules})", "remove the rules"
            )
        if getattr(settings, "measure", None) == "classifier" and model.exit_classifier is None:
            raise DataError(
                "--measure", "classifier", "the checkpoint holds no exit_classifier.safetensors", "use softmax or state"
            )


def _require_loaded(pair: Pair, method: Method) -> None:
    peers = method.uses if method.opens == "library" else ()
    if not set(method.uses) <= pair.models.keys() or not set(peers) <= pair.library.keys():
        call = f"load_pair(..., roles={method.uses!r}" + (f", library_roles={peers!r})" if peers else ")")
        there = ", ".join([*pair.models, *(f"{key} as a library copy" for key in pair.library)])
        raise UsageError("mode", method.name, f"needs models that are not loaded (loaded: {there})", f"use {call}")


def _layered_model(pair: Pair) -> LayeredModel:
    model = pair.models["large"].model
    if isinstance(model, GraphModel):
        # Which layers run is decided token by token, and a captured step is always the same: the model behind it runs.
        return model.fast
    if not isinstance(model, (NativeModel, FastModel)):
        raise DataError(
            "--large",
            pair.models["large"].checkpoint.name,
            "only our own sessions run a decoder layer by layer (allowed: T5 and mT5 checkpoints)",
            "give a T5-family checkpoint, and leave --session out",
        )
    return model
