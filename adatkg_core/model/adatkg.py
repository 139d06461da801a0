"""AdaTKG: text, chains, clusters and memory to a score for every candidate."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adatkg_core.model.chain_encoder import ChainEncoder
from adatkg_core.model.codebook import Codebook
from adatkg_core.model.decoder import ConvTransE
from adatkg_core.model.memory import Gate, Members, memory_operator
from adatkg_core.model.recall_head import Recall
from adatkg_core.model.recall_view import RecallView
from adatkg_core.settings import Config
from adatkg_core.state import GraphState, group_mean, select_chains

SHARPNESS = 2.3  # logits begin as ten times a cosine, else thousands of candidates stay nearly alike


@dataclass(frozen=True)
class LastUpdate:
    """What a commit did to the memories, kept so that a reader can do it again with gradient."""

    entity: Tensor  # [U]
    previous: Tensor  # [U, …] memory before
    updates: Tensor  # [U] updates before
    group: Tensor  # [I] which of the U each interaction belongs to
    encoding: Tensor  # [I, d] chain encoding, detached
    relation: Tensor  # [I]


@dataclass(frozen=True)
class View:
    """All entities as a reader sees them: fused vectors, their unit form, and the mean gate; and the relations."""

    fused: Tensor  # [N, d]
    unit: Tensor  # [N, d]
    gate: Tensor  # [N]
    cluster: Tensor  # [N]
    relations: Tensor  # [2R, d]
    vq_loss: Tensor  # []
    recalled: RecallView  # what the recall head has read of the state so far

    def and_also(self, more: View) -> View:
        """This view with further entities behind it."""
        fused, unit = torch.cat((self.fused, more.fused)), torch.cat((self.unit, more.unit))
        gate, cluster = torch.cat((self.gate, more.gate)), torch.cat((self.cluster, more.cluster))
        return View(fused, unit, gate, cluster, self.relations, self.vq_loss, self.recalled)


class Scores(NamedTuple):
    """The scores of queries [B, N], and where both have a part in them, those of the paper's model and of recall."""

    total: Tensor
    reasoned: Tensor | None = None
    recalled: Tensor | None = None

    def among(self, n: int) -> Scores:
        """Those of the first n entities only."""
        return Scores(*(None if part is None else part[:, :n] for part in self))  # type: ignore[arg-type]


class AdaTKG(nn.Module):
    """The shared parameters; everything about a graph's past comes in as a state."""

    def __init__(self, config: Config, relation_text: Tensor, entities: int) -> None:
        """`relation_text` [R, T] are the relations' names encoded; `entities` sizes per-entity parameters."""
        super().__init__()
        model = config.model
        dim, text_dim = model.dim, relation_text.shape[1]
        self.config = config
        self._fingerprinted: tuple[list[tuple[int, int]], str] = ([], "")
        self.n_relations = relation_text.shape[0]
        self.entities = entities if model.entity == "learned" or (model.memory, model.decay) == ("ema", "entity") else 0
        self.register_buffer("relation_text", relation_text.clone())
        self.register_buffer("similarity", _similarity(relation_text), persistent=False)
        self.relation_text: Tensor
        self.similarity: Tensor  # [2R, 2R]
        self.learned = nn.Parameter(torch.randn(entities, dim) * 0.1) if model.entity == "learned" else None
        entity_dim = text_dim if self.learned is None else dim
        self.project, self.text_dropout = nn.Linear(entity_dim, dim), nn.Dropout(model.text_dropout)
        self.relation = nn.Parameter(torch.empty(2 * self.n_relations, dim))
        nn.init.normal_(self.relation) if model.scaled else nn.init.xavier_uniform_(self.relation)
        self.relation_project = nn.Linear(text_dim, 2 * dim)
        self.chain = ChainEncoder(entity_dim, model)
        self.codebook = Codebook(model.codes, dim) if model.prior or model.decay == "entity" else None
        self.transfer = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, dim), nn.Sigmoid())
        self.memory = memory_operator(model, entities)
        self.reads_memory = True  # else every gate is zero: what memory is worth is measured so
        self.signal_in, self.signal_out = nn.Linear(2 * dim, dim), nn.Linear(dim, dim)
        self.gate = Gate(dim, model.gate)
        self.decoder = ConvTransE(
            dim, model.filters, model.kernel, model.dropout, rectified=model.decoder == "rectified"
        )
        # Names, memories and prototypes meet in a sum: without a common scale the longest of them is all that counts.
        self.name_norm = nn.LayerNorm(dim) if model.scaled else None
        self.memory_norm = nn.LayerNorm(dim) if model.scaled and self.memory is not None else None
        self.sharpness = nn.Parameter(torch.tensor(SHARPNESS)) if model.scaled else None
        self.recall = (
            Recall(config.recall, self.n_relations, text_dim, self.similarity) if config.recall.enabled else None
        )
        self.trust = nn.Linear(3, 1) if config.recall.enabled else None
        if self.trust is not None:
            nn.init.zeros_(self.trust.weight)
            nn.init.constant_(self.trust.bias, -3.0)  # recall leads until the model has shown what it is worth

    def fingerprint(self) -> str:
        """What tells these parameters from any others; found anew only when one was written."""
        tensors = sorted(self.state_dict().items())
        written = [(tensor.data_ptr(), tensor._version) for _, tensor in tensors]
        if written != self._fingerprinted[0]:
            digest = hashlib.sha256()
            for name, tensor in tensors:
                digest.update(name.encode())
                digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
            self._fingerprinted = written, digest.hexdigest()
        return self._fingerprinted[1]

    # -- vectors ----------------------------------------------------------------------------------------------

    def entity_input(self, state: GraphState, ids: Tensor) -> Tensor:
        """What is known of entities before anything happens: their text, or a learned row [n, …]."""
        if self.learned is None:
            return state.tensors["text"].index_select(0, ids)
        known = (ids < self.learned.shape[0]).unsqueeze(1)
        return self.learned[ids.clamp(max=self.learned.shape[0] - 1)] * known

    def relations(self) -> Tensor:
        """Vectors of relations and inverses, [2R, d]."""
        forward, inverse = self.relation_project(self.relation_text).chunk(2, 1)
        return self.relation + torch.cat((forward, inverse))

    def assign_clusters(self, state: GraphState, ids: Tensor) -> Tensor:
        """The cluster of each entity [n], from its name alone."""
        if self.codebook is None:
            return torch.zeros_like(ids)
        weight, bias = self.project.weight.double(), self.project.bias.double()
        base = F.linear(self.entity_input(state, ids).double(), weight, bias)
        if (norm := self.name_norm) is not None:
            base = F.layer_norm(base, norm.normalized_shape, norm.weight.double(), norm.bias.double(), norm.eps)
        return self.codebook.assign(base)

    def encode_chains(
        self, state: GraphState, entity: Tensor, relation: Tensor, time: int, vectors: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Chain encodings [B, d] of readers (entity, relation) at a time, and whether each chain held anything.

        `vectors` [2R, d] are the relations', if the caller has them already.
        """
        model = self.config.model
        chains = select_chains(state, entity, relation, time, self.similarity, model.chain_window, model.chain_length)
        vectors = self.relations() if vectors is None else vectors
        encoded = self.chain(chains, lambda ids: self.entity_input(state, ids), vectors, F.embedding(relation, vectors))
        return encoded, chains.nonempty

    def signal(self, encoding: Tensor, relation: Tensor, vectors: Tensor) -> Tensor:
        """x = W2 GELU(W1 [h_IC || h_r]) for interactions, [I, d]; relations have the `vectors` [2R, d]."""
        joined = torch.cat((encoding, F.embedding(relation, vectors)), 1)
        signal: Tensor = self.signal_out(F.gelu(self.signal_in(joined)))
        return signal

    def updated_memory(self, state: GraphState, last: LastUpdate, vectors: Tensor) -> Tensor:
        """The memories after an update, computed anew [U, …]: the mean signal of each entity, one step."""
        signal = group_mean(self.signal(last.encoding, last.relation, vectors), last.group, last.entity.shape[0])
        return self.step_memory(state, last.entity, last.previous, last.updates, signal)

    def step_memory(
        self, state: GraphState, entity: Tensor, previous: Tensor, updates: Tensor, signal: Tensor
    ) -> Tensor:
        """The memories [U, …] of entities after one step from the previous ones, which had so many updates."""
        assert self.memory is not None
        return self.memory.update(previous, signal, Members(entity, state.tensors["cluster"][entity], updates))

    # -- reading ----------------------------------------------------------------------------------------------

    def view(
        self,
        state: GraphState,
        ids: Tensor,
        last: LastUpdate | None = None,
        extra: Tensor | None = None,
        recalled: RecallView | None = None,
        vectors: Tensor | None = None,
    ) -> View:
        """The entities `ids` [N] as of the state.

        With `last`, the memories that an update writes are computed with gradient, which is how the update rule
        learns; `ids` must then begin with every entity of that update in order 0, 1, …. `extra` [N, d] is added
        to the entities' own vectors (the snapshot protocol's mark). `recalled` is what the recall head has read so far,
        `vectors` [2R, d] are the relations', if the caller has them already.
        """
        cluster, recalled = state.tensors["cluster"][ids], recalled or RecallView(ids.shape[0])
        if not self.config.model.enabled:
            nothing = state.tensors["text"].new_zeros(ids.shape[0], 0)
            return View(nothing, nothing, nothing.sum(1), cluster, nothing, nothing.sum(), recalled)
        relations = self.relations() if vectors is None else vectors
        base = self.project(self.text_dropout(self.entity_input(state, ids)))
        if self.name_norm is not None:
            base = self.name_norm(base)
        vq_loss = base.new_zeros(())
        if self.codebook is not None and self.training:
            cluster, vq_loss = self.codebook(base)
        prior = base if extra is None else base + extra
        if self.config.model.prior:
            prior = prior + self._transfer(state, prior, cluster)
        if self.memory is None or not self.reads_memory:
            gate = base.new_zeros(ids.shape[0])
            return View(prior, F.normalize(prior, dim=1), gate, cluster, relations, vq_loss, recalled)
        memory, updates = state.tensors["memory"][ids], state.tensors["updates"][ids]
        if last is not None and last.entity.numel():
            memory = memory.index_copy(0, last.entity, self.updated_memory(state, last, relations))
            updates = updates.index_copy(0, last.entity, last.updates + 1)
        read = self.memory.read(memory, base, Members(ids, cluster, updates))
        if self.memory_norm is not None:
            read = self.memory_norm(read)  # of no memory this is no longer zero, but its gate is
        gate = self.gate(base, read, updates)
        fused = torch.lerp(prior, read, gate)
        return View(fused, F.normalize(fused, dim=1), gate.detach().mean(1), cluster, relations, vq_loss, recalled)

    def prototypes(self, state: GraphState) -> Tensor:
        """What the members of each cluster were seen doing, [K, d]; zero where nobody was."""
        weight = state.tensors["prototype_weight"].unsqueeze(1)
        prototype = state.tensors["prototype_sum"] / weight.clamp(min=1e-6)
        if self.config.model.scaled:
            prototype = F.normalize(prototype, dim=1) * (0.5 * math.sqrt(prototype.shape[1]))
        return prototype

    def _transfer(self, state: GraphState, base: Tensor, cluster: Tensor) -> Tensor:
        prototype = self.prototypes(state)
        first, rest = self.transfer[0], self.transfer[1:]
        assert isinstance(first, nn.Linear)
        # W [h || c] split in two: the half that sees prototypes is computed once per cluster.
        by_base, by_prototype = first.weight.chunk(2, 1)
        hidden = F.linear(base, by_base, first.bias) + F.embedding(cluster, F.linear(prototype, by_prototype))
        transferred: Tensor = rest(hidden) * prototype[cluster]
        return transferred

    def score(
        self,
        state: GraphState,
        view: View,
        subject: Tensor,
        relation: Tensor,
        time: int,
        *,
        encoding: Tensor | None = None,
    ) -> Scores:
        """Queries (subject, relation) [B] at one time -> scores of every entity in the view.

        `encoding` [B, d] are the queries' chain encodings, if the caller has them already.
        """
        n = view.unit.shape[0]
        if not self.config.model.enabled:
            assert self.recall is not None
            return Scores(self.recall(state, view.recalled, subject, relation, time, n))
        if encoding is None:
            encoding, _ = self.encode_chains(state, subject, relation, time, view.relations)
        wanted = self.decoder(F.embedding(subject, view.fused) + encoding, F.embedding(relation, view.relations))
        if self.sharpness is not None:
            wanted = F.normalize(wanted, dim=1) * self.sharpness.exp()
        reasoned: Tensor = wanted @ view.unit.T
        if self.recall is None or self.trust is None:
            return Scores(reasoned)
        warmth = torch.log1p(state.tensors["interactions"][subject].float())
        known = torch.stack((warmth, (warmth == 0).float(), encoding.detach().abs().amax(1).sign()), 1)
        recalled = self.recall(state, view.recalled, subject, relation, time, n)
        return Scores(recalled + F.softplus(self.trust(known)) * reasoned, reasoned, recalled)


def _similarity(relation_text: Tensor) -> Tensor:
    # In double precision and rounded, so that every machine ranks relations alike.
    text = relation_text.double()
    cosine = ((text @ text.T).clamp(min=0) * 1e6).round().div(1e6).float()
    return torch.cat((torch.cat((cosine, cosine / 2), 1), torch.cat((cosine / 2, cosine), 1)))
