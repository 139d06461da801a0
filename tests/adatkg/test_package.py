"""The product's face: what `import adatkg` gives, and what it costs."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import adatkg


def test_every_public_name_can_be_imported_from_the_package() -> None:
    for name in adatkg.__all__:
        assert getattr(adatkg, name) is not None, name
    assert set(dir(adatkg)) == set(adatkg.__all__)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Nonsense"):
        adatkg.Nonsense  # noqa: B018


def test_importing_the_package_imports_none_of_the_heavy_libraries() -> None:
    heavy = ("torch", "faust", "aiokafka", "kafka", "numpy", "transformers")
    code = f"import sys, adatkg; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("command", [["adatkg"], [sys.executable, "-m", "adatkg"]], ids=["script", "module"])
def test_the_command_tells_its_version_however_it_is_started(command: list[str]) -> None:
    if command == ["adatkg"]:
        command = [re.sub(r"[^/\\]+$", "adatkg", sys.executable)]
    told = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    assert told == f"adatkg {adatkg.__version__}\n"


def test_the_version_is_one_that_can_be_released() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", adatkg.__version__)
