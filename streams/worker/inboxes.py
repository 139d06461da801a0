"""What has come of the log and waits for its turn: every graph with something to do has its share of every batch."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from streams.worker.arrival import Arrival

ROOM = 8 << 20  # bytes of events that may wait; each inbox may take as much as is left then, so one flood takes half
OBJECT = 512  # bytes that an event takes in memory beside its own
LEAST = 64 << 10  # bytes that an inbox may take however much others have
PLACES = 10_000  # that may have something here; with more nothing more is brought
BATCH_BYTES = 128 << 10  # of the events of a batch, at most: a list of names costs more than a fact


class Place(NamedTuple):
    """Events with one key in one partition; a key names a graph, if it names anything."""

    partition: int
    key: bytes | None


@dataclass(eq=False)
class Inbox:
    """Events of one place in log order. What finds no room is left in the log, and is read from there in its turn."""

    arrivals: deque[Arrival] = field(default_factory=deque)
    size: int = 0  # bytes
    left: int | None = None  # from this offset on what came is in the log only; None: everything is here

    def first(self) -> int | None:
        """The first event that still waits, here or in the log."""
        return self.arrivals[0].source.offset if self.arrivals else self.left


class Inboxes:
    """Everything that waits for its turn in one worker. For the thread that has the device."""

    def __init__(self) -> None:
        self._inboxes: dict[Place, Inbox] = {}  # those first that have waited longest for a turn
        self._of_partition = Counter[int]()  # how many there are
        self._size = 0

    # -- in ---------------------------------------------------------------------------------------------------

    def put(self, place: Place, arrivals: Sequence[Arrival], *, all_here: bool) -> None:
        """Add what came; of what finds no room only the first offset is kept, unless it must be here all the same."""
        if place not in self._inboxes:
            self._inboxes[place] = Inbox()
            self._of_partition[place.partition] += 1
        self._fill(self._inboxes[place], arrivals, all_here)

    def refill(self, place: Place, inbox: Inbox, arrivals: Sequence[Arrival], end: int, delivered: int) -> None:
        """Add what the log has from where it was left up to `end`; `delivered` is up to where its partition came."""
        if self._inboxes.get(place) is not inbox or inbox.left is None:
            return  # it was dropped meanwhile
        fresh = [arrival for arrival in arrivals if arrival.source.offset >= (inbox.left or 0)]
        inbox.left = None
        self._fill(inbox, fresh, all_here=False)
        if inbox.left is None and end < delivered:
            inbox.left = end
        self._forget_if_empty(place)

    # -- out --------------------------------------------------------------------------------------------------

    def next_batch(self, most: int) -> dict[Place, list[Arrival]]:
        """Whose turn it is, with a share each of at most so many events together; perhaps nothing."""
        batch: dict[Place, list[Arrival]] = {}
        room, taken = BATCH_BYTES, 0
        waiting = [place for place, inbox in self._inboxes.items() if inbox.arrivals]
        while waiting and taken < most and room > 0:
            share = max(1, (most - taken) // len(waiting))
            bytes_each = room // len(waiting)
            for place in waiting[: most - taken]:
                some = self._take(self._inboxes[place], share, bytes_each)
                room -= sum(map(_bytes, some))
                taken += len(some)
                batch.setdefault(place, []).extend(some)
            waiting = [place for place in waiting if self._inboxes[place].arrivals]
        for place in batch:  # whoever had a share stands behind those who had none
            self._inboxes[place] = self._inboxes.pop(place)
            self._forget_if_empty(place)
        return batch

    def leave(self, place: Place, offset: int) -> None:
        """From this offset on what came of a place is in the log only."""
        self.put(place, (), all_here=False)
        self._inboxes[place].left = offset

    def of(self, partition: int) -> dict[Place, Inbox]:
        """What waits of one partition."""
        return {place: inbox for place, inbox in self._inboxes.items() if place.partition == partition}

    def drop(self, place: Place) -> None:
        """Nothing of this place waits here any more."""
        inbox = self._inboxes.pop(place, None)
        if inbox is not None:
            self._size -= inbox.size
            self._of_partition[place.partition] -= 1

    def keep_only(self, partitions: Collection[int]) -> None:
        """Drop what is of other partitions."""
        for place in [place for place in self._inboxes if place.partition not in partitions]:
            self.drop(place)

    # -- what there is ----------------------------------------------------------------------------------------

    @property
    def is_waiting(self) -> bool:
        """Whether a batch can be had. For any thread."""
        return self._size > 0

    def first(self, place: Place) -> int | None:
        """The first event of a place that waits."""
        inbox = self._inboxes.get(place)
        return None if inbox is None else inbox.first()

    def firsts(self) -> dict[int, int]:
        """The first event that waits of each partition of which one does."""
        found: dict[int, int] = {}
        for place, inbox in self._inboxes.items():
            if (first := inbox.first()) is not None:
                found[place.partition] = min(first, found.get(place.partition, first))
        return found

    def is_alone(self, place: Place) -> bool:
        """Whether nothing else of its partition waits here."""
        return self._of_partition[place.partition] <= (place in self._inboxes)

    @property
    def are_many(self) -> bool:
        """Whether more places have something here than may."""
        return len(self._inboxes) > PLACES

    def crowded(self) -> set[Place]:
        """The places of which more waits here than there is room for."""
        if self.are_many:
            return set(self._inboxes)
        free = self._free()
        return {place for place, inbox in self._inboxes.items() if len(inbox.arrivals) > 1 and inbox.size > free}

    def left_in_log(self) -> dict[Place, Inbox]:
        """Inboxes of which something was left in the log, and which have room enough for it to be worth a look."""
        free = self._free()
        found = {place: inbox for place, inbox in self._inboxes.items() if inbox.left is not None}
        return {place: inbox for place, inbox in found.items() if inbox.size <= free // 3}

    # -- private ----------------------------------------------------------------------------------------------

    def _free(self) -> int:
        return max(LEAST, ROOM - self._size)

    def _fill(self, inbox: Inbox, arrivals: Sequence[Arrival], all_here: bool) -> None:
        for arrival in arrivals:
            size = size_of(arrival)
            if inbox.left is not None:
                return
            if inbox.arrivals and not all_here and inbox.size + size > self._free():
                inbox.left = arrival.source.offset
                return
            inbox.arrivals.append(arrival)
            inbox.size += size
            self._size += size

    def _take(self, inbox: Inbox, most: int, room: int) -> list[Arrival]:
        """The first of an inbox, at least one, with no more than `room` bytes where they are several."""
        some: list[Arrival] = []
        while inbox.arrivals and len(some) < most and (not some or _bytes(inbox.arrivals[0]) <= room):
            arrival = inbox.arrivals.popleft()
            room -= _bytes(arrival)
            inbox.size -= size_of(arrival)
            self._size -= size_of(arrival)
            some.append(arrival)
        return some

    def _forget_if_empty(self, place: Place) -> None:
        if self._inboxes[place].first() is None:
            self.drop(place)


def size_of(arrival: Arrival) -> int:
    """Bytes that an event takes in memory."""
    return OBJECT + _bytes(arrival)


def _bytes(arrival: Arrival) -> int:
    return len(arrival.value or b"")
