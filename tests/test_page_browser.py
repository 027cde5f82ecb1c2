"""The HTML page in a real browser: drawn, usable, silent on the network, and deaf to markup in texts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bild_bench.report.page import write_page
from tests.browser import Page, find_chromium
from tests.made_page import EVIL, made_collected

CHROMIUM = find_chromium()

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (Debian: apt install chromium)")

DRAWN = "[...document.querySelectorAll('.plot')].every(plot => plot.dataset.drawn === 'yes')"
LABELS = "[...document.querySelectorAll('.points tbody tr')].map(row => row.dataset.label)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert CHROMIUM is not None
    directory = tmp_path_factory.mktemp("browser")
    write_page(made_collected(directory), directory / "report.html")
    with Page(CHROMIUM, directory / "profile") as page:
        page.open(directory / "report.html")
        yield page


@pytest.fixture
def page(browser: Page) -> Page:
    """The page as it is when it has just been opened."""
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    browser.call("Emulation.setEmulatedMedia", media="", features=[still])
    browser.call("Page.reload")
    browser.wait_for(f"document.readyState === 'complete' && document.querySelector('.points') && {DRAWN}")
    return browser


def test_the_plots_are_drawn_with_a_mark_for_every_point(page: Page) -> None:
    assert page.run("document.querySelectorAll('.front svg.marks').length") == 1
    assert page.run("document.querySelectorAll('.front .mark-symbol.role-mark path').length") >= 5
    assert page.run("document.querySelectorAll('.maps .mark-rect.role-mark path').length") == 12
    assert page.run("document.querySelector('.front svg.marks').getBoundingClientRect().height") > 200


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_the_order(page: Page) -> None:
    heading = "th[data-column='speedup_decoding']"
    before = page.run(LABELS)
    page.click(f"{heading} button")
    fastest_first = page.run(LABELS)
    assert page.run(f"document.querySelector(\"{heading}\").getAttribute('aria-sort')") == "descending"
    # Made so that each point is faster than the one before it.
    assert fastest_first == before[::-1]
    page.click(f"{heading} button")
    assert page.run(LABELS) == before
    page.click("th[data-column='label'] button")
    assert page.run("[...document.querySelectorAll('[aria-sort]')].map(head => head.ariaSort).join()") == ",".join(
        ["ascending"] + ["none"] * 10
    )


def test_a_click_on_a_point_shows_its_text_token_by_token(page: Page) -> None:
    page.click("tr[data-label='bild fb=0.3 rb=2.0'] .link")
    page.wait_for("document.querySelector(\".output[data-label='bild fb=0.3 rb=2.0']\")")
    shown = page.run(
        "[...document.querySelectorAll(\".output[data-label='bild fb=0.3 rb=2.0'] .token\")]"
        ".map(token => [token.textContent, token.className, getComputedStyle(token).textDecorationLine])"
    )
    assert shown == [
        ["the", "token small", "none"],
        ["dog", "token cut", "line-through"],
        ["sat", "token cut", "line-through"],
        ["cat", "token large", "none"],
        ["sat", "token small", "none"],
    ]
    assert page.run("document.querySelector('tr.chosen').dataset.label") == "bild fb=0.3 rb=2.0"


def test_a_token_tells_what_the_models_thought_of_it(page: Page) -> None:
    page.click("tr[data-label='bild fb=0.3 rb=2.0'] .link")
    page.click(".output[data-label='bild fb=0.3 rb=2.0'] .token.cut")
    page.wait_for("!document.getElementById('tip').hidden")
    assert page.run("document.getElementById('tip').textContent") == (
        "small model, rolled back · max p(S) 0.600 · −ln p(L) 3.50"
    )


def test_a_point_of_a_plot_tells_its_thresholds_and_chooses_its_row(page: Page) -> None:
    page.run("document.querySelector('.maps svg.marks').scrollIntoView({block: 'center', behavior: 'instant'})")
    page.click(".maps .mark-rect.role-mark path")
    page.wait_for("document.querySelector('tr.chosen')")
    page.wait_for("document.querySelector('#vg-tooltip-element.visible')")
    label = page.run("document.querySelector('tr.chosen').dataset.label")
    assert label in page.run("document.getElementById('vg-tooltip-element').textContent")


def test_the_next_text_is_a_click_away(page: Page) -> None:
    source = "document.querySelector('.given dd').textContent"
    assert page.run(source).startswith("0: ")
    page.click(".step.next")
    assert page.run(source).startswith("1: ")


def test_all_controls_are_reached_and_used_by_keyboard(page: Page) -> None:
    page.run("document.querySelector(\"th[data-column='quality'] button\").focus()")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    assert page.run("document.querySelector(\"th[data-column='quality']\").getAttribute('aria-sort')") == "descending"
    controls = "[...document.querySelectorAll('main :is(button, select, input, summary)')]"
    assert page.run(f"{controls}.length") > 20
    assert page.run(f"{controls}.filter(control => control.tabIndex < 0).length") == 0


def test_markup_in_a_text_is_shown_and_never_run(page: Page) -> None:
    assert page.run("document.querySelector('.given dd').textContent") == f"0: {EVIL}"
    assert EVIL in page.run("document.querySelector('.copyable code').textContent")
    assert page.run("window.hacked === undefined") is True
    assert page.run("document.querySelectorAll('main img, main script').length") == 0


def test_nothing_is_loaded_and_nothing_is_refused_or_fails(page: Page) -> None:
    page.click(".step.next")
    addresses = {event["request"]["url"] for event in page.seen("Network.requestWillBeSent")}
    assert len(addresses) == 1
    assert addresses.pop().startswith("file://")
    assert page.seen("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled") == []


def test_the_policy_holds_even_against_a_script_that_got_in(page: Page) -> None:
    page.run(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 3';"
        " document.body.append(s); })()"
    )
    assert page.run("window.hacked === undefined") is True
    assert page.run("fetch('https://example.invalid/').then(() => 'loaded', () => 'refused')") == "refused"
    page.events.clear()


@pytest.mark.parametrize(
    ("scheme", "media", "light"), [("light", "screen", True), ("dark", "screen", False), ("dark", "print", True)]
)
def test_text_stands_out_on_screen_light_and_dark_and_on_paper(
    page: Page, scheme: str, media: str, light: bool
) -> None:
    page.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
    lightness = (
        "(colour => { const [r, g, b] = colour.match(/[0-9.]+/g).map(Number); return (r + g + b) / 765; })"
        "(getComputedStyle(%s).%s)"
    )
    ground = page.run(lightness % ("document.documentElement", "backgroundColor"))
    for element, of in (("document.body", "color"), ("document.querySelector('.role-axis-label text')", "fill")):
        assert abs(page.run(lightness % (element, of)) - ground) > 0.4
    assert (ground > 0.5) == light


def test_a_phone_needs_no_sideways_scrolling(page: Page) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
    try:
        assert page.run("document.documentElement.scrollWidth") <= 390
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
