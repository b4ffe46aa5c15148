"""Fixture for the same published index behind a service, in a home, in a storage folder and on S3."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import pypi_assets
from pypi_assets.client import Client
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.service.conftest import published as published
from pypi_assets_tests.service.published import Published
from pypi_assets_tests.service.test_server import served


@pytest.fixture(scope="package")
def clients(published: Published, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Client]]:
    """Yield a client of each kind of location, by kind. `http` is a process of `pypi-assets serve`."""
    with pytest.MonkeyPatch.context() as environment, ExitStack() as stack:
        clear_settings(environment)
        stack.enter_context(s3_server(environment))
        bucket = f"s3://{BUCKET}/client"
        copied = open_storage(bucket)
        for stored in published.storage.list():
            copied.put(stored.path, published.storage.get(stored.path))
        url, _ = stack.enter_context(served(published, 1))
        cache: Path = tmp_path_factory.mktemp("cache")
        yield {
            "http": stack.enter_context(pypi_assets.connect(url)),
            "home": stack.enter_context(pypi_assets.connect(published.home)),
            "storage": stack.enter_context(pypi_assets.connect(published.home / "storage")),
            "s3": stack.enter_context(pypi_assets.connect(bucket, cache_dir=cache)),
        }
