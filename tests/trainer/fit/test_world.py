"""Processes that share the queries of a step come to what one process comes to, and end together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import weakref
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from adatkg_core.datasets import synthesize, write_dataset
from adatkg_core.errors import InputError
from adatkg_core.runtime import wait_until
from adatkg_core.storage import load_bundle
from tests.support.preloaded import FORK, Preloaded
from tests.support.several_processes import (
    Trained,
    free_port,
    launch_variables,
    plain_steps,
    together,
    train_small,
    train_together,
)
from tests.support.small_graph import assert_same_bits
from trainer import World, launched
from trainer.fit.shared_batch_norm import SharedBatchNorm, norm_over

pytestmark = pytest.mark.slow  # seconds of training

TOLERANCE = 1e-5  # of parameters after some thirty steps: what the order of sums may change
WITHOUT_DROPOUT: dict[str, Any] = {
    "train.epochs": 1,
    "train.burn_in": 0.0,
    "train.batch": 7,
    "train.lr": 0.05,
    "train.recall_lr": 0.05,
    "model.dropout": 0.0,
    "recall.text_dropout": 0.0,
}
KINDS: dict[str, dict[str, Any]] = {
    "recall": {"model.enabled": False},
    "model-and-recall": {},
    "snapshot": {"train.protocol": "snapshot", "recall.enabled": False, "model.decoder": "rectified"},
    "tiny-batches": {"train.batch": 2, "train.burn_in": 0.7},
}
KINDS = {kind: WITHOUT_DROPOUT | changes for kind, changes in KINDS.items()}
DROPOUT = {"dropout": WITHOUT_DROPOUT | {"model.dropout": 0.3, "model.text_dropout": 0.3, "recall.text_dropout": 0.3}}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Trained]]:
    """Every kind by two processes; one by three, for whom a batch of two queries is too small to be shared out."""
    kinds = KINDS | DROPOUT
    tiny = {"tiny-batches": kinds.pop("tiny-batches")}
    by_three = train_together(3, tmp_path_factory.mktemp("three"), tiny)
    return train_together(2, tmp_path_factory.mktemp("two"), kinds) | by_three


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trained]:
    """Every kind by a single process."""
    folder = tmp_path_factory.mktemp("alone")
    with plain_steps():
        return {kind: train_small(folder / kind, changes) for kind, changes in (KINDS | DROPOUT).items()}


@pytest.mark.parametrize("kind", KINDS)
def test_several_processes_learn_what_one_learns(
    kind: str, trained: dict[str, list[Trained]], alone: dict[str, Trained]
) -> None:
    wanted = alone[kind]
    for found in trained[kind]:
        for name, tensor in found.tensors.items():
            torch.testing.assert_close(tensor, wanted.tensors[name], rtol=TOLERANCE, atol=TOLERANCE, msg=name)
        for name, figures in found.valid["slices"].items():
            assert figures == pytest.approx(wanted.valid["slices"][name], abs=1e-6), name
        assert found.version == wanted.version, "a run may go on with another number of processes"


@pytest.mark.parametrize("kind", [*KINDS, *DROPOUT])
def test_all_processes_have_the_same_run_bit_for_bit(kind: str, trained: dict[str, list[Trained]]) -> None:
    first, *others = trained[kind]
    for other in others:
        assert_same_bits(other.tensors, first.tensors)
        assert (other.valid, other.version) == (first.valid, first.version)


def test_dropout_strikes_elsewhere_in_several_processes(
    trained: dict[str, list[Trained]], alone: dict[str, Trained]
) -> None:
    found, wanted = (one.tensors["project.weight"] for one in (trained["dropout"][0], alone["dropout"]))
    assert 1e-4 < float((found - wanted).abs().max()) < 1


def test_only_the_first_process_writes(trained: dict[str, list[Trained]]) -> None:
    first, *others = (one.files for one in trained["recall"])
    assert first == ("checkpoint", "curves.jsonl")
    assert all(files == () for files in others)


# -- shares -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [2, 3, 7, 8, 513])
def test_shares_are_the_whole_batch_once_or_everything_for_everybody(size: int, count: int) -> None:
    shares = [World(rank, size).share(count) for rank in range(size)]
    rows = [row for share in shares for row in range(count)[share.rows]]
    assert rows == (list(range(count)) if count >= size else [*range(count)] * size)
    assert sum(share.weight for share in shares) == pytest.approx(1)
    assert {share.parted for share in shares} == {1 < size <= count}


def test_batch_norm_over_one_process_is_the_usual_one() -> None:
    torch.manual_seed(4)
    usual = nn.BatchNorm1d(3)
    with torch.no_grad():
        usual.weight.copy_(torch.randn(3))
    shared = SharedBatchNorm(nn.BatchNorm1d(3))
    shared.load_state_dict(usual.state_dict())
    values = torch.randn(5, 3, 4) * 3 + 20
    results: list[tuple[Tensor, Tensor]] = []
    for norm in (usual, shared):
        asked = values.clone().requires_grad_()
        answer = norm(asked)
        answer.square().sum().mul(0.1).add(answer[0].sum()).backward()
        assert asked.grad is not None
        results.append((answer.detach(), asked.grad))
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(shared.state_dict(), usual.state_dict())


def test_exchanges_add_up_and_tell_what_the_first_has() -> None:
    together(3, exchange)


def exchange(world: World) -> None:
    """In one of three processes."""
    assert world.add_up(torch.tensor([1.0, world.rank])).tolist() == [3, 3]
    mine = torch.tensor([world.rank])
    world.align([mine, torch.empty(0)])
    assert mine.tolist() == [0]
    assert world.from_first(lambda: f"from {world.rank}") == "from 0"
    with pytest.raises(InputError, match="only the first was asked"):
        world.from_first(refuse)
    lone, common, idle = (nn.Parameter(torch.zeros(2)) for _ in range(3))
    common.grad = torch.full((2,), float(world.rank))
    if world.rank == 1:
        lone.grad = torch.ones(2)
    world.add_up_gradients([lone, common, idle])
    assert lone.grad is not None and lone.grad.tolist() == [1, 1]
    assert common.grad.tolist() == [3, 3]
    assert idle.grad is None, "an optimizer must pass over what took no part anywhere"
    torch.manual_seed(2)
    with world.own_draws((1, 5), torch.device("cpu")):
        own = torch.rand(4)
    assert torch.equal(torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(2)))
    assert not torch.allclose(world.add_up(own.clone()), 3 * own), "each has draws of its own"
    norm = SharedBatchNorm(nn.BatchNorm1d(2))
    norm_over(nn.ModuleList([norm]), world)
    values = torch.arange(12.0).view(6, 2)
    found = norm(values[[[0], [1, 2], [3, 4, 5]][world.rank]])
    wanted = nn.BatchNorm1d(2)(values)[[[0], [1, 2], [3, 4, 5]][world.rank]]
    torch.testing.assert_close(found, wanted)


def refuse() -> None:
    raise InputError("only the first was asked")


def test_a_process_without_the_variables_of_a_launcher_is_alone() -> None:
    for variables in ({}, {"WORLD_SIZE": "1", "RANK": "0"}):
        with launched("cpu", variables) as (world, device):
            assert (world, device) == (World(), "cpu")


# -- an end -------------------------------------------------------------------------------------------------------


EPOCHS = 4
WORDS = ("--config", "tiny", "--epochs", str(EPOCHS), "--set", "train.patience=0", "--json")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_dataset(synthesize(40, 4, 14, 10, seed=2), tmp_path / "graph")
    return tmp_path


def start(folder: Path, out: str, launch: str) -> list[Preloaded]:
    """`adatkg train` in two processes, as a launcher would start it; each tells its errors in a file of its own."""
    return [
        Preloaded(
            *("train", str(folder / "graph"), *WORDS, "--out", str(folder / out)),
            env=os.environ | variables,
            output=folder / f"{launch}-{rank}.out",
            errors=folder / f"{launch}-{rank}.err",
        )
        for rank, variables in enumerate(launch_variables(2))
    ]


def torchrun(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`torchrun --nproc-per-node 2 -m adatkg train graph …`."""
    launcher = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", free_port())
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    command = [*launcher, "-m", "adatkg", "train", "graph", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_killed_process_ends_the_other_and_the_same_command_goes_on_to_the_same_bundle(place: Path) -> None:
    steady = torchrun(place, *WORDS, "--out", "steady")
    processes = start(place, "bundle", "killed")
    assert wait_until((place / "bundle.training" / "checkpoint" / "manifest.json").exists, within=60, every=0.01)
    processes[1].kill()
    assert processes[0].wait(20) == 1
    errors = (place / "killed-0.err").read_text().splitlines()
    assert errors[-1].startswith("error: another process of this training has ended or cannot be reached")
    assert errors[-1].endswith("Start the same command again: it goes on from the checkpoint")
    assert not (place / "bundle").exists()

    assert [process.wait(60) for process in start(place, "bundle", "again")] == [0, 0]
    lines = [json.loads(line) for line in (place / "again-0.err").read_text().splitlines()]
    assert 0 < [line["event"] for line in lines].count("epoch") < EPOCHS, "it went on"
    assert (place / "again-1.err").read_text() == (place / "again-1.out").read_text() == "", "only the first talks"
    found, wanted = (load_bundle(str(place / name)) for name in ("bundle", "steady"))
    assert_same_bits(found.model.state_dict(), wanted.model.state_dict())
    assert json.loads((place / "again-0.out").read_text())["version"] == json.loads(steady.stdout)["version"]
    events = [json.loads(line)["event"] for line in steady.stderr.splitlines() if line.startswith("{")]
    assert events.count("epoch") == EPOCHS


@pytest.mark.parametrize("fails", [False, True], ids=["done", "error"])
def test_the_threads_of_exchanges_end_before_python_does(fails: bool) -> None:
    processes = [FORK.Process(target=leave, args=(one, fails), daemon=True) for one in launch_variables(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]


def leave(variables: dict[str, str], fails: bool) -> None:
    """In one of two processes: nobody has the group any more, at whose end its threads are waited for."""
    keeper = "torch.distributed.nn.functional"  # what it had as it was imported, a default of its functions stays
    sys.modules.pop(keeper, None)
    os.environ.update(variables)
    with suppress(InputError), launched("cpu") as (world, _):
        assert dist.group.WORLD is not None
        group = weakref.ref(dist.group.WORLD)
        import_module(keeper)
        world.add_up(torch.ones(1))
        if fails:
            refuse()
    assert group() is None


def test_what_the_first_process_is_refused_ends_all_with_code_2(place: Path) -> None:
    (place / "bundle").write_text("in the way")
    assert [process.wait(60) for process in start(place, "bundle/here", "refused")] == [2, 2]
    assert "not a folder that can be written to" in (place / "refused-0.err").read_text()
