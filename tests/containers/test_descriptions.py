"""What can be said about compose.yaml and the board without an engine."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from streams.worker import Metrics
from tests.support.docker_engine import FOLDER

SERVICES: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))["services"]


def board() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((FOLDER / "grafana" / "adatkg.json").read_text("utf-8"))
    return read


@pytest.mark.parametrize("service", SERVICES)
def test_ports_are_published_on_this_machine_only(service: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[service].get("ports", []))


@pytest.mark.parametrize("service", SERVICES)
def test_images_have_a_version_unless_they_are_ours(service: str) -> None:
    name = re.fullmatch(r"\$\{ADATKG_[A-Z_]*IMAGE:-([^}]+)\}", SERVICES[service]["image"])
    assert name
    assert name[1].startswith("adatkg-") or re.search(r":v?\d+\.\d+\.\d+$", name[1])


def test_the_board_shows_every_metric_and_no_other() -> None:
    shown = {
        re.sub(r"_(total|bucket)$", "", metric)
        for panel in board()["panels"]
        for target in panel["targets"]
        for metric in re.findall(r"adatkg_\w+", target["expr"])
    }
    assert shown == {metric.name for metric in Metrics().registry.collect()}


def test_panels_of_the_board_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board()["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_the_board_asks_the_data_source_that_is_provided() -> None:
    sources = yaml.safe_load((FOLDER / "grafana/provisioning/datasources/prometheus.yml").read_text("utf-8"))
    assert {panel["datasource"]["uid"] for panel in board()["panels"]} == {sources["datasources"][0]["uid"]}
