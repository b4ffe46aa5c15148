"""Several processes write the same buckets as one, their errors are raised here, and none outlives the export."""

from dataclasses import replace
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps import dump_manifest
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.restore import restore_index
from pypi_assets.dumps.worker_process import WorkerProcess
from pypi_assets.parquet import buckets
from pypi_assets.parquet.bucket_process import WRITERS, BucketWritten
from pypi_assets.parquet.buckets import bucket_count, process_count
from pypi_assets.parquet.export import export_parquet
from pypi_assets.parquet.export_manifest import ParquetError, file_path
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.dump_rows import dump_row, tombstone_of, write_dump
from pypi_assets_tests.naming import naming
from pypi_assets_tests.parquet.exports import committed_exports

MIB = 1024**2


@pytest.fixture
def storage(catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """Return a storage with a full dump of 200 files and a range, of which each shard becomes a bucket."""
    storage = open_storage((tmp_path / "storage").as_uri())
    rows = [dump_row(f"p{number:03}", "1", f"p{number:03}-1.zip", modules=["m"] * number) for number in range(200)]
    write_dump(storage, SerialRange(0, 10), rows, shards=16)
    write_dump(storage, SerialRange(10, 20), [tombstone_of(rows[1]), dump_row("new", "1", "new-1.zip")][::-1])
    restore_index(catalog, storage)
    monkeypatch.setattr(buckets, "BUCKET_ROWS", 1)
    return storage


@pytest.fixture
def two_processes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let each export start two processes, and return the exit statuses of those that have ended."""
    ended: list[int] = []

    class Watched(WorkerProcess[BucketWritten]):
        def __exit__(self, *given: object) -> None:
            super().__exit__(*given)
            assert self.status is not None
            ended.append(self.status)

    monkeypatch.setattr(buckets, "WorkerProcess", Watched)
    monkeypatch.setattr(buckets, "process_count", lambda *_: 2)
    return ended


@pytest.mark.nightly
def test_processes_write_the_files_of_one_process(
    catalog: Catalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = export_parquet(catalog, storage).export
    with monkeypatch.context() as patch:
        patch.setattr(buckets, "LEAST_ROWS", 0)
        patch.setattr(buckets.os, "sched_getaffinity", lambda _: {0, 1})
        reported: list[int] = []
        together = export_parquet(catalog, storage, force=True, progress=reported.append).export
    assert (alone.directory, together.directory, together.rows) == ("0-20", "0-20.2", 200)
    assert [(file.shard, file.rows, file.size, file.sha256) for file in together.files] == [
        (file.shard, file.rows, file.size, file.sha256) for file in alone.files
    ]
    assert reported[-1] == 200
    for file in together.files:
        assert storage.head(file_path(file.name)).size == file.size


@pytest.mark.nightly
def test_corrupt_dump_ends_all_processes(catalog: Catalog, storage: Storage, two_processes: list[int]) -> None:
    storage.put(dump_manifest.file_path("0-10", "python_distribution_data0003.json.gz"), b"corrupt")
    with pytest.raises(DumpDamagedError, match=naming("python_distribution_data0003.json.gz")):
        export_parquet(catalog, storage)
    assert len(two_processes) == 2
    assert committed_exports(storage) == []


def test_dead_process_fails_the_export(
    catalog: Catalog, storage: Storage, two_processes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "WRITERS", replace(WRITERS, program="keyword"))  # which does nothing and ends
    with pytest.raises(ParquetError):
        export_parquet(catalog, storage)
    assert len(two_processes) == 2
    assert committed_exports(storage) == []


def test_number_of_processes_fits_cores_memory_and_rows(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets.os, "sched_getaffinity", lambda _: set(range(8)))
    cases = {
        (10_000_000, 1024 * MIB): 3,
        (10_000_000, 8192 * MIB): 8,
        (10_000_000, 256 * MIB): 1,
        (49_999, 8192 * MIB): 1,
    }
    assert {case: process_count(storage, *case) for case in cases} == cases
    assert process_count(open_storage("memory:///"), 10_000_000, 8192 * MIB) == 1


def test_number_of_buckets_fits_rows_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = {(0, 0, 256): 1, (65_536, 1, 256): 1, (65_537, 1, 256): 2, (8_000_000, 0, 256): 128, (10**9, 0, 256): 256}
    cases |= {(1, 5 * MIB, 16): 4, (10**6, 0, 1): 1}
    assert {case: bucket_count(*case) for case in cases} == cases
