"""What was delivered and waits for its turn, partition by partition. For the thread that has the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from streams.worker.arrival import Arrival
from streams.worker.deliveries import grouped
from streams.worker.hosted_graph import HostedGraph
from streams.worker.inboxes import Inbox, Inboxes, Place
from streams.worker.partition import Partition


@dataclass(frozen=True)
class LeftInLog:
    """Offsets of a partition among which are events that found no room, and the inboxes that they are for."""

    partition: int
    start: int
    end: int
    inboxes: Mapping[Place, Inbox]
    graphs: Sequence[HostedGraph]  # that these are of, as far as they are here


class Turns:
    """Which graphs have something to do, and who is next.

    Where a flood shares its partition with another graph, what finds no room is left in the log, so that what stands
    behind the flood is reached; where nobody else is, the partition brings no more until there is room.
    """

    def __init__(self, partitions: Mapping[int, Partition]) -> None:
        """`partitions` are those of the host, as they come and go."""
        self._partitions = partitions
        self.inboxes = Inboxes()
        self.on_room: Callable[[], None] = lambda: None  # hears that there is room for what was left in the log

    def receive(self, place: Place, arrivals: Sequence[Arrival]) -> None:
        """Events with one key wait for their turn."""
        self.inboxes.put(place, arrivals, all_here=self._is_alone(place))

    def next_batch(self, most: int) -> dict[Place, list[Arrival]]:
        """Whose turn it is, with a share each of at most so many events together; perhaps nothing."""
        batch = self.inboxes.next_batch(most)
        if self.inboxes.left_in_log():
            self.on_room()
        return batch

    @property
    def is_waiting(self) -> bool:
        """Whether a batch can be had of what was delivered before. For any thread."""
        return self.inboxes.is_waiting

    def progress(self) -> tuple[dict[int, int], set[int]]:
        """Of each partition, below which offset nothing waits for its turn; and which should bring no more for now."""
        firsts = self.inboxes.firsts()
        ends = {number: one.next for number, one in self._partitions.items() if one.next is not None}
        crowded = self.inboxes.crowded()
        full = {place.partition for place in crowded if self.inboxes.are_many or self._is_alone(place)}
        return {number: min(end, firsts.get(number, end)) for number, end in ends.items()}, full

    def next_left(self, most: int) -> LeftInLog | None:
        """What should be read from the log now, at most so many offsets; None where nothing should."""
        found = self.inboxes.left_in_log()
        if not found:
            return None
        emptiest = min(found, key=lambda place: found[place].size)
        number, start = emptiest.partition, found[emptiest].left or 0
        end = min(start + most, self._partitions[number].next or 0)
        same = {place: inbox for place, inbox in found.items() if place.partition == number}
        some = {place: inbox for place, inbox in same.items() if inbox.left is not None and start <= inbox.left < end}
        graphs = [hosted for hosted in self._partitions[number].graphs.values() if hosted.place in some]
        return LeftInLog(number, start, end, some, graphs)

    def read_on(self, left: LeftInLog, arrivals: Sequence[Arrival]) -> None:
        """Add what was read; what is no longer ours, or was dropped, is left out."""
        partition = self._partitions.get(left.partition)
        by_key = dict(grouped(arrivals, lambda one: one.key))
        for place, inbox in left.inboxes.items():
            if partition is not None and partition.next is not None:
                self.inboxes.refill(place, inbox, by_key.get(place.key, []), left.end, partition.next)

    def _is_alone(self, place: Place) -> bool:
        """Whether no other graph is known in its partition, and nothing else waits there."""
        return self._partitions[place.partition].known <= {place.key} and self.inboxes.is_alone(place)
