"""The HTML page as a file: what is in it, that nothing in it can run or load anything else, and its size."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bild_bench.decoding.records import TraceStep
from bild_bench.errors import UsageError
from bild_bench.measure.intervals import Estimate
from bild_bench.report.collect import Collected
from bild_bench.report.page import page_data, render_page, write_page
from bild_bench.report.page_data import json_values
from bild_bench.report.page_record import records
from bild_bench.report.page_texts import texts_of
from tests.command_line import call
from tests.made_page import EVIL, PIECES, POINTS, TRACE, made_collected

STEPS = [step._asdict() for step in TRACE]


class Elements(HTMLParser):
    """Every element of a page, with the text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in ("script", "style") and data.strip():
            self.texts.append((self.found[-1][0], data))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("page")
    path = directory / "sub" / "report.html"
    write_page(made_collected(directory), path)
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
    return path.read_bytes().decode()


def data_of(page: str) -> dict[str, Any]:
    elements = Elements(page)
    inlined = [text for tag, text in elements.texts if tag == "script" and text.startswith("{")]
    assert len(inlined) == 1
    return dict(json.loads(inlined[0]))


def policy_of(page: str) -> dict[str, str]:
    [content] = [
        attributes["content"] or ""
        for tag, attributes in Elements(page).found
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    return dict(rule.strip().split(" ", 1) for rule in content.split(";"))


def test_nothing_is_allowed_but_our_own_scripts_and_style_by_their_hashes(page: str) -> None:
    policy = policy_of(page)
    assert policy["default-src"] == policy["connect-src"] == "'none'"
    assert "unsafe" not in " ".join(policy.values())
    for tag, text in Elements(page).texts:
        if not text.startswith("{"):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy[f"{tag}-src"]


def test_no_element_refers_to_anything_outside_the_file(page: str) -> None:
    for tag, attributes in Elements(page).found:
        assert tag not in ("link", "iframe", "object", "embed", "img")
        assert "src" not in attributes
        assert not (attributes.get("href") or "#").strip("#").startswith(("http", "//", "file"))


def test_markup_in_a_text_stays_data(page: str) -> None:
    scripts = [tag for tag, _ in Elements(page).found if tag == "script"]
    assert len(scripts) == 3
    assert EVIL not in page
    assert data_of(page)["groups"][0]["texts"]["shown"][0]["source"] == f"0: {EVIL}"


def test_every_point_has_its_figures_command_and_text(page: str) -> None:
    [group] = data_of(page)["groups"]
    labels = [point["point"] for point in POINTS]
    assert [point["label"] for point in group["points"]] == labels
    assert [output["label"] for output in group["texts"]["shown"][0]["outputs"]] == labels
    assert group["points"][0]["quality"][0] == pytest.approx(100)
    # Made so that point n decodes 1 + n / 10 times as fast as 0.3 s against vanilla's 1.5 s.
    assert group["points"][1]["speedup_decoding"][0] == pytest.approx(5 * 1.1)
    [experiment] = group["records"]["experiments"]
    assert experiment["points"] == labels
    assert experiment["command"].startswith("bild-bench run")
    assert ["threads", "2"] in group["records"]["shared"]["environment"]


def test_plots_are_there_and_corrections_of_points_that_have_two_authors(page: str) -> None:
    [group] = data_of(page)["groups"]
    front = group["charts"]["front"]
    assert [view["name"] for view in front["views"]] == ["difference", "quality"]
    for size, width in (("wide", 990), ("narrow", 286)):
        drawn = front["views"][0][size]
        assert drawn["spec"]["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
        assert drawn["spec"]["width"] == width
        assert set(drawn["places"]) == set(front["rows"]) == {point["point"] for point in POINTS}
        assert "data" not in drawn["spec"]
    assert group["charts"]["oracle"] is None
    assert list(group["charts"]["heatmaps"]) == ["wide", "narrow"]
    assert list(group["corrections"]) == [point["point"] for point in POINTS[1:]]
    assert group["corrections"]["bild fb=0.3 rb=1.0"]["pairs"][0] == {
        "draft": " dog",
        "replacement": " cat",
        "count": 4,
    }


def test_the_headline_has_its_interval_and_what_is_no_reason_for_doubt_is_a_note(tmp_path: Path) -> None:
    collected = made_collected(tmp_path)
    [group] = collected.groups
    slow = [
        replace(entry, summary=replace(entry.summary, speedup_total=Estimate(0.8, 0.7, 0.9)))
        if entry.label.endswith("rb=2.0")
        else entry
        for entry in group.entries
    ]
    [shown] = page_data(replace(collected, groups=(replace(group, entries=tuple(slow)),)), max_drops=(50,))["groups"]
    [answer] = shown["answers"]
    speed = group.entries[-1].summary.speedup_decoding
    assert speed is not None
    # Every text is as much faster as the others: made so that point n takes 0.3 s / (1 + n / 10) against 1.5 s.
    assert (answer["label"], answer["figure"]) == ("bild fb=0.6 rb=2.0", "7.00×")
    assert answer["interval"] == (f"{speed.low:.2f} – {speed.high:.2f}×" if speed.low < speed.high else None)
    told = "slower than the baseline, in total time: bild fb=0.3 rb=2.0 0.80x, bild fb=0.6 rb=2.0 0.80x"
    assert told in shown["notes"]
    assert not any("slower than" in warning for warning in shown["warnings"])
    assert any("fewer than 30 texts (4)" in warning for warning in shown["warnings"])


def test_names_have_no_control_character_and_a_half_pair_can_be_written(tmp_path: Path) -> None:
    collected = made_collected(tmp_path)
    [group] = collected.groups
    odd = Path("out\udcff\x1b  x")
    entries = tuple(replace(entry, member=replace(entry.member, directory=odd)) for entry in group.entries)
    members = (replace(group.members[0], directory=odd),)
    data = page_data(replace(collected, groups=(replace(group, entries=entries, members=members),)))
    [experiment] = data["groups"][0]["records"]["experiments"]
    assert experiment["directory"] == "out\\udcff\\x1b  x"
    # What a text holds is its own, even half of a pair.
    data["groups"][0]["texts"]["pieces"].append("\ud83d")
    page = render_page(data)
    assert page.encode()
    assert data_of(page)["groups"][0]["texts"]["pieces"][-1] == "\ud83d"


def test_without_pieces_the_output_is_shown_whole(tmp_path: Path) -> None:
    [group] = page_data(made_collected(tmp_path, pieces=False))["groups"]
    output = group["texts"]["shown"][0]["outputs"][1]
    assert (output["trace"], output["text"]) == (None, "the cat sat")


def test_damaged_samples_leave_the_figures_and_are_named(tmp_path: Path) -> None:
    collected = made_collected(tmp_path)
    [shard, *_] = (tmp_path / "grid" / "shards").iterdir()
    shard.write_bytes(b"damaged")
    [group] = page_data(collected)["groups"]
    assert len(group["points"]) == len(POINTS)
    assert group["texts"]["shown"] == []
    assert any(shard.name in warning for warning in group["warnings"])


def test_what_experiments_share_is_there_once(tmp_path: Path) -> None:
    collected = made_collected(tmp_path)
    [group] = collected.groups
    [member] = group.members
    environment = {"device": "cpu", "threads": 2, "load": 0.5}
    other = replace(member, directory=tmp_path / "other", run=replace(member.run, environment=environment))
    found = records(replace(group, members=(member, other)))
    assert found["shared"]["environment"] == [["device", "cpu"], ["threads", "2"]]
    assert [one["sections"]["environment"] for one in found["experiments"]] == [[], [["load", "0.5"]]]


def test_damaged_files_are_named_and_no_results_make_a_page_too() -> None:
    data = data_of(render_page(page_data(Collected((), ("results: x/run.parquet: damaged",)))))
    assert data["damaged"] == ["results: x/run.parquet: damaged"]
    assert data["groups"] == []


def test_more_sections_than_a_browser_bears_are_counted(tmp_path: Path) -> None:
    collected = made_collected(tmp_path, texts=1)
    found = page_data(replace(collected, groups=collected.groups * 42))
    assert (len(found["groups"]), found["more"]) == (40, 2)


def test_what_json_lacks_is_said_in_words() -> None:
    values = {"a": [float("nan"), float("inf"), -float("inf"), 1.5], 2: (None, "x")}
    assert json_values(values) == {"a": [None, "inf", "-inf", 1.5], "2": [None, "x"]}


def test_a_page_that_cannot_be_written_is_an_error_for_people(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="cannot be written"):
        write_page(Collected((), ()), tmp_path / "file" / "report.html")


def frame_of(texts: int, steps: list[dict[str, Any]], pieces: list[str] | None) -> pd.DataFrame:
    rows = [
        {
            "text_id": f"t{text}",
            "draw": 0,
            "status": "ok",
            "source": "x" * 100,
            "references": ["y" * 100],
            "output_text": "the cat sat",
            "generated": len(steps),
            "rollbacks": 0,
            "decode_seconds": 0.01,
            "trace": steps,
            "pieces": pieces,
            "error": None,
        }
        for text in range(texts)
    ]
    return pd.DataFrame(rows)


def test_a_trace_says_who_wrote_each_token_and_what_was_cut() -> None:
    texts = texts_of({"bild": frame_of(1, STEPS, PIECES)}, ["t0"], most_bytes=10**6)
    [output] = texts["shown"][0]["outputs"]
    assert texts["pieces"] == ["the", " dog", " sat", " cat"]
    assert output["trace"] == {
        "pieces": [0, 1, 2, 3, 2],
        "kinds": "SxxLS",
        "probs": [900, 600, 700, None, 800],
        "nlls": [0.1, 3.5, float("inf"), 0.2, None],
    }


def test_of_several_draws_the_first_is_shown() -> None:
    both = pd.concat([frame_of(1, STEPS, None).assign(draw=1, output_text="second"), frame_of(1, STEPS, None)])
    [output] = texts_of({"bild": both}, ["t0"], most_bytes=10**6)["shown"][0]["outputs"]
    assert output["text"] == "the cat sat"


def test_a_failed_text_says_why() -> None:
    frame = frame_of(1, STEPS, None).assign(status="error", error="out of memory", trace=None)
    [output] = texts_of({"bild": frame}, ["t0"], most_bytes=10**6)["shown"][0]["outputs"]
    assert output == {"label": "bild", "error": "out of memory"}


def test_too_many_texts_become_an_even_spread() -> None:
    ids = [f"t{text}" for text in range(200)]
    frame = frame_of(200, STEPS, PIECES)
    few = texts_of({"bild": frame}, ids, most_bytes=5_000)
    numbers = [text["number"] for text in few["shown"]]
    assert few["total"] == 200
    assert 2 < len(numbers) < 20
    steps = {b - a for a, b in pairwise(numbers)}
    assert max(steps) - min(steps) <= 1
    assert len(json.dumps(few, ensure_ascii=False)) < 5_200


def test_thirty_points_of_two_hundred_long_texts_stay_below_six_megabytes() -> None:
    ids = [f"t{text}" for text in range(200)]
    steps = [TraceStep(n, n, "S", True, 0.123456, 1.23456)._asdict() for n in range(120)]
    frame = frame_of(200, steps, [f" piece{n}" for n in range(120)])
    texts = texts_of({f"bild {n}": frame for n in range(30)}, ids, most_bytes=4_000_000)
    [group] = [{"texts": json_values(texts)}]
    assert len(render_page({"version": "1", "groups": [group], "damaged": []}).encode()) < 6_000_000
    assert len(re.findall("piece119", json.dumps(texts["pieces"]))) == 1


def test_what_a_peer_does_not_tell_is_left_out(tmp_path: Path) -> None:
    quick = ("--task", "iwslt17", "--limit", "2", "--threads", "1", "--warmup", "0")
    assert call("run", *quick, "--mode", "hf-greedy", "--out", str(tmp_path / "peer")).code == 0
    assert call("report", str(tmp_path / "peer"), "--html", str(tmp_path / "peer.html")).code == 0
    assert "hf-greedy" in (tmp_path / "peer.html").read_text(encoding="utf-8")
