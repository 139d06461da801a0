"""What the page for trouble quotes is what the programs say."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.docs.command_lines import REPOSITORY

PAGE = REPOSITORY / "docs" / "how-to" / "troubleshooting.md"
PACKAGES = ("adatkg", "adatkg_core", "replay", "streams", "trainer")


@cache
def said() -> tuple[str, ...]:
    """Every text in the code; an f-string comes in the pieces between its values."""
    sources = [path for package in PACKAGES for path in sorted((REPOSITORY / package).rglob("*.py"))]
    trees = (ast.parse(path.read_text("utf-8")) for path in sources)
    return tuple(
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def quoted(text: str) -> list[str]:
    """The code spans of the lines that quote; `…` stands for a value."""
    return [span for line in text.splitlines() if line.startswith(">") for span in re.findall(r"`([^`]+)`", line)]


def unsaid(quote: str) -> list[str]:
    """The pieces of a quote that stand in no text of the code."""
    pieces = [piece.strip(" ;,:()") for piece in quote.split("…")]
    return [piece for piece in pieces if piece and not any(piece in text for text in said())]


@pytest.mark.parametrize("quote", quoted(PAGE.read_text("utf-8")))
def test_what_is_quoted_is_what_a_program_says(quote: str) -> None:
    assert unsaid(quote) == []


def test_a_text_that_no_program_says_is_found() -> None:
    assert quoted("> log: `one …` and `two`\n`three`") == ["one …", "two"]
    assert unsaid("unknown relation …: the present model is asleep") == ["the present model is asleep"]
