"""Why a message cannot be processed."""

from __future__ import annotations


class Unusable(Exception):
    """A message that cannot be processed: a code that can be counted and a sentence that can be acted on."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail
