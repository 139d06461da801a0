"""A copy of a state as of one moment, made in slices while the state goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from adatkg_core.errors import AdatkgError
from adatkg_core.runtime import FileMemory, aligned
from adatkg_core.state.changed_rows import ChangedRows

LARGE = 256 << 20  # bytes: a copy beyond that is made in a file, if there is a folder for it
# What a step takes at most, while a batch may wait: some milliseconds, also where each page has to be made first.
SLICE = 2 << 20  # bytes copied
_ALONE = 16  # bytes for which a row counts at least that is fetched for itself, as rows that changed are
_SCANNED = 1 << 18  # rows looked through for those that changed

Overwritten = tuple[str, Any, Tensor]  # a tensor's name, where it was written, and what had been there


class CapturedState(Protocol):
    """What a capture reads of the state."""

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All of them by name; one may be replaced by a larger one."""

    def kinds(self) -> dict[str, str | None]:
        """What the rows of each tensor are, None where it is always kept whole."""

    def names_alone(self) -> set[str]:
        """Tensors whose rows are never written again."""

    def end_capture(self, capture: StateCapture) -> None:
        """Nothing that is overwritten from now on is for this one."""


class StateCapture:
    """The rows in use at a moment, or those of them that changed since an earlier one.

    Slices are copied whenever there is time. A write in between notes what it overwrites, and in the end all of that
    is put back in reverse: so each row is what it was, whether its slice was copied before the write or after.
    """

    def __init__(
        self,
        state: CapturedState,
        used: dict[str, int],
        pages: dict[str, int],
        overwritten: list[Overwritten],
        since: ChangedRows | None,
        folder: str | None,
    ) -> None:
        """`overwritten` is what stands in the state and is not to be in the copy; in `folder` is room for a large one,
        without one it is made in memory."""
        self.used, self.pages, self.since = used, pages, since
        self.kinds = state.kinds()
        self.rows: dict[str, Tensor] = {}  # by kind, ascending: which of the rows that the earlier moment had
        self._state, self._overwritten = state, overwritten
        self._copies: dict[str, Tensor] = {}
        self._folder = folder
        self._file: FileMemory | None = None
        self._failure: AdatkgError | None = None
        self._size = 0  # of the copies, once they are gone
        self._whole = self._lost = False

    def note(self, overwritten: Overwritten) -> None:
        """A write is about to happen."""
        self._overwritten.append(overwritten)

    def copy(self) -> Iterator[None]:
        """Copy all of it on the thread that writes, in steps that do not grow with it; what fails `tensors` raises."""
        try:
            for kind in self.used:
                yield from self._find_changed(kind)
            yield from self._find_room()
            for name in self.kinds:
                yield from self._copy_tensor(name)
            if self._file is not None:
                yield from self._file.settle()
        except AdatkgError as error:
            self._failure = error
            self._copies.clear()
        self._state.end_capture(self)
        self._whole = True

    def finish(self) -> None:
        """Copy all of it at once."""
        deque(self.copy(), maxlen=0)

    def lose(self) -> None:
        """The state has become another one before all of it was copied."""
        self._lost = True

    def tensors(self) -> dict[str, Tensor]:
        """The copies by name, once all is copied and nothing more is noted; on any thread."""
        if self._lost or not self._whole:
            raise RuntimeError("a state was asked for that was not copied to its end")
        if self._failure is not None:
            raise self._failure
        while self._overwritten:
            name, index, old = self._overwritten.pop()
            self._put_back(name, index, old)
        return self._copies

    @property
    def size(self) -> int:
        """Bytes of what is copied so far."""
        return self._size or sum(tensor.nbytes for tensor in self._copies.values())

    def let_go(self) -> None:
        """The copies are not wanted any more; where they are in a file, giving it back takes a moment."""
        self._size = self.size
        self._copies.clear()
        self._file = None

    def first_new(self, kind: str) -> int:
        """From which row of a kind on all rows are copied."""
        return self.since.used[kind] if self.since is not None else 0

    def _find_changed(self, kind: str) -> Iterator[None]:
        found: list[Tensor] = []
        if self.since is not None:
            for start in range(0, self.first_new(kind), _SCANNED):
                end = min(start + _SCANNED, self.first_new(kind))
                # Also what changed after the moment, which is put back in the end.
                found.append(self.since.between(kind, start, end).cpu())
                yield
        rows, end = torch.empty(sum(map(len, found)), dtype=torch.int64, device="cpu"), 0
        for some in found:
            start, end = end, end + len(some)
            rows[start:end] = some
            yield
        self.rows[kind] = rows

    def _find_room(self) -> Iterator[None]:
        """A file for copies that would be too much beside the state in memory, promised before any is made."""
        sizes = [
            aligned(self._shape(name, kind).numel() * self._state.tensors[name].itemsize)
            for name, kind in self.kinds.items()
            if kind is not None and not self._stays(name)
        ]
        if self._folder is not None and sum(sizes) > LARGE:
            self._file = FileMemory(sum(sizes), self._folder)
            yield from self._file.reserve()

    def _copy_tensor(self, name: str) -> Iterator[None]:
        tensor, kind = self._state.tensors[name], self.kinds[name]
        if kind is None:
            target = self._copies[name] = torch.empty_like(tensor, device="cpu")
            for some in _slices(0, tensor.shape[0], tensor):
                target[some] = tensor[some]
                yield
            return
        first, used, rows = self.first_new(kind), self.used[kind], self._changed(name, kind)
        if self._stays(name):
            self._copies[name] = tensor[first:used]
            return
        changed = rows.shape[0]
        target = self._empty(self._shape(name, kind), tensor.dtype)
        self._copies[name] = target
        for some in _slices(0, changed, tensor, _ALONE):
            yield from self._fill(target[some], name, rows[some].to(tensor.device))
        for some in _slices(first, used, tensor):
            shift = changed - first
            yield from self._fill(target[some.start + shift : some.stop + shift], name, some)

    def _stays(self, name: str) -> bool:
        """Whether nobody writes to its rows again, so that they can be read where they are."""
        return name in self._state.names_alone() and self._state.tensors[name].device.type == "cpu"

    def _changed(self, name: str, kind: str) -> Tensor:
        """Which of the rows that the earlier moment had are copied of a tensor, ascending."""
        return self.rows[kind][:0] if name in self._state.names_alone() else self.rows[kind]

    def _shape(self, name: str, kind: str) -> torch.Size:
        """That of its copy."""
        rows = self._changed(name, kind).shape[0] + self.used[kind] - self.first_new(kind)
        return torch.Size((rows, *self._state.tensors[name].shape[1:]))

    def _empty(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        return (
            torch.empty(tuple(shape), dtype=dtype, device="cpu")
            if self._file is None
            else self._file.empty(shape, dtype)
        )

    def _fill(self, target: Tensor, name: str, rows: Tensor | slice) -> Iterator[None]:
        """Copy some rows of a tensor as they are when this is their turn."""
        if self._file is None:
            target.copy_(self._state.tensors[name][rows])
        else:
            yield from self._file.fill(target, self._state.tensors[name][rows])
        yield

    def _put_back(self, name: str, index: Any, old: Tensor) -> None:
        kind, old = self.kinds[name], old.cpu()
        if kind is None:
            places = tuple(map(_on_cpu, index)) if isinstance(index, tuple) else _on_cpu(index)
            self._copies[name][places] = old
            return
        rows, *rest = map(_on_cpu, index if isinstance(index, tuple) else (index,))
        place, held = self._places(kind, rows)
        self._copies[name][(place[held], *(one[held] for one in rest))] = old[held]

    def _places(self, kind: str, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Where rows [n] stand in the copies of their kind, and which of them do."""
        first, changed = self.first_new(kind), self.rows[kind]
        place = rows - first + changed.shape[0]
        held = (rows >= first) & (rows < self.used[kind])
        if changed.shape[0]:
            at = torch.searchsorted(changed, rows).clamp(max=changed.shape[0] - 1)
            known = changed[at] == rows
            place, held = torch.where(known, at, place), held | known
        return place, held


def _slices(start: int, end: int, like: Tensor, least: int = 1) -> Iterator[slice]:
    """Rows of a tensor, so many at once as SLICE allows where each counts for `least` bytes at least."""
    step = max(1, SLICE // max(least, like[:1].nbytes))
    return (slice(first, min(first + step, end)) for first in range(start, end, step))


def _on_cpu(index: Any) -> Any:
    return index.cpu() if isinstance(index, Tensor) else index
