"""Commands of ours that start at once: forked from a process that has imported what they need."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

FORK = multiprocessing.get_context("forkserver")
FORK.set_forkserver_preload(["adatkg.main", "streams.service", "tests.support.compiled_ahead"])  # these take seconds


class Preloaded:
    """`python -m adatkg` with these arguments and variables, but for the seconds that its imports take.

    It has what tests use of `subprocess.Popen`. Its imports are those of the tests' environment: a command whose
    start itself is what a test is about is run by `subprocess`.
    """

    def __init__(self, *arguments: str, env: Mapping[str, str], output: Path, errors: Path | None = None) -> None:
        """Its output goes to a file, and so do its errors, to the same one unless they have their own."""
        # A daemon, in Python's words: it is ended with the process of the tests.
        self._process = FORK.Process(target=_run, args=(arguments, dict(env), output, errors), daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code once it has ended."""
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("adatkg", timeout or 0.0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _run(arguments: tuple[str, ...], env: dict[str, str], output: Path, errors: Path | None) -> None:
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644) if errors else 1, 2)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["adatkg", *arguments]
    sys.orig_argv = [sys.executable, "-m", "adatkg", *arguments]  # by which it would start itself anew
    if threads := env.get("OMP_NUM_THREADS"):
        import torch

        torch.set_num_threads(int(threads))  # it was imported before the variable was there
    from adatkg.main import main

    main()
