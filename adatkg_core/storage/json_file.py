"""Small JSON documents in a store, replaced in one step."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any

import orjson
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from adatkg_core.errors import AdatkgError, InputError


def read_document(url: str) -> dict[str, Any] | None:
    """The object in this file, None where there is no such file."""
    fs, path = url_to_fs(url)
    fs.invalidate_cache()
    try:
        if fs.info(path)["type"] != "file":
            raise InputError(f"{url}: is no file; remove what is there, or restore it from a copy")
        value = orjson.loads(fs.cat_file(path))
    except FileNotFoundError:
        return None
    except orjson.JSONDecodeError as error:
        raise InputError(f"{url}: not JSON ({error}); restore it from a copy") from error
    except OSError as error:
        raise AdatkgError(f"{url}: cannot be read ({error})") from error
    if not isinstance(value, dict):
        raise InputError(f"{url}: must hold a JSON object; restore it from a copy")
    return value


def write_document(url: str, value: Mapping[str, Any]) -> None:
    """Put an object into this file; a reader sees the old one or the new one, whenever the writer dies."""
    fs, path = url_to_fs(url)
    data = orjson.dumps(dict(value), option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)
    try:
        fs.makedirs(os.path.dirname(path), exist_ok=True)
        if not isinstance(fs, LocalFileSystem):
            fs.pipe_file(path, data)
            return
        partial = f"{path}.{uuid.uuid4().hex[:12]}.partial"
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        raise AdatkgError(f"{url}: cannot be written ({error}); check that the place is writable") from error
