"""Artifacts are wholly there or not there, and every kind of damage is refused with a reason."""

from __future__ import annotations

import hashlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import orjson
import pytest
import torch
from safetensors import torch as safetensors_torch

from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.storage import artifact as store
from adatkg_core.storage import artifact_exists, read_artifact, write_artifact
from adatkg_core.storage.artifact import list_artifacts, require_finite

TENSORS = {
    "weights": torch.arange(12, dtype=torch.float32).reshape(3, 4),
    "transposed": torch.arange(6, dtype=torch.float64).reshape(2, 3).T,
    "counts": torch.tensor([1, -(2**62)]),
    "seen": torch.tensor([True, False]),
    "nothing": torch.empty(0, 5),
    "scalar": torch.tensor(0.1, dtype=torch.bfloat16),
}
META = {"version": "v7", "metrics": {"mrr": 0.25}, "names": ["Zoë", "李"]}


@pytest.fixture(params=["path", "file", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "memory":
        url = f"memory://{tmp_path.name}"
        yield url
        fsspec.filesystem("memory").rm(f"/{tmp_path.name}", recursive=True)
    else:
        yield str(tmp_path) if request.param == "path" else tmp_path.as_uri()


def assert_holds(url: str | Path, kind: str, tensors: dict[str, torch.Tensor], meta: dict[str, Any]) -> None:
    read, read_meta = read_artifact(url, kind)
    assert read_meta == meta
    assert read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert read[name].dtype == tensor.dtype
        assert torch.equal(read[name], tensor)


def test_what_was_written_is_read_bitwise(root: str) -> None:
    url = f"{root}/deep/down/bundle"
    assert not artifact_exists(url)
    write_artifact(url, "bundle", TENSORS, META)
    assert artifact_exists(url)
    assert_holds(url, "bundle", TENSORS, META)


def test_tensors_that_share_storage_are_stored_apart(tmp_path: Path) -> None:
    whole = torch.arange(10.0)
    tensors = {"whole": whole, "part": whole[2:5], "again": whole, "none": whole[:0]}
    write_artifact(tmp_path / "a", "snapshot", tensors, {})
    assert_holds(tmp_path / "a", "snapshot", tensors, {})


def test_reading_does_not_depend_on_the_default_device(tmp_path: Path) -> None:
    torch.set_default_device("meta")
    try:
        write_artifact(tmp_path / "a", "bundle", TENSORS, META)
        tensors, _ = read_artifact(tmp_path / "a", "bundle")
    finally:
        torch.set_default_device(None)
    assert {tensor.device.type for tensor in tensors.values()} == {"cpu"}


def test_tensors_are_read_onto_the_device_that_is_asked_for(tmp_path: Path) -> None:
    write_artifact(tmp_path / "a", "bundle", TENSORS, META)
    tensors, _ = read_artifact(tmp_path / "a", "bundle", device="meta")
    assert {tensor.device.type for tensor in tensors.values()} == {"meta"}


def test_the_same_content_makes_the_same_bytes(tmp_path: Path) -> None:
    write_artifact(tmp_path / "a", "bundle", TENSORS, META)
    write_artifact(tmp_path / "b", "bundle", dict(reversed(TENSORS.items())), dict(reversed(META.items())))
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_an_artifact_is_replaced_only_on_request(root: str) -> None:
    url = f"{root}/a"
    write_artifact(url, "bundle", TENSORS, META)
    with pytest.raises(InputError, match="is there already"):
        write_artifact(url, "bundle", {}, {})
    assert_holds(url, "bundle", TENSORS, META)
    for step in range(3):
        write_artifact(url, "bundle", {"step": torch.tensor(step)}, {"step": step}, replace=True)
        assert_holds(url, "bundle", {"step": torch.tensor(step)}, {"step": step})
    fs, path = fsspec.core.url_to_fs(url)
    assert len(fs.ls(path)) == 3


def test_an_artifact_of_another_kind_is_never_replaced(root: str) -> None:
    url = f"{root}/a"
    write_artifact(url, "snapshot", TENSORS, META)
    with pytest.raises(InputError, match="something other than a bundle"):
        write_artifact(url, "bundle", {}, {}, replace=True)
    assert_holds(url, "snapshot", TENSORS, META)


def test_a_folder_with_other_files_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="something other"):
        write_artifact(tmp_path, "bundle", TENSORS, META, replace=True)
    with pytest.raises(InputError, match="something other"):
        write_artifact(tmp_path / "notes.txt", "bundle", TENSORS, META)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_empty_folder_may_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_artifact(tmp_path / "out", "bundle", TENSORS, META)
    assert_holds(tmp_path / "out", "bundle", TENSORS, META)


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(AdatkgError, match="could not be written") as caught:
        write_artifact(tmp_path / "file" / "a", "bundle", TENSORS, META)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["nosuch://place/a", "memory://nowhere/a", "/no/such/place"])
def test_a_place_without_an_artifact_is_refused(url: str) -> None:
    with pytest.raises(InputError) as caught:
        read_artifact(url, "bundle")
    assert url in str(caught.value)


def rewrite_manifest(folder: Path, **changes: object) -> None:
    path = folder / "manifest.json"
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | changes))


def rewrite_file(folder: Path, role: str, data: bytes) -> None:
    """Put other content behind a checksum that holds, as a foreign writer would."""
    files = orjson.loads((folder / "manifest.json").read_bytes())["files"]
    (folder / files[role]["name"]).write_bytes(data)
    files[role] |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    rewrite_manifest(folder, files=files)


def flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def rename_a_file(folder: Path, name: object) -> None:
    files = orjson.loads((folder / "manifest.json").read_bytes())["files"]
    files["meta"]["name"] = name
    rewrite_manifest(folder, files=files)


def unsupported_dtype(folder: Path) -> None:
    data = safetensors_torch.save({"a": torch.zeros(4, dtype=torch.uint8)})
    rewrite_file(folder, "tensors", data.replace(b'"U8"', b'"Q8"'))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "manifest.json is missing"),
    "empty manifest": (lambda f: (f / "manifest.json").write_bytes(b""), "not a JSON object"),
    "garbage manifest": (lambda f: (f / "manifest.json").write_bytes(b"\x80\x04]\n."), "not a JSON object"),
    "manifest is a list": (lambda f: (f / "manifest.json").write_bytes(b"[1]"), "not a JSON object"),
    "foreign manifest": (
        lambda f: (f / "manifest.json").write_bytes(b'{"name": "app"}'),
        "not of the format",
    ),
    "manifest without files": (lambda f: rewrite_manifest(f, files={}), "does not list its files"),
    "manifest with odd files": (lambda f: rewrite_manifest(f, files=[3]), "does not list its files"),
    "path leads outside": (lambda f: rename_a_file(f, "../secret.json"), "outside its folder"),
    "name is no text": (lambda f: rename_a_file(f, 3), "outside its folder"),
    "newer format": (lambda f: rewrite_manifest(f, version=2), "upgrade adatkg"),
    "version is no number": (lambda f: rewrite_manifest(f, version="one"), "not of the format"),
    "other kind": (lambda f: rewrite_manifest(f, kind="snapshot"), "this is a snapshot, not a bundle"),
    "no tensors": (lambda f: (f / "tensors.safetensors").unlink(), "tensors.safetensors is missing"),
    "no meta": (lambda f: (f / "meta.json").unlink(), "meta.json is missing"),
    "truncated tensors": (lambda f: os.truncate(f / "tensors.safetensors", 40), "has 40 bytes instead of"),
    "truncated meta": (lambda f: os.truncate(f / "meta.json", 0), "has 0 bytes instead of"),
    "altered tensors": (lambda f: flip_a_byte(f / "tensors.safetensors"), "does not match its checksum"),
    "altered meta": (lambda f: flip_a_byte(f / "meta.json"), "does not match its checksum"),
    "meta is no JSON": (lambda f: rewrite_file(f, "meta", b"{oops"), "meta.json is not a JSON object"),
    "meta is no object": (lambda f: rewrite_file(f, "meta", b"3"), "meta.json is not a JSON object"),
    "broken header": (lambda f: rewrite_file(f, "tensors", b"\xff" * 64), "not a safetensors file"),
    "pickle": (lambda f: rewrite_file(f, "tensors", b"\x80\x04N."), "not a safetensors file"),
    "unsupported dtype": (unsupported_dtype, "not a safetensors file"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_refused_in_one_line_that_names_artifact_and_remedy(damage: str, tmp_path: Path) -> None:
    harm, reason = DAMAGES[damage]
    url = tmp_path / "the-bundle"
    write_artifact(url, "bundle", TENSORS, META)
    harm(url)
    with pytest.raises(InputError) as caught:
        read_artifact(url, "bundle")
    message = str(caught.value)
    assert reason in message
    assert str(url) in message
    assert "; " in message and "\n" not in message
    assert caught.value.exit_code == 2


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"not a folder")
    with pytest.raises(InputError, match=r"manifest.json is missing"):
        read_artifact(tmp_path / "a", "bundle")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_tensor_that_is_not_finite_is_named(value: float) -> None:
    require_finite(TENSORS, "models/7")
    with pytest.raises(InputError, match=r"models/7: tensor 'bad'"):
        require_finite({**TENSORS, "bad": torch.tensor([1.0, value])}, "models/7")


def fail(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("step", "replace"),
    [
        *itertools.product(
            ["artifact._storable", "artifact.describe_file", "publishing._sync", "publishing.os.rename"], [False, True]
        ),
        ("publishing.os.replace", True),
    ],
)
@pytest.mark.parametrize(("blow", "error"), [(fail, AdatkgError), (interrupt, KeyboardInterrupt)])
def test_a_writer_that_fails_leaves_what_was_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    replace: bool,
    blow: Callable[..., None],
    error: type[BaseException],
) -> None:
    url = tmp_path / "a"
    if replace:
        write_artifact(url, "bundle", TENSORS, META)
    before = sorted(tmp_path.rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr(f"adatkg_core.storage.{step}", blow)
        with pytest.raises(error):
            write_artifact(url, "bundle", {"new": torch.zeros(3)}, {}, replace=replace)
    assert sorted(tmp_path.rglob("*")) == before
    if replace:
        assert_holds(url, "bundle", TENSORS, META)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("step", ["put_file", "pipe_file"])
def test_a_failed_upload_leaves_what_was_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, replace: bool, step: str
) -> None:
    url = f"memory://{tmp_path.name}/a"
    fs, path = fsspec.core.url_to_fs(url)
    if replace:
        write_artifact(url, "bundle", TENSORS, META)
    with monkeypatch.context() as patch:
        patch.setattr(type(fs), step, fail)
        with pytest.raises(AdatkgError, match="No space left"):
            write_artifact(url, "bundle", {}, {}, replace=replace)
    assert len(fs.find(path)) == (3 if replace else 0)
    assert artifact_exists(url) == replace
    if replace:
        assert_holds(url, "bundle", TENSORS, META)
    fs.rm(f"/{tmp_path.name}", recursive=True)


# The writer waits at one step, so that the kill can come late but never too late.
KILLED_WRITER = """
import sys, time, torch
from adatkg_core.storage import artifact as store
url, step = sys.argv[1:]
owner = store.os if step == "replace" else store
setattr(owner, step, lambda *_: (print("waiting", flush=True), time.sleep(600)))
store.write_artifact(url, "snapshot", {"large": torch.ones(32 * 2**20)}, {"step": 2}, replace=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("step", "replace"), [("describe_file", False), ("replace", True)])
def test_a_writer_killed_in_the_middle_leaves_nothing_visible(tmp_path: Path, step: str, replace: bool) -> None:
    url = tmp_path / "a"
    if replace:
        write_artifact(url, "snapshot", TENSORS, META)
    writer = subprocess.Popen(
        [sys.executable, "-c", KILLED_WRITER, str(url), step],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(store.__file__).parents[1])},
    )
    try:
        assert writer.stdout is not None
        if replace:
            # The new files stand beside the old ones and only the manifest is still to come.
            assert writer.stdout.readline() == b"waiting\n"
        else:
            # The tensors are the long part: kill as soon as some of their bytes are there.
            deadline = time.monotonic() + 120
            while not any(path.stat().st_size for path in tmp_path.glob(".a.*/tensors*")):
                assert writer.poll() is None and time.monotonic() < deadline
                time.sleep(0.001)
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    assert writer.returncode == -signal.SIGKILL
    assert len(list(url.glob("*"))) == (5 if replace else 0)
    assert artifact_exists(url) == replace
    assert list_artifacts(tmp_path, "snapshot") == ([str(url)] if replace else [])
    if replace:
        assert_holds(url, "snapshot", TENSORS, META)
    write_artifact(url, "snapshot", {}, {"step": 3}, replace=True)
    assert_holds(url, "snapshot", {}, {"step": 3})
    assert len(list(url.iterdir())) == 3


def test_artifacts_are_listed_by_kind_with_the_newest_last(root: str) -> None:
    assert list_artifacts(root, "snapshot") == []
    for name in ("0010", "0002", "0100"):
        write_artifact(f"{root}/{name}", "snapshot", {}, {})
    write_artifact(f"{root}/0050", "bundle", {}, {})
    fs, path = fsspec.core.url_to_fs(root)
    fs.makedirs(f"{path}/0060")
    fs.makedirs(f"{path}/0070")
    fs.pipe_file(f"{path}/0070/manifest.json", b"garbage")
    fs.makedirs(f"{path}/0080")
    fs.pipe_file(f"{path}/0080/manifest.json", b'{"format": "foreign", "kind": "snapshot"}')
    listed = list_artifacts(root, "snapshot")
    assert listed == [f"{root}/{name}" for name in ("0002", "0010", "0070", "0100")]
    with pytest.raises(InputError, match="not a JSON object"):
        read_artifact(listed[2], "snapshot")
    assert_holds(listed[-1], "snapshot", {}, {})
