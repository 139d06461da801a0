from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from docs.examples.make_shipments import write as write_shipments
from docs.generator import PAGES, REFERENCE, api
from docs.generator.markdown import described

PUBLIC = [(name, public) for name in api.PACKAGES for public in importlib.import_module(name).__all__]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_says_what_the_code_says(name: str) -> None:
    assert (REFERENCE / name).read_text("utf-8") == PAGES[name](), "run `make reference`"


def test_the_reference_has_no_other_pages() -> None:
    assert {page.name for page in REFERENCE.iterdir()} == set(PAGES)


@pytest.mark.parametrize(("there", "about"), [({"a", "b"}, {"a"}), ({"a"}, {"a", "b"})])
def test_what_is_not_described_or_described_but_gone_is_refused(there: set[str], about: set[str]) -> None:
    with pytest.raises(ValueError, match="b"):
        described("things", there, about)


def test_the_tutorials_events_are_those_that_their_script_makes(tmp_path: Path) -> None:
    write_shipments(tmp_path / "made.csv")
    shipped = REFERENCE.parent / "examples" / "shipments.csv"
    assert (tmp_path / "made.csv").read_bytes() == shipped.read_bytes()


def entry(package: str, name: str) -> str:
    """What the page says about a public name: in its package, or where a link from there leads."""
    page = (REFERENCE / "api.md").read_text("utf-8")
    section = re.split(rf"^## {package} .*$", page, flags=re.MULTILINE)[1].split("\n## ")[0]
    link = re.search(rf"\[`{name}`\]\(#(\S+)\)", section)
    heading = rf"^### .*#{re.escape(link[1])} .*$" if link else rf"^### `{name}` .*$"
    return re.split(heading, page if link else section, flags=re.MULTILINE)[1].split("\n### ")[0].split("\n## ")[0]


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_a_public_name_is_on_the_page_with_its_signature_and_docstring(package: str, name: str) -> None:
    said = entry(package, name)
    thing = getattr(importlib.import_module(package), name)
    if isinstance(thing, str):
        assert f"{name}: str" in said
        return
    assert f"{name}(" in said and str(inspect.getdoc(thing)) in said
    if name in ("AdatkgError", "InputError", "TextEncoder"):  # errors and a protocol: nobody makes one
        return
    called = said.split("```")[1]
    assert all(re.search(rf"\b{one}\b", called) for one in inspect.signature(thing).parameters)


def test_defaults_of_this_machine_are_not_on_the_page() -> None:
    def read(path: Path, environ: object = SimpleNamespace(secret="here"), *, k: int = 3) -> None: ...

    assert api.signature("read", read) == "read(path: Path, environ: object = ..., *, k: int = 3) -> None"


def test_a_public_name_without_a_docstring_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("replay").publish, "__doc__", None)
    with pytest.raises(ValueError, match=r"replay\.publish: has no docstring"):
        api.page()
