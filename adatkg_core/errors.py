"""The errors that a user may meet; each message names the thing, the place and the remedy."""

from __future__ import annotations

import re

_CREDENTIALS = re.compile(r"(\w://[^\s/@:]*):[^\s/@]+@")
LONGEST = 1_500  # characters; what a file holds may be of any length, and a person reads a line


def one_line(text: str) -> str:
    """A text as one line that a terminal can show: control characters are spelled out, a long middle is left out."""
    text = without_credentials(" ".join(text.splitlines()))
    if not text.isprintable():
        text = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 500]} … {text[-490:]}"


def without_credentials(text: str) -> str:
    """A text in which no URL shows a password."""
    return _CREDENTIALS.sub(r"\1:***@", text) if "://" in text else text


class AdatkgError(Exception):
    """A failure that is not the caller's fault; the command exits with `exit_code`."""

    exit_code = 1

    def __str__(self) -> str:
        return one_line(super().__str__())


class InputError(AdatkgError):
    """Wrong input: a bad file, an unknown key, a damaged bundle."""

    exit_code = 2
