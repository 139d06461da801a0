"""What every long-running program needs: memory that stays, garbage that waits, a cache folder, signals, retries."""

from adatkg_core.runtime.allocator import ScatteredMemory, give_back_freed_memory, keep_freed_memory
from adatkg_core.runtime.cache_dir import default_cache
from adatkg_core.runtime.collection import collect_on_request
from adatkg_core.runtime.compilation import compiled
from adatkg_core.runtime.file_memory import FileMemory, aligned
from adatkg_core.runtime.lasting_memory import lasting_zeros
from adatkg_core.runtime.retry import Retry, growing_pause, wait_until
from adatkg_core.runtime.stop_signal import USUAL, Stop, stop_on_signals

__all__ = [
    "USUAL",
    "FileMemory",
    "Retry",
    "ScatteredMemory",
    "Stop",
    "aligned",
    "collect_on_request",
    "compiled",
    "default_cache",
    "give_back_freed_memory",
    "growing_pause",
    "keep_freed_memory",
    "lasting_zeros",
    "stop_on_signals",
    "wait_until",
]
