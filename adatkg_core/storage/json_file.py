"""Small JSON documents in a store, replaced in one step."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Mapping
from typing import Any

import orjson

from adatkg_core.errors import InputError
from adatkg_core.storage.place import NOT_THERE, locate, store_errors


def read_document(url: str) -> dict[str, Any] | None:
    """The object in this file, None where there is no such file."""
    place = locate(url)
    try:
        with store_errors(url):
            if place.fs.info(place.path)["type"] != "file":
                raise InputError(f"{url}: is no file; remove what is there, or restore it from a copy")
            data = place.fs.cat_file(place.path)
    except NOT_THERE:
        return None
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{url}: not JSON ({error}); restore it from a copy") from error
    if not isinstance(value, dict):
        raise InputError(f"{url}: must hold a JSON object; restore it from a copy")
    return value


def write_document(url: str, value: Mapping[str, Any]) -> None:
    """Put an object into this file; a reader sees the old one or the new one, whenever the writer dies."""
    place = locate(url)
    data = orjson.dumps(dict(value), option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)
    with store_errors(url):
        place.fs.makedirs(os.path.dirname(place.path), exist_ok=True)
        if not place.is_local:
            place.fs.pipe_file(place.path, data)
            return
        partial = f"{place.path}.{uuid.uuid4().hex[:12]}.partial"
        try:
            with open(partial, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, place.path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(partial)  # of a write that failed, for example on a full disk
