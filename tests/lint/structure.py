"""What `make lint` holds beside ruff and mypy: folders are entered by their door, files and functions stay short.

A folder inside a package has a door: its `__init__.py`, which lists its public names in `__all__`. From outside the
folder one imports these names from the folder, never from a file in it. A file at the root of a package
(`adatkg_core/errors.py`, `streams/settings.py`) is a door itself. `python -m tests.lint.structure` runs it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("adatkg", "adatkg_core", "replay", "streams", "trainer")
# The command starts fast because it imports one file of these at a time: here each file is a door.
WITHOUT_DOOR = {"adatkg.commands", "adatkg.console"}

FILE_LINES = 350
FUNCTION_LINES = 60  # of its body: the signature of a command is a table of its options


def problems(root: Path) -> Iterator[str]:
    """Each thing that is wrong below a checkout's root: file, line, what and the remedy."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            text = path.read_text("utf-8")
            tree = ast.parse(text)
            yield from _past_doors(root, path, tree)
            yield from _too_long(path.relative_to(root), text, tree)


def _past_doors(root: Path, path: Path, tree: ast.Module) -> Iterator[str]:
    folder = path.relative_to(root).parent.parts
    name = ".".join(folder)
    if path.name == "__init__.py" and name not in WITHOUT_DOOR and not _listed(path):
        yield f"{path.relative_to(root)}:1: the folder has no door; list its public names in __all__"
    for node in (one for one in ast.walk(tree) if isinstance(one, ast.Import | ast.ImportFrom)):
        for wanted in _imported(root, node):
            door = _door_passed(root, wanted, folder)
            if door is not None:
                yield (
                    f"{path.relative_to(root)}:{node.lineno}: {'.'.join(wanted)} is behind the door of {door}; "
                    f"import the name from {door}, and list it there in __all__ if it is missing"
                )


def _imported(root: Path, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ...]]:
    """The modules of ours that a statement imports, by their parts."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield tuple(alias.name.split("."))
    elif node.module:
        module = tuple(node.module.split("."))
        yield module
        place = root.joinpath(*module)
        listed = _listed(place / "__init__.py")
        for alias in node.names:
            # A file can be imported as if it were a name of its folder.
            if alias.name not in listed and (place / f"{alias.name}.py").is_file():
                yield (*module, alias.name)


def _door_passed(root: Path, wanted: tuple[str, ...], folder: tuple[str, ...]) -> str | None:
    """The door that an import from a folder goes past, if it does."""
    outer = wanted[:-1]
    if wanted[0] not in PACKAGES or len(outer) < 2 or root.joinpath(*wanted).is_dir():
        return None
    name = ".".join(outer)
    return None if name in WITHOUT_DOOR or folder[: len(outer)] == outer else name


def _listed(door: Path) -> list[str]:
    """The names in `__all__` of an `__init__.py`; none where there is none."""
    if door.is_file():
        for node in ast.parse(door.read_text("utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return list(ast.literal_eval(node.value))
    return []


def _too_long(path: Path, text: str, tree: ast.Module) -> Iterator[str]:
    lines = len(text.splitlines())
    if lines > FILE_LINES:
        yield f"{path}:1: {lines} lines, at most {FILE_LINES}; give one of its ideas a file of its own"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = (node.end_lineno or 0) - node.body[0].lineno + 1
            if body > FUNCTION_LINES:
                yield (
                    f"{path}:{node.lineno}: the body of {node.name} has {body} lines, at most {FUNCTION_LINES}; "
                    "give a step of it a name"
                )


if __name__ == "__main__":
    found = list(problems(Path(__file__).parents[2]))
    sys.exit("\n".join(found) or None)
