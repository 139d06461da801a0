"""What a demonstration is told, and where its things are."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adatkg_core.errors import InputError

DATASET = "icews14"  # comes with the package; its name is the graph's too
_NOTE = "demo.json"


@dataclass(frozen=True)
class Plan:
    """One demonstration. Ticks before `first` are what the first model learns from, `first` to `last` are streamed."""

    folder: Path
    first: int
    last: int
    speed: float | None  # ticks a second; None: as fast as it goes
    every: int  # new facts that make a round of training due
    config: str
    port: int  # of the dashboard, another one if it is taken
    seconds: float | None  # after which it ends in any case
    ends: bool  # by itself, once everything is answered and a new model has taken over

    @property
    def models(self) -> str:
        """The model store."""
        return str(self.folder / "models")

    def settle_in(self) -> bool:
        """Take the folder; whether a demonstration was here before, with the same settings, and goes on."""
        from adatkg_core.storage import read_document, write_document

        note = {"from": self.first, "to": self.last, "config": self.config}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "tmp").mkdir(exist_ok=True)
            there: dict[str, Any] | None = read_document(str(self.folder / _NOTE))
            if there is None:
                if any(path.name != "tmp" for path in self.folder.iterdir()):
                    raise InputError(
                        f"{self.folder} holds other things than a demonstration's: give a new or an empty --folder"
                    )
                write_document(str(self.folder / _NOTE), note)
        except OSError as error:
            raise InputError(f"{self.folder}: {error.strerror}; give a --folder that can be written to") from error
        if there is not None and there != note:
            raise InputError(
                f"{self.folder} holds a demonstration with {_flags(there)}: give these again, or another --folder"
            )
        return there is not None


@contextmanager
def place(folder: Path | None) -> Iterator[Path]:
    """The folder that was asked for, or one that is gone afterwards."""
    if folder is not None:
        yield folder.expanduser().absolute()
        return
    with tempfile.TemporaryDirectory(prefix="adatkg-demo-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def _flags(note: dict[str, Any]) -> str:
    return ", ".join(f"--{name} {value}" for name, value in note.items())
