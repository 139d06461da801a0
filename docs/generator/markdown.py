"""Pieces of Markdown that the pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTE = "<!-- Made by `make reference` from the code. Change it there. -->"


def document(title: str, *parts: str) -> str:
    """A page; parts are separated by blank lines, empty ones left out."""
    return "\n\n".join(part.strip("\n") for part in (NOTE, f"# {title}", *parts) if part.strip()) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells may hold anything but line breaks."""
    lines = [header, ["---"] * len(header), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: object) -> str:
    """Text as it is typed; nothing for nothing."""
    shown = str(text)
    return f"`{shown}`" if shown else ""


def described(what: str, there: Iterable[str], about: Iterable[str]) -> None:
    """Raise unless everything that is there is described, and nothing else."""
    found, known = set(there), set(about)
    if found != known:
        raise ValueError(f"{what}: not described {sorted(found - known)}, described but gone {sorted(known - found)}")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
