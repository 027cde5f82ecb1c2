"""The contestants: our decoder, transformers' `generate` plain and assisted, CTranslate2; same weights and texts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.interleave import Contestant, Text, Turn, marginal, once_a_text
from bench.shapes import Announce, Subject
from bild_bench.decoding.alone import AloneSettings, vanilla
from bild_bench.decoding.methods import find_method
from bild_bench.decoding.peers import AssistedSettings, hf_assisted
from bild_bench.decoding.picking import Greedy
from bild_bench.decoding.records import Limits
from bild_bench.decoding.session import Sessions
from bild_bench.measure.clock import now

# What CTranslate2 calls a precision -> what its converter does to the weights.
COMPUTE_TYPES: dict[str, str | None] = {"float32": None, "int8": "int8"}


def source_of(text: Text, device: str) -> Any:
    """Source ids, [1, length]."""
    import torch

    return torch.tensor([text.ids], device=device)


def limits_of(subject: Subject, tokens: int) -> Limits:
    """Where this subject's texts stop."""
    return Limits(tokens, subject.pair.special.start, subject.ends)


def our_encodings(subject: Subject, roles: Sequence[str]) -> Callable[[Text], dict[str, Any]]:
    """Text -> role -> encoded source, as our sessions read it; not timed."""
    from bild_bench.models.pair import Source

    def encode(text: Text) -> dict[str, Any]:
        source = Source(source_of(text, subject.pair.device), truncated=False)
        return {role: subject.pair.encode(role, source) for role in roles}

    return once_a_text(encode)


def library_states(subject: Subject, roles: Sequence[str]) -> Callable[[Text], dict[str, Any]]:
    """Text -> role -> the library's encoder output; not timed."""
    import torch

    @torch.inference_mode()
    def encode(text: Text) -> dict[str, Any]:
        ids, library = source_of(text, subject.pair.device), subject.pair.library
        # The encoder itself: as an assistant the small model's `get_encoder` has been replaced.
        return {role: library[role].encoder(input_ids=ids).last_hidden_state for role in roles}

    return once_a_text(encode)


def our_vanilla(subject: Subject) -> Contestant:
    """Our greedy search by the large model, without what is done once per text."""
    encodings = our_encodings(subject, ("large",))

    def contestant(text: Text) -> Turn:
        encoded = encodings(text)["large"]

        def generate(tokens: int) -> Sequence[int]:
            limits = limits_of(subject, tokens)
            sessions = Sessions(large=subject.pair.session("large", encoded, limits))
            return vanilla(sessions, AloneSettings(), limits, Greedy()).tokens

        return marginal(generate, subject.tokens, subject.pair.device)

    return contestant


def library_greedy(subject: Subject) -> Contestant:
    """transformers' greedy search from the encoder's output on, without what is done once per text."""
    from bild_bench.models.peer import LibraryPeer

    states = library_states(subject, ("large",))

    def contestant(text: Text) -> Turn:
        source = source_of(text, subject.pair.device)
        peer = LibraryPeer(source, subject.pair.library["large"], states(text)["large"])
        turn = marginal(lambda tokens: peer.generate(tokens, None), subject.tokens, subject.pair.device)
        return Turn(turn.seconds, turn.tokens[1:])

    return contestant


def library_assisted(subject: Subject, settings: AssistedSettings) -> Contestant:
    """transformers' assisted generation from both encoders' outputs to the last token."""
    from bild_bench.models.peer import LibraryPeer

    states = library_states(subject, ("large", "small"))
    library, limits, device = subject.pair.library, limits_of(subject, subject.tokens), subject.pair.device

    def contestant(text: Text) -> Turn:
        held = states(text)
        source = source_of(text, device)
        peer = LibraryPeer(source, library["large"], held["large"], library["small"], held["small"])
        start = now(device)
        decoded = hf_assisted(Sessions(peer=peer), settings, limits, Greedy())
        return Turn(now(device) - start, decoded.tokens)

    return contestant


def our_method(subject: Subject, name: str, settings: Any) -> Contestant:
    """One of our methods from the encoded sources to the last token, the sessions' opening included."""
    method, device = find_method(name), subject.pair.device
    encodings, limits = our_encodings(subject, method.uses), limits_of(subject, subject.tokens)

    def contestant(text: Text) -> Turn:
        encoded = encodings(text)
        start = now(device)
        opened: dict[str, Any] = {role: subject.pair.session(role, encoded[role], limits) for role in method.uses}
        decoded = method.decode(Sessions(**opened), settings, limits, Greedy())
        return Turn(now(device) - start, decoded.tokens)

    return contestant


# Decodes a text to this many tokens at most; a text with a fixed length gets all of them.
Generate = Callable[[Text, int], tuple[int, ...]]


def ctranslate2_greedy(
    subject: Subject, cache: Path, threads: int, compute_type: str, announce: Announce
) -> Contestant | str:
    """CTranslate2's greedy search, without what is done once per text; or, in one line, why there is none.

    It cannot be given an encoder's output. A decoding to the first token has the encoder and everything else that is
    done once per text in it, and is taken off (`marginal`), as it is for all. Arguments: see `ctranslate2_generate`.
    """
    generate = ctranslate2_generate(subject, cache, threads, compute_type, announce)
    if isinstance(generate, str):
        return generate
    return lambda text: marginal(lambda tokens: generate(text, tokens), subject.tokens)


def ctranslate2_generate(
    subject: Subject, cache: Path, threads: int, compute_type: str, announce: Announce
) -> Generate | str:
    """CTranslate2's greedy search from a source's ids on; or, in one line, why there is none.

    Args:
        subject: its large model is converted.
        cache: converted models are kept here, by the checkpoint's fingerprint.
        threads: for one text.
        compute_type: one of `COMPUTE_TYPES`.
        announce: called with one line before a conversion.
    """
    try:
        import ctranslate2  # type: ignore[import-untyped]
    except ImportError:
        return "ctranslate2 is not installed: pip install ctranslate2"
    checkpoint, tokenizer = subject.pair.models["large"].checkpoint, subject.pair.tokenizer
    try:
        folder = _converted(checkpoint, cache, compute_type, announce)
        translator = ctranslate2.Translator(
            str(folder), device="cpu", compute_type=compute_type, inter_threads=1, intra_threads=threads
        )
    # Whatever the converter or the loader raises costs these rows and not the run.
    except Exception as error:
        return " ".join(f"CTranslate2 cannot run it: {error}".split())

    def generate(text: Text, tokens: int) -> tuple[int, ...]:
        pieces, least = tokenizer.convert_ids_to_tokens(list(text.ids)), tokens if subject.fixed else 1
        found = translator.translate_batch(
            [pieces], beam_size=1, max_decoding_length=tokens, min_decoding_length=least, max_input_length=0
        )
        return tuple(tokenizer.convert_tokens_to_ids(list(found[0].hypotheses[0])))

    return generate


def _converted(checkpoint: Any, cache: Path, compute_type: str, announce: Announce) -> Path:
    """The model in CTranslate2's own format; converted where that was not done before."""
    from ctranslate2.converters import TransformersConverter  # type: ignore[import-untyped]

    folder = cache / f"ctranslate2-{compute_type}-{checkpoint.fingerprint}"
    if folder.is_dir():
        return folder
    announce(f"{checkpoint.name}: converting for CTranslate2, {compute_type} (once)")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as space:
        made = Path(space) / folder.name
        TransformersConverter(str(checkpoint.path)).convert(str(made), quantization=COMPUTE_TYPES[compute_type])
        made.rename(folder)
    return folder


def same_tokens(turns: Mapping[str, Sequence[Turn]], ours: str, ends: frozenset[int]) -> dict[str, int]:
    """Contestant -> on how many texts it generated our tokens, the end token left aside, which not everyone tells."""

    def words(turn: Turn) -> tuple[int, ...]:
        return tuple(token for token in turn.tokens if token not in ends)

    return {
        name: sum(words(turn) == words(own) for turn, own in zip(found, turns[ours], strict=True))
        for name, found in turns.items()
        if name != ours
    }
