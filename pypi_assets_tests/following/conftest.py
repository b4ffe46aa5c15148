"""An index with one project, and an empty catalog."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.served_index import ServedIndex, served_index


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedIndex]:
    with served_index(tmp_path / "served") as served:
        served.wheel("first", "1.0")
        yield served


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    yield opened
    opened.close()
