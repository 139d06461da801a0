"""Settings in TOML files, section by section.

The file that ADATKG_CONFIG names holds for every command; the one that `--config` names comes on top of it. Variables
and flags come on top of both, which is for those to do who know them.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from adatkg_core.errors import InputError

VARIABLE = "ADATKG_CONFIG"
MODEL_SECTIONS = ("model", "recall", "train")  # belong together and come from one file
SECTIONS = ("kafka", "stream", *MODEL_SECTIONS, "retrain")


def shipped_configs() -> list[str]:
    """The names of the configurations inside the package."""
    folder = resources.files("adatkg_core.settings") / "shipped"
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


def config_files(given: Path | None, environ: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """The files that count, in the order in which they are read; `given` is that of `--config`."""
    if usual := environ.get(VARIABLE):
        yield Path(usual)
    if given is not None:
        yield given


def read_file(path: Path) -> dict[str, dict[str, Any]]:
    """A file's sections, all of them known; what they hold is for `check_section`."""
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"config {path}: cannot be read ({error.strerror}); give a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"config {path}: not TOML: {error}; mend the line it names") from error
    for name, section in values.items():
        if name not in SECTIONS:
            raise InputError(f"config {path}: unknown section [{name}]; known: {', '.join(SECTIONS)}")
        if not isinstance(section, dict):
            raise InputError(f"config {path}: [{name}] must be a table of settings")
    return values


def settings_of(cls: type, name: str, given: Path | None, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """A section's settings from all files that count, checked against its dataclass."""
    found: dict[str, Any] = {}
    for path in config_files(given, environ):
        found |= check_section(cls, read_file(path).get(name, {}), f"config {path}: [{name}]")
    return found


def load_section(
    cls: type, name: str, given: Path | None, flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ
) -> Any:
    """A section as its dataclass: from all files that count, then ADATKG_SECTION_KEY variables, then flags.

    A flag that is None was not given.
    """
    values = settings_of(cls, name, given, environ)
    for one in dataclasses.fields(cls):
        variable = f"ADATKG_{name}_{one.name}".upper()
        if variable in environ:
            values[one.name] = _from_text(one.type, environ[variable])
    values |= {key: value for key, value in flags.items() if value is not None}
    return read_section(cls, values, f"{name} settings:")


def read_section(cls: type, values: Mapping[str, Any], where: str) -> Any:
    """One section as its dataclass: an unknown key or a value of the wrong type is an error that names it."""
    return cls(**check_section(cls, values, where))


def check_section(cls: type, values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The settings with the types that their dataclass wants; a field that has no repr is a secret and not shown."""
    hints = get_type_hints(cls)
    secrets = {field.name for field in dataclasses.fields(cls) if not field.repr}
    checked: dict[str, Any] = {}
    for key, value in values.items():
        if key not in hints:
            raise InputError(f"{where} unknown key `{key}`; known: {', '.join(hints)}")
        shown = f"{where} {key}" if key in secrets else f"{where} {key} = {value!r}"
        checked[key] = _typed(hints[key], value, shown)
    return checked


def _typed(hint: Any, value: Any, shown: str) -> Any:
    if get_origin(hint) in (Union, UnionType):
        problems = []
        for one in get_args(hint):
            try:
                return _typed(one, value, shown)
            except InputError as error:
                problems.append(str(error).removeprefix(f"{shown}: must be "))
        raise InputError(f"{shown}: must be {' or '.join(problems)}")
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise InputError(f"{shown}: must be one of {', '.join(map(str, get_args(hint)))}")
        return value
    if get_origin(hint) is tuple:
        if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
            raise InputError(f"{shown}: must be a list of strings")
        return tuple(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise InputError(f"{shown}: must be a {hint.__name__}")
    return value


def _from_text(hint: Any, text: str) -> Any:
    """A variable's text as its setting's type wants it; names in a row may simply have commas between them."""
    if hint == "str":
        return text
    value = parse_value(text)
    if str(hint).startswith("tuple") and isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    return value


def parse_value(text: str) -> Any:
    """A setting as TOML would read it; what is no TOML value is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
