"""Memory by its address: what compiled code reads and writes, without counting who holds it.

An array as an argument costs numba a count of references at each step. So arrays go to compiled code as addresses, and
whoever calls holds them for as long as the call lasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from numba import types
from numba.extending import intrinsic

T = TypeVar("T", bound=float)


class Cells(Protocol[T]):
    """Numbers beside each other, as many as whoever gave the address has there."""

    def __getitem__(self, i: int) -> T:
        """The i-th."""

    def __setitem__(self, i: int, value: T) -> None:
        """Write the i-th."""


def _cells_of(element: Any) -> Any:
    pointer: Any = types.CPointer(element)  # type: ignore[no-untyped-call]

    def cells(context: Any, address: Any) -> Any:
        def code(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], target.get_value_type(pointer))

        return pointer(types.int64), code

    return intrinsic(cells)


floats: Callable[[int], Cells[float]] = _cells_of(types.float32)
doubles: Callable[[int], Cells[float]] = _cells_of(types.float64)
narrow: Callable[[int], Cells[int]] = _cells_of(types.int32)
wide: Callable[[int], Cells[int]] = _cells_of(types.int64)
