"""What a card says while its truth is awaited, and when its time is over."""

from __future__ import annotations

from typing import Any

import orjson
from playwright.sync_api import Route, expect

from tests.support.visit import Visit

ROW: dict[str, Any] = {
    "id": "0-1",
    "graph": "g",
    "t": 5,
    "t_iso": "2013-01-01T05:00:00",
    "s": "N14228",
    "r": "departs EWR for",
    "o": None,
    "top": [{"entity": "IAH", "probability": 0.5}],
    "model": "m",
    "cold_start": False,
    "gate": 0.5,
    "interactions": 3,
    "late": False,
    "truths": [],
}
WINDOW = {"asked_next": True, "until": 8, "until_iso": "2013-01-01T08:00:00", "within": "3 hours"}
ROWS = [
    ROW,  # of a worker that says nothing of ends
    ROW | WINDOW | {"id": "0-2", "ended": False},
    ROW | WINDOW | {"id": "0-3", "ended": True},
    ROW | {"id": "0-4", "s": None, "o": "IAH", "ended": True, "within": None},
]


def test_a_card_says_not_come_yet_only_until_its_time_is_over(visit: Visit) -> None:
    def answer(route: Route) -> None:
        route.fulfill(content_type="application/json", body=orjson.dumps({"predictions": ROWS[::-1]}))

    visit.page.route("**/api/graphs/g/predictions", answer)
    page = visit.open()
    page.locator("#graph option[value='g']").wait_for(state="attached")
    page.locator("#graph").select_option("g")
    page.get_by_role("button", name="Pause").click()
    says = {"0-1": "Not come yet.", "0-2": "Not come yet.", "0-3": "Nothing within 3 hours."}
    for id, text in (says | {"0-4": "Nothing within its time."}).items():
        expect(page.locator(f".prediction[data-id='{id}'] .truth")).to_have_text(text)
    expect(page.locator(".prediction[data-id='0-1'] .question")).to_have_text(
        "N14228 · departs EWR for · ? · 2013-01-01 05:00"
    )
    expect(page.locator(".prediction[data-id='0-2'] .question")).to_have_text(
        "N14228 · departs EWR for · ? · next, until 2013-01-01 08:00"
    )
    expect(page.locator(".prediction[data-id='0-4'] .question")).to_contain_text("? · departs EWR for · IAH")
    assert page.locator(".prediction[data-id='0-1'] time").get_attribute("title") == "tick 5"
    tell = """async detail => {
      const { news } = await import("/static/store.js");
      news.dispatchEvent(new CustomEvent("ended", { detail }));
    }"""
    page.evaluate(tell, {"graph": "g", "id": "0-2", "within": "3 hours"})
    expect(page.locator(".prediction[data-id='0-2'] .truth")).to_have_text("Nothing within 3 hours.")
