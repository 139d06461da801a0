"""The recall head: what recurred, and what recurred for entities of similar names.

The terms that count read the bounded tables of the state and touch only candidates that stand there, so their cost
follows the history that a query really has. The scores are:

  base[r, o]        how o fares at the far end of r: a low-rank term for all, a learned one for those seen there
  own[s, r, o]      what s did with o: with r itself, with any relation, and with relations that r resembles; and the
                    wider evidence (`adatkg_core.evidence`) for those and for the candidates that it proposes
  named[s, r, o]    how well the names of s and o go together under r, whatever happened
and for a subject of few interactions
  newcomer[r, o]    as base, but counting only what other newcomers did
  alike[s, r, o]    what the entities of the nearest names did
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adatkg_core.evidence import FEATURES as EVIDENCE_FEATURES
from adatkg_core.evidence import TRANSITION_FEATURES, Neighbours, Questions, activity_features, alike_sums
from adatkg_core.model.alike import alike_by_tensors
from adatkg_core.model.kept_rows import Index
from adatkg_core.model.own_rows import is_compiled, own_rows
from adatkg_core.model.recall_context import BASE_FEATURES, Context, Planes, counted
from adatkg_core.model.recall_view import FarEnd, RecallView
from adatkg_core.settings import RecallConfig
from adatkg_core.state import GraphState, PagedTable

ACTIVITY_FEATURES = 4
OWN_FEATURES = BASE_FEATURES + 6
ALIKE_FEATURES = 7
SAME_NAME = 1e-5  # names whose cosine is nearer to 1 read the same
ROUNDING = 2e-5  # by which a cosine in single precision may be wrong, and more


class Recall(nn.Module):
    """Scores [B, N] from the tables, for queries (subject, relation, time)."""

    def __init__(self, config: RecallConfig, n_relations: int, text_dim: int, similarity: Tensor) -> None:
        super().__init__()
        self.config = config
        both = 2 * n_relations
        self.similarity: Tensor
        self.register_buffer("similarity", similarity, persistent=False)  # [2R, 2R]
        width, heads = config.relation_dim, config.heads
        self.relation = nn.Embedding(both, width)
        nn.init.normal_(self.relation.weight, std=0.1)
        self.ask = nn.Parameter(torch.randn(both, heads, 8) * 0.3)
        self.tell = nn.Parameter(torch.randn(both, heads, 8) * 0.3)
        self.activity = nn.Sequential(nn.Linear(ACTIVITY_FEATURES, 32), nn.GELU(), nn.Linear(32, width))
        self.wants = nn.Linear(width, width)
        self.base = _mlp(BASE_FEATURES + ACTIVITY_FEATURES + width, config.hidden)
        self.newcomer_wants = nn.Linear(width, width)
        self.newcomer = _mlp(BASE_FEATURES + ACTIVITY_FEATURES + width, config.hidden)
        self.names = Names(text_dim, config.name_dim, width, config.text_dropout)
        context = BASE_FEATURES + ACTIVITY_FEATURES + width + 1
        wider = EVIDENCE_FEATURES + TRANSITION_FEATURES + heads if config.evidence else 0
        self.own = _mlp(OWN_FEATURES + 2 * heads + wider + context, config.hidden)
        self.alike = _mlp(ALIKE_FEATURES + heads + context, config.hidden)

    def forward(
        self, state: GraphState, view: RecallView, subject: Tensor, relation: Tensor, time: int, n: int
    ) -> Tensor:
        """Queries [B] -> scores [B, n] over the first n entities; `view` holds what others have read of this state."""
        activity, lively = view.activity(n, time, lambda rows: self._activity(state, rows, time))
        questions = Questions.of(subject, relation, time, n)
        kinds, kind = questions.kinds, questions.kind
        embedded = self.relation(kinds)
        far = self._far_end(state, state.relation_table, view, questions, activity, self.base)
        base = _spread(far, self.wants(embedded), lively)
        planes = Planes(far, kinds.shape[0], n)
        warmth = torch.log1p(state.tensors["interactions"][subject].float())
        context = Context(relation, kind, embedded, self.similarity, self._affinity(kinds), planes, activity, warmth, n)
        place, value = self._own(state, view, questions, context)
        named = self.names(state.tensors["text"], view, subject, embedded[kind], warmth, n)
        scores: Tensor = (base[kind] + named).reshape(-1).index_add(0, place, value).view(-1, n)
        cold = (state.tensors["interactions"][subject] < self.config.cold_below).nonzero().squeeze(1)
        if cold.shape[0] == 0:
            return scores
        far = self._far_end(state, state.newcomer_table, view, questions, activity, self.newcomer)
        newcomer = _spread(far, self.newcomer_wants(embedded), lively)
        return scores.index_add(0, cold, self._cold(state, subject, time, context, cold, newcomer))

    def _activity(self, state: GraphState, rows: Index, time: int) -> tuple[Tensor, Tensor]:
        """How busy entities are as of a time [n, ACTIVITY_FEATURES], and what relations may want of that [n, …]."""
        if is_compiled(state):
            which = torch.arange(rows.start, rows.stop, device=state.device) if isinstance(rows, slice) else rows
            activity = activity_features(state, which, time)
            return activity, self.activity(activity)
        get = state.tensors
        interactions = get["interactions"][rows]
        age = (time - get["last_time"][rows]).clamp(min=0).float()
        activity = torch.stack(
            (
                torch.log1p(interactions.float()),
                torch.log1p(get["activity_fast"][rows] * torch.exp(-age / self.config.fast)),
                torch.log1p(get["activity_slow"][rows] * torch.exp(-age / self.config.slow)),
                torch.where(interactions > 0, 1 / (1 + age), -1.0),
            ),
            1,
        )
        return activity, self.activity(activity)

    def _far_end(
        self,
        state: GraphState,
        table: PagedTable,
        view: RecallView,
        questions: Questions,
        activity: Tensor,
        weigh: nn.Module,
    ) -> FarEnd:
        """Whom a table has seen at the far end of the relations asked, and what that is worth."""

        if is_compiled(state):
            kept, known = view.far_end(table.name, questions.time), (activity, self.relation.weight)
            return FarEnd(*kept.read(state, table.name, questions, weigh, known, view.changes()))
        slots = table.read(state, questions.kinds, questions.time)
        features, kind = torch.stack(counted(slots), 1), questions.kinds[slots.owner]
        described = torch.cat((features, activity[slots.other], self.relation(kind)), 1)
        return FarEnd(slots.owner, slots.other, features, weigh(described).squeeze(1))

    def _own(
        self, state: GraphState, view: RecallView, questions: Questions, context: Context
    ) -> tuple[Tensor, Tensor]:
        place, features = own_rows(state, view, questions, context)
        return place, self.own(features).squeeze(1)

    def _cold(
        self, state: GraphState, subject: Tensor, time: int, context: Context, cold: Tensor, newcomer: Tensor
    ) -> Tensor:
        """What is added for the queries `cold` [C], whose subjects have few interactions: [C, n]."""
        names, which = torch.unique(subject[cold], return_inverse=True)
        text = state.tensors["text"]
        near = text[names] @ text[: context.n].T  # [D, n]
        kind = context.kind[cold]
        scores = newcomer[kind]

        neighbour, weight = nearest_names(state, names, near[:, : state.entities], self.config.neighbours)  # [D, k]
        read = Neighbours(
            neighbour[which], weight[which], context.relation[cold], kind, self.similarity, context.affinity
        )
        place, total = (alike_sums if is_compiled(state) else alike_by_tensors)(state, read, time, context.n)
        similar = near[which[place // context.n], place % context.n].unsqueeze(1)
        known = context.of(cold[place // context.n] * context.n + place % context.n)
        value = self.alike(torch.cat((total, similar, known), 1)).squeeze(1)
        total_scores: Tensor = scores.reshape(-1).index_add(0, place, value).view_as(scores)
        return total_scores

    def _affinity(self, kinds: Tensor) -> Tensor:
        """How much each relation says about those asked for, learned: [Q, 2R, heads]."""
        return F.softplus(torch.einsum("qhc,rhc->qrh", self.ask[kinds], self.tell))


class Names(nn.Module):
    """Two towers over names that share one projection; the relation says which of its directions must agree."""

    def __init__(self, text_dim: int, dim: int, relation_dim: int, dropout: float) -> None:
        super().__init__()
        self.dropout = ByteDropout(dropout)  # else it learns by heart whose names were busy in training
        self.project = nn.Linear(text_dim, dim, bias=False)
        nn.init.orthogonal_(self.project.weight, gain=3)
        self.agree, self.want = nn.Linear(relation_dim, dim), nn.Linear(relation_dim, dim)
        nn.init.zeros_(self.want.weight)
        self.trust = nn.Linear(2, 1)

    def forward(
        self, text: Tensor, view: RecallView, subject: Tensor, relation: Tensor, warmth: Tensor, n: int
    ) -> Tensor:
        """Subjects' rows [B], relations [B, …], log interactions [B] -> scores [B, n]."""
        candidates = view.names(text[:n], lambda names: self.project(self.dropout(names)))
        asked = self.project(self.dropout(text[subject])) * (1 + self.agree(relation)) + self.want(relation)
        trust = F.softplus(self.trust(torch.stack((warmth, (warmth == 0).float()), 1)))
        scores: Tensor = (asked * trust) @ candidates.T
        return scores


class ByteDropout(nn.Module):
    """Dropout with a share in 256ths: a random byte for each element, eight drawn at once, a third of torch's time."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.below = round(256 * share)

    def forward(self, values: Tensor) -> Tensor:
        """In training some are zero and the others larger; else as they are."""
        if not self.training or self.below == 0:
            return values
        words = torch.empty(-(-values.numel() // 8), dtype=torch.int64, device=values.device)
        drawn = words.random_(-(2**63), None).view(torch.uint8)[: values.numel()].view(values.shape)
        return values * ((drawn >= self.below) * (256 / (256 - self.below)))


def _spread(far: FarEnd, wanted: Tensor, lively: Tensor) -> Tensor:
    """Scores [Q, n]: of all by what is wanted [Q, …] of their activity [n, …], of those seen by what that is worth."""
    n = lively.shape[0]
    scores = wanted @ lively.T  # [Q, n]
    spread: Tensor = scores.reshape(-1).index_add(0, far.owner * n + far.other, far.value).view(-1, n)
    return spread


def nearest_names(state: GraphState, names: Tensor, cosine: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """For each entity [D] the k entities with interactions whose names are most alike, and how much.

    `cosine` [D, entities] in single precision says whom to look at: the choice itself is made in double precision.
    """
    seen = state.tensors["interactions"][: state.entities] > 0
    near = cosine.masked_fill(~seen | (names.unsqueeze(1) == torch.arange(seen.shape[0], device=seen.device)), -2)
    same = int((near > 1 - SAME_NAME - ROUNDING).sum(1).max())
    size = min(k + same, near.shape[1])
    bar = near.topk(size, dim=1).values[:, -1:] - ROUNDING  # at least k that may be chosen are above it
    count = int((near >= bar).sum(1).max())
    some = near.topk(min(count, near.shape[1]), dim=1).indices.sort(1).values  # [D, S] the older first
    text = state.tensors["text"]
    exact = (text[names].double().unsqueeze(1) @ text[some].double().transpose(1, 2)).squeeze(1)
    # A name that reads the same is taken for the entity itself, which has nothing to learn from itself.
    exact = exact.masked_fill((exact > 1 - SAME_NAME) | (names.unsqueeze(1) == some), -1)
    exact = exact.masked_fill(~seen[some], -3)
    # Whole numbers in double precision: ties go to the older entity, whatever else is in the batch.
    order = (exact * 1e6).round().long() * (some.shape[1] + 1) - torch.arange(some.shape[1], device=some.device)
    best = order.topk(min(k, int(seen.sum()), some.shape[1]), dim=1).indices
    return some.gather(1, best), exact.gather(1, best).clamp(min=0).float()


def _mlp(inputs: int, hidden: int) -> nn.Sequential:
    last = nn.Linear(hidden, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), last)
