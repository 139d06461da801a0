"""Counts the places at which a GPU would have to be waited for, while everything runs on a CPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Operations whose result, or its shape, the host must know before it can go on.
BY_VALUE = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "_unique2",
    "unique_consecutive",
    "unique_dim",
    "repeat_interleave",
    "bincount",
    "equal",
}
TO_HOST = {"tolist", "numpy", "cpu"}  # methods that a CPU's tensor answers without any operation


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, found: Counter[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._found = found

    def __torch_dispatch__(
        self, function: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = function.overloadpacket.__name__
        if name in BY_VALUE and not (name == "repeat_interleave" and "output_size" in (kwargs or {})):
            self._found[name] += 1
        if name in ("index", "index_put", "index_put_", "_index_put_impl_") and _by_mask(args[1]):
            self._found["index by mask"] += 1
        return function(*args, **(kwargs or {}))


class _Methods(TorchFunctionMode):
    def __init__(self, found: Counter[str]) -> None:
        super().__init__()
        self._found = found

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if getattr(function, "__name__", "") in TO_HOST:
            self._found[function.__name__] += 1
        return function(*args, **(kwargs or {}))


def _by_mask(indices: Sequence[Tensor | None]) -> bool:
    return any(one is not None and one.dtype in (torch.bool, torch.uint8) for one in indices)


@contextmanager
def counted_waits() -> Iterator[Counter[str]]:
    """How often each such thing was done while this lasted."""
    found: Counter[str] = Counter()
    with _Methods(found), _Operations(found):
        yield found
