"""Python's garbage collection in programs that answer: a full one stops every thread while it looks at all objects.

The libraries alone are some hundred thousand objects, and with what a stream keeps waiting full collections came every
few seconds and took as long as a batch.
"""

from __future__ import annotations

import gc

YOUNG = 5_000, 10  # objects made until the youngest are looked at, and how often until those a little older are
NEVER = 1 << 30


def collect_on_request() -> None:
    """What is there now is never looked at again, and what grows old from now on only by `gc.collect()`."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*YOUNG, NEVER)
