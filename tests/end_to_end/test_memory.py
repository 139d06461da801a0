"""A worker's memory does not grow with the length of the stream."""

from __future__ import annotations

import random
from pathlib import Path

from adatkg_core.messages import encode_fact, encode_query
from tests.support.running_system import GRAPH, Event, World, until

EVENTS = 20_000  # in each of four stretches
GROWTH = 24 << 20  # bytes over the last two of them; what is held until a snapshot comes and goes


def stretch(number: int) -> list[Event]:
    """Facts and some queries about the same few entities, so that the state stays as it is."""
    chance = random.Random(number)
    events = []
    for i in range(EVENTS):
        time = number * 100 + i * 100 // EVENTS
        subject, other = chance.sample(GRAPH.entities, 2)
        relation = chance.choice(GRAPH.relations)
        if i % 10 == 9:
            events.append(("g", encode_query(f"{number}-{i}", relation, time, s=subject)))
        else:
            events.append(("g", encode_fact(subject, relation, other, time)))
    return events


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def test_memory_stays_flat_over_a_long_stream(world: World) -> None:
    world.add_model("g")
    worker = world.start_worker(snapshot_events=2_000)
    sizes = []
    for number in range(4):
        world.publish(stretch(number))
        world.await_count((number + 1) * EVENTS // 10)
        until(worker.is_durable, "everything is durable")
        sizes.append(resident(worker.process.pid))
    assert sizes[3] - sizes[1] < GROWTH, f"resident after each stretch: {[size >> 20 for size in sizes]} MiB"
