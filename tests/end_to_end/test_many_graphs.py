"""Graphs spread over workers, move when workers come and go, and answer the same wherever they are."""

from __future__ import annotations

import time
from itertools import count

from streams.kafka import partition_of
from tests.support.running_system import GRAPH, Event, Worker, World, assert_same_answer, ids_of, stream_of, until

HALF = len(GRAPH.facts) // 2


def graphs_of(world: World) -> list[str]:
    """One graph in each partition."""
    names: dict[int, str] = {}
    for number in count():
        names.setdefault(partition_of(f"g{number}", world.partitions), f"g{number}")
        if len(names) == world.partitions:
            return [names[partition] for partition in sorted(names)]
    raise AssertionError("never reached")


def same_but_for_the_graph(world: World, graphs: list[str], ids: list[str]) -> None:
    """All graphs got the same events, so their answers differ in nothing but name and place."""
    answers = world.await_answers(ids)
    for query in ids:
        graph, rest = query.split("-", 1)
        (wanted, *_), found = answers[f"{graphs[0]}-{rest}"], answers[query]
        for one in found:
            elsewhere = {key: one[key] for key in ("id", "graph", "source", "query")}
            assert elsewhere["graph"] == graph
            assert_same_answer(one, wanted | elsewhere)


def interleaved(graphs: list[str], facts: slice) -> list[Event]:
    """The same stretch of every graph's stream, one event of each in turn."""
    streams = [list(stream_of(GRAPH, graph, facts)) for graph in graphs]
    part = [event for together in zip(*streams, strict=True) for event in together]
    mark = f"-{facts.start or 0}+".encode()
    return [(graph, value.replace(f'"{graph}-'.encode(), f'"{graph}'.encode() + mark)) for graph, value in part]


def test_two_workers_share_four_graphs_and_take_over_from_each_other(world: World) -> None:
    graphs = graphs_of(world)
    world.add_model(*graphs)
    first, second = world.start_worker(), world.start_worker()
    until(lambda: share(first, second), "each has two partitions")
    events = interleaved(graphs, slice(0, HALF))
    world.publish(events)
    same_but_for_the_graph(world, graphs, ids_of(events))
    assert loaded(first) | loaded(second) == set(graphs)
    assert len(loaded(first)) == len(loaded(second)) == 2

    first.kill()
    events = interleaved(graphs, slice(HALF, HALF + HALF // 2))
    world.publish(events)
    same_but_for_the_graph(world, graphs, ids_of(events))
    assert loaded(second) == set(graphs)

    third = world.spawn_worker()
    events = interleaved(graphs, slice(HALF + HALF // 2, 2 * HALF))
    for start in range(0, len(events), 20):  # the newcomer gets its partitions in the middle of the work
        world.publish(events[start : start + 20])
    until(lambda: share(second, third), "the newcomer has its partitions")
    last = interleaved(graphs, slice(2 * HALF - 1, 2 * HALF))
    last = [(graph, value.replace(b"+", b"+last", 1)) for graph, value in last]
    world.publish(last)
    same_but_for_the_graph(world, graphs, ids_of([*events, *last]))
    assert len(loaded(third)) == 2


def share(*workers: Worker) -> bool:
    """Whether each has two partitions and keeps them: one that Faust gives up in a rebalance starts itself anew."""
    before = [partitions_of(worker) for worker in workers]
    time.sleep(1)
    return all(len(partitions) == 2 for partitions in before) and before == [*map(partitions_of, workers)]


def partitions_of(worker: Worker) -> list[int]:
    """The partitions that a worker was given last; none once it has stopped."""
    said = [line for line in worker.log() if line["event"] in ("assigned", "stopped")]
    partitions: list[int] = said[-1].get("partitions", []) if said else []
    return partitions


def loaded(worker: Worker) -> set[str]:
    """The graphs that a worker has had at some time."""
    return {line["graph"] for line in worker.said("graph_loaded")}


def test_replicas_deal_the_queries_out_and_each_answers_as_one_alone_would(world: World) -> None:
    world.add_model("g")
    replicas = [world.start_worker(replica=number, replicas=2) for number in (1, 2)]
    events = list(stream_of(GRAPH, "g"))
    world.publish([*events, ("g", b"rubbish")])
    shared = world.await_answers(ids_of(events))
    assert all(len(answers) == 1 for answers in shared.values()), "a query was answered by both"
    for replica in replicas:
        answered = int(replica.metric('adatkg_predictions_total{graph="g"}'))
        assert len(shared) // 4 < answered < len(shared)
    assert len(world.await_dead_letters(1)) == 1
    alone = World(world.bootstrap, world.folder / "alone")
    alone.folder.mkdir()
    alone.add_model("g")
    try:
        alone.start_worker()
        alone.publish(events)
        for query, (wanted, *_) in alone.await_answers(ids_of(events)).items():
            assert_same_answer(shared[query][0], wanted)
    finally:
        alone.close()
