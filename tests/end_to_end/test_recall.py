"""The head without the model and without the wider evidence is trained, answers, is looked at, and is trained again."""

from __future__ import annotations

from pathlib import Path

import orjson

from adatkg_core.datasets import synthesize, write_dataset
from adatkg_core.storage import ModelStore
from tests.support.running_system import World, assert_same_answer, ids_of, offline, stream_of

DATA = synthesize(60, 4, 30, 20, seed=5)
# As it is shipped, but for the language model and the epochs, so that it takes seconds.
RECALL = ("--config", "recall", "--set", "model.encoder=hash:24", "--epochs", "1")


def test_a_bundle_of_the_recall_head_alone_goes_all_the_way(world: World, tmp_path: Path) -> None:
    write_dataset(DATA, tmp_path / "data", literal=True)
    place = ("--models", str(world.models))
    trained = world.command("train", str(tmp_path / "data"), *RECALL, *place, "--graph", "g", "--state", "none")
    bundle = ModelStore(str(world.models)).bundle("g", trained["version"])
    assert not bundle.model.config.model.enabled

    worker = world.start_worker()
    events = list(stream_of(DATA, "g"))
    world.publish(events)
    answers = world.await_answers(ids_of(events))
    wanted = offline(bundle, events)
    for name, (found, *_) in answers.items():
        own = {key: found[key] for key in ("id", "source")}
        assert_same_answer(found, wanted[name] | own)

    seen = orjson.loads(worker.page("/api/graphs/g/entity?name=" + DATA.entities[0].replace(" ", "%20"))[1])
    assert seen["known"] and seen["interactions"] > 0 and seen["cluster"] is None
    assert orjson.loads(worker.page("/scores")[1])["g"]["scores"]["all"]["mrr"] > 0

    retrained = world.command("retrain", "g", *RECALL, *place, "--archive", str(tmp_path / "archive"), "--warm-start")
    assert retrained["facts"] == len(DATA.facts) and retrained["status"] in ("present", "candidate")
    assert 0 < retrained["scores"]["present"] < 1 and 0 < retrained["scores"]["candidate"] < 1
