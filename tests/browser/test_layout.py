"""The layout, by measuring what a browser made of it: every page at the widths that people have, with real data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.live_dashboard import SECOND, TOKEN, Live
from tests.support.running_system import GRAPH, VERSION
from tests.support.visit import Visit, visiting

WIDTHS = [390, 768, 1280, 1440, 1920]
LAYOUT = (Path(__file__).parent / "layout.js").read_text("utf-8")
# JavaScript: each chart that is on the page has been drawn.
DRAWN = """[...document.querySelectorAll(".chart")].every((chart) =>
  !chart.checkVisibility() || chart.dataset.state === "drawn")"""


@pytest.fixture(scope="module")
def swapped(browser: Browser, live: Live) -> None:
    """Two swaps, one soon after the other, so that the charts have marks that are close together."""
    with visiting(browser, live.address) as visit:
        page = visit.open("#/models/g")
        page.evaluate("value => sessionStorage.setItem('adatkg-token', value)", TOKEN)
        for version in (SECOND, VERSION):
            page.get_by_role("button", name=f"Promote {version}").click()
            expect(page.locator("#version")).to_have_text(version)


@contextmanager
def window(browser: Browser, live: Live, width: int, theme: str = "light") -> Iterator[Visit]:
    """A window so high that every chart is drawn, and in which nothing moves by itself."""
    size = {"width": width, "height": 2_400}
    with visiting(browser, live.address, viewport=size, color_scheme=theme, reduced_motion="reduce") as visit:
        yield visit


def overview(visit: Visit) -> Page:
    page = visit.open()
    page.locator("#graph option[value='g']").wait_for(state="attached")
    page.locator("#graph").select_option("g")
    page.locator(".truth.known").first.wait_for()
    page.get_by_role("button", name="Pause").click()
    visit.until(DRAWN)
    return page


def entity(visit: Visit) -> Page:
    """From the overview, where one is when a page is opened."""
    page = visit.open()
    page.locator(".question .entity").first.click()
    page.locator(".fact-list li").first.wait_for()
    visit.until(DRAWN)
    return page


def ask(visit: Visit) -> Page:
    page = visit.open(f"#/ask/g?subject=Nobody+knows+me&relation={GRAPH.relations[0]}")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".ranking tbody tr").first.wait_for()
    return page


def models(visit: Visit) -> Page:
    page = visit.open("#/models/g")
    page.locator("tr.present").wait_for()
    return page


def letters(visit: Visit) -> Page:
    page = visit.open("#/deadletters")
    page.locator(".letter").first.wait_for()
    return page


PAGES: list[Callable[[Visit], Page]] = [overview, entity, ask, models, letters]  # one after the other in a visit


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.usefixtures("swapped")
def test_every_page_is_laid_out_without_fault(browser: Browser, live: Live, width: int) -> None:
    with window(browser, live, width) as visit:
        found = {}
        for arrive in PAGES:
            page = arrive(visit)
            expect(page.locator("#connection")).to_have_text("live")
            found[arrive.__name__] = page.evaluate(LAYOUT)
        assert found == {arrive.__name__: [] for arrive in PAGES}


@pytest.mark.usefixtures("swapped")
def test_columns_stay_at_the_top_when_one_scrolls(browser: Browser, live: Live) -> None:
    with visiting(browser, live.address, viewport={"width": 1440, "height": 500}, reduced_motion="reduce") as visit:
        page = overview(visit)
        for share in (0.5, 1):
            page.evaluate("share => scrollTo(0, share * document.documentElement.scrollHeight)", share)
            assert page.evaluate(LAYOUT) == []


# A style that does harm, and what the measuring must say of it.
HARM = {
    ".charts { padding-top: 300px }": "empty pixels above",
    ".charts { position: relative; top: 20rem }": "empty pixels above",
    ".tile { margin-bottom: -80px }": "covered by another block",
    ".tiles { width: 120vw }": "the page is wider than the window",
    ".candidate { max-width: 3ch }": None,  # it has a title
    ".hint { max-width: 6ch; overflow: hidden; white-space: nowrap }": "cut off: hint",
    ".number { display: block; width: 1ch; overflow-wrap: anywhere }": "broken across lines: number",
    ".state { margin-top: -40px }": "covered in the header",
    # So large that any two overlap: how many a chart has depends on how long it has been drawn.
    ".xtick text { font-size: 200px !important }": "overprinted in a chart",
    ".ytick text { transform: translateX(-60px) }": "cut off by its chart",
    ".annotation { transform: translateX(500px) }": "cut off by its chart: annotation-text",
}


@pytest.fixture(scope="module")
def sound(browser: Browser, live: Live, swapped: None) -> Iterator[Visit]:
    """An overview in order, for all styles: each takes itself away again."""
    with window(browser, live, 1440) as visit:
        overview(visit)
        yield visit


@pytest.mark.parametrize(("style", "finding"), HARM.items())
def test_the_measuring_finds_what_a_bad_style_breaks(sound: Visit, style: str, finding: str | None) -> None:
    # The charts are drawn again after the style before this one.
    sound.until(f"() => {{ const faults = {LAYOUT} return faults().length === 0; }}")
    added = sound.page.add_style_tag(content=style)
    found = sound.page.evaluate(LAYOUT)
    added.evaluate("style => style.remove()")
    assert (not found) if finding is None else any(finding in one for one in found), found
