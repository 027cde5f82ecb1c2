"""Real pairs for the tests of the methods: small random checkpoints in float64, decoded as an experiment does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from bild_bench.decoding.picking import Greedy, Picker
from bild_bench.decoding.records import Decoded, Limits
from bild_bench.models.choice import ModelChoice, PairChoice
from bild_bench.models.opening import check_method, open_sessions
from bild_bench.models.pair import Pair, load_pair
from bild_bench.plan import make_point
from tests.checkpoints import END, PAD, VOCABULARY, save_t5

TEXTS = ("the dog sees a cat", "a man reads near the house, the child runs", "tree")


def load_alone(folder: Path, dtype: str = "float64", library: Sequence[str] = ()) -> Pair:
    """The checkpoint as the large model, with no small one."""
    choice = PairChoice("made", ModelChoice(str(folder)), None, "")
    return load_pair(choice, ["large"], device="cpu", dtype=dtype, library_keys=library)


def load_both(large: Path, small: Path, dtype: str = "float64", library: Sequence[str] = ()) -> Pair:
    """Two checkpoints as a pair."""
    choice = PairChoice("made", ModelChoice(str(large)), ModelChoice(str(small)), "")
    return load_pair(choice, ["large", "small"], device="cpu", dtype=dtype, library_keys=library)


def decode(
    pair: Pair,
    mode: str,
    settings: Mapping[str, Any],
    limits: Limits,
    text: str = TEXTS[0],
    picker: Picker | None = None,
) -> Decoded:
    """One text by one method, the way `measure.timing` decodes it."""
    point = make_point(mode, settings)
    check_method(pair, point.method, point.settings)
    source = pair.tokenise(text, 50)
    encoded = {role: pair.encode(role, source) for role in point.method.uses}
    sessions = open_sessions(pair, point.method, point.settings, source, encoded, limits)
    return point.method.decode(sessions, point.settings, limits, Greedy() if picker is None else picker)


def limits_of(max_tokens: int, *ends: int) -> Limits:
    """Limits with the checkpoints' start token; their own end token unless others are given."""
    return Limits(max_tokens, PAD, frozenset(ends if ends else (END,)))


def save_deep(folder: Path, depth: int = 3, **shape: Any) -> Path:
    """A random T5 with some decoder layers that scores only ids the tokenizer knows."""
    return save_t5(folder, num_decoder_layers=depth, vocab_size=VOCABULARY, **shape)


def cut_out(folder: Path, layers: int, target: Path, **shape: Any) -> Path:
    """The first decoder layers of a checkpoint of `save_deep` with its encoder, final norm and head."""
    save_deep(target, layers, **shape)
    weights = load_file(folder / "model.safetensors")
    wanted = load_file(target / "model.safetensors").keys()
    save_file({name: weights[name] for name in wanted}, target / "model.safetensors", metadata={"format": "pt"})
    return target
