"""The facts of a tick taken into a state on a CPU as they come, by compiled code."""

from adatkg_core.engine.live_commit.live_commit import LiveCommit, prepare
from adatkg_core.engine.live_commit.live_memory import LiveMemory

__all__ = ["LiveCommit", "LiveMemory", "prepare"]
