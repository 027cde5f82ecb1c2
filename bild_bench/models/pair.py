"""A large and a small model that may decode together: loaded, checked against each other, ready to open sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from bild_bench.decoding.records import Limits
from bild_bench.decoding.session import Session
from bild_bench.errors import UsageError, unknown_name
from bild_bench.models.checkpoint import Checkpoint, find_checkpoint
from bild_bench.models.choice import ModelChoice, PairChoice
from bild_bench.models.description import describe_model
from bild_bench.models.graphs.session import GraphModel
from bild_bench.models.languages import language_line, languages_of
from bild_bench.models.library import (
    DTYPES,
    check_device,
    load_model,
    load_tokenizer,
    require_encoder_decoder,
)
from bild_bench.models.opened import SESSION_KINDS, Model, open_model
from bild_bench.models.peer import make_peer
from bild_bench.models.positions import Positions, positions_of, within
from bild_bench.models.prefix import read_prefix
from bild_bench.models.rules import GenerationRules, read_rules
from bild_bench.models.settings import check_settings, dropped, greedy_settings
from bild_bench.models.special_ids import SpecialIds, agree, read_special_ids, vocabulary_of


@dataclass(frozen=True, repr=False)
class LoadedModel:
    """One model of a pair.

    Args:
        checkpoint: where it came from.
        model: opens sessions; native, graphs, fast or reference.
        description: what the record says of it: shapes, parameters, session kind, rules.
    """

    checkpoint: Checkpoint
    model: Model
    description: dict[str, Any]

    def __repr__(self) -> str:
        about = self.description
        return f"LoadedModel({about['name']!r}, {about['parameters'] / 1e6:.1f} M parameters, {about['session']})"


@dataclass(frozen=True)
class Source:
    """A tokenised source text: ids of shape [1, length] on the device; truncated says that a longer text was cut."""

    ids: Tensor
    truncated: bool


@dataclass(frozen=True, repr=False)
class Encoded:
    """What a model's encoder made of a source: the content is the model's own; ids have shape [1, length]."""

    content: Any
    ids: Tensor


@dataclass(frozen=True, repr=False)
class Pair:
    """Models by role ("large", "small") over one tokenizer.

    Args:
        label: as shown in tables and results.
        prefix: put before every source text.
        tokenizer: the library's, shared by both models.
        models: key -> model; only those that were asked for. A key is a role, or "small:NAME" for one of several.
        special: start, end and pad ids.
        rules: from the large model's generation_config; they hold for both.
        device: as torch names it.
        dtype: a key of `library.DTYPES`.
        positions: the most tokens that a source and a target may have in all models.
        library: key -> the library's own model, for those that peers need.
        threads: CPU threads that `api.generate` decodes on; None leaves torch's as they are.
    """

    label: str
    prefix: str
    tokenizer: Any
    models: dict[str, LoadedModel]
    special: SpecialIds
    rules: GenerationRules
    device: str
    dtype: str
    positions: Positions = field(default_factory=Positions)
    library: dict[str, Any] = field(default_factory=dict)
    threads: int | None = None

    def using(self, models: Mapping[str, str]) -> Pair:
        """The pair as one point sees it: role -> key of the model that it uses."""
        if all(role == key for role, key in models.items()):
            return self
        return replace(
            self,
            models={role: self.models[key] for role, key in models.items()},
            library={role: self.library[key] for role, key in models.items() if key in self.library},
        )

    def limits(self, max_tokens: int) -> Limits:
        """Where decoding starts and stops, for this pair."""
        return Limits(within(max_tokens, self.positions.target), self.special.start, frozenset(self.special.ends))

    def tokenise(self, text: str, limit: int) -> Source:
        """Prefix, text and end token as ids on the device, cut to `limit` tokens or to the models' positions."""
        limit = within(limit, self.positions.source)
        ids = self.tokenizer(self.prefix + text, verbose=False).input_ids
        truncated = len(ids) > limit
        if truncated:
            ids = self.tokenizer(self.prefix + text, truncation=True, max_length=limit).input_ids
        return Source(torch.tensor([ids], device=self.device), truncated)

    def encode(self, role: str, source: Source) -> Encoded:
        """Run one model's encoder; what it returns goes to `session`."""
        return Encoded(self.models[role].model.encode(source.ids), source.ids)

    def session(self, role: str, encoded: Encoded, limits: Limits) -> Session:
        """A fresh session of one model over an encoded source, under the pair's rules."""
        model = self.models[role].model
        # A graph's caches do not grow without a pause; the start token needs room too.
        room = (limits.max_tokens + 1,) if isinstance(model, GraphModel) else ()
        return self.rules.wrap(model.session(encoded.content, *room), limits, encoded.ids)

    def text(self, ids: Sequence[int]) -> str:
        """Generated ids as text, without special tokens."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True)).strip()

    def piece(self, before: Sequence[int], token: int) -> str:
        """One token's own text after the tokens before it; special tokens by their name."""
        if token in self.tokenizer.all_special_ids:
            return str(self.tokenizer.convert_ids_to_tokens(token))
        shorter, longer = (
            # A character made of several tokens is shown with its last one; until then it decodes to U+FFFD.
            str(self.tokenizer.decode(list(ids), skip_special_tokens=True)).rstrip("\ufffd")
            for ids in (before, [*before, token])
        )
        return longer[len(shorter) :]

    def describe(self) -> dict[str, Any]:
        """What the record says of the pair."""
        return {
            "label": self.label,
            "prefix": self.prefix,
            "special_ids": {"start": self.special.start, "ends": list(self.special.ends), "pad": self.special.pad},
            "rules": self.rules.applied,
            "search_settings_ignored": self.rules.ignored,
            "languages": languages_of(self.tokenizer, self.rules, self.special.start),
            **{key: loaded.description for key, loaded in self.models.items()},
        }

    def __repr__(self) -> str:
        models = [
            f"{key} {loaded.description['parameters'] / 1e6:.1f} M ({loaded.description['session']})"
            for key, loaded in self.models.items()
        ]
        return f"Pair({self.label!r}, {', '.join(models)}, {self.device}, {self.dtype})"


def load_pair(
    choice: PairChoice,
    keys: Sequence[str] = ("large", "small"),
    *,
    device: str = "auto",
    dtype: str = "float32",
    session: str = "auto",
    library_keys: Sequence[str] = (),
    announce: Callable[[str], None] = lambda line: None,
) -> Pair:
    """Load the models of these keys and check that they fit together.

    Args:
        choice: see `choose_pair`.
        keys: of "large", "small", and "small:NAME" for one of several small models.
        device: "auto", "cpu", "cuda", "cuda:N" or "mps".
        dtype: a key of `library.DTYPES`.
        session: "native" for our compiled decoder, "graphs" for CUDA graphs and "fast" for the same in PyTorch (T5
            family), "reference" for the library's modules, "auto" for the first of them that can run the model here.
        library_keys: those that are loaded as the library's own models too, for peers (as much memory again).
        announce: called with one line before something slow starts.

    Raises:
        UsageError: a role without a model, an impossible device, dtype or session kind.
        DataError: a checkpoint cannot be used, or the two do not fit together.
    """
    device = check_device(device)
    _require_known("--dtype", dtype, DTYPES)
    _require_known("--session", session, SESSION_KINDS)
    checkpoints = {key: find_checkpoint(_chosen(choice, key), _option(key), announce) for key in keys}
    main = keys[0] if "large" not in keys else "large"
    for key, checkpoint in checkpoints.items():
        require_encoder_decoder(checkpoint, _option(key))
        check_settings(checkpoint, rules=key == main)
    tokenizers = {key: load_tokenizer(checkpoint, _option(key)) for key, checkpoint in checkpoints.items()}
    agree(tokenizers, {key: checkpoint.name for key, checkpoint in checkpoints.items()})
    vocabulary = vocabulary_of(tokenizers[main])
    library = {key: load_model(checkpoint, _option(key), device, dtype) for key, checkpoint in checkpoints.items()}
    special = read_special_ids(library, vocabulary, {key: checkpoint.name for key, checkpoint in checkpoints.items()})
    rules = read_rules(library[main].generation_config, vocabulary, checkpoints[main].name)
    languages = languages_of(tokenizers[main], rules, special.start)
    if languages is not None:
        announce(language_line(languages))
    positions = positions_of(library.values())
    models = {}
    for key in keys:
        description = describe_model(checkpoints[key], library[key])
        opened, why_not = open_model(
            checkpoints[key], library.pop(key), vocabulary, special.start, session, _option(key), announce
        )
        description |= {"session": opened.kind, "session_not_native": why_not}
        if isinstance(opened, GraphModel):
            description |= {"session_not_captured": opened.why_eager}
        models[key] = LoadedModel(checkpoints[key], opened, description)
    peers = {key: load_model(checkpoints[key], _option(key), device, dtype) for key in library_keys}
    for key, peer in peers.items():
        make_peer(peer, vocabulary, greedy_settings(special, rules))
        models[key].description["peer_settings_dropped"] = dropped(checkpoints[key])
    prefix = choice.prefix
    if prefix is None:
        prefix = read_prefix(checkpoints[main], _option(main), choice.kind, announce)
    parts = (choice.label, prefix, tokenizers[main], models, special, rules)
    return Pair(*parts, device, dtype, positions, peers)


def _require_known(option: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise unknown_name(option, value, known)


def _option(key: str) -> str:
    return f"--{key.partition(':')[0]}"


def _chosen(choice: PairChoice, key: str) -> ModelChoice:
    chosen, option = choice.of(key), _option(key)
    if chosen is None:
        raise UsageError(
            option, None, "this mode needs a model for it (allowed: a folder or a hub id)", f"add {option} PATH"
        )
    return chosen
