"""Where things are kept that can be had again."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def default_cache() -> Path:
    """`ADATKG_CACHE`, or the place where the platform keeps caches."""
    if given := os.environ.get("ADATKG_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "adatkg"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "adatkg" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "adatkg"
