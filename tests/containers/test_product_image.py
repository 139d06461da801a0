from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.docker_engine import run

pytestmark = pytest.mark.timeout(900)  # the first test builds the image


def adatkg(image: str, *arguments: str) -> Any:
    return json.loads(run("docker", "run", "--rm", image, *arguments, "--json"))


def inside(image: str, *command: str) -> str:
    return run("docker", "run", "--rm", "--entrypoint", command[0], image, *command[1:]).strip()


def test_the_image_has_all_that_is_required(product_image: str) -> None:
    report = adatkg(product_image, "doctor")
    assert report["ok"], [check for check in report["checks"] if not check["ok"]]


def test_the_image_ships_a_data_set(product_image: str) -> None:
    assert adatkg(product_image, "datasets", "info", "icews14")["facts"] == 90_730


def test_the_image_has_the_benchmarks_and_each_can_be_loaded(product_image: str) -> None:
    listed = adatkg(product_image, "bench", "--list")["benchmarks"]
    assert len(listed) >= 5
    load = "import importlib, pkgutil, adatkg_benchmarks as all; "
    load += "[importlib.import_module(f'adatkg_benchmarks.{one.name}') for one in pkgutil.iter_modules(all.__path__)]"
    assert inside(product_image, "python", "-c", load) == ""


def test_the_image_does_not_run_as_root(product_image: str) -> None:
    assert int(inside(product_image, "id", "-u")) != 0


def test_its_user_may_write_into_every_volume(product_image: str) -> None:
    inside(product_image, "touch", "/models/x", "/snapshots/x", "/cache/x", "/data/x")


def test_code_and_data_only_of_the_package_are_in_the_image(product_image: str) -> None:
    assert inside(product_image, "find", "/src", "/home/adatkg", "/tmp", "-name", "*.py") == ""
