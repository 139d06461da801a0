from __future__ import annotations

from pathlib import Path

import pytest

from docs.examples.make_shipments import write as write_shipments
from docs.generator import PAGES, REFERENCE
from docs.generator.markdown import described


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
