"""A disk that can be filled without harm to anyone else's."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

_SIZE = 512 << 20  # bytes: room for what a day of chaos keeps
_FILLER = "filler"
_STEP = 1 << 20


class Disk:
    """A folder that is a small file system of its own where we may mount one; else `why_not` says why it cannot be
    filled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.why_not: str | None = None
        try:
            command = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE},mode=0700", "adatkg-chaos", str(folder)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                self.why_not = f"no file system can be mounted ({done.stderr.strip() or done.returncode})"
        except OSError as error:
            self.why_not = f"no file system can be mounted ({error.strerror})"

    def fill(self) -> None:
        """Take all the room that is left."""
        with (self.folder / _FILLER).open("wb", buffering=0) as file:
            step = _STEP
            while step:  # ever smaller pieces, to the last byte
                try:
                    if file.write(bytes(step)) < step:
                        step //= 2
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    step //= 2

    def clear(self) -> None:
        """Give the room back."""
        (self.folder / _FILLER).unlink(missing_ok=True)

    def close(self) -> None:
        """Take the file system away; what is on it stays in the folder."""
        if self.why_not is None and os.path.ismount(self.folder):
            kept = self.folder.with_name(f"{self.folder.name}-kept")
            shutil.copytree(self.folder, kept)
            subprocess.run(["umount", "--lazy", str(self.folder)], capture_output=True)
            self.folder.rmdir()
            kept.rename(self.folder)
