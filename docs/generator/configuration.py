"""The page of settings, from the dataclasses that hold them."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from adatkg_core.settings import Config, about, shipped_configs
from docs.generator.markdown import code, described, document, table
from docs.generator.variables import INTERNAL, VARIABLES
from streams.kafka.connection import KafkaSettings
from streams.settings import StreamSettings
from trainer.retrain import RetrainSettings

ROOT = Path(__file__).parents[2]
PACKAGES = ("adatkg_core", "adatkg", "replay", "streams", "trainer")
_VARIABLE = re.compile(r"ADATKG_[A-Z]+(?:_[A-Z]+)*(?![A-Z_])")
SECTIONS: dict[str, type] = {
    **{field.name: type(getattr(Config(), field.name)) for field in dataclasses.fields(Config)},
    "retrain": RetrainSettings,
    "kafka": KafkaSettings,
    "stream": StreamSettings,
}
TITLES = {
    "model": "the paper's model",
    "recall": "the recall head",
    "train": "training",
    "retrain": "retraining from the log",
    "kafka": "the brokers",
    "stream": "the worker",
}
INTRODUCTION = """
Everything that can be set comes from TOML files, then from `ADATKG_*` variables, then from options of the command; what
comes later wins, key by key. `ADATKG_CONFIG` names a file that holds for every command, `--config` one that comes on
top of it. A section or a key that is not known is an error that names it and the file. A file need not say everything:

```toml
[kafka]
bootstrap = "broker-1:9093,broker-2:9093"
security = "SASL_SSL"
mechanism = "SCRAM-SHA-512"
username = "adatkg"
password_file = "/run/secrets/kafka"
cafile = "/etc/ssl/our-authority.pem"

[stream]
models = "/srv/adatkg/models"
snapshots = "/srv/adatkg/snapshots"
snapshot_seconds = 10
web_names = ["forecasts.example.org"]

[train]
epochs = 4
```

`[kafka]` is read by every command that reaches the brokers, `[stream]` by the worker and by what must agree with it.
`[model]`, `[recall]` and `[train]` shape a bundle and come together from one place: from `--config` of `adatkg train`
and `retrain`, which also takes the name of a configuration that comes with the package ({shipped}), else from the file
of `ADATKG_CONFIG`, else from `live`. A file that has none of the three is passed over, so `adatkg retrain GRAPH
--config tiny` with `ADATKG_CONFIG=brokers.toml` trains the tiny model from the log of those brokers. `full` is `live`
with the paper's model, `recall` a smaller head without the wider evidence, for small machines. `[retrain]` says how
rounds of `adatkg retrain` are decided and watched.

Every setting has a variable: `ADATKG_`, the section, the name, in capitals, for instance `ADATKG_TRAIN_EPOCHS=3` or
`ADATKG_STREAM_WEB_PORT=8080`; only `ADATKG_BOOTSTRAP` and `ADATKG_TOPIC_PREFIX` are without their section. For training
there is also `--set train.epochs=3`. Values are written as in TOML; what is no TOML value is a text. Paths are relative
to the folder in which a command runs.

A password is not read from such a file, because they are shared, and there is no option for it, because options show in
lists of processes: give `password_file` or the variable `ADATKG_KAFKA_PASSWORD`.
"""


def page() -> str:
    """Every section, and the variables beside them."""
    parts = []
    for section in SECTIONS:
        parts += [f"## [{section}]: {TITLES[section]} {{: #{section} }}", _table(section)]
    shipped = ", ".join(map(code, shipped_configs()))
    return document("Configuration", INTRODUCTION.replace("{shipped}", shipped), *parts, *_variables())


def _table(section: str) -> str:
    rows = []
    hints = get_type_hints(SECTIONS[section])
    for field in dataclasses.fields(SECTIONS[section]):
        said, hint = about(field), hints[field.name]
        values = [code(value) for value in get_args(hint)]
        if get_origin(hint) is Literal and not all(value in said for value in values):
            said += f" One of {', '.join(values)}."
        rows.append((code(field.name), code(_toml(field.default)), said))
    return table(("setting", "default", "is"), rows)


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)


def _variables() -> tuple[str, str, str]:
    described("variables", variables(), VARIABLES)
    rows = [(code(name), about) for name, about in sorted(VARIABLES.items())]
    return "## Variables", "Beside those of the settings above:", table(("variable", "is"), rows)


def variables() -> set[str]:
    """The variables that the code mentions, those of settings left out."""
    of_settings = tuple(f"ADATKG_{section.upper()}_" for section in SECTIONS)
    apart = {"ADATKG_KAFKA_PASSWORD"}  # of no section
    found: set[str] = set()
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            found |= set(_VARIABLE.findall(file.read_text("utf-8")))
    return {name for name in found if name in apart or not f"{name}_".startswith(of_settings)} - INTERNAL
