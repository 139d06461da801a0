"""Training `live` on days of ICEWS14: two processes of one thread against one process of two threads.

Over the same part of an epoch, by the same command that a user gives. Beside it stands the machine's rate in a large
matrix product of single precision, on all of its cores.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: busy waiting hurts as soon as a core is shared

import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import orjson

from .results import tell

LAST_DAY = 24  # of which the newest tenth is valid; the first two days are only remembered
COMMAND = ("train", "icews14", "--config", "live", "--epochs", "1", "--seed", "1", "--to", str(LAST_DAY))


def main() -> None:
    """Both, one after the other; names and compiled code are in the cache after the first."""
    with tempfile.TemporaryDirectory() as folder:
        one = rate(Path(folder, "one"), processes=1, threads=2)
        two = rate(Path(folder, "two"), processes=2, threads=1)
    tell("two_processes_to_one", two / one, one_process_per_second=one, two_processes_per_second=two)


def rate(out: Path, processes: int, threads: int) -> float:
    """Queries learned from in a second, validation apart."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [sys.executable, "-m", "adatkg", *COMMAND, "--out", str(out)]
    common = os.environ | {"OMP_NUM_THREADS": str(threads), "ADATKG_LOG": "warning", "WORLD_SIZE": str(processes)}
    common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    running = [subprocess.Popen(command, env=common | {"RANK": str(rank)}) for rank in range(processes)]
    if any([process.wait() for process in running]):
        raise SystemExit("a training failed; what it said stands above")
    curves = out.with_name(out.name + ".training") / "curves.jsonl"
    return float(orjson.loads(curves.read_bytes().splitlines()[0])["queries_per_second"])


if __name__ == "__main__":
    main()
