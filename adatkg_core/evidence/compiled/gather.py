"""From a state's tensors to the compiled pass and back, on as many threads as torch may have."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor

from adatkg_core.evidence.compiled.layout import (
    COLUMNS,
    KNOWN,
    PAGE,
    TERMS,
    Asked,
    Found,
    Pairs,
    Scratch,
    Table,
    Tables,
)
from adatkg_core.evidence.compiled.passes import pass_over
from adatkg_core.evidence.compiled.tables import read_pairs
from adatkg_core.evidence.questions import Questions, shares_left
from adatkg_core.evidence.two_hops import thinned
from adatkg_core.state import HEAD, GraphState

ENOUGH = 8  # queries that are worth a thread of their own
USUAL = 250  # candidates of a query
LOGARITHMS = (slice(0, TERMS - 2), slice(TERMS, COLUMNS))  # all columns but the two flags
_CPU = torch.device("cpu")
_kept = threading.local()


def gather(state: GraphState, questions: Questions, proposals: int) -> tuple[Tensor, Tensor, Tensor]:
    """Places [U], the row of each pair of the subjects [M], features [U, COLUMNS]."""
    batch = _Batch(state, questions, proposals)
    parts = min(torch.get_num_threads(), batch.count // ENOUGH)
    if parts <= 1:
        place, features = batch.part(0, batch.count)
        return place, batch.entry, features
    bounds = [batch.count * part // parts for part in range(parts + 1)]
    own, *others = pairwise(bounds)
    work = [_threads(os.getpid()).submit(batch.part, first, end) for first, end in others]
    found = [batch.part(*own), *(one.result() for one in work)]
    batch.move_entries(bounds, [place.shape[0] for place, _ in found])
    return torch.cat([place for place, _ in found]), batch.entry, torch.cat([features for _, features in found])


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Of this process: one that was forked has none of its parent's."""
    return ThreadPoolExecutor(thread_name_prefix="evidence")


class _Batch:
    """Queries of one time; it holds whatever compiled code has the address of."""

    def __init__(self, state: GraphState, questions: Questions, proposals: int) -> None:
        self._state = state
        subject, order = torch.sort(questions.subject, stable=True)
        self._fill = state.tensors["pair_fill"][questions.subject].long()
        slot = self._fill.cumsum(0) - self._fill
        self._columns = (subject, questions.relation[order], questions.kind[order], order, slot[order])
        self.count = subject.shape[0]
        self.entry = self._fill.new_empty(int(self._fill.sum()))
        recall = state.config.recall
        self._left = shares_left(recall.slow, _CPU), shares_left(recall.fast, _CPU)
        self._thin = thinned(recall.partner_slots, _CPU)
        sizes = (questions.time, questions.n, recall.hops, proposals, HEAD)
        self._asked = Asked._make((*map(Tensor.data_ptr, self._columns), *sizes))
        self._tables = self._find_tables()
        self._pairs = self._read_pairs(questions)

    def part(self, first: int, end: int) -> tuple[Tensor, Tensor]:
        """Places and features of some of the queries, in the order of their subjects. For any thread."""
        _, room = _room(self._state)
        used, length = 0, USUAL * (end - first)
        place = self.entry.new_empty(0)
        features = torch.empty(0, COLUMNS, device=_CPU)
        while first < end:
            place = torch.cat((place[:used], place.new_empty(length - used)))
            features = torch.cat((features[:used], features.new_empty(length - used, COLUMNS)))
            found = Found(length, place.data_ptr(), features.data_ptr(), self.entry.data_ptr())
            first, used = pass_over(self._tables, self._pairs, self._asked, room, found, first, end, used)
            length *= 2
        place, features = place[:used], features[:used]
        for columns in LOGARITHMS:
            features[:, columns].log1p_()
        return place, features

    def move_entries(self, bounds: list[int], sizes: list[int]) -> None:
        """Count the rows of the parts from the first row of all of them."""
        moved = self.entry.new_zeros(self.count)
        before = 0
        for (first, end), size in zip(pairwise(bounds), sizes, strict=True):
            moved[self._columns[3][first:end]] = before
            before += size
        self.entry += torch.repeat_interleave(moved, self._fill)

    def _find_tables(self) -> Tables:
        names = ("pair", "partner", "group_fact", "role_fact", "inside")
        rows = (self._state.tensors[name] for name in ("group", "role", "row_length", "interactions"))
        found = (find_table(self._state, name) for name in names)
        return Tables._make((*found, *map(Tensor.data_ptr, (*rows, *self._left, self._thin))))

    def _read_pairs(self, questions: Questions) -> Pairs:
        kinds = questions.kinds
        most = int(self._state.tensors["fact_fill"][kinds].sum())
        start, narrow = kinds.new_empty(kinds.shape[0] + 1), kinds.new_empty(2, most, dtype=torch.int32)
        self._of_pairs = (start, *narrow, *kinds.new_empty(2, most, dtype=torch.float32))
        pairs = Pairs._make(map(Tensor.data_ptr, self._of_pairs))
        slow, fast = map(Tensor.data_ptr, self._left)
        count, time, n = kinds.shape[0], questions.time, questions.n
        read_pairs(find_table(self._state, "fact"), kinds.data_ptr(), count, time, n, slow, fast, pairs)
        return pairs


def find_table(state: GraphState, name: str) -> Table:
    """Where a table of the state lies, as long as its tensors do not grow."""
    get = state.tensors
    found = (get.get(f"{name}_{part}") for part in Table._fields[1:])
    return Table(get[f"{name}_pages"].shape[1], *(0 if one is None else one.data_ptr() for one in found))


def _room(state: GraphState) -> tuple[dict[str, Tensor], Scratch]:
    """This thread's room, made anew when it is too small, and the tensors that it consists of."""
    rows, slots = state.tensors["group"].shape[0] + 1, state.tensors["partner_pages"].shape[1] * PAGE
    size = (rows, max(slots, state.config.recall.hops))
    before: tuple[tuple[int, int], dict[str, Tensor], Scratch] | None = getattr(_kept, "room", None)
    if before is None or before[0][0] < size[0] or before[0][1] < size[1]:
        per_slot = ("partner", "close", "quick", "share", "quick_share", "nearest")
        shapes: dict[str, tuple[int, ...]] = {
            name: (size[1],) if name in per_slot else (rows,) for name in Scratch._fields
        }
        shapes |= {"known": (rows, KNOWN), "terms": (rows, TERMS), "largest": (TERMS,), "stamps": (1,)}
        wide = {"stamps", "mark", "chosen", "row", "reached", "fresh", "proposed", "ties", "partner", "nearest"}
        made = {
            name: torch.zeros(shape, dtype=torch.int64 if name in wide else torch.float32, device=_CPU)
            for name, shape in shapes.items()
        }
        before = size, made, Scratch(*(made[name].data_ptr() for name in Scratch._fields))
        _kept.room = before
    return before[1], before[2]
