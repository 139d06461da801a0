"""What every long-running program needs: memory that stays, a cache folder, and signals that ask to stop."""

from adatkg_core.runtime.allocator import keep_freed_memory
from adatkg_core.runtime.cache_dir import default_cache
from adatkg_core.runtime.stop_signal import USUAL, Stop, stop_on_signals

__all__ = [
    "USUAL",
    "Stop",
    "default_cache",
    "keep_freed_memory",
    "stop_on_signals",
]
