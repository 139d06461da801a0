"""Building the package as a release does: by uv, from the tree into an empty folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
Kind = Literal["wheel", "sdist"]
Command = list[str | Path]


def build(kind: Kind, folder: Path, source: Path = ROOT, *options: str) -> Path:
    """The one file that uv builds from a tree or from an sdist."""
    command: Command = [
        UV,
        "build",
        "--quiet",
        "--python",
        sys.executable,
        f"--{kind}",
        "--out-dir",
        folder,
        *options,
        source,
    ]
    subprocess.run(command, check=True)
    (made,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made
