"""Exports hold the live rows of the cover's dumps, are committed by their manifest, and can be repeated at any time."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.coordination.leases import LeaseTakenError, lease
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.distributions.record import DistributionKind, DistributionRecord
from pypi_assets.dumps import dump_manifest
from pypi_assets.dumps.dump_format import DumpDamagedError, Row
from pypi_assets.dumps.dump_manifest import shard_of
from pypi_assets.dumps.dump_writer import write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.dumps.restore import restore_index
from pypi_assets.parquet import buckets, parquet_writer
from pypi_assets.parquet.export import export_parquet
from pypi_assets.parquet.export_manifest import (
    PARQUET_COLUMNS,
    Export,
    ParquetError,
    export_path,
    file_path,
    manifest_path,
    newest_export,
    read_export,
)
from pypi_assets.parquet.latest import LATEST, encode_latest
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.compaction import compact
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.dump_rows import dump_row, histories, in_order, write_dump
from pypi_assets_tests.examples import examples
from pypi_assets_tests.fewer_columns import FEWER_COLUMNS, cut_dumps
from pypi_assets_tests.kills import forget_leases, run_and_kill
from pypi_assets_tests.naming import naming
from pypi_assets_tests.parquet.exports import committed_exports, exported, rows_of
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

_FILES = [
    (project, version, f"{project}-{number}.zip") for project in "ab" for version in ("1", "1.0") for number in (1, 2)
]


@st.composite
def drawn_rows(draw: st.DrawFn, file: tuple[str, str, str], serial: int) -> Row:
    return dump_row(
        *file,
        modules=draw(st.none() | st.lists(st.sampled_from(["m", "m.n", "é\0"]), max_size=2)),
        uploaded_at=draw(st.sampled_from([None, "2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05+02:00"])),
        size=draw(st.none() | st.integers(0, 2**40)),
        yanked_reason=draw(st.none() | st.text(st.characters(exclude_categories=["Cs"]))),
        live_since=serial,
    )


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
@given(
    history=histories(_FILES, drawn_rows, most=4),
    shards=st.sampled_from([1, 16]),
    group=st.integers(1, 3),
    together=st.sampled_from([0, 1, 3, 1_000]),
)
def test_export_rows_equal_dump_rows_after_tombstones(
    tmp_path_factory: pytest.TempPathFactory,
    history: tuple[list[list[Row]], list[Row]],
    shards: int,
    group: int,
    together: int,
) -> None:
    dumps, live = history
    folder = tmp_path_factory.mktemp("history")
    storage = open_storage((folder / "storage").as_uri())
    for number, rows in enumerate(dumps):
        write_dump(storage, SerialRange(number * 10, number * 10 + 10), rows, shards=1 if number else shards)
    small = small_catalog(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_writer, "ROW_GROUP_ROWS", group)
        patch.setattr(parquet_writer, "_BATCH_ROWS", group)
        patch.setattr(buckets, "BUCKET_ROWS", together)
        restore_index(small.catalog, storage)
        export = export_parquet(small.catalog, storage).export
    found = rows_of(storage, export)
    assert in_order(found) == [exported(row) for row in in_order(live)]
    small.catalog.close()


def filenames(storage: Storage, export: Export) -> list[object]:
    return sorted(str(row["filename"]) for row in rows_of(storage, export))


def test_export_holds_live_files_at_the_end_of_the_cover(small: SmallCatalog, storage: Storage) -> None:
    add_range(small, storage, 100)
    small.remove(160, "other-2.tar.gz")
    small.yank(161, "demo_pkg-1.0.tar.gz")
    write_range(small.catalog, storage, small.complete(200))
    result = export_parquet(small.catalog, storage)
    export = result.export
    assert (result.published, export.serial, export.directory) == (True, 200, "0-200")
    assert export.cover == ("0-100", "100-150", "150-200")
    assert export == read_export(storage, "0-200") == newest_export(storage)
    full_dump(small.catalog, storage, 1)  # at the same serial, with the same content as the export
    again = export_parquet(small.catalog, storage)
    assert (again.published, again.export.directory, again.export.cover) == (True, "0-200.2", ("0-200",))
    assert in_order(rows_of(storage, export)) == rows_of(storage, again.export)
    assert filenames(storage, export) == ["demo_pkg-1.0-py3-none-any.whl", "demo_pkg-1.0.tar.gz", "new-100.tar.gz"]
    assert export_parquet(small.catalog, storage).published is False
    demo = next(row for row in rows_of(storage, export) if row["filename"] == "demo_pkg-1.0.tar.gz")
    assert (demo["project"], demo["yanked"], demo["modules"]) == ("Demo.Pkg", True, ["demo", "demo.a"])
    assert demo["uploaded_at"] == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_export_has_null_for_columns_missing_from_a_dump(small: SmallCatalog, storage: Storage) -> None:
    add_range(small, storage, 100)
    facts = {"summary": "One line", "project_urls": ("Homepage, https://example.org",)}
    small.store([DistributionRecord("new-100.tar.gz", DistributionKind.SDIST, "new", "100", **facts)])
    write_range(small.catalog, storage, SerialRange(100, 150), again=True)
    cut_dumps(small.catalog, storage, "0-100")
    rows = {row["filename"]: row for row in rows_of(storage, export_parquet(small.catalog, storage).export)}
    assert len(rows) == 4
    added = [name for name in PARQUET_COLUMNS if name not in FEWER_COLUMNS]
    new = rows.pop("new-100.tar.gz")
    assert (new["summary"], new["project_urls"], new["notes"]) == ("One line", ["Homepage, https://example.org"], [])
    assert [row[name] for row in rows.values() for name in added] == [None] * 3 * len(added)


def test_pandas_reads_the_folder(small: SmallCatalog, storage: Storage) -> None:
    export = export_parquet(small.catalog, storage).export
    folder = storage.local_path(export_path(export.directory))
    assert folder is not None
    frame = pd.read_parquet(folder)
    assert list(frame.columns) == [*PARQUET_COLUMNS, "bucket"]
    assert len(frame) == 3
    one = pd.read_parquet(folder, filters=[("normalized", "==", "other")], columns=["filename", "modules"])
    assert one.to_dict("list") == {"filename": ["other-2.tar.gz"], "modules": [None]}


@pytest.mark.parametrize(("room", "files"), [(65_536, 1), (2, 2), (1, 4), (0, 16)])
def test_export_has_as_many_buckets_as_its_rows_fill(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch, room: int, files: int
) -> None:
    before = rows_of(storage, export_parquet(small.catalog, storage).export)
    monkeypatch.setattr(buckets, "BUCKET_ROWS", room)
    export = export_parquet(small.catalog, storage, force=True).export
    assert [file.shard for file in export.files] == list(range(files)) == list(range(export.buckets))
    assert rows_of(storage, export) == before
    assert read_export(storage, export.directory) == export


def test_large_shards_have_separate_files(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "BUCKET_BYTES", 0)
    assert len(export_parquet(small.catalog, storage).export.files) == 16


def test_export_needs_a_full_dump(small: SmallCatalog, tmp_path: Path) -> None:
    with pytest.raises(ParquetError, match=naming("pypi-assets dump full")):
        export_parquet(small.catalog, open_storage((tmp_path / "empty").as_uri()))


def test_error_without_pyarrow_names_the_package(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ParquetError, match=naming("pypi-assets[parquet]")):
        export_parquet(small.catalog, storage)
    monkeypatch.undo()
    assert export_parquet(small.catalog, storage).export.directory == "0-100"  # no name was allocated


def test_corrupt_input_publishes_nothing(small: SmallCatalog, storage: Storage) -> None:
    directory = add_range(small, storage, 100)
    path = dump_manifest.file_path(directory, "python_distribution_data0000.json.gz")
    whole = storage.get(path)
    storage.put(path, whole[:-4])
    with pytest.raises(DumpDamagedError, match="100-150"):
        export_parquet(small.catalog, storage)
    storage.put(path, whole)
    shard = dump_manifest.file_path("0-100", f"python_distribution_data{shard_of('demo-pkg', 16):04}.json.gz")
    storage.put(shard, storage.get(dump_manifest.file_path("0-100", "python_distribution_data0000.json.gz")))
    with pytest.raises(DumpDamagedError, match=naming("0-100")):
        export_parquet(small.catalog, storage)
    assert committed_exports(storage) == []


def test_corrupt_export_is_made_again_in_another_folder(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "BUCKET_ROWS", 0)
    export = export_parquet(small.catalog, storage).export
    storage.delete(file_path(export.files[3].name))
    assert newest_export(storage) is None
    assert export_parquet(small.catalog, storage).export.directory == "0-100.2"
    storage.put(manifest_path("0-100.2"), b'{"format": 99}')
    with pytest.raises(ParquetError, match=naming("_MANIFEST.json")):
        read_export(storage, "0-100.2")
    with pytest.raises(ParquetError, match=naming("0-7")):
        read_export(storage, "0-7")
    storage.put(manifest_path("0-100.2"), storage.get(manifest_path("0-100")))
    with pytest.raises(ParquetError, match=naming("_MANIFEST.json")):
        read_export(storage, "0-100.2")
    assert export_parquet(small.catalog, storage).export.directory == "0-100.3"


def test_restored_catalog_reuses_no_name(small: SmallCatalog, storage: Storage, tmp_path: Path) -> None:
    export_parquet(small.catalog, storage)
    (tmp_path / "new").mkdir()
    fresh = small_catalog(tmp_path / "new")
    restore_index(fresh.catalog, storage)
    assert export_parquet(fresh.catalog, storage).published is False
    assert export_parquet(fresh.catalog, storage, force=True).export.directory == "0-100.2"
    fresh.catalog.close()


def test_compaction_is_nothing_new_and_has_the_same_rows(small: SmallCatalog, storage: Storage) -> None:
    ranges = [add_range(small, storage, start) for start in (100, 150)]
    before = rows_of(storage, export_parquet(small.catalog, storage).export)
    compact(small.catalog, storage, *ranges)
    assert export_parquet(small.catalog, storage).published is False
    after = export_parquet(small.catalog, storage, force=True).export
    assert after.cover == ("0-100", "100-200")
    assert rows_of(storage, after) == before


def test_one_export_at_a_time_and_expired_holder_publishes_nothing(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lease(small.catalog, "publish parquet"), pytest.raises(LeaseTakenError):
        export_parquet(small.catalog, storage)

    def take_over(_rows: int) -> None:
        with lease(small.catalog, "publish parquet"):
            pass

    monkeypatch.setattr("pypi_assets.parquet.export.LEASE_TTL_S", -1.0)
    with pytest.raises(LeaseTakenError):
        export_parquet(small.catalog, storage, progress=take_over)
    assert committed_exports(storage) == []


def test_export_works_on_s3(small: SmallCatalog) -> None:
    with pytest.MonkeyPatch.context() as environment, s3_server(environment):
        storage = open_storage(f"s3://{BUCKET}/prefix")
        full_dump(small.catalog, storage, 16)
        add_range(small, storage, 100)
        export = export_parquet(small.catalog, storage).export
        assert newest_export(storage) == export
        assert len(rows_of(storage, export)) == 4


def export_shards(catalog: Catalog, storage: Storage) -> None:
    buckets.BUCKET_ROWS = 0
    export_parquet(catalog, storage)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("step", "reached", "committed"),
    [
        (1, "before bucket=0000/rows.parquet", False),
        (20, "after bucket=0009/rows.parquet", False),
        (33, "before 0-100/_MANIFEST.json", False),
        (34, "after 0-100/_MANIFEST.json", True),
        (35, "before parquet/latest.json", True),
    ],
)
def test_kill_at_any_step_leaves_a_complete_export_or_none(
    small: SmallCatalog, storage: Storage, step: int, reached: str, committed: bool
) -> None:
    moment, _, path = run_and_kill(export_shards, small.catalog, storage, step).partition(" ")
    assert f"{moment} {'/'.join(path.split('/')[-2:])}" == reached
    assert committed_exports(storage) == (["0-100"] if committed else [])
    forget_leases(small.catalog)
    result = export_parquet(small.catalog, storage)
    assert (result.published, result.export.directory) == (not committed, "0-100" if committed else "0-100.2")
    assert len(rows_of(storage, result.export)) == 3
    assert storage.get(LATEST) == encode_latest(result.export)
