"""A command of ours as a process beside this one, which it cannot outlive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson

from adatkg_core.errors import AdatkgError
from streams.embedded_broker import tied

_TAIL = 5  # lines of the log in an error


class Process:
    """`adatkg ARGUMENTS`, started at once; its stderr goes to the file `log`, or where ours goes, its stdout to `out`.

    It gets no signal from the terminal: whoever started it ends it. Start it from a thread that lives as long.
    """

    def __init__(
        self,
        name: str,
        arguments: list[str],
        environment: Mapping[str, str],
        log: Path | None = None,
        out: Path | None = None,
        niceness: int = 0,
    ) -> None:
        self.name, self.log = name, log
        command = tied([sys.executable, "-m", "adatkg", *arguments])
        with ExitStack() as files:
            self._popen = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if out is None else files.enter_context(out.open("wb")),
                stderr=None if log is None else files.enter_context(log.open("ab")),
                start_new_session=True,
            )
        if niceness:
            os.setpriority(os.PRIO_PROCESS, self._popen.pid, niceness)

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._popen.poll()

    def check(self) -> None:
        """Raise what it said last if it has ended, which it should not."""
        if self.code is not None:
            raise AdatkgError(f"the {self.name} ended by itself with code {self.code}. {self._last_words()}")

    def send(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        self._popen.send_signal(number)

    def kill(self) -> None:
        """End it at once, as a crash would, also when it is stopped."""
        self._popen.kill()
        self._popen.wait()

    def wait(self, seconds: float) -> int | None:
        """Its exit code; None when it still runs after so many seconds."""
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, patience: float, number: int = signal.SIGTERM) -> None:
        """Ask it to end, and end it by force after so many seconds."""
        if self.code is not None:
            return
        self.send(number)
        if self.wait(patience) is None:
            self.kill()

    def _last_words(self) -> str:
        if self.log is None:
            return ""
        lines = self.log.read_text(errors="replace").splitlines()[-_TAIL:]
        return "\n".join(["Its last words:", *lines, f"The whole log is {self.log}"])


class Lines:
    """The lines that a process adds to its log, each a JSON object about an event; others are passed over."""

    def __init__(self, log: Path) -> None:
        self._log, self._place = log, log.stat().st_size if log.exists() else 0

    def new(self) -> list[dict[str, Any]]:
        """Those since the last look."""
        if not self._log.exists():
            return []
        with self._log.open("rb") as file:
            file.seek(self._place)
            whole = file.read().rpartition(b"\n")[0]
        self._place += len(whole) + 1 if whole else 0
        return [found for line in whole.splitlines() if (found := _object(line)) is not None]


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) and "event" in found else None
