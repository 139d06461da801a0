"""The pictures of the dashboard in docs/images: ICEWS14 through the whole running system, seen by Chromium.

Run with `python -m tests.browser.screenshots`. Two small models are trained first, which takes some minutes; with
`--models DIR` they are kept for the next time.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Browser, Page, expect, sync_playwright

from adatkg_core.storage import ModelStore
from streams.embedded_broker import Broker
from tests.support.running_system import World, until
from tests.support.visit import chromium, visiting

IMAGES = Path(__file__).parents[2] / "docs" / "images"
NAME = "icews14"
TOKEN = "for-the-pictures"
ENTITY = "Manohar Lal Khattar"  # a newcomer in the first week of the replay
QUESTION = {
    "subject": "Police (Kenya)",
    "relation": "Arrest, detain, or charge with legal action",
    "time": "2014-12-24",
}
LARGEST = 250_000  # bytes of a picture
WIDE = {"width": 1440, "height": 900}
# JavaScript: each chart that can be seen has its lines; no news that nobody wants to find in a manual.
DRAWN = """[...document.querySelectorAll(".chart")].every((chart) =>
  !chart.checkVisibility() || chart.getBoundingClientRect().top > innerHeight || chart.querySelector(".main-svg"))"""
FIT_FOR_ALL = "!/assault|kill|torture/i.test(document.querySelector('.feed').textContent)"
PHONE = {"width": 390, "height": 844}
BEFORE_SWAP, AFTER_SWAP = 150, 130  # seconds; together so long that the entity has been named a dozen times


@dataclass(frozen=True)
class Shot:
    """A picture: of which route, how large, in which theme."""

    route: str
    viewport: dict[str, int]
    theme: str = "light"


SHOTS = {
    "overview": Shot("#/", WIDE),
    "overview-dark": Shot("#/", WIDE, "dark"),
    "entity": Shot(f"#/entity/{NAME}/{quote(ENTITY)}", WIDE),
    "models": Shot(f"#/models/{NAME}", {"width": 1280, "height": 560}),
    "ask": Shot(f"#/ask/{NAME}?" + "&".join(f"{key}={quote(text)}" for key, text in QUESTION.items()), WIDE, "dark"),
    "phone": Shot("#/", PHONE),
}


def main() -> None:
    """Train what is missing, run the system for a few minutes, take the pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=Path, help="folder that keeps the two models")
    parser.add_argument("--out", type=Path, default=IMAGES)
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adatkg-screenshots-")))
        models = (given.models or folder / "models").resolve()
        first, second = two_versions(models)
        ModelStore(str(models)).make_present(NAME, first)
        broker = stack.enter_context(Broker(folder / "broker", port=0))
        world = World(broker.bootstrap, folder)
        stack.callback(world.close)
        world.models = models
        worker = world.start_worker(web_token=TOKEN, group="adatkg-worker", snapshot_seconds=30)
        replay = start_replay(world)
        stack.callback(end, replay)
        until(worker.has_answered, "the worker answers")
        browser = stack.enter_context(chromium(stack.enter_context(sync_playwright())))
        address = f"http://127.0.0.1:{worker.port}"
        time.sleep(BEFORE_SWAP)
        swap(browser, address, second)
        time.sleep(AFTER_SWAP)
        given.out.mkdir(parents=True, exist_ok=True)
        for name, shot in SHOTS.items():
            take(browser, address, shot, given.out / f"{name}.png")


def two_versions(models: Path) -> tuple[str, str]:
    """The versions of two models of different seeds; they are trained where they are not there yet."""
    store = ModelStore(str(models))
    for seed in (1, 2):
        if len(store.versions(NAME)) < seed:
            run("train", NAME, "--config", "tiny", "--seed", seed, "--models", models, "--graph", NAME)
    versions = sorted(store.versions(NAME), key=lambda version: str(store.note(NAME, version).get("created")))
    return versions[0], versions[1]


def run(*arguments: Any) -> None:
    """A command of ours, to its end."""
    subprocess.run([sys.executable, "-m", "adatkg", *map(str, arguments)], check=True)


def start_replay(world: World) -> subprocess.Popen[bytes]:
    """Some weeks of the test split with questions, a day every ten seconds."""
    flags = ["--from", "2014-10-14", "--queries", "--speed", "0.1"]
    place = ["--bootstrap", world.bootstrap, "--topic-prefix", world.prefix]
    return subprocess.Popen([sys.executable, "-m", "adatkg", "replay", NAME, *flags, *place])


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop a replay as Ctrl-C would."""
    process.send_signal(signal.SIGINT)
    process.wait()


def swap(browser: Browser, address: str, version: str) -> None:
    """Let the second model answer, so that the charts have something to mark."""
    with visiting(browser, address) as visit:
        page = visit.open(f"#/models/{NAME}")
        page.get_by_role("button", name=f"Promote {version}").click()
        page.get_by_role("dialog").get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("#version")).to_have_text(version, timeout=600_000)


def take(browser: Browser, address: str, shot: Shot, path: Path) -> None:
    """Open a route, wait until it has all it will have, and keep what is seen."""
    with visiting(browser, address, viewport=shot.viewport, color_scheme=shot.theme, reduced_motion="reduce") as visit:
        page = visit.open(shot.route)
        expect(page.locator("#connection")).to_have_text("live")
        ready(page, shot)
        visit.until(DRAWN)
        if shot.route == "#/":
            visit.until(FIT_FOR_ALL)
        if shot.viewport == PHONE:
            page.evaluate("document.querySelector('.feed').scrollIntoView()")
        page.screenshot(path=path)
    size = path.stat().st_size
    print(f"{path}: {size:,} bytes")
    assert size <= LARGEST, f"{path} has {size} bytes, more than {LARGEST}: take a smaller viewport"


def ready(page: Page, shot: Shot) -> None:
    """Wait for what comes last on each page."""
    if shot.route == "#/":
        expect(page.locator(".truth.known")).not_to_have_count(0)
    elif "/ask/" in shot.route:
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.locator(".ranking tbody tr")).to_have_count(10)
    elif "/entity/" in shot.route:
        expect(page.locator(".fact-list li")).not_to_have_count(0)
    elif "/models/" in shot.route:
        expect(page.locator("tr.present")).to_have_count(1)


if __name__ == "__main__":
    main()
