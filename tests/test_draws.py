"""A text's draw depends on its seed, its id and its number: on no other text, point or draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bild_bench import results
from bild_bench.decoding.picking import Greedy, Sampling
from bild_bench.decoding.sampling import Sampler
from bild_bench.errors import UsageError
from bild_bench.experiment import run_experiment
from bild_bench.plan import Point, make_point, with_baseline
from tests.made_data import jsonl
from tests.made_experiments import TEXTS, figures_by_hand, request

HOW = Sampling(temperature=1.6, top_p=0.95)
# Every method that can draw, each with settings that make it take both of its ways.
MANY = with_baseline(
    [
        make_point("bild", {"alpha_fb": 0.6}),
        make_point("speculative", {"gamma": 3}),
        make_point("small", {}),
        make_point("oracle", {}),
        make_point("calm", {"threshold": 0.5}),
        make_point("bild-early-exit", {"alpha_fb": 0.3}),
    ]
)
ALONE = [MANY[2]]

Key = tuple[str, int, str]


def outputs(out: Path, points: list[Point], texts: Any = None, **fields: Any) -> dict[Key, tuple[int, ...]]:
    """Output ids by text, draw and point; four of the embedded texts, twice, unless told otherwise."""
    asked = {"sampling": HOW, "draws": 2, **({"limit": 4} if texts is None else {}), **fields}
    directory = run_experiment(request(texts, out, **asked), points)
    rows: Any = results.read(directory).samples
    assert set(rows.status) == {"ok"}
    return {(row.text_id, row.draw, row.point): tuple(map(int, row.output_ids)) for row in rows.itertuples()}


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> dict[Key, tuple[int, ...]]:
    return outputs(tmp_path_factory.mktemp("all") / "out", MANY)


def test_draws_do_not_depend_on_which_other_texts_and_points_ran(everything: Any, tmp_path: Path) -> None:
    assert len(everything) == 4 * 2 * len(MANY)
    fewer_texts = outputs(tmp_path / "fewer", MANY, limit=2)
    assert len(fewer_texts) == 2 * 2 * len(MANY)
    assert fewer_texts.items() <= everything.items()
    one_point = outputs(tmp_path / "alone", ALONE)
    assert len(one_point) == 4 * 2
    assert one_point.items() <= everything.items()


def test_draws_do_not_depend_on_how_many_there_are_or_on_the_warm_up(everything: Any, tmp_path: Path) -> None:
    once = outputs(tmp_path / "once", ALONE, draws=1, warmup=1)
    assert len(once) == 4
    assert once.items() <= everything.items()


def test_draws_differ_from_one_another_and_from_greedy_search(everything: Any, tmp_path: Path) -> None:
    first, second = ({key: ids for key, ids in everything.items() if key[1] == draw} for draw in (0, 1))
    changed = [ids != second[text, 1, point] for (text, _, point), ids in first.items()]
    assert sum(changed) > len(changed) / 2
    greedy = outputs(tmp_path / "greedy", ALONE, sampling=None, draws=1)
    assert greedy.keys() <= first.keys()
    assert any(ids != first[key] for key, ids in greedy.items())


def test_another_seed_draws_other_texts(tmp_path: Path) -> None:
    texts = str(jsonl(tmp_path / "texts.jsonl", TEXTS))
    zero, one = (outputs(tmp_path / str(seed), ALONE, texts, seed=seed, draws=1) for seed in (0, 1))
    assert zero.keys() == one.keys()
    assert sum(zero[key] != one[key] for key in zero) > len(TEXTS) / 2


def test_every_row_says_which_draw_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = figures_by_hand(monkeypatch)
    texts = jsonl(tmp_path / "texts.jsonl", TEXTS)
    points = with_baseline([make_point("bild", {})])
    directory = run_experiment(request(texts, tmp_path / "out", sampling=HOW, draws=3), points)
    rows: Any = results.read(directory).samples
    assert len(rows) == len(TEXTS) * 3 * 2
    for _, of_text in rows.groupby("text_id"):
        assert sorted(zip(of_text.draw, of_text.role, strict=True)) == [
            (draw, role) for draw in range(3) for role in ("baseline", "point")
        ]
    assert results.read(directory).run.configuration["draws"] == 3
    assert len(orders) == len(TEXTS) * 3
    assert len({tuple(order) for order in orders}) == 2, "the order is drawn anew each time"


def test_the_seed_is_part_of_a_drawn_points_identity_and_of_no_other(tmp_path: Path, monkeypatch: Any) -> None:
    figures_by_hand(monkeypatch)
    texts = jsonl(tmp_path / "texts.jsonl", TEXTS)

    def point_ids(name: str, **fields: Any) -> list[str]:
        directory = run_experiment(request(texts, tmp_path / name, **fields), ALONE)
        return [point["point_id"] for point in results.read(directory).run.points]

    assert point_ids("greedy 0", seed=0) == point_ids("greedy 1", seed=1)
    made = [
        point_ids("a", seed=0, sampling=HOW),
        point_ids("b", seed=1, sampling=HOW),
        point_ids("c", seed=0, sampling=Sampling()),
        point_ids("d", seed=0),
    ]
    assert len({tuple(ids) for ids in made}) == 4
    assert point_ids("e", seed=0, sampling=HOW, draws=2) == made[0], "the number of draws changes no draw"


def test_the_warm_up_draws_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures_by_hand(monkeypatch)
    from bild_bench import passes

    seen: list[type] = []
    by_hand = passes.time_text

    def watched(pair: Any, source: Any, points: Any, limits: Any, pickers: Any) -> Any:
        seen.append(type(pickers()))
        return by_hand(pair, source, points, limits)

    monkeypatch.setattr(passes, "time_text", watched)
    texts = jsonl(tmp_path / "texts.jsonl", TEXTS[:2])
    run_experiment(request(texts, tmp_path / "drawn", sampling=HOW, warmup=1), ALONE)
    run_experiment(request(texts, tmp_path / "greedy", warmup=1), ALONE)
    assert seen == [Sampler] * 3 + [Greedy] * 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"draws": 0}, r"--draws: 0: must be 1 or more"),
        ({"draws": 2}, r"--draws: 2: greedy search gives the same text each time; add --top-p"),
    ],
)
def test_draws_that_make_no_sense_are_refused(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        request(None, tmp_path, **fields)
