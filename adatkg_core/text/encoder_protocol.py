"""What everyone may rely on in a text encoder, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch


class TextEncoder(Protocol):
    """Turns texts into vectors; the same text always gives bitwise the same vector."""

    @property
    def name(self) -> str:
        """The spec from which `load_encoder` makes this encoder again."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    def encode(self, texts: Sequence[str]) -> torch.Tensor:  # [n, dim]
        """Unit vectors of the texts, float32 on the CPU."""
