"""The training loop, to be read from top to bottom.

An epoch forgets every interaction and replays the training facts in order. The queries of a time are scored from
memory strictly before it; then its facts are committed. The last update of each memory is computed again at read
time with gradient, the memory before it detached: this is how the update rule learns. Several processes share the
queries of a step (`world.py`); everything else all of them do alike.
"""

from __future__ import annotations

import hashlib
import math
import time as clock
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import structlog
import torch
from torch import Tensor

from adatkg_core.datasets import Dataset, Facts, by_first_appearance, facts_by_time
from adatkg_core.engine import Engine, commit_facts
from adatkg_core.errors import AdatkgError, InputError
from adatkg_core.evaluation import measure, summarize
from adatkg_core.metrics import TimeFilter
from adatkg_core.model import AdaTKG, Ema, LastUpdate, Scores, View, view_snapshot
from adatkg_core.runtime import ScatteredMemory
from adatkg_core.settings import Config
from adatkg_core.state import GraphState, Grouping, both_sides, to_device
from adatkg_core.storage import Bundle
from adatkg_core.text import TextEncoder, choose_structure, count_groups, text_of
from trainer.fit.batches import batches, learned, other_answers, with_strangers
from trainer.fit.checkpoint import Progress, load_checkpoint, save_checkpoint
from trainer.fit.objective import OF_RECALL, Stage, combining_from, cross_entropy, enter, objective
from trainer.fit.shared_batch_norm import norm_over, share_batch_norms
from trainer.fit.warm_start import start_from
from trainer.fit.world import ALONE, Share, World

WARM_UP = 0.05  # share of all steps until the full learning rate
TRUST_RATE = 10  # times that of the recall head: four numbers, learned only at the last times of each epoch
FLOOR = 0.02  # share of the learning rate that is left at the end
Report = Callable[[str, int, int], None]  # stage, done, of how many

log = structlog.get_logger()


@dataclass(frozen=True)
class Run:
    """A finished training: the best bundle and how it did on valid."""

    bundle: Bundle
    epochs: int
    best_epoch: int
    valid: dict[str, Any]


def train(
    dataset: Dataset,
    config: Config,
    encoder: TextEncoder,
    work: Path,
    *,
    device: str = "cpu",
    warm: Bundle | None = None,
    world: World = ALONE,
    report: Report = lambda stage, done, total: None,
) -> Run:
    """Learn from the train split, from what `warm` has learned if it is given; choose the epoch on the valid split.

    `work` holds the checkpoint and `curves.jsonl`; a run that was killed goes on from there to the same result. Every
    process of a `world` calls this alike and gets the same run; only the first one reads and writes `work`.
    """
    dataset = by_first_appearance(dataset)
    facts = dataset.split("train")
    if len(facts) == 0 or len(dataset.split("valid")) == 0:
        raise InputError(f"data set {dataset.name}: too few distinct times to split; it needs at least 3")
    if world.first:
        work.mkdir(parents=True, exist_ok=True)
    names, relations = world.from_first(lambda: _encoded(encoder, dataset))
    torch.manual_seed(config.train.seed)
    n = int(facts[:, [0, 2]].max()) + 1  # numbered by first appearance: the entities of train come first
    config = _with_names(config, dataset.entities[:n])
    model = AdaTKG(config, relations, n).to(device)
    if world.size > 1:
        share_batch_norms(model)
    if warm is not None:
        start_from(warm, model, dataset.relations, dataset.entities)
    state = _empty_state(model, dataset.entities[:n], names[:n])
    optimizer, schedule = _optimizer(model, config, steps=config.train.epochs * _steps(facts, config))
    fingerprint = _fingerprint(dataset, config, encoder, warm)
    progress = load_checkpoint(work, fingerprint, model, optimizer, schedule, world)
    lookup = _Names(encoder.name, encoder.dim, dict(zip(map(text_of, dataset.entities), names, strict=True)))
    while progress.epoch < config.train.epochs:
        if progress.best and progress.epoch - progress.best_epoch >= config.train.patience > 0:
            break
        progress.epoch += 1
        began = clock.perf_counter()
        with _in_the_log(progress, config):
            world.align(model.state_dict().values())  # where machines differ, so does rounding
            loss, queries = _epoch(model, state, optimizer, schedule, facts, n, world, report)
            curve: dict[str, Any] = {"epoch": progress.epoch, "loss": loss}
            curve["queries_per_second"] = round(queries / (clock.perf_counter() - began), 1)
            if progress.epoch % config.train.valid_every == 0 or progress.epoch == config.train.epochs:
                _settle(model, state)
                curve |= _validate(model, dataset, lookup, progress, world, report)
        curve["seconds"] = round(clock.perf_counter() - began, 1)
        if isinstance(model.memory, Ema):
            curve["alpha"] = torch.sigmoid(model.memory.rho.detach()).mean().item()
        progress.curves.append(curve)
        if world.first:
            save_checkpoint(work, fingerprint, model, optimizer, schedule, progress)
            _write_curves(work / "curves.jsonl", progress)
        log.info("epoch", **curve)

    if world.first:
        _write_curves(work / "curves.jsonl", progress)
    model.load_state_dict(progress.best)
    version = f"{dataset.name}-{fingerprint[:8]}-{progress.best_epoch}"
    metrics = {"valid": progress.best_metrics, "epoch": progress.best_epoch, "seed": config.train.seed}
    bundle = Bundle(model.eval(), dataset.relations, dataset.entities, version, metrics, dataset.clock)
    return Run(bundle, progress.epoch, progress.best_epoch, progress.best_metrics)


def _epoch(
    model: AdaTKG,
    state: GraphState,
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    facts: Facts,
    n: int,
    world: World,
    report: Report,
) -> tuple[float, int]:
    """One pass over the training facts; returns the mean loss and the number of queries."""
    settings = model.config.train
    known = TimeFilter(facts, state.n_relations, state.device)
    ids = torch.arange(n, device=state.device)
    last: LastUpdate | None = None
    total = torch.zeros((), dtype=torch.float64, device=state.device)
    done = 0
    state.reset()
    with torch.no_grad():
        state.tensors["cluster"][:n] = model.assign_clusters(state, ids)
    streaming = settings.protocol == "streaming"
    lessons = learned(facts, settings.burn_in)
    turn = combining_from(model, lessons)
    memory = ScatteredMemory()
    for time, rows in facts_by_time(facts):
        stage: Stage = "together" if turn is None else "combining" if time >= turn else "apart"
        happened = to_device(torch.from_numpy(rows[:, :3]), state.device)
        asked = both_sides(happened, state.n_relations) if time >= lessons[0, 3] else None
        for subject, relation, answer in batches(asked, settings.batch, not streaming):
            enter(model, stage)
            share = world.share(len(subject))
            norm_over(model, world if share.parted else ALONE)
            mine, wanted = share.rows, answer[share.rows]
            exclude = other_answers(known, subject[mine], relation[mine], wanted, time) if streaming else None
            subject, everyone = with_strangers(state, subject, relation, ids, settings)
            draws = world.own_draws((settings.seed, schedule.last_epoch), state.device)
            scores, view = _forward(model, state, everyone, subject, relation, time, last, share, draws)
            scores = scores.among(n)
            whole = objective(scores, wanted, exclude, stage, settings) * share.weight
            whole = whole + settings.vq_weight * view.vq_loss / world.size
            whole.backward()  # type: ignore[no-untyped-call]
            world.add_up_gradients(model.parameters())
            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            state.tensors["cluster"][:n] = view.cluster[:n]
            total += cross_entropy(scores.total.detach(), wanted, exclude) * (share.weight * len(subject))
            done += len(subject)
        model.eval()
        last = commit_facts(model, state, happened, time)
        memory.give_back()
        report("train", done, 2 * len(lessons))
    model.requires_grad_(True)
    world.add_up(total)
    if not math.isfinite(total.item()):
        raise AdatkgError("training diverged: the loss is not a number; lower train.lr")
    return total.item() / max(done, 1), done


def _forward(
    model: AdaTKG,
    state: GraphState,
    ids: Tensor,
    subject: Tensor,
    relation: Tensor,
    time: int,
    last: LastUpdate | None,
    share: Share,
    draws: AbstractContextManager[None],
) -> tuple[Scores, View]:
    """What all queries of a batch have in common, and the scores of this process's share of them."""
    encoding = None
    if model.config.train.protocol == "snapshot":
        encodings, view = view_snapshot(model, state, ids, subject, relation, time, last)
        encoding = encodings[share.rows]
    else:
        view = model.view(state, ids, last)
    with draws:
        scores = model.score(state, view, subject[share.rows], relation[share.rows], time, encoding=encoding)
    return scores if encoding is None else Scores(scores.total), view


def _validate(
    model: AdaTKG, dataset: Dataset, encoder: TextEncoder, progress: Progress, world: World, report: Report
) -> dict[str, Any]:
    """Measure on valid and remember the parameters if they are the best so far."""
    settings = model.config.train
    engine = Engine(model, dataset.relations, encoder, entities=dataset.entities)
    asked, total = 0, 2 * len(dataset.split("valid"))

    def tell(count: int) -> None:
        nonlocal asked
        asked += count
        report("validate", asked, total)

    asking = measure(engine, dataset, "valid", settings.protocol, tell, baseline=False, takes=world.takes)
    results, _ = summarize(asking, world.add_up)
    scores = [results[name]["mrr"] or 0.0 for name in settings.select]
    score = sum(scores) / len(scores)
    if score > progress.best_score:
        progress.best_score, progress.best_epoch = score, progress.epoch
        progress.best_metrics = {"protocol": settings.protocol, "slices": results}
        progress.best = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    return {"score": score, "mrr": {name: one["mrr"] for name, one in results.items()}}


def _in_the_log(progress: Progress, config: Config) -> AbstractContextManager[None]:
    """While it lasts, lines of the log say which epoch it is and the best score so far."""
    told: dict[str, Any] = {"epoch": progress.epoch, "epochs": config.train.epochs}
    if progress.best:
        told["best_score"] = round(progress.best_score, 4)
    return structlog.contextvars.bound_contextvars(**told)


def _write_curves(path: Path, progress: Progress) -> None:
    """The whole file each time, from what the checkpoint holds: a kill can neither lose nor repeat a line."""
    lines = [orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in progress.curves]
    partial = path.with_suffix(".partial")
    partial.write_bytes(b"".join(lines))
    partial.replace(path)


def _settle(model: AdaTKG, state: GraphState) -> None:
    if model.memory is not None:
        n = state.entities
        model.memory.settle(state.tensors["updates"][:n], state.tensors["cluster"][:n])


def _encoded(encoder: TextEncoder, dataset: Dataset) -> tuple[Tensor, Tensor]:
    """The names of entities and relations as vectors."""
    return (
        encoder.encode([text_of(name) for name in dataset.entities]),
        encoder.encode([text_of(name) for name in dataset.relations]),
    )


def _empty_state(model: AdaTKG, entities: Sequence[str], names: Tensor) -> GraphState:
    """A state in which these entities have a row and nothing has happened."""
    device, n = model.relation_text.device, len(entities)
    state = GraphState(model.config, names.shape[1], model.n_relations, device)
    state.reserve(n)
    state.entities = n
    state.tensors["text"][:n] = names.to(device)
    if state.keeps_evidence:
        kin = Grouping(choose_structure(model.config.model.names, ())).add(entities)
        for name, numbers in zip(("group", "role"), kin, strict=True):
            state.tensors[name][:n] = torch.tensor(numbers, device=device)
    return state


def _with_names(config: Config, entities: Sequence[str]) -> Config:
    """The configuration that says how the names of train tell of groups: later names must not decide it."""
    structure = choose_structure(config.model.names, entities)
    found = count_groups(structure, entities)
    log.info("names", kind=structure.kind, setting=config.model.names, grouped=found.names, groups=found.groups)
    return replace(config, model=replace(config.model, names=structure.kind))


def _optimizer(
    model: AdaTKG, config: Config, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW with a warm-up and a cosine; the recall head has a learning rate of its own."""
    rest = [p for name, p in model.named_parameters() if not name.startswith(OF_RECALL)]
    groups = [{"params": rest, "lr": config.train.lr}]
    if model.recall is not None and model.trust is not None:
        groups.append({"params": [*model.recall.parameters()], "lr": config.train.recall_lr})
        groups.append({"params": [*model.trust.parameters()], "lr": TRUST_RATE * config.train.recall_lr})
    optimizer = torch.optim.AdamW(groups, weight_decay=config.train.weight_decay, fused=True)

    def rate(step: int) -> float:
        warm = max(1, int(steps * WARM_UP))
        if step < warm:
            return (step + 1) / warm
        return FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warm) / max(1, steps - warm))))

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, rate)


def _steps(facts: Facts, config: Config) -> int:
    sizes = [2 * len(rows) for _, rows in facts_by_time(learned(facts, config.train.burn_in))]
    return sum(2 if config.train.protocol == "snapshot" else -(-size // config.train.batch) for size in sizes)


def _fingerprint(dataset: Dataset, config: Config, encoder: TextEncoder, warm: Bundle | None) -> str:
    digest = hashlib.sha256(dataset.facts.tobytes())
    plain = replace(config, train=replace(config.train, patience=0)).as_dict()
    digest.update(orjson.dumps([dataset.entities, dataset.relations, plain, encoder.name], option=orjson.OPT_SORT_KEYS))
    if dataset.bounds is not None:
        digest.update(orjson.dumps(dataset.bounds))
    if warm is not None:
        digest.update(warm.model.fingerprint().encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class _Names:
    """The data set's names, encoded once, for the engines that validate."""

    name: str
    dim: int
    vectors: dict[str, Tensor]

    def encode(self, texts: Any) -> Tensor:
        return torch.stack([self.vectors[text] for text in texts])
