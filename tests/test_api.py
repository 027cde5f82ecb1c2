"""The interface for notebooks: load a pair, decode a text, run an experiment."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import torch

import bild_bench
from bild_bench import generate, load_pair, run
from bild_bench.api import Generated
from bild_bench.data import EMBEDDED_FOLDER
from bild_bench.decoding.records import Counters
from bild_bench.errors import UsageError

SOURCES = [json.loads(line)["source"] for line in (EMBEDDED_FOLDER / "de_en.jsonl").read_text("utf-8").splitlines()]
PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def pair() -> Any:
    return load_pair(aligned=False)


@pytest.fixture(scope="module")
def many(pair: Any) -> list[Generated]:
    """Texts with every kind of token: thresholds under which both fallbacks and rollbacks are frequent."""
    return [generate(pair, source, alpha_fb=0.4, alpha_rb=0.5) for source in SOURCES[:20]]


def test_the_five_lines_of_the_readme_work(tmp_path: Path) -> None:
    pair = load_pair("iwslt17")
    generated = generate(pair, "Zwei Hunde tragen einen roten Schuh über die Wiese.", alpha_fb=0.5, alpha_rb=2)
    experiment = run("iwslt17", settings={"alpha_fb": 0.5}, limit=2, warmup=0, threads=1, out=tmp_path / "out")
    assert generated.text
    assert generated.text.isprintable()
    assert len(generated.tokens) == generated.counters.generated
    assert experiment.directory == tmp_path / "out"
    assert list(experiment.samples.point) == ["vanilla", "bild fb=0.5 rb=2"] * 2


def test_an_experiment_may_do_without_a_baseline(tmp_path: Path) -> None:
    request: dict[str, Any] = {"limit": 1, "warmup": 0, "threads": 1, "out": tmp_path / "out"}
    assert list(run("iwslt17", "small", baseline=False, **request).samples.point) == ["small"]


def test_settings_may_stand_beside_options_for_several_modes(tmp_path: Path) -> None:
    request: dict[str, Any] = {"limit": 1, "warmup": 1, "threads": 1, "out": str(tmp_path / "out")}
    before = torch.get_num_threads()
    experiment = run("iwslt17", "bild,small", alpha_fb=0.4, settings={"alpha_rb": 3}, **request)
    assert list(experiment.samples.point) == ["vanilla", "bild fb=0.4 rb=3", "small"]
    assert experiment.run.environment["threads"] == 1
    # The notebook goes on with its own.
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        (
            "bild",
            {"alpha_fbb": 0.5},
            "run: 'alpha_fbb': not known .allowed: .*alpha_fb.*limit.*; did you mean 'alpha_fb'",
        ),
        ("small", {"alpha_fb": 0.5}, "--alpha-fb: 0.5: does not apply to --mode small"),
        ("bild", {"alpha_fb": 0.5, "settings": {"alpha_fb": 0.6}}, "alpha_fb: 0.5: is given twice"),
        ("bild,smal", {}, "--mode: 'smal': not known"),
        (["bild"], {}, "mode: .'bild'.: must be a method's name"),
        ("bild", {"out": ""}, "--out: '': is empty"),
        ("bild", {"seed": 2**32}, "--seed: 4294967296: must be"),
    ],
)
def test_an_experiment_that_cannot_be_is_refused(mode: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run("iwslt17", mode, **options)


def test_the_kept_pieces_join_to_the_text_and_the_tokens(many: list[Generated]) -> None:
    for generated in many:
        kept = [piece for piece in generated.pieces if piece.step.kept]
        assert tuple(piece.step.token for piece in kept) == generated.tokens
        assert [piece.step.position for piece in kept] == list(range(len(kept)))
        assert generated.hit_limit or kept[-1].text == "</s>"
        assert "".join(piece.text for piece in kept[:-1]) == generated.text


def test_a_token_in_the_place_of_a_first_one_that_was_cut_starts_the_text(pair: Any) -> None:
    # Every draft is tested at once, and none is certain enough for a threshold of zero.
    generated = generate(pair, SOURCES[0], alpha_fb=0, alpha_rb=0, max_draft=1)
    kept = [piece.text for piece in generated.pieces if piece.step.kept]
    assert (generated.pieces[0].step.position, generated.pieces[0].step.kept) == (0, False)
    assert "".join(kept[:-1]) == generated.text


def test_pieces_that_were_rolled_back_have_a_text_of_their_own(many: list[Generated]) -> None:
    cut = [piece for generated in many for piece in generated.pieces if not piece.step.kept]
    assert cut
    assert all(piece.step.author == "S" and piece.step.small_max_prob is not None for piece in cut)
    assert all(piece.text for piece in cut)


def test_counters_say_the_same_as_the_trace(many: list[Generated]) -> None:
    for generated in many:
        counters, steps = generated.counters, [piece.step for piece in generated.pieces]
        assert counters.drafted == sum(step.author == "S" for step in steps)
        assert counters.large_tokens == sum(step.author == "L" for step in steps)
        assert counters.discarded == sum(not step.kept for step in steps)
        # A rollback cuts a run of tokens, and the large model's own follows it.
        runs = [kept for kept, _ in groupby(steps, key=lambda step: step.kept)]
        assert counters.rollbacks == runs.count(False)


def test_thresholds_at_their_ends_are_the_models_alone(pair: Any) -> None:
    for source in SOURCES[:4]:
        vanilla, small = generate(pair, source, "vanilla"), generate(pair, source, "small")
        assert generate(pair, source, alpha_fb=1).tokens == vanilla.tokens
        assert generate(pair, source, alpha_fb=0).tokens == small.tokens
        assert {piece.step.author for piece in vanilla.pieces} == {"L"}
        assert {piece.step.author for piece in small.pieces} == {"S"}


def test_a_tasks_limits_hold(pair: Any, tmp_path: Path) -> None:
    task = (PROJECT / "tasks" / "iwslt17.yaml").read_text("utf-8")
    short = task.replace("target_limit: 128", "target_limit: 3").replace("source_limit: 1024", "source_limit: 8")
    (tmp_path / "short.yaml").write_text(short, "utf-8")
    cut = generate(pair, SOURCES[0], "vanilla", task=str(tmp_path / "short.yaml"))
    assert (len(cut.tokens), cut.hit_limit, cut.source_truncated) == (3, True, True)
    whole = generate(pair, SOURCES[0], "vanilla")
    assert (whole.hit_limit, whole.source_truncated) == (False, False)


def test_a_generated_text_as_json_values_holds_all_of_it(many: list[Generated]) -> None:
    generated = many[0]
    read = json.loads(json.dumps(generated.as_dict()))
    assert read["text"] == generated.text
    assert tuple(read["tokens"]) == generated.tokens
    assert read["counters"] == generated.counters.as_dict()
    assert (read["hit_limit"], read["source_truncated"]) == (False, False)
    names = ["text", "position", "token", "author", "kept", "small_max_prob", "large_nll"]
    assert [list(step) for step in read["trace"]] == [names] * len(generated.pieces)
    assert [step["text"] for step in read["trace"]] == [piece.text for piece in generated.pieces]


def test_a_model_that_is_not_needed_is_not_loaded() -> None:
    small = load_pair(roles=("small",))
    assert set(small.models) == {"small"}
    assert generate(small, SOURCES[0], "small").text


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((" \n",), {}, "TEXT: .* is empty"),
        (("Hallo", "bilt"), {}, "--mode: 'bilt': not known .* did you mean 'bild'"),
        (("Hallo", "small"), {"alpha_fb": 0.5}, "--alpha-fb: 0.5: does not apply to --mode small"),
        (("Hallo",), {"alpha_fb": 2}, "--alpha-fb: 2.0: must be a number from 0 to 1"),
        (("Hallo",), {"task": "iwslt18"}, "--task: 'iwslt18': not known"),
        ((None,), {}, "TEXT: .*: must be a string"),
        ((["Hallo"],), {}, "TEXT: .*: must be a string"),
        (("Hallo", 5), {}, "--mode: 5: not known"),
        (("Hallo",), {"alpha_fb": "0.5"}, "--alpha-fb: '0.5': is of type str .allowed: a number"),
        (("Hallo",), {"sampling": True}, "sampling: True: must be a Sampling or None"),
        (("Hallo", "hf-greedy"), {}, "mode: 'hf-greedy': needs models that are not loaded .*library_roles=.'large',"),
    ],
)
def test_what_cannot_be_is_refused(
    pair: Any, arguments: tuple[str, ...], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        generate(pair, *arguments, **settings)


def test_what_is_no_pair_is_refused() -> None:
    with pytest.raises(UsageError, match=r"pair: .*: must be what load_pair returned"):
        generate(None, "Hallo")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"roles": ("big",)}, "roles: .* .allowed: large, small."),
        ({"roles": "large"}, "roles: 'large': must be a list"),
        ({"roles": ()}, "roles: .*: must be a list"),
        ({"roles": ("small",), "library_roles": ("large",)}, "library_roles: .* .allowed: small."),
        ({"large": 5}, "--large: 5: is of type int .allowed: a folder or a hub id"),
        ({"preset": 5}, "--preset: 5: not known"),
    ],
)
def test_a_pair_that_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_pair(**options)


def test_a_method_whose_model_is_not_loaded_says_how_to_load_it() -> None:
    small = load_pair(roles=("small",))
    with pytest.raises(
        UsageError, match=r"mode: 'bild': .*loaded: small\); use load_pair\(..., roles=\('large', 'small'\)"
    ):
        generate(small, "Hallo")


def test_a_folder_may_be_a_path() -> None:
    folder = PROJECT / "bild_bench" / "embedded" / "small"
    pair = load_pair(small=folder, roles=("small",))
    assert pair.label == "small"
    assert pair.models["small"].checkpoint.path == folder


def test_unknown_source_tokens_are_counted(pair: Any) -> None:
    known, unknown = (generate(pair, text, "small") for text in (SOURCES[0], "Ein \N{DOG FACE}"))
    assert (known.unknown_source_tokens, unknown.unknown_source_tokens) == (0, 1)
    assert unknown.remarks == ("1 source token unknown to the tokenizer",)


def test_the_package_names_its_interface_and_nothing_else() -> None:
    names = ["__version__", "compare", "generate", "load_pair", "report", "run", "sweep", "tune"]
    assert dir(bild_bench) == sorted(bild_bench.__all__) == names
    assert all(callable(getattr(bild_bench, name)) for name in names[1:])
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bild_bench.nothing  # noqa: B018


def test_a_pair_and_a_generated_text_are_one_short_line(pair: Any) -> None:
    # The shapes of the pair may be changed by training it anew.
    shown = re.sub(r"\d+\.\d", "N", repr(pair))
    assert shown == "Pair('embedded', large N M (native), small N M (native), cpu, float32)"
    assert re.sub(r"\d+\.\d", "N", repr(pair.models["small"])).endswith(", N M parameters, native)")
    counted = Counters(generated=2, large_calls=1, small_calls=3, rollbacks=1)
    generated = Generated("a\nb" * 40, (5, 1), counted, (), False, False)
    text = "a\\nb" * 19 + "a\\n…"
    assert repr(generated) == f"Generated('{text}', 2 tokens, 1 large and 3 small calls, 1 rollbacks)"
