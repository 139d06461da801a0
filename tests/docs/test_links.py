from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from markdown import Markdown

from tests.docs.command_lines import REPOSITORY

# Those of the site are also checked where it is built; these are read on their own, too, for instance in a checkout.
PAGES = [*REPOSITORY.glob("*.md"), *sorted(REPOSITORY.glob("docs/**/*.md"))]
_FENCED = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)|<img [^>]*src=\"([^\"]+)\"")


def links_of(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", _FENCED.sub("", page.read_text("utf-8")))
    return [target or image for target, image in _LINK.findall(text)]


@cache
def anchors_of(page: Path) -> set[str]:
    html = Markdown(extensions=["toc", "attr_list", "tables", "md_in_html"]).convert(
        _FENCED.sub("", page.read_text("utf-8"))
    )
    return set(re.findall(r'id="([^"]+)"', html))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    dead = []
    for link in links_of(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            dead.append(link)
    assert dead == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Here\n\n[there](#there) and [gone](gone.md), not `[this](one)`\n```text\n[nor](this)\n```\n")
    assert links_of(page) == ["#there", "gone.md"]
    assert anchors_of(page) == {"here"}
