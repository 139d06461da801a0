"""Tensors are read into the memory where they stay, as the library reads them, and refused in the same words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from torch import Tensor

from adatkg_core.errors import InputError
from adatkg_core.storage import artifact, manifest, read_artifact, write_artifact
from adatkg_core.storage.manifest import ArtifactFile
from adatkg_core.storage.place import Place
from tests.support.small_graph import assert_same_bits

OURS = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def tensors(types: list[str]) -> dict[str, Tensor]:
    made = {name: torch.arange(12).to(getattr(torch, name)).view(3, 4) for name in types}
    return made | {"none": torch.zeros(0, 7), "one": torch.tensor(5)}


@pytest.fixture
def whole_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that were read as a whole, besides descriptions."""
    read, named = manifest.read_verified, list[str]()

    def noted(place: Place, kind: str, file: ArtifactFile) -> bytes:
        named.append(file.name)
        return read(place, kind, file)

    monkeypatch.setattr(artifact, "read_verified", noted)
    return named


def test_what_is_read_is_what_was_written_and_no_file_is_held_as_a_whole(
    tmp_path: Path, whole_files: list[str]
) -> None:
    wanted = tensors(OURS)
    write_artifact(tmp_path / "a", "kind", wanted, {})
    found, _ = read_artifact(tmp_path / "a", "kind")
    assert_same_bits(found, wanted)
    assert all(found[name].dtype == wanted[name].dtype and found[name].is_contiguous() for name in wanted)
    assert not whole_files


def test_other_types_are_left_to_the_library(tmp_path: Path, whole_files: list[str]) -> None:
    wanted = tensors(["uint16", "int32"])
    write_artifact(tmp_path / "a", "kind", wanted, {})
    found, _ = read_artifact(tmp_path / "a", "kind")
    assert torch.equal(found["uint16"].int(), wanted["uint16"].int()) and torch.equal(found["int32"], wanted["int32"])
    assert whole_files == ["tensors.safetensors"]


@pytest.mark.parametrize("place", [0, 9, 200, -1])
def test_a_byte_that_is_another_is_refused_wherever_it_stands(tmp_path: Path, place: int) -> None:
    write_artifact(tmp_path / "a", "kind", tensors(OURS), {})
    file = tmp_path / "a" / "tensors.safetensors"
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"tensors\.safetensors does not match its checksum"):
        read_artifact(tmp_path / "a", "kind")


def test_a_pipe_in_its_place_is_refused(tmp_path: Path) -> None:
    write_artifact(tmp_path / "a", "kind", tensors(OURS), {})
    file = tmp_path / "a" / "tensors.safetensors"
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(InputError, match="is no file"):
        read_artifact(tmp_path / "a", "kind")
