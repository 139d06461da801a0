"""What decoding and checking a batch of 512 facts takes, against bare parsing of the same JSON into dicts.

Names are looked at, times are ticks, and nothing else is done with the facts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import orjson

from adatkg_core.datasets import load_dataset
from adatkg_core.messages import decode_event, encode_fact

from .results import tell

FACTS = 512
RUNS = 400  # the fastest counts: whatever else the machine does only slows


def main() -> None:
    """Decode facts of ICEWS14 again and again."""
    dataset = load_dataset("icews14")
    messages = [
        encode_fact(dataset.entities[s], dataset.relations[r], dataset.entities[o], t)
        for s, r, o, t in dataset.facts[:FACTS].tolist()
    ]
    parsing = _seconds(orjson.loads, messages)
    tell("decoding_to_parsing", _seconds(lambda data: decode_event(data, None), messages) / parsing)


def _seconds(decode: Callable[[bytes], object], messages: list[bytes]) -> float:
    taken = []
    for _ in range(RUNS):
        began = time.perf_counter()
        for message in messages:
            decode(message)
        taken.append(time.perf_counter() - began)
    return min(taken)


if __name__ == "__main__":
    main()
