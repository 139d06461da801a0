"""What is inside a wheel or an sdist, and what has no place there."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

PACKAGES = ("adatkg", "adatkg_benchmarks", "adatkg_core", "replay", "streams", "trainer")
# The one place for a kind of file that is no Python; everything else of a package is.
DATA = (
    "*/py.typed",
    "adatkg_benchmarks/limits.json",
    "adatkg_core/settings/shipped/*.toml",
    "adatkg_core/datasets/shipped/icews14/*",
    "streams/embedded_broker/jars.lock",
    "streams/dashboard/static/*",
)
SOURCES = ("adatkg", "adatkg_core", "benchmarks", "docs", "replay", "streams", "tests", "trainer")
BESIDE = (
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "PKG-INFO",
    "README.md",
    "constraints.txt",
    "mkdocs.yml",
    "pyproject.toml",
)
FIXTURES = "tests/fixtures"  # files as earlier versions wrote them, artifacts among them
REFUSE = ("*.pyc", "*~", "*.swp", "*.orig", "*.log", ".DS_Store", "*.partial", "*.whl", "*.safetensors")


def digests(archive: Path) -> dict[str, str]:
    """The files of a wheel or an sdist with their checksums; of an sdist without the folder around them.

    Of a wheel without RECORD, which lists these very checksums.
    """
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            names = [name for name in wheel.namelist() if not name.endswith("/RECORD")]
            return {name: hashlib.sha256(wheel.read(name)).hexdigest() for name in names}
    with tarfile.open(archive) as sdist:
        files = {member.name.partition("/")[2]: sdist.extractfile(member) for member in sdist if member.isfile()}
        return {name: hashlib.sha256(file.read()).hexdigest() for name, file in files.items() if file is not None}


def strays(archive: Path) -> list[str]:
    """Files that nothing needs."""
    fits = _fits_wheel if archive.suffix == ".whl" else _fits_sdist
    return sorted(name for name in digests(archive) if not fits(PurePosixPath(name)))


def _fits_wheel(name: PurePosixPath) -> bool:
    if name.parts[0].endswith(".dist-info"):
        return True
    is_code = name.suffix == ".py" and name.parts[0] in PACKAGES
    return is_code or any(name.match(pattern) and name.parts[0] in PACKAGES for pattern in DATA)


def _fits_sdist(name: PurePosixPath) -> bool:
    if name.is_relative_to(FIXTURES):
        return True
    if any(name.match(pattern) for pattern in REFUSE) or "__pycache__" in name.parts:
        return False
    return str(name) in BESIDE if len(name.parts) == 1 else name.parts[0] in SOURCES
