"""Questions of a visitor's own: by keyboard, with names that are nearly right, and with names that nobody knows."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

from tests.support.running_system import GRAPH as SMALL
from tests.support.running_system import VERSION
from tests.support.visit import Visit

RELATION = SMALL.relations[1]


def fill_in(visit: Visit, entity: str, relation: str) -> Page:
    """The form with a subject and a relation as they were typed."""
    page = visit.open("#/ask/g")
    page.get_by_label("Subject", exact=True).fill(entity)
    page.get_by_label("Relation", exact=True).fill(relation)
    page.get_by_label("Candidates").fill("3")
    return page


def send(page: Page) -> None:
    page.get_by_role("button", name="Ask", exact=True).click()


def tab_to(page: Page, id: str) -> None:
    for _ in range(40):
        if page.evaluate("document.activeElement.id") == id:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach #{id}")


def test_a_question_is_answered_with_the_keyboard_alone(visit: Visit) -> None:
    page = visit.open("#/ask/g")
    page.get_by_role("heading", level=1).wait_for()
    tab_to(page, "ask-entity")
    entity, relation = page.locator("#ask-entity"), page.locator("#ask-relation")
    page.keyboard.type(SMALL.entities[0][:3])
    page.locator("#ask-entity-list [role=option]").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    second = page.locator("#ask-entity-list [aria-selected=true]")
    expect(second).to_have_attribute("id", "ask-entity-1")
    expect(entity).to_have_attribute("aria-activedescendant", "ask-entity-1")
    taken = second.inner_text()
    page.keyboard.press("Enter")
    expect(entity).to_have_value(taken)
    expect(entity).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "ask-relation"
    page.keyboard.press("ArrowDown")
    expect(relation).to_have_attribute("aria-activedescendant", "ask-relation-0")
    page.keyboard.press("Escape")
    expect(relation).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowDown")
    expect(relation).to_have_attribute("aria-activedescendant", "ask-relation-0")
    page.keyboard.press("Enter")
    expect(relation).not_to_have_value("")
    page.keyboard.press("Enter")
    expect(page.locator(".ranking tbody tr")).to_have_count(10)
    expect(page.locator(".answer h2")).to_contain_text(taken)
    expect(page.locator(".answer")).to_contain_text(VERSION)


def test_arrows_pressed_before_the_names_have_come_move_in_the_names_that_come(visit: Visit) -> None:
    page = visit.open("#/ask/g")
    held: list[Route] = []
    page.route("**/names?**", lambda route: held.append(route))
    field = page.get_by_label("Subject", exact=True)
    field.press_sequentially(SMALL.entities[0][:3])
    field.press("ArrowDown")
    field.press("ArrowDown")
    field.press("Enter")
    assert page.locator(".answer h2").count() == 0, "Enter asked with what was typed, not with what the arrows chose"
    while not held:
        page.wait_for_timeout(50)
    held[-1].continue_()  # a later look-up ends those before it
    expect(field).to_have_attribute("aria-activedescendant", "ask-entity-1")


def test_a_question_reads_as_a_fact_with_a_gap_in_both_directions(visit: Visit) -> None:
    page = fill_in(visit, "N14228", "departs EWR for")
    preview = page.locator(".preview")
    expect(preview).to_have_text("N14228 · departs EWR for · ? · next")
    page.get_by_label("? · relation · object").check()
    expect(preview).to_have_text("? · departs EWR for · N14228 · next")


def test_escape_empties_the_field_and_the_preview(visit: Visit) -> None:
    page = fill_in(visit, "Somebody", RELATION)
    page.get_by_label("Subject", exact=True).focus()
    page.keyboard.press("Escape")
    if page.get_by_label("Subject", exact=True).input_value():  # the first one closed the list
        page.keyboard.press("Escape")
    expect(page.locator(".preview")).to_have_text(f"… · {RELATION} · ? · next")


def test_a_name_that_nobody_knows_is_answered_from_its_letters(visit: Visit) -> None:
    page = visit.open("#/ask/g")
    page.get_by_label("? · relation · object").check()
    page.get_by_label("Object", exact=True).fill("Zzyzx Qwertz")
    page.get_by_label("Relation", exact=True).fill(RELATION)
    page.get_by_label("Candidates").fill("3")
    send(page)
    expect(page.locator(".ranking tbody tr")).to_have_count(3)
    expect(page.locator(".answer .badge")).to_have_text("newcomer")
    expect(page.locator(".answer")).to_contain_text("has never been seen")


def test_the_beginning_of_a_name_is_not_asked_about_before_one_has_said_so(visit: Visit) -> None:
    page = visit.open("#/ask/g")
    page.get_by_label("Subject", exact=True).fill("a")
    known = page.locator("#ask-entity-list [role=option]").first.inner_text()
    page = fill_in(visit, known[:-1], RELATION)
    send(page)
    doubt = page.get_by_role("alert")
    expect(doubt).to_contain_text("has never been seen in this graph")
    expect(page.locator(".ranking")).to_have_count(0)
    doubt.get_by_role("button", name=known, exact=True).click()
    expect(page.locator(".answer h2")).to_contain_text(known)
    expect(page.locator(".answer .badge")).to_have_count(0)
    page = fill_in(visit, known[:-1], RELATION)
    send(page)
    doubt.get_by_role("button", name="Ask as a newcomer").click()
    expect(page.locator(".answer .badge")).to_have_text("newcomer")


def test_a_relation_that_is_none_is_refused_in_the_form_with_the_nearest(visit: Visit) -> None:
    page = fill_in(visit, "Zzyzx Qwertz", RELATION[:-1] + "x")
    send(page)
    doubt = page.get_by_role("alert")
    expect(doubt).to_contain_text("is no relation of this graph")
    doubt.get_by_role("button", name=RELATION, exact=True).click()
    expect(page.locator(".answer h2")).to_contain_text(RELATION)
    page.get_by_label("Relation", exact=True).fill("nothing like that")
    send(page)
    expect(doubt).to_contain_text("is no relation of this graph")
    visit.open("#/deadletters")
    page.locator(".letter").first.wait_for()
    assert page.locator(".letter", has_text="nothing like that").count() == 0
