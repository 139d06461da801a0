from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import page_before
from tests.docs.command_lines import REPOSITORY
from tests.docs.session import Session

PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted(REPOSITORY.glob("docs/**/*.md"))]
pytestmark = pytest.mark.timeout(900)  # a page that others go on from trains for real


class Reader:
    """Follows pages, each once, in the session of the page that they go on from."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._sessions: dict[Path, Session] = {}

    def follow(self, page: Path) -> None:
        before = page_before(page)
        if before is not None and before not in self._sessions:
            self.follow(before)
        if page in self._sessions:
            return
        session = self._sessions[before] if before else Session(self._folders.mktemp(page.stem))
        self._sessions[page] = session
        session.follow(page)

    def close(self) -> list[str]:
        return [problem for session in set(self._sessions.values()) for problem in session.close()]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    made = Reader(tmp_path_factory)
    yield made
    problems = made.close()
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_what_a_page_says_works_as_it_stands_there(reader: Reader, page: Path) -> None:
    reader.follow(page)
