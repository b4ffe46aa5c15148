"""A catalog that is filled in bulk gives the dump whose rows it was filled with."""

from pathlib import Path

import pytest
from sqlalchemy import text

from benchmarks.filled_catalog import fill_catalog
from benchmarks.generated import SERIAL, generate_projects, project_rows
from pypi_assets.catalog.database import Catalog
from pypi_assets.dumps.dump_audit import audit_dump
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.full_dump import full_dump, newest_dump
from pypi_assets.storage.store import open_storage

ROWS = 1_000


@pytest.mark.nightly
def test_a_full_dump_holds_the_rows_that_the_catalog_was_filled_with(catalog: Catalog, tmp_path: Path) -> None:
    rows = [as_dumped(row) for project in generate_projects(ROWS) for row in project_rows(project)]
    assert fill_catalog(catalog, rows) == ROWS
    storage = open_storage((tmp_path / "storage").as_uri())
    manifest = full_dump(catalog, storage, 16)
    assert 0 < manifest.serials.end <= SERIAL
    assert sorted(map(repr, iter_dump(storage, manifest.directory))) == sorted(map(repr, rows))
    dump = newest_dump(catalog, manifest.kind)
    assert dump is not None
    assert audit_dump(catalog, storage, dump).ok
    if catalog.is_sqlite:
        with catalog.read() as connection:
            assert connection.execute(text("PRAGMA foreign_key_check")).all() == []
