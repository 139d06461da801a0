"""The program behind an `EncoderProcess`, run as a module with a model and its pooling.

Its first line says whether it could load the model; then it answers each line of texts with their vectors, and ends
when nobody can ask any more.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

from adatkg_core.errors import InputError
from adatkg_core.text.encoder import TransformerEncoder

NICE = 10  # what is live goes first; whoever waits for a name leaves a core to it anyway


def serve(model: str, pooling: Any) -> None:
    """Load, and answer until the input ends."""
    os.nice(NICE)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library may print is no answer
    problem = None
    try:
        encoder = TransformerEncoder(model, pooling)
        encoder.load()
    except InputError as error:
        problem = str(error)
    out.write(json.dumps({"problem": problem}).encode() + b"\n")
    out.flush()
    if problem is not None:
        return
    for line in sys.stdin.buffer:
        out.write(encoder.encode(json.loads(line)).numpy().tobytes())
        out.flush()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        serve(*sys.argv[1:])
