"""The library's own `generate` as a method: the same tokens, options where it reads them, encoders not timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers.generation import AssistedCandidateGenerator

from bild_bench.decoding.peers import AssistedSettings, hf_assisted, hf_greedy
from bild_bench.decoding.records import Counters
from bild_bench.decoding.session import Sessions
from bild_bench.errors import UsageError
from bild_bench.measure import timing
from bild_bench.models.pair import Pair
from bild_bench.plan import make_point
from tests.checkpoints import VOCABULARY, save_bart, save_marian, save_mt5, save_pegasus, save_t5
from tests.method_pairs import TEXTS, decode, limits_of, load_both

# The same shape for both models and other weights; only ids that the tokenizer knows.
SAVE: dict[str, Callable[..., Path]] = {
    "T5": save_t5,
    "mT5": save_mt5,
    "BART": save_bart,
    "Marian": save_marian,
    "Pegasus": save_pegasus,
}


def made(kind: str, folder: Path) -> Pair:
    large, small = (SAVE[kind](folder / str(seed), seed=seed, vocab_size=VOCABULARY) for seed in (1, 2))
    return load_both(large, small, library=("large", "small"))


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return made("T5", tmp_path_factory.mktemp("t5"))


@pytest.mark.parametrize("kind", SAVE)
def test_every_architecture_gives_vanillas_tokens(kind: str, tmp_path: Path) -> None:
    pair = made(kind, tmp_path)
    for text in TEXTS:
        for limits in (limits_of(30), limits_of(1), limits_of(30, 5, 9, 30)):
            set_ends(pair, limits.end_ids)
            expected = decode(pair, "vanilla", {}, limits, text)
            for mode in ("hf-greedy", "hf-assisted"):
                found = decode(pair, mode, {}, limits, text)
                assert (found.tokens, found.hit_limit) == (expected.tokens, expected.hit_limit), mode
                assert found.counters == Counters(generated=len(expected.tokens)), "what is not told is null"
                assert (found.trace(), found.exit_layers) == ((), None)


@pytest.mark.parametrize("save", [save_bart, save_marian, save_pegasus])
def test_the_checkpoints_rules_hold_for_the_library_as_for_us(save: Callable[..., Path], tmp_path: Path) -> None:
    rules = {"no_repeat_ngram_size": 2, "min_length": 8, "forced_bos_token_id": 7, "forced_eos_token_id": 1}
    found = {**rules, "num_beams": 4, "do_sample": True}  # of these two, neither is ours
    folders = [save(tmp_path / str(seed), seed=seed, vocab_size=VOCABULARY, rules=found) for seed in (1, 2)]
    pair = load_both(*folders, library=("large", "small"))
    assert pair.rules.applied == rules
    expected = decode(pair, "vanilla", {}, pair.limits(20))
    assert expected.tokens[0] == 7
    for mode in ("hf-greedy", "hf-assisted"):
        assert decode(pair, mode, {}, pair.limits(20)).tokens == expected.tokens


def set_ends(pair: Pair, ends: frozenset[int]) -> None:
    """The library ends a text where the checkpoint says so."""
    for model in pair.library.values():
        model.generation_config.eos_token_id = sorted(ends)


@contextmanager
def drafts() -> Iterator[list[tuple[int, list[float]]]]:
    """What the assistant drafts in each round meanwhile: the text's length before, and each draft's probability."""
    rounds: list[tuple[int, list[float]]] = []
    get_candidates = AssistedCandidateGenerator.get_candidates

    def noted(self: Any, input_ids: torch.Tensor, **options: Any) -> Any:
        candidates, logits = get_candidates(self, input_ids, **options)
        chosen = candidates[0, input_ids.shape[1] :]
        probs = [] if logits is None else logits[0].softmax(-1).gather(-1, chosen[:, None])[:, 0].tolist()
        rounds.append((input_ids.shape[1], probs))
        return candidates, logits

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AssistedCandidateGenerator, "get_candidates", noted)
        yield rounds


def drafted(pair: Pair, tokens: int, confidence: float) -> list[list[float]]:
    """Drafts' probabilities by round, apart from rounds that the length limit (30 and the start token) may cut."""
    set_ends(pair, frozenset([VOCABULARY]))  # an id that is never chosen
    how = {"assistant_tokens": tokens, "assistant_confidence": confidence}
    with drafts() as rounds:
        decode(pair, "hf-assisted", how, limits_of(30, VOCABULARY))
    return [probs for length, probs in rounds if length + tokens < 31]


@pytest.mark.parametrize("tokens", [1, 2, 5])
def test_the_token_count_reaches_the_drafting_loop_and_stays(t5: Pair, tokens: int) -> None:
    rounds = drafted(t5, tokens, 0.0)
    assert len(rounds) >= 3
    assert {len(probs) for probs in rounds} == {tokens}


def test_the_confidence_reaches_the_drafting_loop(t5: Pair) -> None:
    # Nothing is as sure as 1, so every round ends after its first draft.
    assert {len(probs) for probs in drafted(t5, 6, 1.0)} == {1}
    first = sorted(probs[0] for probs in drafted(t5, 6, 0.0))
    between = (first[0] + first[-1]) / 2
    rounds = drafted(t5, 6, between)
    assert len({len(probs) for probs in rounds}) > 1
    for probs in rounds:
        assert all(prob >= between for prob in probs[:-1])
        assert probs[-1] < between or len(probs) == 6


def test_one_points_options_do_not_reach_the_next(t5: Pair) -> None:
    first = drafted(t5, 3, 0.0)
    drafted(t5, 9, 1.0)
    assert drafted(t5, 3, 0.0) == first


# --- the clock


@contextmanager
def encoder_runs(pair: Pair) -> Iterator[list[str]]:
    """Which encoders run meanwhile: ours, by role, and the library's own by "library" and role."""
    runs: list[str] = []
    modules = {f"library {role}": model.encoder for role, model in pair.library.items()}
    hooks = [
        module.register_forward_pre_hook(lambda *_, name=name: runs.append(name)) for name, module in modules.items()
    ]
    for role, loaded in pair.models.items():
        # Our own is no module where it is compiled.
        encode = loaded.model.encode
        loaded.model.encode = lambda ids, role=role, encode=encode: (runs.append(role), encode(ids))[1]  # type: ignore
    yield runs
    for hook in hooks:
        hook.remove()
    for loaded in pair.models.values():
        del loaded.model.encode


def test_no_encoder_runs_while_a_peer_decodes(t5: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [make_point("vanilla", {}), make_point("hf-greedy", {}), make_point("hf-assisted", {})]
    set_ends(t5, frozenset([1]))
    before: list[list[str]] = []
    opened = timing.open_sessions

    def opening(*arguments: Any) -> Sessions:
        before.append(list(runs))
        return opened(*arguments)

    monkeypatch.setattr(timing, "open_sessions", opening)
    with encoder_runs(t5) as runs:
        outcomes = timing.time_text(t5, t5.tokenise(TEXTS[0], 50), points, limits_of(20))
    assert [outcome.error for outcome in outcomes] == [None] * 3
    # Each encoder once for the text, before the first point is decoded; then none any more.
    assert before == [["large", "small"]] * 3
    assert runs == ["large", "small"]
    greedy, assisted = outcomes[1], outcomes[2]
    assert outcomes[0].encode_seconds == greedy.encode_seconds
    assert assisted.encode_seconds is not None
    assert greedy.encode_seconds is not None
    assert assisted.encode_seconds > greedy.encode_seconds, "the assistant's encoding is counted too"


def test_the_assistant_drafts_what_the_small_model_writes_on_its_own_encoding(t5: Pair) -> None:
    session = t5.session("small", t5.encode("small", t5.tokenise(TEXTS[0], 50)), limits_of(30))
    token, expected = 0, []
    for _ in range(5):
        row = session.extend([token])
        token = row.argmax()[0]
        expected += row.max_prob()
    assert drafted(t5, 5, 0.0)[0] == pytest.approx(expected)


# --- by a scripted peer


class ScriptedPeer:
    def __init__(self, ids: list[int]) -> None:
        self.ids, self.asked = ids, []  # type: ignore[var-annotated]

    def generate(self, max_tokens: int, assistant: dict[str, Any] | None) -> list[int]:
        self.asked.append((max_tokens, assistant))
        return self.ids


def test_an_output_is_cut_and_counted_like_every_other() -> None:
    for ids, tokens, hit_limit in (
        ([0, 5, 6, 1, 0, 0], (5, 6, 1), False),
        ([0, 5, 6, 7, 8, 9], (5, 6, 7, 8), True),
        ([0, 5, 6, 7, 1], (5, 6, 7, 1), False),
    ):
        peer = ScriptedPeer(ids)
        found = hf_greedy(Sessions(peer=peer), None, limits_of(4), None)  # type: ignore[arg-type]
        assert (found.tokens, found.hit_limit) == (tokens, hit_limit)
        assert found.counters == Counters(generated=len(tokens))
        assert peer.asked == [(4, None)]


def test_settings_go_to_the_assistant_by_the_librarys_names() -> None:
    peer = ScriptedPeer([0, 1])
    hf_assisted(Sessions(peer=peer), AssistedSettings(7, 0.25), limits_of(4), None)  # type: ignore[arg-type]
    expected = {
        "num_assistant_tokens": 7,
        "assistant_confidence_threshold": 0.25,
        "num_assistant_tokens_schedule": "constant",
    }
    assert peer.asked == [(4, expected)]


def test_settings_out_of_range_are_refused() -> None:
    for settings, problem in (
        ({"assistant_tokens": 0}, "--assistant-tokens: 0: must be 1 or more"),
        ({"assistant_confidence": 1.1}, "--assistant-confidence: 1.1: must be a number from 0 to 1"),
    ):
        with pytest.raises(UsageError, match=problem):
            AssistedSettings(**settings)  # type: ignore[arg-type]
    assert AssistedSettings().label() == "n=20 conf=0.4"
