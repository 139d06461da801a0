"""The tensors of an artifact, read from a file of this machine into the memory where they stay, and nowhere else.

The library reads a file as a whole and copies its tensors out of that: of a large state that would be twice its size.
"""

from __future__ import annotations

import hashlib
from typing import BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from adatkg_core.storage.manifest import ArtifactFile, check_listed, refuse
from adatkg_core.storage.place import NOT_THERE, Place, store_errors

_LENGTH = 8  # bytes that say how long the header is
_AT_ONCE = 16 << 20
_TYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}


def read_tensor_file(place: Place, kind: str, file: ArtifactFile) -> dict[str, Tensor] | None:
    """The tensors of a file whose size and checksum are those of the manifest; None where the library is to say what
    it makes of it: in another store, and where the header is not of these types."""
    if not place.is_local:
        return None
    check_listed(place, kind, file)
    described = _described(place.file(file.name))
    if described is None:
        return None
    try:
        with store_errors(place.file(file.name)), open(place.file(file.name), "rb") as opened:
            tensors, digest = _read(opened, file.size, described)
    except NOT_THERE:
        refuse(place, kind, f"{file.name} is missing")
    if digest != file.sha256:
        refuse(place, kind, f"{file.name} does not match its checksum")
    return tensors


def _described(path: str) -> list[tuple[str, torch.dtype, list[int]]] | None:
    """Name, type and shape of each, as they stand one behind the other; the library has checked that they do."""
    try:
        with safe_open(path, "numpy") as opened:
            found = [(name, opened.get_slice(name)) for name in opened.offset_keys()]
            return [(name, _TYPES[one.get_dtype()], one.get_shape()) for name, one in found]
    except (SafetensorError, OSError, KeyError, RuntimeError, ValueError):
        return None


def _read(
    opened: BinaryIO, size: int, described: list[tuple[str, torch.dtype, list[int]]]
) -> tuple[dict[str, Tensor], str]:
    """The tensors, and the checksum of all that was read: another file than the one described has another."""
    digest = hashlib.sha256()

    def fill(target: memoryview) -> None:
        for start in range(0, len(target), _AT_ONCE):
            some = target[start : start + _AT_ONCE]
            digest.update(some[: opened.readinto(some)])  # type: ignore[attr-defined]  # a file opened to be read has it

    length = bytearray(_LENGTH)
    fill(memoryview(length))
    fill(memoryview(bytearray(min(int.from_bytes(length, "little"), size))))
    tensors: dict[str, Tensor] = {}
    for name, dtype, shape in described:
        tensors[name] = torch.empty(shape, dtype=dtype, device="cpu")
        fill(memoryview(tensors[name].view(-1).view(torch.uint8).numpy().data))
    digest.update(opened.read(1))  # what is there beyond would be no part of any tensor
    return tensors, digest.hexdigest()
