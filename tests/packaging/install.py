"""`make setup`: puts the package and its tools into the environment that runs this file, and says what that takes.

It runs before anything is installed but uv, so it uses the standard library alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

PYTORCH = "https://download.pytorch.org/whl/cpu/torch/"  # where uv's --torch-backend=cpu takes torch from
PATIENCE = 5  # seconds for that index to answer
DRIVER = Path("/proc/driver/nvidia/version")
# Measured on Linux with the versions of constraints.txt; of the small build only what it leaves out.
SIZES = {"cuda": "3.1 GB to fetch and 6.5 GB on disk", "cpu": "4 GB less on disk than the 6.5 GB with CUDA"}
Run = Callable[[Sequence[str]], int]


def main() -> int:
    """Install; the exit code is uv's."""
    parser = argparse.ArgumentParser(prog="make setup", description=__doc__)
    parser.add_argument("--torch", choices=("auto", "cpu", "cuda"), default="auto", help="which build of torch (auto)")
    return install(parser.parse_args().torch, uv)


def install(torch: str, run: Run) -> int:
    """Install with this build of torch, or with the ordinary one where the small one cannot be had."""
    build, reason = choose(torch)
    say(f"{reason}; with the tools of development {SIZES[build]}")
    if build == "cpu":
        if run(["--torch-backend", "cpu"]) == 0:
            return 0
        say(f"torch without CUDA cannot be had, see above; taking the ordinary one: {SIZES['cuda']}")
    return run([])


def choose(torch: str) -> tuple[str, str]:
    """Which build, and why."""
    if torch == "cpu":
        return "cpu", "torch without CUDA, as asked"
    if torch == "cuda":
        return "cuda", "torch as it is on the usual index, as asked"
    if sys.platform != "linux":
        return "cuda", "torch as it is on the usual index, which outside Linux has no CUDA in it"
    if DRIVER.exists():
        return "cuda", "torch with CUDA, because there is an NVIDIA driver"
    if not answers(PYTORCH):
        return "cuda", "torch with CUDA: there is no NVIDIA driver, but PyTorch's index of small builds is out of reach"
    return "cpu", "torch without CUDA, because there is no NVIDIA driver (TORCH=cuda takes the other)"


def answers(url: str) -> bool:
    """Whether somebody is there."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE):
            return True
    except (urllib.error.URLError, OSError):
        return False


def uv(options: Sequence[str]) -> int:
    """uv's own progress on a terminal; elsewhere its lines without the list of all packages."""
    tool = str(Path(sys.executable).with_name("uv"))
    # Bytecode is compiled here because some machines forbid it at run time, where it costs seconds per process.
    command = [tool, "pip", "install", "--compile-bytecode", "--python", sys.executable]
    command += ["--editable", ".[dev]", "--constraint", "constraints.txt", *options]
    if sys.stderr.isatty():
        return subprocess.run(command).returncode
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if not line.startswith((" + ", " - ", " ~ ")):
                print(line, end="", file=sys.stderr, flush=True)
    return process.returncode


def say(text: str) -> None:
    """A line about what is being done."""
    print(f"setup: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
