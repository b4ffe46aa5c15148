"""A catalog that has lost its dumps gets them back from their manifests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_facts import DumpFile, DumpKind
from pypi_assets.catalog.publications.dump_registry import (
    DumpState,
    committed_dumps,
    open_full_dump,
    recorded_files,
)
from pypi_assets.catalog.publications.restored_dumps import restore_dump
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets_tests.served_index import ServedIndex, served_index


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedIndex]:
    with served_index(tmp_path / "served") as served:
        yield served


def test_the_index_of_dumps_is_restored_from_manifests(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    serials = SerialRange(0, index.serial)
    file = DumpFile(0, "python_distribution_data0000.json.gz", 1, 10, "a" * 64)
    for _ in range(2):
        restore_dump(
            catalog,
            kind=DumpKind.FULL,
            serials=serials,
            directory=serials.key,
            sequence=41,
            shards=1,
            inputs=[],
            files=[file],
            columns=["project", "filename"],
        )
    [dump] = committed_dumps(catalog)
    assert (dump.sequence, dump.state, recorded_files(catalog, dump)) == (41, DumpState.COMMITTED, [file])
    assert dump.columns == ("project", "filename")
    later = open_full_dump(catalog, 1)
    assert (later.directory, later.sequence) == (f"{serials.key}.2", 42)
