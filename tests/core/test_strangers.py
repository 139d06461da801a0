"""Files from strangers, spoiled in many ways, are refused with one line or read, and do nothing else.

The long form is `python -m tests.fuzz --minutes N`.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import os
import zipfile
from pathlib import Path

import pytest

from adatkg_core.datasets import fetch_dataset
from adatkg_core.datasets.csv_import import import_csv
from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.storage import load_bundle
from adatkg_core.storage.json_file import read_document
from tests.fuzz.__main__ import FORMATS as NAMES
from tests.fuzz.engines import by_hypothesis
from tests.fuzz.formats import FORMATS, make_bundle
from tests.fuzz.mutations import gzip_bomb
from tests.fuzz.trial import Finding, Trials, Watch

pytestmark = pytest.mark.slow  # seconds of models in all


@functools.cache
def watch() -> Watch:
    """One for the process: what hears Python's audit events is never taken away again."""
    return Watch()


@pytest.mark.parametrize("name", FORMATS)
def test_a_spoiled_file_is_refused_with_one_line_or_read(name: str, tmp_path: Path) -> None:
    tried, read = by_hypothesis(Trials(FORMATS[name], tmp_path, watch()), 100, seed=7)
    assert tried >= 80 and read < tried


def test_the_command_knows_every_format() -> None:
    assert set(NAMES) == set(FORMATS)


def test_what_is_run_or_written_elsewhere_is_seen(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    with watch().over(tmp_path / "inside"):
        (tmp_path / "inside" / "x").write_text("")
    for crime in (lambda: (tmp_path / "x").write_text(""), lambda: os.system("true"), lambda: os.mkdir(tmp_path / "y")):
        with pytest.raises(Finding), watch().over(tmp_path / "inside"):
            crime()


def test_a_small_file_cannot_unpack_into_a_large_one(tmp_path: Path) -> None:
    packed = gzip.compress(b"subject,relation,object,time\n") + gzip_bomb(80 << 20, b"x" * 65_535 + b"\n")
    with pytest.raises(InputError, match="more than 200 times its size"):
        import_csv(io.BytesIO(packed), tmp_path / "out")
    with pytest.raises(InputError, match="a line has more than"):
        import_csv(io.BytesIO(gzip.compress(b"x" * (5 << 20))), tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("train.txt", bytes(80 << 20))
    digest = hashlib.sha256((tmp_path / "bomb.zip").read_bytes()).hexdigest()
    with pytest.raises(InputError, match="more than 200 times its size"):
        fetch_dataset(str(tmp_path / "bomb.zip"), tmp_path / "out", digest)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bomb.zip"]


def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    make_bundle(tmp_path)
    for name in ("meta.json", "tensors.safetensors"):
        path = tmp_path / "bundle" / name
        path.rename(tmp_path / "aside")
        os.mkfifo(path)
        with pytest.raises(InputError, match="is no file"):
            load_bundle(str(tmp_path / "bundle"))
        path.unlink()
        (tmp_path / "aside").rename(path)
    os.mkfifo(tmp_path / "present.json")
    with pytest.raises(InputError, match="is no file"):
        read_document(str(tmp_path / "present.json"))


def test_an_error_is_one_line_whatever_a_file_holds() -> None:
    assert str(AdatkgError("a\nb\x1b[2J\x00")) == "a b\\x1b[2J\\x00"
    long = str(InputError(f"the file {'x' * 100_000}; the remedy"))
    assert len(long) <= 1_500 and long.startswith("the file") and long.endswith("the remedy")
