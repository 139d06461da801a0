"""`make check-bounds`: the built package with the oldest, then with the newest dependencies that it allows, each in an
environment of its own, must pass those tests which use every dependency for real; neither containers nor a browser.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.packaging.build import ROOT, UV, Command, build

ENDS = {"lowest": "lowest-direct", "newest": "highest"}  # as uv calls them
# Together they encode names, train, store, import nothing from the checkout, and run broker, worker and client.
TESTS = (
    "tests/adatkg/commands/test_models.py",
    "tests/adatkg/commands/test_train_evaluate.py",
    "tests/core/storage/test_bundle.py",
    "tests/core/text/test_encoder.py",
    "tests/core/engine/test_engine.py",
    "tests/core/storage/test_artifact.py",
    "tests/end_to_end/test_hot_swap.py",
    "tests/end_to_end/test_worker_killed.py",
    "tests/replay/test_publisher.py",
    "tests/streams/client/test_client.py",
    "tests/streams/dashboard/test_server.py",
    "tests/streams/embedded_broker/test_java.py",
    "tests/streams/embedded_broker/test_jars.py",
    "tests/trainer/retrain/test_rounds.py",
    "tests/trainer/retrain/test_lease.py",
    "tests/trainer/fit/test_loop.py",
)


def check(end: str, wheel: Path, folder: Path, processes: int) -> bool:
    """Whether the tests pass with the dependencies of this end."""
    python = install(end, wheel, folder / "venv")
    # Away from the checkout, so that what is tested is what was installed.
    tree = folder / "tree"
    shutil.copytree(ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    command: Command = [python, "-m", "pytest", "-q", "-n", str(processes), "-p", "no:cacheprovider", *TESTS]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, cwd=tree, env=environment).returncode == 0


def install(end: str, wheel: Path, place: Path) -> Path:
    """An environment with the package, the tools of its tests, and the dependencies of this end."""
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, place], check=True)
    python = place / "bin" / "python"
    pip: Command = [UV, "pip", "install", "--python", python, "--compile-bytecode"]
    # By pyproject.toml they are direct ones to uv, which the dependencies of a wheel are not.
    subprocess.run([*pip, "--resolution", ENDS[end], "-r", ROOT / "pyproject.toml", "--extra", "test"], check=True)
    subprocess.run([*pip, "--no-deps", wheel], check=True)
    return python


def main() -> int:
    """Both ends, or the one that is named; the exit code says whether all of it passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.packaging.bounds", description=__doc__)
    parser.add_argument("ends", nargs="*", default=list(ENDS), help=f"some of {', '.join(ENDS)}; both if none is named")
    parser.add_argument("--processes", type=int, default=2, help="that share the tests (2)")
    arguments = parser.parse_args()
    if unknown := set(arguments.ends) - ENDS.keys():
        parser.error(f"{', '.join(sorted(unknown))}: no end of the bounds; there are {', '.join(ENDS)}")
    passed = {}
    with tempfile.TemporaryDirectory(prefix="adatkg-bounds-") as scratch:
        wheel = build("wheel", Path(scratch, "dist"))
        for end in arguments.ends:
            print(f"check-bounds: {end} dependencies", flush=True)
            folder = Path(scratch, end)
            passed[end] = check(end, wheel, folder, arguments.processes)
            shutil.rmtree(folder, ignore_errors=True)  # gigabytes, before the next one is made
    for end, did in passed.items():
        print(f"check-bounds: {end} dependencies: {'passed' if did else 'FAILED'}")
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
