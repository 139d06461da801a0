"""The page by keyboard, on a phone, in both themes, and for those who do not see it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.live_dashboard import ODD, ODD_NAMES, Live
from tests.support.visit import PHONE, Visit, visiting

# Each page, and what is there when it has all that it shows. The odd graph's facts hold still.
PAGES = {
    "overview": ("#/", ".prediction"),
    "entity": (f"#/entity/{quote(ODD, safe='')}/{quote(ODD_NAMES[2], safe='')}", ".fact-list li"),
    "models": ("#/models/g", "tr.present"),
    "letters": ("#/deadletters", ".letter"),
    "ask": ("#/ask/g", "form"),
}
LIVE = "document.querySelector('#connection').textContent === 'live'"
FOLDER = Path(__file__).parent
LOW_CONTRAST = (FOLDER / "low_contrast.js").read_text("utf-8")
UNNAMED = (FOLDER / "unnamed.js").read_text("utf-8")
REACHABLE = (FOLDER / "reachable.js").read_text("utf-8")
FOCUSED = (FOLDER / "focused.js").read_text("utf-8")


def settle(visit: Visit, name: str) -> Page:
    """Open a page and wait until it has all that it shows, held still."""
    route, last = PAGES[name]
    page = visit.open(route)
    visit.until(LIVE)
    if name == "overview":
        page.locator("#graph").select_option("g")
    page.locator(last).first.wait_for()
    if name == "overview":
        page.get_by_role("button", name="Pause").click()
    return page


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_texts_have_contrast_and_all_controls_a_name(browser: Browser, live: Live, theme: str) -> None:
    with visiting(browser, live.address, color_scheme=theme, reduced_motion="reduce") as visit:
        for name in PAGES:
            page = settle(visit, name)
            assert page.evaluate(LOW_CONTRAST) == [], name
            assert page.evaluate(UNNAMED) == [], name


@pytest.mark.parametrize("name", PAGES)
def test_the_tab_key_reaches_everything_and_one_sees_where_it_is(visit: Visit, name: str) -> None:
    page = settle(visit, name)
    wanted = page.evaluate(REACHABLE)
    page.locator("#skip").focus()
    # A focus that was not set by a key need not be seen.
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    found, unseen = [], []
    for _ in wanted:
        stop, shown = page.evaluate(FOCUSED)
        found.append(stop)
        if not shown:
            unseen.append(stop)
        page.keyboard.press("Tab")
    assert [element for i, element in enumerate(wanted) if str(i) not in found] == []
    assert unseen == []
    assert found == sorted(found, key=int), "the order of the focus is not that of the page"


def test_the_skip_link_leads_past_the_header(visit: Visit) -> None:
    page = settle(visit, "models")
    page.locator("#skip").focus()
    expect(page.locator("#skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    expect(page.get_by_role("heading", level=1)).to_have_text("Models of g")


def test_a_phone_scrolls_in_one_direction_only(browser: Browser, live: Live) -> None:
    with visiting(browser, live.address, viewport=PHONE, has_touch=True, is_mobile=True) as visit:
        for name in PAGES:
            page = settle(visit, name)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], name
        long = "x" * 300
        page = visit.open(f"#/entity/g/{long}")
        expect(page.get_by_role("heading", level=1)).to_have_text(long)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_the_theme_follows_the_system_until_one_is_chosen(browser: Browser, live: Live) -> None:
    brightest = "Math.max(...getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number))"
    with visiting(browser, live.address, color_scheme="dark") as visit:
        page = settle(visit, "models")
        assert page.evaluate(brightest) < 64
        page.emulate_media(color_scheme="light")
        assert page.evaluate(brightest) > 192
        button = page.locator("#theme")
        for choice in ("light", "dark"):
            button.click()
            expect(button).to_have_text(f"Theme: {choice}")
        assert page.evaluate(brightest) < 64
        page.reload()
        visit.until(LIVE)
        expect(button).to_have_text("Theme: dark")
        assert page.evaluate(brightest) < 64


def test_nothing_is_animated_for_those_who_do_not_want_it(browser: Browser, live: Live) -> None:
    with visiting(browser, live.address) as visit:
        settle(visit, "overview")
        visit.until("document.getAnimations().length > 0")
    with visiting(browser, live.address, reduced_motion="reduce") as visit:
        assert settle(visit, "overview").evaluate("document.getAnimations().length") == 0


def test_the_page_stays_small_however_much_streams_by(visit: Visit) -> None:
    page = settle(visit, "overview")
    page.get_by_role("button", name="Go on").click()
    rows = page.locator(".prediction")
    first = rows.first.get_attribute("data-id")
    visit.until("first => ![...document.querySelectorAll('.prediction')].some(row => row.dataset.id === first)", first)
    assert rows.count() <= 6
    assert page.evaluate("document.querySelectorAll('.feed *').length") < 500
