"""Superseded exports and the remains of stopped exports are deleted after some time, and nothing else is."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pypi_assets.catalog.coordination.leases import LeaseTakenError, deletion_deadlines, lease
from pypi_assets.catalog.database import Catalog
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.parquet.export import export_parquet
from pypi_assets.parquet.export_manifest import EXPORTS, clean_exports, file_path
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets.storage.sweeping import DeletionReason
from pypi_assets_tests.parquet.exports import committed_exports
from pypi_assets_tests.small_catalog import small_catalog

HOUR_S = 3600.0


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    small = small_catalog(tmp_path)
    small.add(1, "demo", "1.0", "demo-1.0.tar.gz")
    small.complete(100)
    yield small.catalog
    small.catalog.close()


@pytest.fixture
def storage(catalog: Catalog, tmp_path: Path) -> Storage:
    """Return a storage folder with four exports."""
    storage = open_storage((tmp_path / "storage").as_uri())
    full_dump(catalog, storage, 1)
    for _ in range(4):
        export_parquet(catalog, storage, force=True)
    return storage


def in_hours(catalog: Catalog, hours: float) -> Catalog:
    """Return the catalog with a clock that is `hours` ahead."""
    return replace(catalog, clock=lambda: time.time() + hours * HOUR_S)


def cleaned(
    catalog: Catalog, storage: Storage, kept: int, hours: float, *, dry_run: bool = False
) -> dict[str, DeletionReason]:
    deadlines = deletion_deadlines(in_hours(catalog, hours), 24 * HOUR_S, dry_run=dry_run)
    removed = clean_exports(storage, deadlines, kept=kept, dry_run=dry_run)
    return {one.path.removeprefix(f"{EXPORTS}/"): one.reason for one in removed}


def test_exports_are_deleted_a_day_after_they_were_superseded(catalog: Catalog, storage: Storage) -> None:
    assert cleaned(catalog, storage, 2, 23) == {}
    expected = {"0-100": DeletionReason.SUPERSEDED, "0-100.2": DeletionReason.SUPERSEDED}
    assert cleaned(catalog, storage, 2, 25, dry_run=True) == expected
    assert len(committed_exports(storage)) == 4
    assert cleaned(catalog, storage, 2, 25) == expected
    assert committed_exports(storage) == ["0-100.3", "0-100.4"]
    assert {stored.path.split("/")[2] for stored in storage.list(EXPORTS)} == {"0-100.3", "0-100.4"}
    assert cleaned(catalog, storage, 2, 25) == cleaned(catalog, storage, 9, 25) == {}
    assert cleaned(catalog, storage, 1, 25) == {"0-100.3": DeletionReason.SUPERSEDED}
    assert export_parquet(catalog, storage).published is False


def test_remains_of_stopped_exports_are_deleted_after_a_day(catalog: Catalog, storage: Storage) -> None:
    storage.put(file_path("0-100.5/bucket=0000/rows.parquet"), b"left")
    storage.put(file_path("not an export/notes.txt"), b"mine")
    assert cleaned(catalog, storage, 4, 23) == {}
    assert cleaned(catalog, storage, 4, 25) == {"0-100.5": DeletionReason.ABANDONED}
    assert storage.exists(file_path("not an export/notes.txt"))


def test_files_of_a_running_export_stay(catalog: Catalog, storage: Storage) -> None:
    with lease(in_hours(catalog, -1), "publish parquet", ttl_s=48 * HOUR_S) as held:
        storage.put(file_path("0-100.5/bucket=0000/rows.parquet"), b"begun")
        assert cleaned(catalog, storage, 4, 25) == {}
        assert cleaned(catalog, storage, 4, 73) == {"0-100.5": DeletionReason.ABANDONED}
        with pytest.raises(LeaseTakenError):  # a writer that resumes then publishes nothing
            held.renew()


def test_stopped_clean_up_leaves_no_partial_export(
    catalog: Catalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: Storage, path: str) -> None:
        deleted.append(path)
        if len(deleted) == 2:
            raise KeyboardInterrupt
        delete(self, path)

    delete, deleted = Storage.delete, list[str]()
    with monkeypatch.context() as patch:
        patch.setattr(Storage, "delete", killed)
        with pytest.raises(KeyboardInterrupt):
            cleaned(catalog, storage, 3, 25)
    assert deleted[0] == file_path("0-100/_MANIFEST.json")
    assert committed_exports(storage) == ["0-100.2", "0-100.3", "0-100.4"]
    assert cleaned(catalog, storage, 3, 25) == {"0-100": DeletionReason.ABANDONED}
