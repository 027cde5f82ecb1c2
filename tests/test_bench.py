"""The bench's arithmetic by hand, and one small run of every part; no time is tested."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import ceiling, commands, cpu, figures, interleave, pairs, shapes, steps, table, watch
from bench.baselines import ctranslate2_greedy, library_greedy, our_vanilla, same_tokens
from bench.figures import Figure
from bench.interleave import Text, Turn
from bild_bench.decoding.alone import AloneSettings
from bild_bench.decoding.bild import BildSettings
from bild_bench.errors import DataError
from bild_bench.measure.operations import Shape, Stack, Work

TINY = {**shapes.T5, "vocab_size": 64, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_heads": 2, "num_layers": 2}
T5_LARGE = Shape(1024, Stack(24, 1024, 4096, False), Stack(24, 1024, 4096, False), 32_128, 4, 4)
ROW = Figure("vanilla", "t5", "over x", 3.0, 2.5, 3.5, 2.0, "at least", True, "x", 2, "a|b")
VERSIONS = {"torch": "2.13.0", "transformers": "5.24.0", "ctranslate2": None}
MACHINE = {"cpu_model": "a CPU", "cores": 2, "threads": 2, "busy": None}
ENVIRONMENT: dict[str, Any] = {**VERSIONS, **MACHINE, "git_revision": "0123456789abcdef", "git_dirty": False}


def clock(monkeypatch: pytest.MonkeyPatch, *readings: float) -> None:
    """What `perf_counter` says, call by call."""
    times = iter(readings)
    monkeypatch.setattr("time.perf_counter", lambda: next(times))


@pytest.fixture
def quickening(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock on which whatever comes later takes longer: a busy machine's noise fails no test."""
    count = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(count)) ** 2)


def quiet(line: str) -> None:
    pass


def turns(*seconds: float, tokens: tuple[int, ...] = (5, 6, 1)) -> list[Turn]:
    return [Turn(value, tokens) for value in seconds]


# Figures


def test_a_figure_is_a_ratio_of_sums_with_an_interval_around_it() -> None:
    found = figures.figure("vanilla", "t5", "over x", [2.0, 4.0], [1.0, 1.0], target=3.0)
    assert (found.ratio, found.reached, found.texts) == (3.0, True, 2)
    # Either text alone gives 2 or 4: no resample lies outside.
    assert found.low is not None
    assert found.high is not None
    assert 2.0 <= found.low <= 3.0 <= found.high <= 4.0


def test_one_text_has_no_interval() -> None:
    found = figures.figure("vanilla", "t5", "over x", [2.0], [1.0])
    assert (found.ratio, found.low, found.high, found.reached) == (2.0, None, None, None)


def test_times_that_have_no_ratio_cost_one_row() -> None:
    found = figures.figure("vanilla", "t5", "over x", [2.0, 1.0], [0.0, 0.0], target=1.0)
    assert (found.ratio, found.reached, found.target) == (None, None, 1.0)
    assert "must sum to more than 0" in found.note


@pytest.mark.parametrize(
    ("value", "bound", "expected"),
    [(1.5, "at least", True), (1.49, "at least", False), (1.5, "at most", True), (1.51, "at most", False)],
)
def test_a_target_is_reached_on_the_right_side_of_it_and_on_it(value: float, bound: Any, expected: bool) -> None:
    assert figures.holds(value, 1.5, bound) is expected


def test_a_further_condition_can_only_take_a_target_away() -> None:
    assert figures.on_condition(ROW, True).reached is True
    assert figures.on_condition(ROW, False).reached is False
    assert figures.on_condition(replace(ROW, reached=None), False).reached is None


def test_figures_come_back_from_their_file_as_they_were(tmp_path: Path) -> None:
    absent = figures.missing("vanilla", "t5", "over y", "not installed", target=1.0)
    path = tmp_path / "new" / "bench.parquet"
    figures.save(path, [ROW, absent], "2026-11-29", ENVIRONMENT)
    assert figures.load(path) == ([ROW, absent], "2026-11-29", ENVIRONMENT)


def test_a_file_of_absent_figures_alone_keeps_its_types(tmp_path: Path) -> None:
    absent = figures.missing("vanilla", "t5", "over y", "not installed")
    figures.save(tmp_path / "a.parquet", [absent], "2026-11-29", ENVIRONMENT)
    assert figures.load(tmp_path / "a.parquet")[0] == [absent]


def test_what_is_no_file_of_figures_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no Parquet")
    for path in (tmp_path / "a.parquet", tmp_path / "none.parquet"):
        with pytest.raises(DataError, match=r"bench results: .*cannot be read"):
            figures.load(path)


# Interleaving


def test_every_text_meets_every_contestant_as_often_as_asked_and_the_warm_up_is_dropped() -> None:
    seen: list[tuple[str, int]] = []

    def contestant(name: str) -> Callable[[Text], Turn]:
        def turn(text: Text) -> Turn:
            seen.append((name, text.ids[0]))
            return Turn(float(len(seen)), (text.ids[0],))

        return turn

    texts = [Text((number,)) for number in range(8)]
    found = interleave.interleave(texts, {n: contestant(n) for n in "abc"}, seed=0, repeats=3, pause=0.0)
    assert seen[:3] == [("a", 0), ("b", 0), ("c", 0)], "warm-up"
    timed = seen[3:]
    assert len(timed) == 8 * 3 * 3
    rounds = [timed[start : start + 3] for start in range(0, len(timed), 3)]
    assert all(sorted(name for name, _ in taken) == ["a", "b", "c"] for taken in rounds)
    assert [taken[0][1] for taken in rounds] == [number for number in range(8) for _ in range(3)]
    assert len({tuple(name for name, _ in taken) for taken in rounds}) > 3, "orders vary"
    assert [turn.tokens for turn in found["b"]] == [(number,) for number in range(8)]


def test_a_turn_is_the_median_of_its_repeats() -> None:
    seconds = iter([9.0, 5.0, 1.0, 2.0])  # the first is the warm-up
    found = interleave.interleave([Text((1,))], {"a": lambda text: Turn(next(seconds))}, seed=0, repeats=3, pause=0.0)
    assert found == {"a": [Turn(2.0)]}


def test_the_cost_of_the_first_token_is_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def generate(tokens: int) -> list[int]:
        asked.append(tokens)
        return [7] * tokens

    clock(monkeypatch, 10.0, 11.0, 20.0, 23.5)
    assert interleave.marginal(generate, 4) == Turn(2.5, (7, 7, 7, 7))
    assert asked == [1, 4]


def test_noise_makes_no_negative_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock(monkeypatch, 0.0, 2.0, 2.0, 3.0)
    assert interleave.marginal(lambda tokens: [1], 4).seconds == 0.0


def test_a_text_is_prepared_once_until_the_next_one_comes() -> None:
    count = itertools.count()
    prepared = interleave.once_a_text(lambda text: next(count))
    first, second = Text((1,)), Text((2,))
    assert [prepared(text) for text in (first, first, second, second, first)] == [0, 0, 1, 1, 2]


# The limit


def test_the_weights_of_a_t5_large_step_are_those_of_its_matrices() -> None:
    # 24 layers of 6 attention matrices and 2 of the feed-forward layer, the output projection, one row of embedding.
    elements = 24 * (6 * 1024**2 + 2 * 1024 * 4096) + 1024 * 32_128 + 1024
    work = ceiling.one_token(T5_LARGE)
    assert work.weight_bytes == 4 * elements == 1_540_886_528
    # Two operations a weight, and its own key as the only one to look at.
    assert work.flops == 2 * (elements - 1024) + 24 * 4 * 1024


def test_the_slower_of_memory_and_arithmetic_is_the_limit() -> None:
    work = Work(flops=200, weight_bytes=100)
    assert ceiling.limit_seconds(work, seconds_a_byte=0.5, flops_a_second=10.0) == 50.0
    assert ceiling.limit_seconds(work, seconds_a_byte=0.1, flops_a_second=10.0) == 20.0


def test_the_limit_is_measured_on_an_array_of_any_size() -> None:
    for size in (1, 1 << 16):
        assert ceiling.memory_reader(size)() > 0


# Rows


def test_vanilla_is_held_against_everyone_over_the_same_texts() -> None:
    everyone = {
        steps.OURS: turns(1.0, 3.0),
        steps.LIBRARY: turns(4.0, 4.0),
        "CTranslate2 float32": turns(1.0, 2.0, tokens=(5, 7)),
        # A step of 0.5 seconds; of three tokens the last two are timed.
        steps.LIMIT: [Turn(0.5), Turn(0.5)],
    }
    rows = steps.vanilla_rows("t5-large", everyone, {"int8": "not there"}, frozenset({1}))
    assert [(row.contestant, row.ratio, row.target, row.reached) for row in rows] == [
        ("over transformers generate", 2.0, 2.0, True),
        ("over CTranslate2 float32", 0.75, 1.0, False),
        ("over CTranslate2 int8", None, None, None),
        ("of machine's limit", 2.0, 1.25, False),
    ]
    assert rows[0].note == "same tokens on 2 of 2 texts"
    assert rows[1].note == "same tokens on 0 of 2 texts"
    assert rows[2].note == "not there"
    assert rows[3].note == "1000.00 ms a token, limit 500.00 ms"


def test_the_end_token_does_not_tell_outputs_apart() -> None:
    found = {"ours": turns(1.0, tokens=(5, 6, 1)), "other": turns(1.0, tokens=(5, 6)), "third": turns(1.0, tokens=(5,))}
    assert same_tokens(found, "ours", frozenset({1})) == {"other": 1, "third": 0}


def test_the_fastest_point_that_loses_little_enough_is_picked() -> None:
    slow, fast, lossy = BildSettings(0.9, 1.0), BildSettings(0.7, 2.0), BildSettings(0.1, 4.0)
    points = [pairs.Swept(slow, 3.0, 40.0), pairs.Swept(fast, 2.0, 39.0), pairs.Swept(lossy, 1.0, 30.0)]
    assert pairs.pick(points, 40.0) == slow
    assert pairs.pick(points, 39.0) == fast
    assert pairs.pick(points, 40.1) is None


def pair_turns(settings: BildSettings) -> dict[str, list[Turn]]:
    slow, fast = (one.label() for one in pairs.ASSISTED)
    return {
        pairs.VANILLA: turns(4.0, 4.0),
        slow: turns(9.0, 9.0),
        fast: turns(6.0, 4.0),
        settings.label(): turns(2.0, 2.0),
    }


def test_bild_is_held_against_the_faster_assisted_generation_and_our_vanilla() -> None:
    settings = BildSettings(0.5, 2.0)
    found, bleus = pair_turns(settings), dict.fromkeys(pair_turns(settings), 40.0)
    rows = pairs.pair_rows("pair", {0.0: settings, 1.0: None}, found, bleus, "small model: own")
    assert [(row.ratio, row.target, row.reached) for row in rows] == [
        (2.5, 2.0, True),
        (2.0, 1.85, True),
        (None, 2.12, None),
    ]
    assert rows[0].note == "fb=0.5 rb=2 over n=5 conf=0; BLEU 40.00 against 40.00; small model: own"


def test_a_gain_that_costs_too_much_quality_reaches_no_target() -> None:
    settings = BildSettings(0.5, 2.0)
    found = pair_turns(settings)
    bleus = {**dict.fromkeys(found, 40.0), settings.label(): 39.5}
    rows = pairs.pair_rows("pair", {0.0: settings, 1.0: settings}, found, bleus, "")
    assert [(row.ratio, row.reached) for row in rows] == [(2.5, False), (2.0, False), (2.0, False)]
    assert "BLEU 39.50 against 40.00" in rows[1].note
    # 2.0x is below 2.12x, whatever the quality; with a lower time the point within one BLEU counts.
    found[settings.label()] = turns(1.0, 1.0)
    assert [row.reached for row in pairs.pair_rows("pair", {0.0: settings, 1.0: settings}, found, bleus, "")] == [
        False,
        False,
        True,
    ]


def test_time_inside_is_that_of_passes_and_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rows:
        def __len__(self) -> int:
            return 2

        def last(self) -> Rows:
            return self

        def argmax(self) -> list[int]:
            return [3, 4]

        def max_prob(self) -> list[float]:
            return [0.5, 0.25]

        def logprob(self, tokens: Any, first: int = 0) -> list[float]:
            return [-1.0]

    class Session:
        length = 5

        def extend(self, tokens: Any) -> Rows:
            return Rows()

    inside = watch.Inside()
    clock(monkeypatch, 0.0, 1.0, 10.0, 12.0, 20.0, 24.0, 30.0, 38.0)
    rows = watch.WatchedSession(Session(), inside).extend([1, 2])
    last = rows.last()
    found = last.argmax(), last.max_prob(), last.logprob([3]), len(last)
    assert found == ([3, 4], [0.5, 0.25], [-1.0], 2)
    assert inside.seconds == 1.0 + 2.0 + 4.0 + 8.0


# The page


def test_the_table_has_a_line_a_figure_with_units_and_escaped_bars() -> None:
    share = Figure("outside", "t5", "vanilla", 0.0314, None, None, 0.03, "at most", False, "share", 2, "")
    lines = table.markdown([ROW, share, figures.missing("a", "b", "c", "why")], "2026-11-29", ENVIRONMENT).splitlines()
    assert lines[0] == (
        "Measured 2026-11-29 on a CPU, 2 cores; 2 threads; float32, torch 2.13.0, transformers 5.24.0; "
        "commit 0123456789."
    )
    assert lines[4] == "| vanilla | t5 | over x | 3.00x | 2.50x to 3.50x | at least 2.00x | yes | a\\|b |"
    assert lines[5] == "| outside | t5 | vanilla | 3.1 % |  | at most 3.0 % | no |  |"
    assert lines[6] == "| a | b | c | not measured |  |  |  | why |"


def test_a_busy_machine_is_told_above_the_table() -> None:
    assert table.described("d", {**ENVIRONMENT, "busy": "The machine was busy."}).endswith(" **The machine was busy.**")


def test_only_what_lies_between_the_markers_is_rewritten() -> None:
    page = f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n"
    once = table.rewritten(page, "new")
    assert once == f"before\n{table.BEGIN}\nnew\n{table.END}\nafter\n"
    assert table.rewritten(once, "new") == once
    with pytest.raises(DataError, match="lacks the markers"):
        table.rewritten("no markers", "new")


def test_the_projects_own_page_has_the_markers() -> None:
    page = Path(__file__).resolve().parents[1] / table.PAGE
    assert "\nnew\n" in table.rewritten(page.read_text(encoding="utf-8"), "new")


def test_the_newest_file_is_shown_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table.PAGE.parent.mkdir()
    table.PAGE.write_text(f"{table.BEGIN}\n{table.END}")
    assert table.main([]) == 3
    for name, shape in (("20261128T000000Z", "old"), ("20261129T000000Z", "new")):
        figures.save(table.RESULTS / f"{name}.parquet", [replace(ROW, shape=shape)], "2026-11-29", ENVIRONMENT)
    assert table.main([]) == 0
    assert "| vanilla | new |" in table.PAGE.read_text()


# Small runs


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> shapes.Subject:
    folder = tmp_path_factory.mktemp("bench")
    return shapes.random_subject("tiny", folder, TINY, count=2, length=6, tokens=5, announce=quiet)


@pytest.fixture(scope="module")
def embedded() -> shapes.Subject:
    return shapes.embedded_subject(4, quiet)


def test_a_random_checkpoint_is_made_once(tmp_path: Path) -> None:
    folder = shapes.random_checkpoint(tmp_path / "tiny", TINY)
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert shapes.random_checkpoint(folder, TINY) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before


def test_nobody_may_leave_out_rows_of_a_random_shapes_head(tiny: shapes.Subject) -> None:
    assert steps.shape_of_large(tiny).vocabulary == TINY["vocab_size"]


def test_random_texts_are_known_ids_with_the_end_token_last() -> None:
    texts = shapes.random_texts(3, 6, 64, seed=0)
    assert texts == shapes.random_texts(3, 6, 64, seed=0)
    assert len(set(texts)) == 3
    for text in texts:
        assert len(text.ids) == 6
        assert text.ids[-1] == shapes.END
        assert all(shapes.UNKNOWN < token < 64 for token in text.ids[:-1])


def test_with_random_weights_everyone_writes_as_many_tokens_and_the_same_ones(tiny: shapes.Subject) -> None:
    for text in tiny.texts:
        ours, library = our_vanilla(tiny)(text).tokens, library_greedy(tiny)(text).tokens
        assert len(ours) == tiny.tokens
        assert ours == library


def test_ctranslate2_writes_the_same_tokens(tiny: shapes.Subject, embedded: shapes.Subject, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="an optional yardstick")
    for subject in (tiny, embedded):
        contestant = ctranslate2_greedy(subject, tmp_path, 1, "float32", quiet)
        assert not isinstance(contestant, str), contestant
        found = {"ctranslate2": [], "ours": []}  # type: dict[str, list[Turn]]
        for text in subject.texts:
            found["ctranslate2"].append(contestant(text))
            found["ours"].append(our_vanilla(subject)(text))
        assert same_tokens(found, "ours", subject.ends) == {"ctranslate2": len(subject.texts)}
        assert not subject.fixed or len(found["ctranslate2"][0].tokens) == subject.tokens


@pytest.mark.usefixtures("quickening")
def test_without_ctranslate2_its_rows_say_why(
    tiny: shapes.Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    rows = steps.vanilla_figures(tiny, tmp_path, 1, quiet)
    assert [row.contestant for row in rows if row.ratio is None] == [
        "over CTranslate2 float32",
        "over CTranslate2 int8",
    ]
    assert all("not installed" in row.note for row in rows if row.ratio is None)
    assert all(row.ratio > 0 for row in rows if row.ratio is not None)
    assert rows[0].note == "same tokens on 2 of 2 texts"


@pytest.mark.usefixtures("quickening")
def test_steps_and_the_time_outside_are_measured_on_a_small_shape(tiny: shapes.Subject) -> None:
    rows = steps.verification_figures(tiny, quiet)
    assert [row.contestant for row in rows] == [steps.OURS, "transformers' modules"]
    assert all(row.ratio is not None and row.ratio > 0 for row in rows)
    (outside,) = steps.outside_figures(tiny, "vanilla", AloneSettings(), quiet)
    assert (outside.unit, outside.texts) == ("share", 2)
    assert outside.ratio is not None
    assert 0 < outside.ratio < 1


def test_a_trained_pair_is_swept_and_measured_on_other_texts(
    embedded: shapes.Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything_by_the_large_model = BildSettings(1.0, 2.0)
    monkeypatch.setattr(pairs, "GRID", (everything_by_the_large_model,))
    rows = pairs.pair_figures(embedded, 2, {}, quiet)
    assert [row.contestant for row in rows] == [
        "over transformers assisted generation",
        "over our vanilla, no loss",
        "over our vanilla, a loss of 1 at most",
    ]
    for row in rows:
        # The text's own large model at every token: vanilla's BLEU, on the two texts that were not swept.
        assert row.texts == 2
        left, right = row.note.partition("BLEU ")[2].partition(";")[0].split(" against ")
        assert left == right


def test_settings_that_are_given_are_not_looked_for(embedded: shapes.Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "_swept", None)
    given = {0.0: BildSettings(0.9, 1.0), 1.0: BildSettings(0.5, 2.0)}
    rows = pairs.pair_figures(embedded, 2, given, quiet)
    assert [row.note.partition(";")[0] for row in rows[1:]] == ["fb=0.9 rb=1", "fb=0.5 rb=2"]


def test_commands_that_fail_leave_rows_that_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_COMMAND", (sys.executable, "-c", "import sys; sys.exit('broken: no')"))
    rows = commands.command_figures(tmp_path, quiet)
    assert [(row.name, row.ratio, row.note) for row in rows] == [
        ("--help", None, "broken: no"),
        ("report on 100 experiments", None, "broken: no"),
    ]


def test_commands_are_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_RUNS", 1)
    rows = commands.command_figures(tmp_path, quiet, experiments=2)
    assert [row.name for row in rows] == ["--help", "report on 2 experiments"]
    assert all(row.ratio is not None and row.unit == "s" for row in rows), rows
    assert not list(tmp_path.iterdir())


# The whole


def test_a_busy_machine_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cpu, "load_average", lambda: 0.8)
    assert cpu.main([]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "a load of 0.8" in printed.err
    assert "--force" in printed.err


def test_what_is_measured_is_kept_when_a_later_part_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def part(name: str, *_: object) -> list[Figure]:
        if name == "embedded":
            raise DataError("model", name, "is damaged", "restore it")
        return [replace(ROW, shape=name)]

    loads = iter([0.0, 2.9])
    monkeypatch.setattr(cpu, "load_average", lambda: next(loads))
    monkeypatch.setattr(cpu, "_part", part)
    assert cpu.main(["--only", "t5-small", "embedded", "--out", str(tmp_path), "--threads", "2"]) == 3
    found, _, environment = figures.load(table.newest(tmp_path))
    assert [row.shape for row in found] == ["t5-small"]
    # Of a load of 2.9 two are our own threads.
    assert "a load of 0.9" in environment["busy"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--pair-large", "a"], "needs --pair-small"),
        (["--pair-small", "a"], "needs --pair-small"),
        (["--pair-large", "a", "--pair-small", "b"], "needs texts"),
    ],
)
def test_half_a_pair_is_refused(
    options: list[str], problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cpu, "load_average", lambda: 0.0)
    assert cpu.main(options) == 2
    assert problem in capsys.readouterr().err


def test_a_run_writes_figures_that_the_table_can_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "load_average", lambda: 0.8)
    monkeypatch.setattr(cpu, "RANDOM_SHAPES", {"t5-small": TINY})
    monkeypatch.setattr(cpu, "_TEXTS", {"t5-small": 2})
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    folders = ["--bench-dir", str(tmp_path / "cache"), "--out", str(tmp_path)]
    assert cpu.main(["--only", "t5-small", "trained", "--threads", "1", "--force", *folders]) == 0
    found, _, environment = figures.load(table.newest(tmp_path))
    assert {row.shape for row in found} == {"t5-small", "trained pair"}
    assert found[-1].note == "no pair was given: --pair-large, --pair-small and --data"
    assert "load of 0.8" in environment["busy"]
    assert environment["threads"] == 1
    assert environment["options"]["forced"] is True
