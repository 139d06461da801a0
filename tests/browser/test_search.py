"""The search in the header: an entity's page from every page, by the keyboard alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.support.visit import Visit


@pytest.mark.parametrize("route", ["#/", "#/ask/g", "#/models/g", "#/entity/g/Nobody", "#/deadletters"])
def test_an_entity_is_found_from_every_page_by_its_letters(visit: Visit, route: str) -> None:
    page = visit.open(route)
    page.locator("#graph option[value='g']").wait_for(state="attached")
    page.locator("#graph").evaluate("select => select.value === 'g'") or page.locator("#graph").select_option("g")
    expect(page.locator("#connection")).to_have_text("live")
    page.locator("h1").first.focus()
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("ar")
    option = page.locator("#search-list [role=option]").first
    name = option.inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(page.locator("#search")).to_have_value("")


def test_enter_takes_the_best_name_and_a_stroke_in_a_field_is_a_letter(visit: Visit) -> None:
    page = visit.open("#/ask/g")
    page.get_by_label("Subject", exact=True).fill("a")
    known = page.locator("#ask-entity-list [role=option]").first.inner_text()
    page.get_by_label("Subject", exact=True).press("/")
    expect(page.get_by_label("Subject", exact=True)).to_have_value("a/")
    page.locator("#search").fill(known[:-1].lower())
    page.locator("#search").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(known)
