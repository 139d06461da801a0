"""Becomes another program that the kernel ends together with the process that started it (Linux).

Run as a script: `python tied_process.py PARENT PROGRAM ARGUMENT...`. It is a program of its own because code between
fork and exec is not safe in a process with threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tied(command: list[str]) -> list[str]:
    """The command as one whose process ends with the thread that starts it; elsewhere than on Linux as it is."""
    if sys.platform != "linux":
        return command
    return [sys.executable, "-I", __file__, str(os.getpid()), *command]


if __name__ == "__main__":
    parent, program = int(sys.argv[1]), sys.argv[2]
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit("the parent ended before its child could be tied to it")
    os.execv(program, sys.argv[2:])
