"""That the checks of the structure find what they are for; `make lint` runs them on the code itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.structure import FILE_LINES, FUNCTION_LINES, problems


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout in which everything is as it should be."""
    for path, text in {
        "streams/__init__.py": "__all__ = ['Client']",
        "streams/settings.py": "from streams.kafka import Topics",
        "streams/kafka/__init__.py": "from streams.kafka.topics import Topics\n__all__ = ['Topics']",
        "streams/kafka/topics.py": "class Topics: ...",
        "streams/kafka/producer.py": "from streams.kafka.topics import Topics",
        "adatkg/__init__.py": "__all__ = ['x']",
        "adatkg/console/__init__.py": "",
        "adatkg/console/output.py": "from streams.settings import load_settings",
        "adatkg/main.py": "from adatkg.console.output import stdout",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_folders_that_are_entered_by_their_doors_are_accepted(root: Path) -> None:
    assert list(problems(root)) == []


@pytest.mark.parametrize(
    "line",
    [
        "from streams.kafka.topics import Topics",
        "from streams.kafka import topics",
        "import streams.kafka.topics",
        "def late() -> None:\n    from streams.kafka.topics import Topics",
    ],
)
def test_an_import_past_a_door_is_named_with_its_line_and_remedy(root: Path, line: str) -> None:
    (root / "adatkg" / "main.py").write_text(f"import os\n{line}\n")
    (found,) = problems(root)
    assert found.startswith(f"adatkg/main.py:{2 + line.count(chr(10))}: streams.kafka.topics is behind the door")
    assert "import the name from streams.kafka," in found


def test_a_folder_without_a_list_of_names_is_named(root: Path) -> None:
    (root / "streams" / "kafka" / "__init__.py").write_text("")
    assert any(one.startswith("streams/kafka/__init__.py:1: the folder has no door") for one in problems(root))


def test_a_file_that_is_too_long_is_named(root: Path) -> None:
    (root / "adatkg" / "main.py").write_text("x = 1\n" * FILE_LINES)
    assert list(problems(root)) == []
    (root / "adatkg" / "main.py").write_text("x = 1\n" * (FILE_LINES + 1))
    (found,) = problems(root)
    assert found.startswith("adatkg/main.py:1: 351 lines")


def test_a_function_that_is_too_long_is_named_but_its_signature_does_not_count(root: Path) -> None:
    signature = "\n\ndef work(\n    one: int,\n    two: int,\n) -> None:\n"
    (root / "adatkg" / "main.py").write_text(signature + "    x = 1\n" * FUNCTION_LINES)
    assert list(problems(root)) == []
    (root / "adatkg" / "main.py").write_text(signature + "    x = 1\n" * (FUNCTION_LINES + 1))
    (found,) = problems(root)
    assert found.startswith("adatkg/main.py:3: the body of work has 61 lines")
