"""The HTML page in a real browser, in the views that people have of it: a phone, paper, the keyboard, a finger."""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bild_bench.report.page import write_page
from tests.browser import Page, find_chromium
from tests.made_page import EVIL, made_collected

CHROMIUM = find_chromium()

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (Debian: apt install chromium)")

DRAWN = "[...document.querySelectorAll('.plot')].every(plot => plot.dataset.drawn === 'yes')"
TIP = "(tip => tip.hidden ? null : tip.textContent)(document.getElementById('tip'))"
POINT = ".output[data-label='bild fb=0.3 rb=1.0']"
KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, "Escape": 27, "Tab": 9}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("views")
    write_page(made_collected(directory, oracle=True), directory / "report.html")
    return directory / "report.html"


@pytest.fixture(scope="module")
def browser(report: Path) -> Iterator[Page]:
    assert CHROMIUM is not None
    with Page(CHROMIUM, report.parent / "profile") as page:
        page.open(report)
        yield page


@pytest.fixture
def page(browser: Page) -> Iterator[Page]:
    """The page as it is when it has just been opened on a desk."""
    browser.call("Emulation.clearDeviceMetricsOverride")
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    browser.call("Emulation.setEmulatedMedia", media="", features=[still])
    reload(browser)
    yield browser
    browser.call("Emulation.clearDeviceMetricsOverride")
    browser.call("Emulation.setTouchEmulationEnabled", enabled=False)


def reload(page: Page) -> None:
    page.call("Page.reload")
    page.wait_for(f"document.readyState === 'complete' && document.querySelector('.points') && {DRAWN}")


@pytest.fixture
def phone(page: Page) -> Page:
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    page.call("Emulation.setTouchEmulationEnabled", enabled=True)
    reload(page)
    return page


def press(page: Page, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])


def rest_the_mouse(page: Page) -> None:
    """Away from all text: after a scroll the browser tells of what has come under it."""
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=450)
    page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")


def box(page: Page, selector: str, place: int = 0) -> dict[str, float]:
    found: dict[str, float] = page.run(
        f"(b => ({{left: b.left, right: b.right, top: b.top, width: b.width, height: b.height}}))"
        f'(document.querySelectorAll("{selector}")[{place}].getBoundingClientRect())'
    )
    return found


def test_on_a_phone_every_plot_is_seen_whole_and_not_scaled_down(phone: Page) -> None:
    for plot in (".front", ".oracle", ".maps"):
        drawn = box(phone, f"{plot} svg.marks")
        assert drawn["left"] >= 0
        assert drawn["right"] <= 390
        # Drawn for this width: one unit of the drawing is one pixel, and letters have the size they were given.
        scale = drawn["width"] / phone.run(f"document.querySelector('{plot} svg.marks').viewBox.baseVal.width")
        assert scale > 0.95
    marks = phone.run(
        "[...document.querySelectorAll('.front .mark-symbol.role-mark path')].map(m => m.getBoundingClientRect().right)"
    )
    assert len(marks) >= 6
    assert max(marks) <= 390


def test_a_plot_is_drawn_anew_when_the_window_gets_narrow(page: Page) -> None:
    wide = box(page, ".front svg.marks")["width"]
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    page.wait_for(f"{DRAWN} && document.querySelector('.front svg.marks').getBoundingClientRect().width < 370")
    assert wide > 900


def test_every_row_of_the_table_keeps_its_line_under_the_name_that_stays(phone: Page) -> None:
    phone.run("document.querySelector('.wide').scrollLeft = 120")
    names = ".points tbody th"
    assert box(phone, names)["left"] == pytest.approx(box(phone, ".wide")["left"], abs=1)
    lines = phone.run(
        f"[...document.querySelectorAll('{names}')].map(cell => getComputedStyle(cell).borderBottomWidth)"
    )
    assert lines == ["1px"] * 6
    # Collapsed borders are the table's: they scroll away from a cell that stays.
    assert phone.run("getComputedStyle(document.querySelector('.points')).borderCollapse") == "separate"


def test_the_paired_difference_and_the_score_are_a_click_apart(page: Page) -> None:
    titles = "[...document.querySelectorAll('.front .role-axis-title text')].map(title => title.textContent)"
    assert "ROUGE-L minus vanilla's" in page.run(titles)
    chosen = page.run("document.querySelector('.views input:checked').parentElement.textContent")
    assert chosen == "Difference from vanilla, paired"
    page.click(".views input[value='quality']")
    page.wait_for(f"{DRAWN} && {titles}.includes('ROUGE-L')")
    assert "ROUGE-L minus vanilla's" not in page.run(titles)
    assert page.run("document.querySelectorAll('.front .mark-symbol.role-mark path').length") >= 6
    page.click(".views input[value='difference']")
    page.wait_for(f'{DRAWN} && {titles}.includes("ROUGE-L minus vanilla\'s")')


def test_the_oracle_has_its_plot_with_a_mark_that_is_seen(page: Page) -> None:
    assert page.run("document.querySelectorAll('.oracle svg.marks').length") == 1
    # Its mark's outline is as wide as it is high, and nothing of it is see-through.
    mark = "[...document.querySelectorAll('.oracle .mark-symbol.role-mark path')].at(-1)"
    seen: dict[str, Any] = page.run(
        f"(m => ({{width: m.getBoundingClientRect().width, height: m.getBoundingClientRect().height,"
        f" opacity: m.getAttribute('opacity') ?? '1'}}))({mark})"
    )
    assert seen["width"] == pytest.approx(seen["height"], rel=0.05)
    assert seen["width"] > 10
    assert float(seen["opacity"]) == 1


def test_points_off_the_front_are_solid(page: Page) -> None:
    marks = "[...document.querySelectorAll('.front .mark-symbol.role-mark path')]"
    opacities = page.run(f"{marks}.map(mark => mark.getAttribute('opacity') ?? '1')")
    assert {float(value) for value in opacities} == {1.0}


def test_the_headline_has_its_interval(page: Page) -> None:
    [figure, *_] = page.run("[...document.querySelectorAll('.figure-large')].map(one => one.innerText)")
    assert figure.split("\n")[0].endswith("×")
    described = page.run("getComputedStyle(document.querySelector('.figure-large small'), '::before').content")
    assert described == '"95 % interval "'


def test_tokens_are_told_of_by_keyboard(page: Page) -> None:
    page.click("tr[data-label='bild fb=0.3 rb=1.0'] .link")
    page.wait_for(f'document.querySelector("{POINT}")')
    tokens = f'[...document.querySelectorAll("{POINT} .token")]'
    # The text is one stop of the tab key.
    assert page.run(f"{tokens}.map(token => token.tabIndex)") == [0, -1, -1, -1, -1]
    page.run(f"{tokens}[0].focus()")
    assert page.run(TIP) == "small model · max p(S) 0.900 · −ln p(L) 0.10"
    press(page, "ArrowRight")
    assert page.run("document.activeElement.textContent") == "dog"
    assert page.run(TIP) == "small model, rolled back · max p(S) 0.600 · −ln p(L) 3.50"
    # What a screen reader says with it.
    assert page.run("document.activeElement.getAttribute('aria-describedby')") == "tip"
    assert page.run("document.getElementById('tip').getAttribute('role')") == "tooltip"
    press(page, "End")
    assert page.run("document.activeElement.textContent") == "sat"
    assert page.run(f"{tokens}.map(token => token.tabIndex)") == [-1, -1, -1, -1, 0]
    press(page, "ArrowRight")
    assert page.run(f"document.activeElement === {tokens}[4]") is True
    press(page, "Home")
    press(page, "Escape")
    assert page.run(TIP) is None
    assert page.run("document.activeElement.hasAttribute('aria-describedby')") is False
    # What was sent away stays away, wherever the mouse goes.
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=4, y=460)
    assert page.run(TIP) is None


def test_a_token_that_the_keyboard_scrolls_to_keeps_what_is_told_of_it(page: Page) -> None:
    page.click("tr[data-label='bild fb=0.3 rb=1.0'] .link")
    rest_the_mouse(page)
    page.run(f'document.querySelector("{POINT} .token").focus()')
    page.run("window.scrollBy({top: 30, behavior: 'instant'})")
    page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
    assert page.run(TIP) == "small model · max p(S) 0.900 · −ln p(L) 0.10"
    token, tip = box(page, f"{POINT} .token"), box(page, "#tip")
    assert 0 <= tip["top"] - token["top"] - token["height"] < 10


def test_tokens_are_told_of_by_touch(phone: Page) -> None:
    phone.run("document.querySelector(\"tr[data-label='bild fb=0.3 rb=1.0'] .link\").click()")
    phone.run(f'document.querySelector("{POINT} .token.cut").scrollIntoView({{block: "center", behavior: "instant"}})')
    phone.run("new Promise(done => setTimeout(() => done(1), 100))")
    token = box(phone, f"{POINT} .token.cut")
    finger = {"x": token["left"] + token["width"] / 2, "y": token["top"] + token["height"] / 2}
    phone.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[finger])
    phone.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    phone.wait_for("!document.getElementById('tip').hidden")
    assert phone.run(TIP) == "small model, rolled back · max p(S) 0.600 · −ln p(L) 3.50"
    assert box(phone, "#tip")["right"] <= 390


def test_corrections_that_occur_once_are_not_called_frequent(page: Page) -> None:
    caption = "document.querySelector('.pairs caption').textContent"
    # "dog" became "cat" in each of the four texts.
    assert page.run(caption) == "Most frequent: draft → replacement"
    assert page.run("document.querySelector('.pairs tbody').innerText").split() == ["dog", "→", "cat", "4×"]


def test_of_single_corrections_there_are_examples_and_their_number(tmp_path: Path, browser: Page, report: Path) -> None:
    write_page(made_collected(tmp_path, texts=1), tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    browser.wait_for(f"document.querySelector('.pairs') && {DRAWN}")
    try:
        assert browser.run("document.querySelector('.pairs caption').textContent") == (
            "Draft → replacement: the first examples"
        )
        assert browser.run("document.querySelector('.pairs').nextElementSibling.textContent") == (
            "The only pair occurs once: none is frequent."
        )
        assert "×" not in browser.run("document.querySelector('.pairs tbody').innerText")
    finally:
        browser.open(report)


def test_a_label_with_two_spaces_leaves_the_page_whole(tmp_path: Path, browser: Page, report: Path) -> None:
    write_page(made_collected(tmp_path, rename="bild  two  spaces"), tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    browser.wait_for(f"document.querySelector('.points') && {DRAWN}")
    try:
        values = "[...document.querySelectorAll('#g0-corrections option')].map(option => option.value)"
        assert "bild two spaces" in browser.run(values)
        browser.click("tr[data-label='bild two spaces'] .link")
        browser.wait_for("document.querySelector(\".output[data-label='bild two spaces']\")")
        assert browser.run("document.getElementById('g0-corrections').value") == "bild two spaces"
    finally:
        browser.open(report)


@pytest.fixture
def printed(page: Page, tmp_path: Path) -> list[str]:
    """The pages of a print of many points, as text."""
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext on this machine (Debian: apt install poppler-utils)")
    # As many rows as two pages hold.
    page.run(
        "(body => { for (let n = 0; n < 10; n++) for (const row of [...body.children].slice(0, 6))"
        " body.append(row.cloneNode(true)); })(document.querySelector('.points tbody'))"
    )
    pdf = page.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"]
    (tmp_path / "page.pdf").write_bytes(base64.b64decode(pdf))
    told = subprocess.run(["pdftotext", "-layout", str(tmp_path / "page.pdf"), "-"], capture_output=True, check=True)
    return told.stdout.decode().split("\f")


def test_on_paper_the_table_s_heading_stands_on_every_page_of_it(printed: list[str]) -> None:
    rows = [sum("bild fb=" in line and "×" in line for line in text.splitlines()) for text in printed]
    with_rows = [text for text, count in zip(printed, rows, strict=True) if count > 3]
    assert len(with_rows) >= 2
    for text in with_rows:
        [heading] = [line for line in text.splitlines() if "Method" in line]
        assert "speed\u2011up" in heading


def test_markup_stays_text_in_all_views(phone: Page) -> None:
    assert EVIL in phone.run("document.querySelector('.given dd').textContent")
    assert phone.seen("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled") == []
