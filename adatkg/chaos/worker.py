"""A worker that can be killed, stopped, cut off and given a wrong clock."""

from __future__ import annotations

import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from adatkg.chaos.proxy import Proxy
from adatkg.processes import Process, own_environment

_PATIENCE = 60.0  # seconds to save and to leave the group
_READY = 90.0  # seconds to be ready on a busy machine
# Where Debian, Fedora and Homebrew put the library that gives a process another clock.
_FAKETIME = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
)


def faketime() -> str | None:
    """The library by which a process can be given another clock; None where it is not installed."""
    return next((path for path in _FAKETIME if Path(path).exists()), None)


class ChaosWorker:
    """One worker process and the wire to its broker; each fault holds `lock` while it lasts."""

    def __init__(self, name: str, folder: Path, port: int, wire: Proxy, settings: Mapping[str, str]) -> None:
        self.name, self._folder, self._port, self.wire = name, folder, port, wire
        self._settings = {f"ADATKG_STREAM_{key}".upper(): value for key, value in settings.items()}
        self.lock = threading.Lock()
        self.restarts = 0  # after it ended by itself
        self._process: Process | None = None

    @property
    def log(self) -> Path:
        """What it said."""
        return self._folder / f"{self.name}.log"

    @property
    def ended(self) -> int | None:
        """The exit code of one that ended by itself."""
        return None if self._process is None else self._process.code

    def start(self, skew: str | None = None) -> None:
        """Start it, with a clock that is off by for example `-1h`. For a thread that lives as long as it does."""
        own = {**self._settings, "OMP_NUM_THREADS": "1", "ADATKG_STREAM_WEB_PORT": str(self._port)}
        if skew is not None:
            # Only the clock on the wall is wrong; what measures how long something takes goes on as it should.
            own |= {"LD_PRELOAD": faketime() or "", "FAKETIME": skew, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        environment = own_environment(f"127.0.0.1:{self.wire.port}", self._folder / "tmp", own)
        self._process = Process(self.name, ["worker"], environment, self.log)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def stop(self) -> str | None:
        """SIGTERM; what was wrong with its end, if anything was."""
        if self._process is None:
            return None
        process, self._process = self._process, None
        process.send(signal.SIGTERM)
        if (code := process.wait(_PATIENCE)) is None:
            process.kill()
            return f"did not end within {_PATIENCE:.0f} s"
        return f"ended with code {code}" if code else None

    def freeze(self) -> None:
        """SIGSTOP: it is there and does nothing."""
        if self._process is not None:
            self._process.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        if self._process is not None:
            self._process.send(signal.SIGCONT)

    def await_ready(self, stop: threading.Event, seconds: float = _READY) -> bool:
        """Whether it became ready to take events in this time."""
        deadline = time.monotonic() + seconds
        while not stop.is_set() and time.monotonic() < deadline and self.ended is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/ready", timeout=5) as answer:
                    if answer.status == 200:
                        return True
            except (OSError, urllib.error.URLError):
                pass
            stop.wait(0.5)
        return False
