"""Reads thousands of spoiled files of every format: `python -m tests.fuzz --minutes 10`.

Each format is tried in a process of its own, whose memory is limited; what takes too long, needs too much, raises
anything but a refusal of one line, runs something or writes elsewhere is a finding, and the command ends with 1.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

MEMORY = 2 << 30  # bytes beyond what the process has once everything is loaded
SECONDS = 30  # for one file, on a busy machine
GRACE = 180.0  # seconds after which a process that should have ended hangs
FORMATS = ("bundle", "snapshot", "increment", "store", "ids", "ticks", "names", "edges", "packed", "csv", "archive")


def main() -> int:
    """Fuzz, tell, and say by the exit code whether something was found."""
    options = _options()
    if options.inside:
        return _inside(options)
    names = options.format or list(FORMATS)
    share = options.minutes * 60 / len(names)
    found = False
    for name in names:
        line = _child(name, share, options)
        found |= line["finding"] is not None
        print(json.dumps(line) if options.json else _shown(line), flush=True)
    return int(found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all formats together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", action="append", choices=FORMATS, help="this one only; may be given again")
    parser.add_argument("--engine", choices=("hypothesis", "atheris"), default="hypothesis")
    parser.add_argument("--json", action="store_true", help="an object per line")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _child(name: str, seconds: float, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.fuzz", "--inside", "--format", name, "--engine", options.engine]
    command += ["--seed", str(options.seed), "--minutes", str(seconds / 60)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + GRACE)
    except subprocess.TimeoutExpired:
        return {"format": name, "tried": 0, "read": 0, "finding": f"no end within {seconds + GRACE:.0f} s"}
    told = [line for line in done.stdout.splitlines() if line.startswith('{"format"')]
    line: dict[str, Any] = json.loads(told[-1]) if told else {"format": name, "tried": 0, "read": 0, "finding": None}
    if done.returncode and line["finding"] is None:
        line["finding"] = f"ended with {done.returncode}: {done.stderr[-1_500:]}"
    return line


def _inside(options: argparse.Namespace) -> int:
    from tests.fuzz.engines import by_atheris, for_a_while
    from tests.fuzz.formats import FORMATS as KNOWN
    from tests.fuzz.trial import Finding, Trials, Watch

    (name,) = options.format
    line: dict[str, Any] = {"format": name, "tried": 0, "read": 0, "finding": None}
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(KNOWN[name], Path(folder), Watch(), before=lambda: signal.alarm(SECONDS))
        signal.signal(signal.SIGALRM, _too_long)
        _limit_memory()
        try:
            if options.engine == "atheris":
                # libFuzzer never comes back, so what was done so far is told each time.
                by_atheris(trials, options.minutes * 60, options.seed, lambda count, read: _tell(line, count, read))
            else:
                line["tried"], line["read"] = for_a_while(trials, options.minutes * 60, options.seed)
        except (Finding, MemoryError) as error:
            line["finding"] = " ".join([repr(error)[:600], *getattr(error, "__notes__", ())])
        finally:
            signal.alarm(0)  # the end of the process takes its time on a busy machine
    print(json.dumps(line), flush=True)
    return int(line["finding"] is not None)


def _tell(line: dict[str, Any], count: int, read: int) -> None:
    if count % 50 == 0:
        print(json.dumps(line | {"tried": count, "read": read}), flush=True)


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _too_long(number: int, frame: FrameType | None) -> None:
    from tests.fuzz.trial import Finding

    raise Finding(f"a file took more than {SECONDS} s")


def _shown(line: dict[str, Any]) -> str:
    return f"{line['format']:10} {line['tried']:7} tried {line['read']:7} read  {line['finding'] or 'nothing found'}"


if __name__ == "__main__":
    sys.exit(main())
