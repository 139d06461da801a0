from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from tests.docs.command_lines import REPOSITORY


class Heard(logging.Handler):
    """Keeps what is said from warnings on."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[str]]]:
    """The site, and every warning that its making gave."""
    folder, heard = tmp_path_factory.mktemp("site"), Heard()
    logging.getLogger("mkdocs").addHandler(heard)
    config = load_config(str(REPOSITORY / "mkdocs.yml"), site_dir=str(folder), strict=True)
    build(config)
    yield folder, heard.said
    logging.getLogger("mkdocs").removeHandler(heard)


def test_the_site_builds_without_a_warning(built: tuple[Path, list[str]]) -> None:
    folder, warnings = built
    assert warnings == []
    assert (folder / "index.html").is_file()
    assert (folder / "search" / "search_index.json").is_file()


def test_every_page_can_be_found_in_the_navigation(built: tuple[Path, list[str]]) -> None:
    index = (built[0] / "index.html").read_text("utf-8")
    pages = {page.relative_to(built[0]).as_posix() for page in built[0].rglob("*.html")} - {"404.html"}
    assert {page for page in pages if f'href="{page}"' not in index} == set()


def test_nothing_is_loaded_from_elsewhere(built: tuple[Path, list[str]]) -> None:
    loaded = re.compile(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"?(?:https?:)?//[^>]*>")
    imports = re.compile(r"@import|url\((?:\"|')?(?:https?:)?//")
    found = [(page.name, match[0]) for page in built[0].rglob("*.html") for match in loaded.finditer(page.read_text())]
    found += [(page.name, match[0]) for page in built[0].rglob("*.css") for match in imports.finditer(page.read_text())]
    assert found == []


def test_what_the_pages_say_in_comments_to_the_tests_shows_nowhere(built: tuple[Path, list[str]]) -> None:
    shown = re.compile(r"<!--.*?-->", re.DOTALL)
    for page in built[0].rglob("*.html"):
        assert "run: " not in shown.sub("", page.read_text("utf-8")), page.name


@pytest.mark.parametrize("name", ["accent", "text", "muted", "line"])
def test_the_site_has_the_colours_of_the_dashboard(name: str) -> None:
    dashboard = (REPOSITORY / "streams" / "dashboard" / "static" / "style.css").read_text("utf-8")
    pair = re.search(rf"--{name}: light-dark\((#\w+), (#\w+)\)", dashboard)
    assert pair is not None
    light, _, dark = (REPOSITORY / "docs" / "stylesheets" / "colours.css").read_text("utf-8").partition('"slate"')
    assert pair[1] in light
    assert pair[2] in dark
