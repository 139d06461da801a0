from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from adatkg_core.messages import Reason

ROOT = Path(__file__).parents[3]
PRODUCT = ("adatkg_core", "streams", "trainer", "replay", "adatkg")


def product_code() -> Iterator[ast.AST]:
    """Every node of the product's code but for the declaration of the reasons."""
    for package in PRODUCT:
        for file in (ROOT / package).rglob("*.py"):
            if file.name != "reasons.py":
                yield from ast.walk(ast.parse(file.read_text("utf-8")))


def test_every_reason_is_given_somewhere() -> None:
    given = {
        node.attr
        for node in product_code()
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason"
    }
    assert given == {reason.name for reason in Reason}


def test_no_code_spells_a_reason_out() -> None:
    words = {reason.value for reason in Reason if "-" in reason}  # `late` is also the name of a setting
    spelt = {node.value for node in product_code() if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert not words & spelt


@pytest.mark.parametrize("reason", Reason)
def test_a_reason_is_its_word_and_says_what_it_means_and_what_helps(reason: Reason) -> None:
    assert f"{reason}" == reason.value == reason.name.lower().replace("_", "-")
    assert reason.meaning.endswith(".") and reason.remedy.endswith(".")
