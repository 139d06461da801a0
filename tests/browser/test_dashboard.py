"""What a visitor sees and does, from a browser over the whole running system."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.live_dashboard import NOT_JSON, ODD, ODD_NAMES, ODD_RELATIONS, SECOND, TOKEN, UNKNOWN, WORSE, Live
from tests.support.running_system import GRAPH as SMALL
from tests.support.running_system import VERSION, World, stream_of
from tests.support.visit import Visit, visiting

ODD_PATH = quote(ODD, safe="")


def status(code: int) -> str:
    """What the browser itself says in the console about an answer of this status."""
    return f"^error: Failed to load resource: the server responded with a status of {code} "


def text_of(page: Page, selector: str) -> str:
    return page.locator(selector).first.inner_text()


def row_ids(page: Page) -> list[str]:
    return [str(row.get_attribute("data-id")) for row in page.locator(".prediction").all()]


def choose_g(visit: Visit) -> Page:
    """The overview of the graph that is being replayed, as one who picks it."""
    page = visit.open()
    page.locator("#graph option[value='g']").wait_for(state="attached")
    page.locator("#graph").select_option("g")
    page.locator(".prediction").first.wait_for()
    return page


def test_figures_charts_and_predictions_move_while_the_stream_runs(visit: Visit) -> None:
    page = choose_g(visit)
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#version")).to_have_text(VERSION)
    assert page.locator(".speed .chart").count() == 3
    visit.until("document.querySelectorAll('.chart .main-svg').length > 0")
    watermark, rows = text_of(page, "#watermark"), row_ids(page)
    path = "document.querySelector('.speed .chart .scatterlayer path.js-line')?.getAttribute('d')"
    line = visit.until(path)
    visit.until("before => document.querySelector('#watermark').textContent !== before", watermark)
    visit.until(f"before => {path} !== before", line)
    visit.until("before => !before.includes(document.querySelector('.prediction').dataset.id)", rows)
    visit.until("Number(document.querySelector('.slice .number').textContent) > 0")


def test_the_truth_appears_beside_the_prediction_with_both_ranks(visit: Visit) -> None:
    page = choose_g(visit)
    truth = page.locator(".truth.known").first
    expect(truth).to_contain_text("It was ")
    expect(truth).to_contain_text("heuristic: ")
    page.get_by_role("button", name="Pause").click()
    for row in page.locator(".prediction:has(.truth.known)").all():
        came = row.locator(".truth .entity").all_inner_texts()
        listed = [str(one.get_attribute("data-entity")) for one in row.locator(".candidates > li").all()]
        marked = [str(one.get_attribute("data-entity")) for one in row.locator(".candidates > li.true").all()]
        assert set(marked) == set(came) & set(listed)


def test_a_pause_holds_the_rows_still_and_says_how_many_wait(visit: Visit) -> None:
    page = choose_g(visit)
    page.get_by_role("button", name="Pause").click()
    rows = row_ids(page)
    expect(page.locator(".feed .section-head .hint")).to_contain_text("newer ones")
    assert row_ids(page) == rows
    page.get_by_role("button", name="Go on").click()
    visit.until("before => !before.includes(document.querySelector('.prediction').dataset.id)", rows)


def test_rows_stay_while_the_mouse_or_the_focus_is_on_them(visit: Visit) -> None:
    page = choose_g(visit)
    page.locator(".prediction").first.hover()
    expect(page.locator(".feed .section-head .hint")).to_contain_text("while you read")
    page.mouse.move(0, 0)
    expect(page.locator(".feed .section-head .hint")).not_to_contain_text("Held still")
    page.locator(".prediction a").first.focus()
    rows = row_ids(page)
    expect(page.locator(".feed .section-head .hint")).to_contain_text("newer ones")
    assert row_ids(page) == rows


def test_an_entity_opens_from_a_prediction_and_leads_on(visit: Visit) -> None:
    page = choose_g(visit)
    page.get_by_role("button", name="Pause").click()
    link = page.locator(".question .entity").first
    entity = link.inner_text()
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(entity)
    expect(page.locator(".numbers dd").first).not_to_have_text("0")
    expect(page.locator(".fact-list li").first).to_contain_text(entity)
    visit.until("document.querySelectorAll('.entity-page .chart .main-svg').length > 0")
    other = page.locator(".fact-list a").first
    name = other.inner_text()
    other.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    page.get_by_role("link", name="Ask with it as subject").click()
    expect(page.get_by_label("Subject", exact=True)).to_have_value(name)
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def test_promotion_is_refused_without_the_token_and_swaps_the_model_with_it(visit: Visit) -> None:
    visit.expected.append(status(401))
    page = visit.open("#/models/g")
    page.get_by_role("button", name=f"Promote {SECOND}").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill("not the token")
    dialog.get_by_role("button", name=f"Promote {SECOND}").click()
    expect(dialog.get_by_role("alert")).to_contain_text("token")
    expect(page.locator("#version")).to_have_text(VERSION)
    dialog.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.locator("#version")).to_have_text(SECOND)
    expect(page.locator(f"tr[data-version='{SECOND}']")).to_have_class("present")
    assert (
        page.evaluate("Object.keys(localStorage).some(key => localStorage[key].includes('a-token-for-tests'))") is False
    )
    # The token is known in this tab now, and nothing is asked again.
    page.get_by_role("button", name="Roll back").click()
    expect(page.locator("#version")).to_have_text(VERSION)
    expect(dialog).to_have_count(0)


def test_a_bundle_that_did_worse_answers_only_for_one_who_insists(visit: Visit) -> None:
    page = visit.open("#/models/g")
    visit.page.evaluate("value => sessionStorage.setItem('adatkg-token', value)", TOKEN)
    row = page.locator(f"tr[data-version='{WORSE}']")
    expect(row).to_contain_text("refused")
    expect(row).to_contain_text("0.100")
    row.get_by_text("Promote anyway").click()
    expect(page.locator("#version")).to_have_text(WORSE)
    expect(row).to_contain_text("answers now")
    page.get_by_role("button", name="Roll back").click()
    expect(page.locator("#version")).to_have_text(VERSION)


def test_a_dead_letter_is_shown_as_it_came_and_can_be_tried_again(visit: Visit) -> None:
    page = visit.open("#/deadletters")
    letter = page.locator(".letter", has_text="unknown-relation").last
    expect(letter.locator("pre")).to_contain_text(UNKNOWN)
    letter.get_by_role("button").click()
    page.get_by_role("dialog").get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    expect(page.locator(".done")).to_contain_text("put back")
    visit.expected.append(status(400))
    broken = page.locator(".letter", has_text="not-json")
    expect(broken.locator("pre")).to_have_text(NOT_JSON.decode())
    broken.get_by_role("button").click()
    expect(page.get_by_role("alert")).to_contain_text("not JSON")
    assert_only_text(page)


@pytest.mark.parametrize("width", [1280, 320])
def test_names_with_quotes_brackets_and_emoji_are_text_everywhere(browser: Browser, live: Live, width: int) -> None:
    with visiting(browser, live.address, viewport={"width": width, "height": 800}) as visit:
        page = visit.open(f"#/models/{ODD_PATH}")
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Models of {ODD}")
        page.get_by_role("link", name="Overview", exact=True).click()
        expect(page.locator(".question", has_text="<u>new</u>")).to_be_visible()
        for relation in ODD_RELATIONS[:2]:
            expect(page.locator(".question .relation", has_text=relation).first).to_be_visible()
        assert_only_text(page)
        for name in ODD_NAMES:
            visit.open(f"#/entity/{ODD_PATH}/{quote(name, safe='')}")
            expect(page.get_by_role("heading", level=1)).to_have_text(name)
            expect(page.locator(".fact-list li").first).to_contain_text(name)
            assert_only_text(page)
        visit.open(f"#/ask/{ODD_PATH}")
        page.get_by_label("Subject", exact=True).fill("sons")
        expect(page.get_by_role("option", name=ODD_NAMES[2])).to_be_visible()
        page.get_by_role("option", name=ODD_NAMES[2]).click()
        page.get_by_label("Relation", exact=True).fill(ODD_RELATIONS[0])
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.locator(".answer h2")).to_contain_text(ODD_NAMES[2])
        assert_only_text(page)


def assert_only_text(page: Page) -> None:
    assert "injected" not in page.title().split(" · ")[-1] and page.title().endswith("AdaTKG Streams")
    injected = "main script, main img, main [onerror], main [onload], bdi *, pre *, .question b b, main u"
    assert page.locator(injected).count() == 0


def test_the_page_goes_on_by_itself_after_the_worker_was_killed(visit: Visit, live: Live) -> None:
    visit.expected.append(r"^error: Failed to load resource: net::ERR_")
    page = choose_g(visit)
    expect(page.locator("#connection")).to_have_text("live")
    live.restart_worker()
    expect(page.locator("#connection")).to_have_text("live")
    watermark = text_of(page, "#watermark")
    visit.until("before => document.querySelector('#watermark').textContent !== before", watermark)


def test_a_worker_without_events_or_token_says_what_to_do(browser: Browser, bootstrap: str, tmp_path: Path) -> None:
    world = World(bootstrap, tmp_path)
    world.add_model("g")
    worker = world.start_worker()
    with visiting(browser, f"http://127.0.0.1:{worker.port}") as visit:
        page = visit.open()
        expect(page.locator(".empty-title")).to_have_text("No graph has sent an event to this worker yet.")
        visit.open("#/deadletters")
        expect(page.locator(".empty-title")).to_have_text("No dead letters.")
        page.get_by_role("link", name="Overview", exact=True).click()
        world.publish([event for event in stream_of(SMALL, "g", slice(0, 3)) if b'"fact"' in event[1]])
        expect(page.locator(".feed .empty-title")).to_have_text("No query has been answered yet.")
        page.get_by_role("link", name="Models").click()
        expect(page.locator(".notice")).to_contain_text("ADATKG_STREAM_WEB_TOKEN")
        expect(page.locator("tr.present")).to_contain_text(VERSION)
        assert page.get_by_role("button", name="Promote").count() == 0
    worker.stop()
