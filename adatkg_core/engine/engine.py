"""The engine: one graph's live state and the answers read from it, offline and online alike.

A prediction is a function of the log before it and of the model. Facts at the watermark W are pending: a read at a
later time sees them through a commit that can be taken back, a read at W or before does not see them at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from adatkg_core.clock import Clock
from adatkg_core.constants import MAX_JUMP, LatePolicy
from adatkg_core.engine.admission import Admission, EntityLimit, Observed, object_to_query, object_to_tick
from adatkg_core.engine.capture import EngineCapture
from adatkg_core.engine.fact_rows import by_time, require_known
from adatkg_core.engine.few_threads import threads_for
from adatkg_core.engine.name_rows import empty_grouping, write_names
from adatkg_core.engine.pending import PendingFacts
from adatkg_core.engine.ranked_lists import Lists, chunk_size, chunks
from adatkg_core.engine.snapshot import Snapshot
from adatkg_core.errors import InputError
from adatkg_core.events import Fact, Query, Ranking, Recurrent, Refusal
from adatkg_core.model import AdaTKG, KeptView, View, keeps_counts, score_recurrency
from adatkg_core.state import NAME_TENSORS, Catalog, ChangedRows, GraphState, Relations
from adatkg_core.text import TextEncoder


class Engine:
    """`advance`, `observe`, `predict`, `snapshot`, `restore` for one graph."""

    def __init__(
        self,
        model: AdaTKG,
        relations: Sequence[str],
        encoder: TextEncoder,
        *,
        entities: Sequence[str] = (),
        late: LatePolicy = "apply",
        max_jump: int = MAX_JUMP,
        snapshot: Snapshot | None = None,
    ) -> None:
        """`entities` are candidates from the start; the state lives where the model's parameters are.

        With a model that has weights for single entities, they must begin with those it was trained on, in order.
        With a snapshot the engine goes on from there, and no name has to be read.
        """
        if len(entities) < model.entities:
            raise InputError(
                f"the model has weights for {model.entities} entities: give their names, as its bundle does"
            )
        if encoder.dim != model.relation_text.shape[1]:
            raise InputError(
                f"encoder {encoder.name} gives {encoder.dim} dimensions, the model was trained on "
                f"{model.relation_text.shape[1]}; take the encoder {model.config.model.encoder}"
            )
        self.model = model.eval()
        self.relations = Relations(relations)
        self.encoder = encoder
        self.late, self.max_jump = late, max_jump
        self.device = model.relation_text.device
        self.state = GraphState(model.config, model.relation_text.shape[1], len(relations), self.device)
        self.catalog = Catalog()
        self.grouping = empty_grouping(self.model)
        self.watermark: int | None = None
        self._pending = PendingFacts(model, self.state, torch.zeros((0, 3), dtype=torch.int64, device=self.device))
        self._view = KeptView(model)
        self._visible = 0
        if snapshot is not None:
            self.restore(snapshot)
        else:
            self.register(entities)
            self._visible = len(self.catalog)

    # -- time and facts ---------------------------------------------------------------------------------------

    def advance(self, time: int) -> None:
        """Time passes: when the watermark moves on, what was pending becomes part of the state.

        How far it may jump is for the caller to decide: `admission`.
        """
        objection = object_to_tick(time)
        if objection:
            raise InputError(objection[1])
        self._advance(time, len(self.catalog))

    def observe(self, facts: Sequence[Fact]) -> Observed:
        """Take in facts in log order. A fact that cannot be used is refused with its reason, the rest goes on."""
        admitted, observed = self.admission().sort_out(facts)
        if admitted:
            self.observe_admitted(admitted)
        return observed

    def admission(self, clock: Clock | None = None) -> Admission:
        """Decides which of the events that follow may come to `observe_admitted` and `advance`."""
        entities = EntityLimit(self.catalog, most) if (most := self.model.config.model.max_entities) else None
        return Admission(self.watermark, self.late, self.max_jump, self.relations, clock, entities)

    def observe_admitted(self, facts: Sequence[Fact]) -> None:
        """Take in facts in log order, each of which an `admission` of this engine had nothing against."""
        known = len(self.catalog)
        self.register([name for fact in facts for name in (fact.s, fact.o)])
        subject = self.catalog.rows([fact.s for fact in facts])
        other = self.catalog.rows([fact.o for fact in facts])
        columns = (subject, [self.relations[fact.r] for fact in facts], other, [fact.t for fact in facts])
        self.observe_rows(torch.tensor(columns, device=self.device).T, known)

    def observe_rows(self, facts: Tensor, known: int | None = None) -> None:
        """Take in facts [n, 4] given as rows of catalog and relations; a late one counts as of the watermark.

        The entities from row `known` on are new with these facts, in this order: each becomes a candidate with them.
        """
        known = len(self.catalog) if known is None else known
        rows = facts.cpu().numpy()
        require_known(rows, len(self.catalog), len(self.relations))
        for time, part in by_time(rows, self.watermark):
            self._advance(time, known)
            known = max(known, 1 + int(rows[part, :3:2].max()))
            self._pending.add(facts[part, :3])

    def register(self, names: Sequence[str]) -> None:
        """Give each new name a row: its text is read once, its memory starts empty."""
        fresh = self.catalog.add(names)
        if not fresh:
            return
        start = self.state.entities
        self.state.reserve(start + len(fresh))
        write_names(self.model, self.state, self.encoder, start, fresh, self.grouping.add(fresh))
        self.state.entities = start + len(fresh)

    # -- reading ----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def predict(self, queries: Sequence[Query], *, depth: int = 0, heuristic: bool = False) -> list[Ranking | Refusal]:
        """A ranked list for each query, from the facts before it in the log with time below its own.

        With `depth`, each also says the names so far down its ranking, whatever it asked for; with `heuristic`, those
        of the recurrency heuristic too, if the state keeps its counts.
        """
        answers: list[Ranking | Refusal | None] = [None] * len(queries)
        groups: dict[int, list[int]] = {}
        for i, query in enumerate(queries):
            objection = object_to_query(query, self.relations)
            if objection:
                answers[i] = Refusal(i, *objection)
            else:
                time = query.t if self.watermark is None else max(query.t, self.watermark)
                groups.setdefault(time, []).append(i)
        for time in sorted(groups):
            visible = self._read(time)[1]
            for part in chunks(groups[time], queries, chunk_size(self.state.entities)):
                with threads_for(len(part) * visible):
                    some = self._answer([queries[i] for i in part], time, depth, heuristic)
                for i, answer in zip(part, some, strict=True):
                    answers[i] = answer
        return [answer for answer in answers if answer is not None]

    @torch.no_grad()
    def score_rows(
        self, subject: Tensor, relation: Tensor, time: int, strangers: Sequence[str] = ()
    ) -> Iterator[tuple[slice, Tensor]]:
        """Scores of all visible entities for queries given as rows [B] at one time, a chunk at a time; of all rows
        where there are `strangers`, who have those behind the catalog while this lasts."""
        view, visible = self._read(time)
        with self.rows_for(strangers) as rows:
            if strangers:
                view = self._with_rows(view, torch.tensor(rows, device=self.device))
            for start in range(0, subject.shape[0], step := chunk_size(self.state.entities)):
                part = slice(start, min(start + step, subject.shape[0]))
                scores = self.model.score(self.state, view, subject[part], relation[part], time).total
                yield part, scores if strangers else scores[:, :visible]

    def turn_to(self, time: int) -> int:
        """Make the state what a read at `time` may see, and say how many entities are candidates then."""
        if self.watermark is None or time > self.watermark:
            self._include_pending()
            return len(self.catalog)
        self._exclude_pending()
        return self._visible

    def read_anew(self) -> None:
        """Keep nothing of earlier reads, whose company decides how sums round: the next answer is the state's alone."""
        self._view = KeptView(self.model)

    def gates(self, time: int) -> Tensor:
        """The mean gate of each entity as a read at `time` sees it, [N]."""
        with torch.no_grad():
            return self._read(time)[0].gate.clone()

    def memory_norms(self, rows: Tensor) -> Tensor:
        """The length of what is remembered of each row [n], as the state stands; 0 in a model without memory."""
        if self.model.memory is None:
            return torch.zeros(rows.shape[0], device=self.device)
        return torch.linalg.vector_norm(self.state.tensors["memory"][rows].flatten(1), dim=1)  # type: ignore[no-any-return]

    @contextmanager
    def rows_for(self, names: Sequence[str]) -> Iterator[list[int]]:
        """Rows of names for one read; one that is in no fact yet has a row behind the catalog while this lasts."""
        rows, unseen = self._rows_of(names)
        self._seat(unseen)
        try:
            yield rows
        finally:
            self._forget_strangers(len(unseen))

    def pending(self) -> Tensor:
        """The facts [n, 3] that have come at the watermark and are not part of the state as it stands."""
        return self._pending.outside()

    # -- whole states -----------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Everything needed to go on from here, in copies."""
        capture = self.capture()
        capture.state.finish()
        return capture.snapshot()

    def capture(self, since: ChangedRows | None = None, folder: str | None = None) -> EngineCapture:
        """A snapshot of this moment, to be copied while the engine goes on: of all, or of what changed `since`; a
        large one into a file in `folder`."""
        if self._pending.has_no_journal:
            self._exclude_pending()
        state, pending = self.state.capture(since, folder), self._pending.all().clone().cpu()
        meta = {"model": self.model.fingerprint(), "watermark": self.watermark, "visible": self._visible}
        return EngineCapture(state, pending, self.catalog.names, meta | {"relations": list(self.relations)})

    def restore(self, snapshot: Snapshot) -> None:
        """Become what the snapshot was taken of; it must come from the same model. One that is given is empty then."""
        meta = snapshot.meta
        snapshot.check_made_with(self.model, list(self.relations))
        self._exclude_pending()
        tensors = snapshot.tensors if snapshot.is_given else dict(snapshot.tensors)
        pending = tensors.pop("pending").to(self.device)
        self.state.load(tensors, len(meta["entities"]), meta["pages"], given=snapshot.is_given)
        self.catalog = Catalog(meta["entities"])
        self.grouping = empty_grouping(self.model)
        self.grouping.add(meta["entities"])
        self.watermark, self._visible = meta["watermark"], meta["visible"]
        self._pending = PendingFacts(self.model, self.state, pending)
        self.read_anew()

    def move(self, device: torch.device, encoder: TextEncoder) -> Iterator[None]:
        """Go to another device, model and all, in small steps; nothing may be asked of it before the last."""
        self._exclude_pending()
        self.model.to(device)
        yield
        yield from self.state.move(device)
        self._pending.move(device)
        self.read_anew()
        self.device, self.encoder = device, encoder

    def _advance(self, time: int, known: int) -> None:
        if self.watermark is not None and time <= self.watermark:
            return
        self._include_pending()
        self._change(self._pending.settle)
        self._visible = known
        self.watermark = time

    def _include_pending(self) -> None:
        if (time := self.watermark) is not None:
            self._change(lambda: self._pending.include(time))

    def _exclude_pending(self) -> None:
        self._change(self._pending.exclude)

    def _change(self, change: Callable[[], Tensor | None]) -> None:
        """What was read of the rows of the facts [n, 3] that `change` returns is read again."""
        try:
            facts = change()
        except BaseException:
            self.read_anew()  # the state shows none of them any more
            raise
        if facts is not None:
            # A copy: what is kept of one fact's row must not change with those that take its place in the buffer.
            self._view.renew(self.state, facts[:, ::2].clone().flatten())

    def _read(self, time: int) -> tuple[View, int]:
        visible = self.turn_to(time)
        return self._view.read(self.state), visible

    def _answer(self, queries: list[Query], time: int, depth: int, heuristic: bool) -> list[Ranking]:
        view, visible = self._read(time)
        named = [query.s if query.s is not None else str(query.o) for query in queries]
        mentioned = named + [name for query in queries for name in query.rank_of]
        rows, unseen = self._rows_of(mentioned)
        if unseen:
            view = self._with_strangers(view, unseen)
        place = dict(zip(mentioned, rows, strict=True))
        subject = torch.tensor([place[name] for name in named], device=self.device)
        inverse = [len(self.relations) * (query.s is None) for query in queries]
        kinds = [self.relations[query.r] + shift for query, shift in zip(queries, inverse, strict=True)]
        relation = torch.tensor(kinds, device=self.device)
        scores = self.model.score(self.state, view, subject, relation, time).total
        gate = view.gate[subject].tolist()
        interactions = self.state.tensors["interactions"][subject].tolist()
        updates = self.state.tensors["updates"][subject].tolist()
        norms = self.memory_norms(subject).tolist()
        lists = Lists(queries, self.catalog, visible, place, self.device)
        recurrent: Sequence[Recurrent | None] = [None] * len(queries)
        if heuristic and keeps_counts(self.state):
            counted = score_recurrency(self.state, subject, relation, time, scores.shape[1])
            recurrent = lists.recurrent(counted, depth)
        self._forget_strangers(len(unseen))
        tops = lists.top(scores, depth)
        return [
            Ranking(
                top=tops[i][0],
                as_of=time,
                late=query.t < time,
                cold_start=updates[i] == 0 if self.model.memory is not None else interactions[i] == 0,
                gate=gate[i],
                interactions=interactions[i],
                ranks=tops[i][2],
                memory_norm=norms[i],
                deep=tops[i][1] if depth else (),
                recurrent=recurrent[i],
            )
            for i, query in enumerate(queries)
        ]

    def _rows_of(self, names: Sequence[str]) -> tuple[list[int], list[str]]:
        """Rows of names; one that is in no fact yet gets a row behind the catalog, for this read only."""
        rows = self.catalog.rows(names)
        unseen = list(dict.fromkeys(name for name, row in zip(names, rows, strict=True) if row < 0))
        place = {name: self.state.entities + i for i, name in enumerate(unseen)}
        return [place[name] if row < 0 else row for name, row in zip(names, rows, strict=True)], unseen

    def _with_strangers(self, view: View, names: list[str]) -> View:
        self._seat(names)
        rows = torch.arange(self.state.entities, self.state.entities + len(names), device=self.device)
        return self._with_rows(view, rows)

    def _with_rows(self, view: View, rows: Tensor) -> View:
        return view.and_also(self.model.view(self.state, rows, vectors=view.relations))

    def _seat(self, strangers: list[str]) -> None:
        if strangers:
            self.state.reserve(self.state.entities + len(strangers))
            kin = self.grouping.look_up(strangers)
            write_names(self.model, self.state, self.encoder, self.state.entities, strangers, kin)

    def _forget_strangers(self, count: int) -> None:
        rows = slice(self.state.entities, self.state.entities + count)
        for name in self.state.tensors.keys() & set(NAME_TENSORS):
            self.state.tensors[name][rows] = self.state.layout[name].fill
