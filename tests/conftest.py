"""What tests of every package share."""

from __future__ import annotations

import os
from pathlib import Path

# Before torch is imported by any test; see adatkg_cli.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import pytest


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """The folder with the published benchmark files, for those who have them."""
    folder = os.environ.get("ADATKG_DATA")
    if not folder:
        pytest.skip("ADATKG_DATA is not set to a folder with the benchmark files")
    return Path(folder)
