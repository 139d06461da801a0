"""Commands of ours as processes, for those that conduct a whole system on this machine."""

from adatkg.processes.environment import own_environment
from adatkg.processes.process import Lines, Process

__all__ = ["Lines", "Process", "own_environment"]
