"""Images and containers that tests of this folder share; each is built once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.docker_engine import build_kafka_image, build_product_image, kafka_container, require_engine


@pytest.fixture(scope="session")
def engine() -> None:
    """A Docker engine, or no test."""
    require_engine()


@pytest.fixture(scope="session")
def kafka_image(engine: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name of the Kafka image."""
    return build_kafka_image(tmp_path_factory.mktemp("kafka-image"))


@pytest.fixture(scope="session")
def product_image(engine: None) -> str:
    """Name of the image with every role."""
    return build_product_image()


@pytest.fixture(scope="session")
def kafka(kafka_image: str) -> Iterator[str]:
    """Address of a broker in a container."""
    with kafka_container(kafka_image) as address:
        yield address
