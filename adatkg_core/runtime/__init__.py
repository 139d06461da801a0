"""What every long-running program needs: a cache folder, and signals that ask to stop."""

from adatkg_core.runtime.cache_dir import default_cache
from adatkg_core.runtime.stop_signal import USUAL, Stop, stop_on_signals

__all__ = [
    "USUAL",
    "Stop",
    "default_cache",
    "stop_on_signals",
]
