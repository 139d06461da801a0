"""The fenced blocks of a page and what is to become of each.

A comment in the line before a block, `<!-- run: … -->`, says how it is run; without one it is run and must succeed.

    expect "a", "b"             its output holds these texts
    fails with "a"              it ends with an error, and its output holds this text
    again until "a"             it is repeated until its output holds this text
    background until "a"        it goes on until the page ends; the next block waits until its output holds this text
    after Ctrl-C                what runs in the background is ended first, as a reader does it
    output                      a text that shows what the block before printed; … stands for anything
    parse only, because …       its commands are only looked up

A page with the line `<!-- page: after tutorial.md -->` goes on in the session of that page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["run", "expect", "fails with", "again until", "background until", "after Ctrl-C", "output", "parse only"]
RUN = ("sh", "python", "toml")
SHOWN = ("text", "json", "yaml")  # looked at, never run

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[\w-]*) *(?P<rest>[^`]*)$")
_TITLE = re.compile(r'title="([^"]+)"')
_DIRECTIVE = re.compile(r"^ *<!-- run: (.*) -->$")
_AFTER = re.compile(r"^<!-- page: after (\S+) -->$", re.MULTILINE)
_TEXTS = re.compile(r'(expect|fails with|again until|background until) ("[^"]+"(?:, "[^"]+")*)')
_PARSED = re.compile(r"parse only, because \S.+")


class Unclear(Exception):
    """A block of which nobody can say how it is run."""


@dataclass(frozen=True)
class Directive:
    """How a block is run, and the texts that its output must hold."""

    kind: Kind = "run"
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """A fenced block; `title` is the file that a reader shall save it as."""

    page: Path
    line: int
    language: str
    title: str | None
    body: str
    directive: Directive

    @property
    def where(self) -> str:
        """What a reader of a failure looks for."""
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks in their order. Raises Unclear for one that could not be run."""
    lines = page.read_text("utf-8").splitlines()
    found, number = [], 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if opening is None:
            number += 1
            continue
        indent, begin = len(opening["indent"]), number + 1
        while number + 1 < len(lines) and lines[number + 1].strip() != opening["fence"]:
            number += 1
        body = "".join(f"{line[indent:]}\n" for line in lines[begin : number + 1])
        title = _TITLE.search(opening["rest"])
        block = Block(
            page,
            begin,
            opening["language"],
            title[1] if title else None,
            body,
            _directive(lines[: begin - 1], f"{page.name}:{begin}"),
        )
        _check(block)
        found.append(block)
        number += 2
    return found


def page_before(page: Path) -> Path | None:
    """The page whose session this one goes on in."""
    after = _AFTER.search(page.read_text("utf-8"))
    return (page.parent / after[1]).resolve() if after else None


def _directive(before: list[str], where: str) -> Directive:
    said = _DIRECTIVE.match(before[-1]) if before else None
    if said is None:
        return Directive()
    text = said[1]
    if text == "output":
        return Directive("output")
    if text == "after Ctrl-C":
        return Directive("after Ctrl-C")
    if _PARSED.fullmatch(text):
        return Directive("parse only")
    told = _TEXTS.fullmatch(text)
    if told is None:
        raise Unclear(f"{where}: `run: {text}` is no way to run a block")
    kind: Kind = told[1]  # type: ignore[assignment]
    return Directive(kind, tuple(re.findall(r'"([^"]+)"', told[2])))


def _check(block: Block) -> None:
    kind, language = block.directive.kind, block.language
    if language not in RUN + SHOWN:
        raise Unclear(f"{block.where}: {language or 'no language'}: a block is one of {', '.join(RUN + SHOWN)}")
    if (kind == "output") and language != "text":
        raise Unclear(f"{block.where}: only a text shows what was printed")
    if language in SHOWN and kind not in ("run", "output"):
        raise Unclear(f"{block.where}: a {language} block cannot be run")
    if language == "toml" and kind != "run":
        raise Unclear(f"{block.where}: a toml block is always checked and never printed")
