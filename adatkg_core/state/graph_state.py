"""The whole state of one graph: tensors that grow by doubling, and a journal that can take a commit back.

Rows beyond the catalog's length hold no interactions, so an unknown name can be read through one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol
from weakref import WeakSet

import torch
from torch import Tensor

from adatkg_core.errors import InputError
from adatkg_core.settings import Config
from adatkg_core.state.changed_rows import ChangedRows
from adatkg_core.state.layout import Spec, kin_rows, layout
from adatkg_core.state.recurrence_tables import PAGE, PagedTable
from adatkg_core.state.soundness import why_unsound
from adatkg_core.state.state_capture import Overwritten, StateCapture
from adatkg_core.state.tensor_ops import grown

MOVED = 16 << 20  # bytes copied to a device at once, a millisecond or two, while others wait for it

NAME_TENSORS = ("text", "cluster", "group", "role")  # what a row has by its name alone, where it is kept at all

_MOST = 2**31  # pages of a table, and rows; what is stored as an index has 32 bits
Index = Any  # whatever indexes a tensor's first dimensions


class TentativeWriter(Protocol):
    """Writes what it may take back, by other means than `put`."""

    def overwritten(self) -> Iterable[Overwritten]:
        """What had been there, in copies."""


class GraphState:
    """The tensors of one graph, `entities` of whose rows are in use."""

    def __init__(self, config: Config, text_dim: int, n_relations: int, device: torch.device) -> None:
        self.config = config
        self.n_relations = n_relations
        self.device = device
        self.entities = 0
        self.layout = layout(config, text_dim, n_relations)
        self.pages = {"pair": 0, "relation": 0, "newcomer": 0}
        self.pages |= {spec.rows: 0 for spec in self.layout.values() if spec.rows not in ("entity", "kin", "fixed")}
        self.table_writes = dict.fromkeys(self.pages, 0)  # how often each table was written, by whatever means
        self.tensors: dict[str, Tensor] = {}
        for name, spec in self.layout.items():
            rows = () if spec.rows == "fixed" else (PAGE,)
            self.tensors[name] = torch.full((*rows, *spec.shape), spec.fill, dtype=spec.dtype, device=device)
        self.tentative: TentativeWriter | None = None  # who has written and may still take it back
        self._journal: list[Overwritten] | None = None
        self._journal_pages: dict[str, int] = {}
        self._captures: WeakSet[StateCapture] = WeakSet()  # those under way
        self._changes: ChangedRows | None = None  # where somebody wants to know

    @property
    def pair_table(self) -> PagedTable:
        """What each entity did with whom."""
        return self._table("pair", self.config.recall.pair_slots, dated=self.keeps_evidence)

    @property
    def relation_table(self) -> PagedTable:
        """Which entities stood at the far end of each relation."""
        return self._table("relation", self.config.recall.relation_slots)

    @property
    def newcomer_table(self) -> PagedTable:
        """As `relation_table`, of the interactions that newcomers had."""
        return self._table("newcomer", self.config.recall.relation_slots)

    @property
    def partner_table(self) -> PagedTable:
        """With whom each entity had to do, under whatever relation."""
        return self._table("partner", self.config.recall.partner_slots, dated=True)

    @property
    def fact_table(self) -> PagedTable:
        """The pairs that each relation joined: a slot's `relation` is the one end, its `other` the other."""
        return self._table("fact", self.config.recall.fact_slots)

    @property
    def inside_table(self) -> PagedTable:
        """The pairs of roles that each relation joined inside a group of names."""
        return self._table("inside", self.config.recall.relation_slots)

    @property
    def group_fact_table(self) -> PagedTable:
        """What the members of each group of names did with whom."""
        return self._table("group_fact", self.config.recall.kin_slots)

    @property
    def role_fact_table(self) -> PagedTable:
        """What the entities of each role did with whom."""
        return self._table("role_fact", self.config.recall.kin_slots)

    def tables(self) -> dict[str, PagedTable]:
        """All that this configuration has, by name."""
        found = (
            self.pair_table,
            self.relation_table,
            self.newcomer_table,
            self.partner_table,
            self.fact_table,
            self.inside_table,
            self.group_fact_table,
            self.role_fact_table,
        )
        return {table.name: table for table in found if f"{table.name}_fill" in self.layout}

    @property
    def keeps_evidence(self) -> bool:
        """Whether the tables behind the wider evidence are there."""
        return self.config.recall.enabled and self.config.recall.evidence

    def _table(self, name: str, slots: int, *, dated: bool = False) -> PagedTable:
        return PagedTable(name, slots, self.config.recall.fast, self.config.recall.slow, dated)

    def reserve(self, rows: int) -> None:
        """Room for `rows` entities; the new rows are empty."""
        wanted = {"entity": rows + 1, "kin": kin_rows(self.config, rows)}
        for name, spec in self.layout.items():
            if spec.rows in wanted:
                self.tensors[name] = grown(self.tensors[name], wanted[spec.rows], spec.fill)

    def put(self, name: str, index: Index, values: Tensor) -> None:
        """Write rows in place; the old rows are kept for `rollback` inside a journal, and for captures under way."""
        tensor = self.tensors[name]
        if self._journal is not None or self._captures:
            overwritten = name, index, tensor[index].clone()
            if self._journal is not None:
                self._journal.append(overwritten)
            for capture in self._captures:
                capture.note(overwritten)
        kind = self.layout[name].rows
        if self._changes is not None:
            self._changes.note(kind, index)
        if kind in self.table_writes:
            self.table_writes[kind] += 1
        tensor[index] = values

    def claim_pages(self, table: str, count: int) -> int:
        """The first of `count` fresh pages of a table."""
        first = self.pages[table]
        self.reserve_pages(table, first + count)
        self.pages[table] = first + count
        return first

    def reserve_pages(self, table: str, pages: int) -> None:
        """Room for so many pages of a table; the new ones are empty."""
        if pages * PAGE <= self.tensors[f"{table}_last"].shape[0]:
            return
        for name, spec in self.layout.items():
            if spec.rows == table:
                self.tensors[name] = grown(self.tensors[name], pages * PAGE, spec.fill)

    def move(self, device: torch.device) -> Iterator[None]:
        """Bring the tensors to a device, at most MOVED bytes between two yields; it is whole again at the end."""
        self._begin_anew()
        for name, tensor in self.tensors.items():
            there = torch.empty_like(tensor, device=device)
            some = max(1, MOVED // tensor.element_size())
            for old, new in zip(torch.split(tensor.reshape(-1), some), torch.split(there.view(-1), some), strict=True):
                new.copy_(old)
                yield
            self.tensors[name] = there
        self.device = device

    def begin(self) -> None:
        """From here on, writes can be taken back."""
        self._journal, self._journal_pages = [], dict(self.pages)

    def keep(self) -> None:
        """The writes since `begin` stay."""
        self._journal = None

    def rollback(self) -> None:
        """The state is bitwise what it was at `begin`."""
        for name, index, old in reversed(self._journal or []):
            self.tensors[name][index] = old
        self.pages = dict(self._journal_pages)
        self._journal = None

    def reset(self) -> None:
        """Forget every interaction; names and their text stay."""
        self._begin_anew()
        for name, spec in self.layout.items():
            if name not in NAME_TENSORS:
                self.tensors[name].fill_(spec.fill)
        self.pages = dict.fromkeys(self.pages, 0)

    # -- whole states -----------------------------------------------------------------------------------------

    def capture(self, since: ChangedRows | None = None, folder: str | None = None) -> StateCapture:
        """The state as of now, without what `rollback` would take back, to be copied while writes go on.

        All of it, or what changed `since` `watch_changes` was last called; of another moment than that all of it. A
        large copy is made in a file without a name in `folder`, if there is one.
        """
        known = since if since is not None and since is self._changes else None
        capture = StateCapture(self, self.used(), self._settled_pages(), list(self._journal or ()), known, folder)
        self._captures.add(capture)
        return capture

    @property
    def is_captured(self) -> bool:
        """Whether a copy is under way, for which `put` keeps what it overwrites."""
        return bool(self._captures)

    def note_changed(self, kind: str, rows: Tensor) -> None:
        """Rows of a kind were written by other means than `put`."""
        if self._changes is not None:
            self._changes.note(kind, rows)

    def note_overwritten(self, overwritten: Iterable[Overwritten]) -> None:
        """For captures under way: what had been where something was written by other means than `put`."""
        for one in overwritten:
            for capture in self._captures:
                capture.note(one)

    def end_capture(self, capture: StateCapture) -> None:
        """Nothing that is overwritten from now on is for this one."""
        if self.tentative is not None:
            self.note_overwritten(self.tentative.overwritten())
        self._captures.discard(capture)

    def watch_changes(self) -> ChangedRows:
        """From now on keep which rows are written; who asked before hears no more."""
        self._changes = ChangedRows(self.used(), self.device)
        for name, index, _ in self._journal or ():
            self._changes.note(self.layout[name].rows, index)
        return self._changes

    def used(self) -> dict[str, int]:
        """How many rows of each kind are in use, without those that `rollback` would give back."""
        tables = {name: count * PAGE for name, count in self._settled_pages().items()}
        return {"entity": self.entities, "kin": kin_rows(self.config, self.entities)} | tables

    def kinds(self) -> dict[str, str | None]:
        """What the rows of each tensor are, None where it is always kept whole."""
        return {name: None if spec.rows == "fixed" else spec.rows for name, spec in self.layout.items()}

    def names_alone(self) -> set[str]:
        """Tensors whose rows are never written again."""
        return self.layout.keys() & set(NAME_TENSORS)

    def export(self) -> dict[str, Tensor]:
        """Copies of the rows in use, by name; with `load` this is the whole state."""
        capture = self.capture()
        capture.finish()
        return capture.tensors()

    def load(self, tensors: dict[str, Tensor], entities: int, pages: dict[str, int], *, given: bool = False) -> None:
        """Take over what `export` gave, on this state's device; where it is `given`, the tensors themselves."""
        if set(pages) != set(self.pages) or any(type(n) is not int or not 0 <= n < _MOST for n in pages.values()):
            raise InputError("state: its numbers of pages are not those of this configuration; take an earlier one")
        missing = sorted(set(self.layout) ^ set(tensors))
        if missing:
            raise InputError(f"state: tensors {', '.join(missing)} do not fit; it was made with another configuration")
        kin = kin_rows(self.config, entities)
        if not given:
            tensors = dict(tensors)
        for name, spec in self.layout.items():
            found = tensors[name] = _in_use(tensors[name], spec, kin)
            if found.shape != (*spec.used(entities, kin, pages), *spec.shape) or found.dtype != spec.dtype:
                raise InputError(f"state: tensor {name} has shape {tuple(found.shape)}; it belongs to another model")
        unsound = why_unsound(tensors, entities, kin, pages, self.n_relations, self.config.model.codes)
        if unsound:
            raise InputError(f"state: {unsound}; take an earlier one, or let it be made from the log")
        self._begin_anew()
        self.entities, self.pages = entities, dict(pages)
        for name, spec in self.layout.items():
            # One that is given leaves the dictionary: a larger one in its place is not held beside all the others.
            found = tensors.pop(name)
            rows = found.to(self.device, copy=not given)
            del found
            self.tensors[name] = rows if spec.rows == "fixed" else grown(rows, PAGE, spec.fill)

    def _settled_pages(self) -> dict[str, int]:
        return dict(self.pages if self._journal is None else self._journal_pages)

    def _begin_anew(self) -> None:
        """The tensors are about to be others: what is under way is lost, and nobody knows what changes."""
        for capture in self._captures:
            capture.lose()
        self._captures.clear()
        self._changes = None
        self.table_writes = {name: count + 1 for name, count in self.table_writes.items()}


def _in_use(tensor: Tensor, spec: Spec, kin: int) -> Tensor:
    """Of a stored tensor what is kept: states of before had rows for groups where names tell of none."""
    return tensor[:0] if spec.rows == "kin" and kin == 0 and tensor.dim() else tensor
