"""The page of the Python API: the public names of every package, from their signatures and docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, get_type_hints

from msgspec import Struct

from docs.generator.markdown import code, document, table

PACKAGES = ("adatkg", "adatkg_core", "streams", "trainer", "replay")
INTRODUCTION = """
What a Python program may rely on: the names that a package lists in `__all__`. `adatkg` has those that most programs
need; the others are where these come from, with more. A name is imported when it is first used, so that a program pays
only for what it calls. Anything else may change without notice.
"""
CONSTANTS = {"__version__": "The version of the package, by [Semantic Versioning](https://semver.org)."}
_WIDTH = 100
_MODULE = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Z])")
_SHOWN = (bool, int, float, str, tuple, type(None))  # defaults of other types say nothing, or something of this machine


class _Plain:
    """An annotation as it stands in the code, without the quotes of a text and the modules that types are in."""

    def __init__(self, text: object) -> None:
        self._text = text if isinstance(text, str) else _MODULE.sub("", inspect.formatannotation(text))

    def __repr__(self) -> str:
        return self._text


class _Left(_Plain):
    """A default that is not shown."""

    def __init__(self) -> None:
        super().__init__("...")


def page() -> str:
    """Every package, and in it every public name; one that came before is only named again."""
    parts: list[str] = []
    homes: dict[int, str] = {}
    for name in PACKAGES:
        package = importlib.import_module(name)
        parts += [f"## {name} {{: #{name.replace('_', '-')} }}", inspect.getdoc(package) or ""]
        again = []
        for public in package.__all__:
            thing = getattr(package, public)
            if id(thing) in homes and public not in CONSTANTS:
                again.append((f"[{code(public)}](#{homes[id(thing)]})", _first_line(thing)))
            else:
                homes[id(thing)] = anchor = f"{name}.{public}".replace("_", "-").lower()
                parts += [f"### {code(public)} {{: #{anchor} }}", *_explained(package, public, thing)]
        if again:
            parts += ["Also here:", table(("name", "is"), again)]
    return document("Python API", INTRODUCTION, *parts)


def _explained(package: ModuleType, name: str, thing: Any) -> Iterator[str]:
    if name in CONSTANTS:
        yield _block(f"{name}: {type(thing).__name__}")
        yield CONSTANTS[name]
    elif inspect.isclass(thing):
        yield _block(f"class {name}{_signature_of_class(thing)}")
        yield _docstring(f"{package.__name__}.{name}", thing)
        for member, value in _members(thing):
            if isinstance(value, property):
                shown = f"{member}: {_annotation(inspect.signature(_getter(value)).return_annotation)}"
            else:
                shown = signature(member, getattr(thing, member))
            yield _block(shown)
            yield _docstring(f"{name}.{member}", value)
    else:
        yield _block(signature(name, thing))
        yield _docstring(f"{package.__name__}.{name}", thing)


def signature(name: str, function: Callable[..., Any]) -> str:
    """How a function is called, on one line or on one for each parameter."""
    found = inspect.signature(function)
    # What a message declares beside its types (a description, a range) is on the page of messages.
    bare = get_type_hints(function) if is_message(function) else {}
    parameters = [
        one.replace(
            annotation=one.annotation if one.annotation is one.empty else _Plain(bare.get(one.name, one.annotation)),
            default=one.default if one.default is one.empty or type(one.default) in _SHOWN else _Left(),
        )
        for one in found.parameters.values()
        if one.name != "self"
    ]
    gives = "" if found.return_annotation is found.empty else f" -> {_annotation(found.return_annotation)}"
    prefix = "async " if inspect.iscoroutinefunction(function) else ""
    text = str(found.replace(parameters=parameters, return_annotation=found.empty))
    if len(f"{prefix}{name}{text}{gives}") <= _WIDTH:
        return f"{prefix}{name}{text}{gives}"
    lines = [f"    {word}," for word in _separate(parameters)]
    return "\n".join([f"{prefix}{name}(", *lines, f"){gives}"])


def _separate(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Each parameter as it is written, with the star before those that are given by name."""
    starred = False
    for one in parameters:
        starred |= one.kind is one.VAR_POSITIONAL
        if one.kind is one.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        yield str(one)


def _annotation(found: object) -> str:
    return repr(_Plain(found))


def _signature_of_class(thing: type) -> str:
    """What is given to make one; of a protocol and of an error nothing that matters."""
    if issubclass(thing, BaseException):
        return f"({thing.__bases__[0].__name__})"
    if getattr(thing, "_is_protocol", False):
        return "(Protocol)"
    # A class has no return value worth telling.
    return signature("", thing).partition(" -> ")[0] if "__init__" in vars(thing) or is_message(thing) else "()"


def is_message(thing: object) -> bool:
    """Whether a class is one that msgspec makes from its fields."""
    return inspect.isclass(thing) and issubclass(thing, Struct)


def _members(thing: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(thing).items():
        called = inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod)
        if called and not name.startswith("_"):
            yield name, value


def _getter(value: property) -> Callable[..., Any]:
    assert value.fget is not None
    return value.fget


def _docstring(where: str, thing: Any) -> str:
    found = inspect.getdoc(thing)
    if not found:
        raise ValueError(f"{where}: has no docstring; say there what a caller must know")
    return found


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n\n")[0]


def _block(text: str) -> str:
    return f"```text\n{text}\n```"
