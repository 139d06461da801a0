"""What every long-running program needs: memory that stays, a cache folder, signals that ask to stop, retries."""

from adatkg_core.runtime.allocator import keep_freed_memory
from adatkg_core.runtime.cache_dir import default_cache
from adatkg_core.runtime.compilation import compiled
from adatkg_core.runtime.retry import Retry, growing_pause, wait_until
from adatkg_core.runtime.stop_signal import USUAL, Stop, stop_on_signals

__all__ = [
    "USUAL",
    "Retry",
    "Stop",
    "compiled",
    "default_cache",
    "growing_pause",
    "keep_freed_memory",
    "stop_on_signals",
    "wait_until",
]
