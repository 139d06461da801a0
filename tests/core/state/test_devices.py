"""Sums on a GPU have a fixed order where that is asked for, and only there."""

from __future__ import annotations

import pytest
import torch

from adatkg_core.state import ordered_sums, to_device


def test_sums_are_ordered_on_a_gpu_while_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    with pytest.raises(KeyError), ordered_sums(torch.device("cuda:1")):
        assert torch.are_deterministic_algorithms_enabled()
        raise KeyError
    assert not torch.are_deterministic_algorithms_enabled()
    assert not torch.is_deterministic_algorithms_warn_only_enabled()


def test_on_a_cpu_nothing_changes() -> None:
    with ordered_sums(torch.device("cpu")):
        assert not torch.are_deterministic_algorithms_enabled()
    values = torch.arange(3)
    assert to_device(values, torch.device("cpu")) is values
