"""What is promised is held by tests that exist."""

from __future__ import annotations

import re

import pytest

from tests.docs.command_lines import REPOSITORY

PROMISES = REPOSITORY / "docs" / "explanation" / "guarantees.md"
PAGES = (PROMISES, REPOSITORY / "docs" / "explanation" / "threats.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page: object) -> None:
    files = (REPOSITORY / "tests").rglob("test_*.py")
    known = {name for file in files for name in re.findall(r"def (test_\w+)\(", file.read_text("utf-8"))}
    named = set(re.findall(r"`(test_\w+)`", page.read_text("utf-8")))  # type: ignore[attr-defined]
    assert len(named) >= 5 and named - known == set()


def test_every_promise_names_a_test_that_holds_it() -> None:
    section = PROMISES.read_text("utf-8").partition("## What you can rely on")[2].partition("\n## ")[0]
    promises = [part for part in section.split("\n\n") if part.startswith("**")]
    assert len(promises) >= 10
    assert [promise.splitlines()[0] for promise in promises if "Held by `test_" not in promise] == []
