"""The charts: swaps, the time they show, what can be taken along, and what stands there before they are drawn."""

from __future__ import annotations

import csv
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.support.live_dashboard import SECOND, TOKEN, Live
from tests.support.running_system import VERSION
from tests.support.visit import Visit, visiting

STATES = "[...document.querySelectorAll('.tile .chart')].map(chart => chart.dataset.state)"
PNG = b"\x89PNG"


def overview(visit: Visit) -> Page:
    """The overview of the graph that is being replayed, with its charts drawn."""
    page = visit.open()
    page.locator("#graph option[value='g']").wait_for(state="attached")
    page.locator("#graph").select_option("g")
    visit.until(f"{STATES}.some(state => state === 'drawn')")
    return page


def promote(page: Page, version: str) -> None:
    page.get_by_role("button", name=f"Promote {version}").click()
    expect(page.locator("#version")).to_have_text(version)


def test_a_swap_is_marked_with_its_version_in_the_scores_and_in_an_entitys_gate(visit: Visit) -> None:
    page = visit.open("#/models/g")
    page.evaluate("value => sessionStorage.setItem('adatkg-token', value)", TOKEN)
    promote(page, SECOND)
    page.get_by_role("link", name="Overview", exact=True).click()
    page.locator("#graph").select_option("g")
    expect(page.locator(".slice .annotation-text", has_text=SECOND).first).to_be_visible()
    # One whose questions both versions have answered.
    asked = "path => fetch(path).then(answer => answer.json())"
    rows = page.evaluate(asked, "/api/graphs/g/predictions")["predictions"]
    names = {row["s"] or row["o"]: None for row in rows}
    traces = {name: page.evaluate(asked, f"/api/graphs/g/entity?name={name}")["trace"] for name in names}
    both = next(name for name, trace in traces.items() if {VERSION, SECOND} <= {point["model"] for point in trace})
    visit.open(f"#/entity/g/{both}")
    expect(page.locator(".entity-page .annotation-text", has_text=SECOND).first).to_be_visible()
    visit.open("#/models/g")
    promote(page, VERSION)


def test_the_charts_show_the_time_that_was_chosen_and_give_it_as_a_table(visit: Visit, tmp_path: Path) -> None:
    page = overview(visit)
    visit.until("Number(document.querySelector('.slice .number').textContent) > 0")
    page.get_by_label("1 min", exact=True).check()
    with page.expect_download() as taking:
        page.get_by_role("button", name="Download All questions as CSV").click()
    taking.value.save_as(tmp_path / "all.csv")
    rows = list(csv.DictReader((tmp_path / "all.csv").open(newline="", encoding="utf-8")))
    assert taking.value.suggested_filename == "g-all-questions.csv"
    assert list(rows[0]) == ["time", "model", "heuristic", "answers", "stream date", "version"]
    assert 0 < float(rows[-1]["model"]) <= 1 and rows[-1]["version"] == VERSION
    assert rows[-1]["stream date"].startswith("tick ")
    assert len(rows) <= 61, "a second is a sample"


def test_a_chart_can_be_taken_along_as_a_picture(visit: Visit, tmp_path: Path) -> None:
    page = overview(visit)
    with page.expect_download() as taking:
        page.get_by_role("button", name="Download Throughput as PNG").click()
    taking.value.save_as(tmp_path / "speed.png")
    assert (tmp_path / "speed.png").read_bytes().startswith(PNG)


def test_points_that_rest_on_few_answers_do_not_stretch_the_axis(visit: Visit) -> None:
    page = visit.open()
    reach = "async given => (await import('/static/axes.js')).reach(...given)"
    assert page.evaluate(reach, [[[1.0, 0.3, 0.31]], [False, True, True]])[1] < 0.4
    assert page.evaluate(reach, [[[1.0, 0.3, 0.31]], [False, False, False]])[1] > 1, "until there are others"


def test_before_they_are_drawn_charts_have_the_colours_of_the_theme_and_numbers_are_there(
    browser: Browser, live: Live
) -> None:
    with visiting(browser, live.address, color_scheme="dark", reduced_motion="reduce") as visit:
        visit.expected.append("Failed to load resource: net::ERR_BLOCKED_BY_CLIENT")
        session = visit.page.context.new_cdp_session(visit.page)
        session.send("Network.enable")
        session.send("Network.setBlockedURLs", {"urls": ["*plotly.min.js*"]})
        page = visit.open()
        page.locator("#graph option[value='g']").wait_for(state="attached")
        page.locator("#graph").select_option("g")
        visit.until("document.querySelector('.tile .number').textContent !== '–'")
        visit.until(f"{STATES}.every(state => state === 'failed')")
        brightness = """[...document.querySelectorAll('.card, .chart')].flatMap(element =>
          [getComputedStyle(element), getComputedStyle(element, '::before')].flatMap(style =>
            [...`${style.backgroundColor} ${style.backgroundImage}`.matchAll(/rgb\\((\\d+), (\\d+), (\\d+)\\)/g)]
              .map(found => Math.max(...found.slice(1).map(Number)))))"""
        found = page.evaluate(brightness)
        assert found and max(found) < 80, "nothing is white in the dark"
