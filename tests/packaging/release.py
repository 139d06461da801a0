"""`make release`: build wheel and sdist into dist/, check them, install the wheel where nothing else is, and run the
whole system from it. It publishes nothing; CONTRIBUTING.md says what comes before and after.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.packaging.build import ROOT, UV, Command, build
from tests.packaging.contents import digests, strays
from tests.packaging.versions import changelog_versions, declared_version, tag_here

DIST = ROOT / "dist"
MINUTES = 10  # for the demonstration, which takes one or two on two cores
DEMO = ("demo", "--headless", "--json", "--port", "0", "--speed", "max", "--to", "2014-02-28", "--every", "2000")


class Unfit(Exception):
    """What is about to be released is not as it should be."""


def main() -> int:
    """All steps in order; the first that fails ends it."""
    with tempfile.TemporaryDirectory(prefix="adatkg-release-") as scratch:
        try:
            check_version()
            wheel, sdist = build_both(Path(scratch))
            check_metadata(wheel, sdist)
            try_out(wheel, Path(scratch))
        except (Unfit, subprocess.CalledProcessError) as error:
            print(f"release: {error}", file=sys.stderr)
            return 1
    say(f"{wheel.relative_to(ROOT)} and {sdist.relative_to(ROOT)} are fit for release")
    return 0


def check_version() -> None:
    """Package, changelog and, where this commit has one, the tag say the same version."""
    version, newest, tag = declared_version(), changelog_versions()[0], tag_here()
    if version != newest:
        raise Unfit(f"adatkg/__init__.py says {version}, CHANGELOG.md {newest}: make them the same")
    if tag is not None and tag != f"v{version}":
        raise Unfit(f"the commit is tagged {tag}, but the package is {version}: move the tag, or change the version")
    say(f"version {version}" + ("" if tag else ", not tagged yet"))


def build_both(scratch: Path) -> tuple[Path, Path]:
    """Wheel and sdist in dist/; the sdist holds all that the wheel is made from."""
    shutil.rmtree(DIST, ignore_errors=True)
    wheel, sdist = build("wheel", DIST), build("sdist", DIST)
    if stray := strays(wheel) + strays(sdist):
        raise Unfit(f"stray files: {', '.join(stray)}; leave them out in pyproject.toml")
    again = build("wheel", scratch / "again", sdist)
    if different := {name for name, _ in digests(wheel).items() ^ digests(again).items()}:
        raise Unfit(f"the sdist builds another wheel: {', '.join(sorted(different))} differ")
    say(f"built {wheel.name} ({wheel.stat().st_size >> 10:,} KiB), {sdist.name} ({sdist.stat().st_size >> 10:,} KiB)")
    return wheel, sdist


def check_metadata(wheel: Path, sdist: Path) -> None:
    """What the package index would refuse, twine finds here."""
    subprocess.run([UV, "tool", "run", "--quiet", "twine", "check", "--strict", wheel, sdist], check=True)


def try_out(wheel: Path, scratch: Path) -> None:
    """Install the wheel into an empty environment and run the demonstration there, away from the checkout."""
    place, elsewhere = scratch / "venv", scratch / "elsewhere"
    elsewhere.mkdir()
    python = place / "bin" / "python"
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, place], check=True)
    subprocess.run([UV, "pip", "install", "--python", python, wheel], check=True)
    command: Command = [place / "bin" / "adatkg", *DEMO, "--seconds", str(60 * MINUTES)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ADATKG_", "PYTHON"))}
    say(f"running adatkg {' '.join(DEMO)}")
    ended = subprocess.run(command, cwd=elsewhere, env=environment, stdout=subprocess.PIPE, check=True)
    outcome = json.loads(ended.stdout)
    if not (outcome["predictions"] > 0 and outcome["swaps"] > 0 and outcome["mrr"] > 0):
        raise Unfit(f"the demonstration of the installed wheel ended with {outcome}")
    say(f"the installed wheel: {json.dumps(outcome)}")


def say(text: str) -> None:
    """A line about what was done."""
    print(f"release: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
