"""What strangers may hand us: for each format a sound example, ways to spoil it, and reading it to its end."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from adatkg_core.datasets import fetch_dataset, load_dataset
from adatkg_core.datasets.csv_import import import_csv
from adatkg_core.datasets.packed import pack, unpack
from adatkg_core.datasets.write import write_dataset
from adatkg_core.engine import Engine
from adatkg_core.events import Fact, Query
from adatkg_core.storage import Bundle, ModelStore, Saved, SavedIncrement, load_bundle, save_bundle
from adatkg_core.storage.model_report import bundle_rows, describe_bundle
from adatkg_core.storage.snapshot import read_snapshot, write_increment, write_snapshot
from tests.fuzz.mutations import (
    archive,
    gzip_bomb,
    relink,
    spoil_bytes,
    spoil_json,
    spoil_lines,
    spoil_packed,
    spoil_safetensors,
)
from tests.support.small_graph import ENCODER, engine_with_past, shared_model, small_graph

CSV = "subject,relation,object,time\n" + "\n".join(f"a{i % 5},does,b{i % 7},2014-01-{i % 28 + 1:02}" for i in range(40))


@dataclass(frozen=True)
class Format:
    """One format: `make` writes a sound example into a folder, `spoil` changes it there, `read` takes it in."""

    name: str
    make: Callable[[Path], None]
    spoil: Callable[[Path, Random], None]
    read: Callable[[Path], object]


def _bundle() -> Bundle:
    metrics = {"valid": {"slices": {"all": {"mrr": 0.25}}}}
    graph = small_graph()
    return Bundle(shared_model("default"), graph.relations, graph.entities[:12], "first", metrics, graph.clock, "town")


def _answer(engine: Engine) -> None:
    time = (engine.watermark or 0) + 1
    engine.predict([Query(next(iter(engine.relations), "none"), time, s="somebody", k=3)])


def make_bundle(folder: Path) -> None:
    save_bundle(_bundle(), str(folder / "bundle"))


def read_bundle(folder: Path) -> object:
    bundle = load_bundle(str(folder / "bundle"))
    _answer(bundle.engine(ENCODER))
    return bundle.version


def standing(offset: int) -> dict[str, Any]:
    return {"graph": "town", "version": "first", "offset": offset, "log": "log-1"}


def make_snapshot(folder: Path) -> None:
    saved = Saved(engine_with_past().snapshot(), **standing(28))
    write_snapshot(str(folder / "snapshot"), saved)


def make_increment(folder: Path) -> None:
    """A folder with a snapshot and one that builds upon it; the second is spoiled, and read with the first."""
    engine = engine_with_past()
    write_snapshot(str(folder / "z-base"), Saved(engine.snapshot(), **standing(28)))
    changes, names = engine.state.watch_changes(), small_graph().entities
    engine.observe([Fact(names[0], small_graph().relations[0], "newcomer", (engine.watermark or 0) + 1)])
    engine.advance((engine.watermark or 0) + 1)
    capture = engine.capture(changes)
    capture.state.finish()
    saved = SavedIncrement(capture.increment(), 28, **standing(29))
    write_increment(str(folder / "snapshot"), saved, str(folder / "z-base"))


def read_state(folder: Path) -> object:
    saved = read_snapshot(str(folder / "snapshot"))
    graph = small_graph()
    engine = Engine(shared_model("default"), graph.relations, ENCODER, snapshot=saved.snapshot)
    _answer(engine)
    engine.advance((engine.watermark or 0) + 1)
    return saved.offset


def spoil_artifact(folder: Path, choose: Random) -> None:
    """Damage as it happens, or a forgery under a manifest whose checksums hold."""
    place = min(path for path in folder.iterdir() if path.is_dir())
    name = choose.choice(("manifest.json", "meta.json", "meta.json", "tensors.safetensors", "tensors.safetensors"))
    path = place / name
    data = path.read_bytes()
    what = choose.randrange(12)
    if what == 0:
        relink(path, choose)
        return
    if what < 3:
        path.write_bytes(spoil_bytes(data, choose))
        return
    path.write_bytes((spoil_safetensors if name.startswith("tensors") else _json)(data, choose))
    if name != "manifest.json":
        _sign(place, name)


def _json(data: bytes, choose: Random) -> bytes:
    return spoil_json(json.loads(data), choose)


def _sign(place: Path, name: str) -> None:
    """Make the manifest true again for a file that was changed."""
    manifest = json.loads((place / "manifest.json").read_bytes())
    data = (place / name).read_bytes()
    role = "meta" if name == "meta.json" else "tensors"
    manifest["files"][role] |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (place / "manifest.json").write_text(json.dumps(manifest))


def make_store(folder: Path) -> None:
    store = ModelStore(str(folder / "models"))
    store.put("town", _bundle(), None)
    scores = {"candidate": 0.3, "present": 0.2, "slice": "all", "better": True, "margin": 0.0}
    store.add_note("town", "first", scores=scores)
    store.make_present("town", "first")


def spoil_store(folder: Path, choose: Random) -> None:
    path = choose.choice(sorted((folder / "models").rglob("*.json")))
    path.write_bytes((_json if choose.randrange(4) else spoil_bytes)(path.read_bytes(), choose))


def read_store(folder: Path) -> object:
    store = ModelStore(str(folder / "models"))
    rows = [row for graph in store.graphs() for row in bundle_rows(store, graph)]
    described = [describe_bundle(store, graph, one) for graph in store.graphs() for one in store.versions(graph)]
    return rows, described


def make_ids(folder: Path) -> None:
    write_dataset(small_graph(), folder / "data")


def make_ticks(folder: Path) -> None:
    import_csv(io.BytesIO(CSV.encode()), folder / "data")


def make_names(folder: Path) -> None:
    (folder / "data").mkdir()
    for part, day in (("train", 1), ("valid", 11), ("test", 21)):
        rows = [f"A {i}\tmeets\tB {i % 3}\t2014-01-{day + i:02}" for i in range(8)]
        (folder / "data" / f"{part}.txt").write_text("\n".join(rows) + "\n")
    names = [f"A {i}" for i in range(8)] + [f"B {i}" for i in range(3)]
    (folder / "data" / "entity2id.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    (folder / "data" / "relation2id.json").write_text('{"meets": 0}')


def make_edges(folder: Path) -> None:
    (folder / "data").mkdir()
    rows = [f"{1388534400 + 86400 * i},{i % 4},{i % 5 + 4},{i % 2}" for i in range(20)]
    (folder / "data" / "tkgl-x_edgelist.csv").write_text("timestamp,head,tail,relation_type\n" + "\n".join(rows))
    nodes = [f"Q{i},{i},node {i}" for i in range(9)]
    (folder / "data" / "tkgl-x_nodemapping.csv").write_text("name,id,words\n" + "\n".join(nodes))


def spoil_folder(folder: Path, choose: Random) -> None:
    path = choose.choice(sorted((folder / "data").iterdir()))
    what = choose.randrange(16)
    if what == 0:
        relink(path, choose)
    elif what == 1:
        path.unlink()
    elif path.suffix == ".json" and what < 12:
        path.write_bytes(_json(path.read_bytes(), choose))
    else:
        path.write_bytes(spoil_lines(path.read_bytes(), choose))


def read_folder(folder: Path) -> object:
    dataset = load_dataset(str(folder / "data"))
    splits = [len(dataset.split(part)) for part in ("train", "valid", "test")]
    return splits, dataset.clock, dataset.times


def make_packed(folder: Path) -> None:
    pack(small_graph(), folder / "data")


def spoil_pack(folder: Path, choose: Random) -> None:
    path = choose.choice(sorted((folder / "data").iterdir()))
    if choose.randrange(16) == 0:
        relink(path, choose)
        return
    spoil = _json if path.suffix == ".json" else spoil_packed
    path.write_bytes(spoil(path.read_bytes(), choose))


def read_pack(folder: Path) -> object:
    dataset = unpack(folder / "data")
    return [len(dataset.split(part)) for part in ("train", "valid", "test")], dataset.clock


def make_csv(folder: Path) -> None:
    (folder / "events.csv").write_text(CSV)


def spoil_csv(folder: Path, choose: Random) -> None:
    path = folder / "events.csv"
    data = path.read_bytes()
    what = choose.randrange(64)
    if what == 0:
        path.write_bytes(gzip_bomb(64 << 20, choose.choice((b"\x00", b"x", b'"', b"\n"))))
    elif what < 4:
        path.write_bytes(spoil_bytes(gzip.compress(data), choose))
    elif what == 4:
        path.unlink()
        path.symlink_to(choose.choice(("/dev/zero", "events.csv", "..")))  # a pipe is what a user may well give
    else:
        path.write_bytes(spoil_lines(data, choose))


def read_csv(folder: Path) -> object:
    shutil.rmtree(folder / "imported", ignore_errors=True)
    imported = import_csv(folder / "events.csv", folder / "imported")
    return imported.as_dict("imported")


def make_archive(folder: Path) -> None:
    with zipfile.ZipFile(folder / "archive", "w") as zipped:
        zipped.writestr("data/train.txt", "A\tmeets\tB\t2014-01-01\nA\tmeets\tC\t2014-01-02\n")


def spoil_archive(folder: Path, choose: Random) -> None:
    make_names(folder)
    files = {path.name: path.read_bytes() for path in sorted((folder / "data").iterdir())}
    shutil.rmtree(folder / "data")
    (folder / "archive").write_bytes(archive(files, choose))


def read_archive(folder: Path) -> object:
    path, out = folder / "archive", folder / "fetched"
    shutil.rmtree(out, ignore_errors=True)
    return len(fetch_dataset(str(path), out, hashlib.sha256(path.read_bytes()).hexdigest()).facts)


FORMATS = {
    one.name: one
    for one in (
        Format("bundle", make_bundle, spoil_artifact, read_bundle),
        Format("snapshot", make_snapshot, spoil_artifact, read_state),
        Format("increment", make_increment, spoil_artifact, read_state),
        Format("store", make_store, spoil_store, read_store),
        Format("ids", make_ids, spoil_folder, read_folder),
        Format("ticks", make_ticks, spoil_folder, read_folder),
        Format("names", make_names, spoil_folder, read_folder),
        Format("edges", make_edges, spoil_folder, read_folder),
        Format("packed", make_packed, spoil_pack, read_pack),
        Format("csv", make_csv, spoil_csv, read_csv),
        Format("archive", make_archive, spoil_archive, read_archive),
    )
}
