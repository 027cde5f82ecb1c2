"""Several small models in one sweep: each point with the model that it names, and the baseline once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from bild_bench import results
from tests.checkpoints import save_t5
from tests.command_line import QUICK, call
from tests.made_data import jsonl

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
ROWS = [{"source": "the dog runs near a tree", "target": "a cat"}, {"source": "a man reads", "target": "the child"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A large model and three small ones, two of which have the same name and one the same weights."""
    made = tmp_path_factory.mktemp("models")
    save_t5(made / "large", seed=1, num_decoder_layers=3)
    save_t5(made / "one", seed=2)
    save_t5(made / "two", seed=3, d_model=16, num_decoder_layers=1)
    save_t5(made / "deeper" / "one", seed=4)
    shutil.copytree(made / "one", made / "copy")
    jsonl(made / "texts.jsonl", ROWS)
    return made


def sweep(folder: Path, out: Path, smalls: str, *more: str) -> Any:
    data = ("--task", "custom", "--data", str(folder / "texts.jsonl"), "--large", str(folder / "large"))
    small = ",".join(str(folder / name) for name in smalls.split(",") if name)
    return call("sweep", *data, "--small", small + "," * smalls.endswith(","), *QUICK, "--out", out, *more)


def ids(directory: Path) -> dict[tuple[str, str], list[int]]:
    samples: Any = results.read(directory).samples
    assert set(samples.status) == {"ok"}
    return {(row.point, row.text_id): list(map(int, row.output_ids)) for row in samples.itertuples()}


def test_each_point_is_decoded_with_the_small_model_that_it_names(folder: Path, tmp_path: Path) -> None:
    modes = ("--mode", "bild,small,calm", "--alpha-fb", "0.2,0.6")
    assert sweep(folder, tmp_path / "both", "one,two", *modes).code == 0
    both = ids(tmp_path / "both")
    names = [point["point"] for point in results.read_run(tmp_path / "both").points]
    assert names == [
        "vanilla",
        "bild fb=0.2 rb=2 small=one",
        "bild fb=0.2 rb=2 small=two",
        "bild fb=0.6 rb=2 small=one",
        "bild fb=0.6 rb=2 small=two",
        "small small=one",
        "small small=two",
        "calm softmax lambda=0.9",
    ]
    # The same as with each small model alone.
    for name in ("one", "two"):
        assert sweep(folder, tmp_path / name, name, *modes).code == 0
        alone = ids(tmp_path / name)
        assert len(alone) == 2 * 5
        assert all(
            tokens == both[point if ("vanilla" in point or "calm" in point) else f"{point} small={name}", text]
            for (point, text), tokens in alone.items()
        )
    texts = {text for _, text in both}
    assert all(both["small small=one", text] != both["small small=two", text] for text in texts)
    run = results.read_run(tmp_path / "both")
    assert set(run.calibration) >= {"large", "small:one", "small:two"}
    assert run.models["small:one"]["fingerprint"] != run.models["small:two"]["fingerprint"]


def test_the_baseline_has_the_same_identity_beside_any_small_model(folder: Path, tmp_path: Path) -> None:
    for name in ("one", "two", "one,two"):
        assert sweep(folder, tmp_path / name, name, "--mode", "small").code == 0
    runs = [results.read_run(tmp_path / name).points for name in ("one", "two", "one,two")]
    assert len({points[0]["point_id"] for points in runs}) == 1
    assert [point["point_id"] for point in runs[2][1:]] == [runs[0][1]["point_id"], runs[1][1]["point_id"]]


def test_small_models_of_the_same_name_are_told_apart_by_their_whole_path(folder: Path, tmp_path: Path) -> None:
    assert sweep(folder, tmp_path / "out", "one,deeper/one", "--mode", "small").code == 0
    points = results.read_run(tmp_path / "out").points
    assert [point["point"] for point in points[1:]] == [
        f"small small={folder / 'one'}",
        f"small small={folder / 'deeper' / 'one'}",
    ]
    assert len({point["point_id"] for point in points}) == 3


def test_one_small_model_given_twice_is_one(folder: Path, tmp_path: Path) -> None:
    assert sweep(folder, tmp_path / "out", "one,one", "--mode", "small").code == 0
    assert [point["point"] for point in results.read_run(tmp_path / "out").points] == ["vanilla", "small"]


@pytest.mark.parametrize(
    ("smalls", "more", "code", "says"),
    [
        ("one,copy", ("--mode", "bild"), 2, "names the same model twice; leave one out"),
        ("one,two", ("--mode", "calm"), 2, "does not apply to --mode vanilla,calm; leave it out"),
        ("one,", (), 2, "has an empty name in it"),
        ("one,missing", (), 3, "error: --small: "),
        ("one,large", ("--aligned",), 2, "cannot be mixed with --preset or --aligned"),
    ],
)
def test_small_models_that_cannot_be_compared_are_refused_in_one_line(
    smalls: str, more: tuple[str, ...], code: int, says: str, folder: Path, tmp_path: Path
) -> None:
    ended = sweep(folder, tmp_path / "out", smalls, *more)
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.last_remark
    assert ended.last_remark.startswith("error: --")
    assert not (tmp_path / "out" / "run.parquet").exists()


def test_trained_small_models_side_by_side(tmp_path: Path) -> None:
    large, medium, small = (SHARED / "models" / f"multi30k-{size}" for size in ("large", "medium", "small"))
    data = SHARED / "data" / "multi30k" / "val.jsonl"
    if not (large.is_dir() and data.is_file()):
        pytest.skip("the trained models are not beside this checkout")
    models = ("--large", str(large), "--small", f"{medium},{small}")
    out = tmp_path / "out"
    ended = call("sweep", "--task", "custom", "--data", data, "--limit", "4", *models, *QUICK, "--out", out)
    assert ended.code == 0, ended.err
    samples: Any = results.read(out).samples
    assert list(samples.point[:3]) == [
        "vanilla",
        "bild fb=0.5 rb=2 small=multi30k-medium",
        "bild fb=0.5 rb=2 small=multi30k-small",
    ]
    calls = samples.groupby("role").large_calls.sum()
    assert calls["point"] / 2 < calls["baseline"], "a trained small model spares calls of the large one"
