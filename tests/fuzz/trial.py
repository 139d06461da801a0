"""One trial: a sound example is spoiled and read, and what that may do to the machine is watched."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from adatkg_core.errors import AdatkgError
from tests.fuzz.formats import Format

LONGEST = 4_000  # characters of a refusal; more is no line for a person
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
RUNS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "pickle.find_class", "socket.connect"}
CHANGES = {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.truncate", "os.chmod"}


class Finding(AssertionError):
    """What reading a file of a stranger must not do."""


class Watch:
    """Sees, by Python's own audit events, what is run and what is written outside a folder; there is one for ever."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    @contextmanager
    def over(self, folder: Path) -> Iterator[None]:
        """Whatever happens inside is a finding if it runs something or writes elsewhere."""
        self.seen.clear()
        self.folder = os.path.realpath(folder)
        try:
            yield
        finally:
            self.folder = None
        if self.seen:
            raise Finding(f"reading did {'; '.join(self.seen[:3])}")

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event in RUNS:
            self.seen.append(f"{event} {arguments!r:.200}")
        elif event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES):
            places = [one for one in arguments[:2] if isinstance(one, str | bytes | os.PathLike)]
            # A path may be relative to an open folder, whose number then stands last.
            inside = arguments[-1] if event != "open" and isinstance(arguments[-1], int) else -1
            base = os.readlink(f"/proc/self/fd/{inside}") if inside >= 0 else ""
            for place in places[:1] if event == "open" else places:
                where = os.path.realpath(os.path.join(base, os.fsdecode(place)))
                if where not in ("/dev/null", self.folder) and not where.startswith(self.folder + os.sep):
                    self.seen.append(f"{event} {where}")


class Trials:
    """Trials of one format in a folder of their own, where each begins with the sound example."""

    def __init__(self, made: Format, folder: Path, watch: Watch, before: Callable[[], object] = lambda: None) -> None:
        """`before` is called before each trial."""
        self._format, self._watch, self._before = made, watch, before
        self._sound, self._work = folder / "sound", folder / "work"
        self._sound.mkdir(parents=True)
        made.make(self._sound)
        made.read(self._sound)  # whatever is loaded or made at a first time, is so now

    def run(self, choose: Random) -> bool:
        """Whether what was spoiled is still read as something; a finding is raised."""
        self._before()
        shutil.rmtree(self._work, ignore_errors=True)
        shutil.copytree(self._sound, self._work)
        self._format.spoil(self._work, choose)
        with self._watch.over(self._work):
            try:
                self._format.read(self._work)
            except AdatkgError as error:
                _check_line(str(error))
                return False
            except Finding:
                raise
            except Exception as error:
                raise Finding(f"{self._format.name}: {type(error).__name__}: {error!s:.300}") from error
        return True


def _check_line(text: str) -> None:
    if not text.strip() or len(text.splitlines()) != 1:
        raise Finding(f"a refusal is one line, not {text!r:.300}")
    if len(text) > LONGEST:
        raise Finding(f"a refusal of {len(text)} characters: {text[:100]}")
