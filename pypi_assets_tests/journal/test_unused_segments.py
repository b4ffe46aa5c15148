"""Only files below `journal/` that belong to no stream are deleted."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.journal.publishing import write_missing
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import manifest_path
from pypi_assets.journal.unused_segments import clean_journal
from pypi_assets.storage.store import Storage
from pypi_assets_tests.journal.written import records_of
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

LATER = time.time() + 24 * 3600


@pytest.fixture
def small(tmp_path: Path, storage: Storage) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path)
    for serial in (10, 20):
        small.add(serial, "demo", f"{serial}.0", f"demo-{serial}.0.tar.gz")
        small.complete(serial)
        assert len(list(write_missing(small.catalog, storage))) == 1
    yield small
    small.catalog.close()


def test_superseded_open_segments_and_leftovers_are_deleted(small: SmallCatalog, storage: Storage) -> None:
    leftover = "journal/observed/0001/0-10.0123456789abcdef.jsonl.zst"
    storage.put(leftover, b"left by a writer that was stopped")
    before = records_of(Journal(storage))
    found = [one.path for one in clean_journal(small.catalog, storage, LATER, dry_run=True)]
    assert [path.partition(".")[0] for path in found] == ["journal/index/0001/open-0-10", "journal/observed/0001/0-10"]
    assert clean_journal(small.catalog, storage, time.time() - 3600) == []
    assert [one.path for one in clean_journal(small.catalog, storage, LATER)] == found
    assert clean_journal(small.catalog, storage, LATER) == []
    assert records_of(Journal(storage)) == before


def test_nothing_is_deleted_if_the_catalog_lags_behind_the_storage(
    small: SmallCatalog, storage: Storage, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = small_catalog(tmp_path / "other").catalog
    found = [one.path for one in clean_journal(other, storage, LATER)]
    other.close()
    assert all(path.startswith("journal/index/0001/open-0-10.") for path in found)  # no chain contains it
    assert storage.exists(manifest_path(JournalStream.OBSERVED.value, 1, 2))
