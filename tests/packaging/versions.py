"""The places that name a version: the package, the changelog, the tag."""

from __future__ import annotations

import re
import subprocess

from tests.packaging.build import ROOT

_HEADING = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$", re.MULTILINE)
_DECLARED = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


def declared_version() -> str:
    """As the package says it."""
    (found,) = _DECLARED.findall((ROOT / "adatkg" / "__init__.py").read_text("utf-8"))
    return str(found)


def changelog_versions() -> list[str]:
    """Those that the changelog tells of, the newest first."""
    return _HEADING.findall((ROOT / "CHANGELOG.md").read_text("utf-8"))


def tag_here() -> str | None:
    """The tag of the present commit."""
    command = ["git", "-C", str(ROOT), "describe", "--exact-match", "--tags", "HEAD"]
    described = subprocess.run(command, capture_output=True, text=True)
    return described.stdout.strip() if described.returncode == 0 else None
