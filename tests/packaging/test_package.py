"""What is released holds what is needed and nothing else, under one version, with dependencies that have two bounds."""

from __future__ import annotations

import re
import tarfile
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from adatkg_core.settings import shipped_configs
from tests.packaging.bounds import TESTS
from tests.packaging.build import ROOT, build
from tests.packaging.contents import digests, strays
from tests.packaging.versions import changelog_versions, declared_version

# Where each package of the wheel comes from.
PLACES = {
    "adatkg": "adatkg",
    "adatkg_benchmarks": "benchmarks",
    "adatkg_core": "adatkg_core",
    "replay": "replay",
    "streams": "streams",
    "trainer": "trainer",
}


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return table


def requirements() -> list[Requirement]:
    """Those of the package and of its extras, but for the extras themselves."""
    extras = project()["optional-dependencies"].values()
    every = [*project()["dependencies"], *(line for extra in extras for line in extra)]
    return [one for one in map(Requirement, every) if one.name != project()["name"]]


def files_of(folder: str) -> set[str]:
    """Every file of a package in the tree, as git would know it."""
    found = (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(ROOT / folder)) for path in found}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"), ROOT, "--no-build-isolation")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", tmp_path_factory.mktemp("sdist"), ROOT, "--no-build-isolation")


def test_the_wheel_holds_the_packages_whole_and_nothing_else(wheel: Path) -> None:
    inside = {name for name in digests(wheel) if not PurePosixPath(name).parts[0].endswith(".dist-info")}
    assert inside == {f"{package}/{file}" for package, folder in PLACES.items() for file in files_of(folder)}
    assert strays(wheel) == []
    assert {f"adatkg_core/settings/shipped/{name}.toml" for name in shipped_configs()} <= inside


def test_the_sdist_builds_the_same_wheel_and_holds_nothing_stray(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    assert strays(sdist) == []
    assert digests(build("wheel", tmp_path, sdist, "--no-build-isolation")) == digests(wheel)


def test_the_sdist_can_run_the_make_file(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"Makefile", "constraints.txt", "mkdocs.yml", "tests/packaging/install.py", "tests/conftest.py"}
    assert wanted <= inside


def test_the_files_are_named_after_the_newest_release_of_the_changelog(wheel: Path, sdist: Path) -> None:
    newest, *earlier = changelog_versions()
    assert newest == declared_version()
    assert all(Version(newest) > Version(version) for version in earlier)
    assert (wheel.name, sdist.name) == (f"adatkg-{newest}-py3-none-any.whl", f"adatkg-{newest}.tar.gz")


def test_every_dependency_has_a_bound_at_both_ends() -> None:
    for one in requirements():
        operators = sorted(bound.operator for bound in one.specifier)
        assert operators == ["<", ">="], f"{one}: give it a lower and an upper bound in pyproject.toml"


def test_the_pinned_versions_are_within_the_bounds() -> None:
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text("ascii").splitlines())
    for one in requirements():
        assert pins[one.name.lower()] in one.specifier, one


def test_only_versions_of_python_that_are_tried_are_claimed() -> None:
    claimed = {line.rpartition(" ")[2] for line in project()["classifiers"] if re.search(r":: 3\.\d+$", line)}
    assert claimed == {"3.11"}


def test_the_tests_of_the_bounds_are_there() -> None:
    assert [test for test in TESTS if not (ROOT / test).is_file()] == []
