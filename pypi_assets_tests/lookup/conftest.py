"""Fixtures for published versions of a catalog that grows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets_tests.lookup.publisher import Publisher


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[Publisher]:
    publisher = Publisher(tmp_path)
    yield publisher
    publisher.small.catalog.close()
