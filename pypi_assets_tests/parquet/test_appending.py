"""Exports that append changes have the rows of exports from scratch, and keep what earlier exports need."""

import shutil
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.coordination.leases import deletion_deadlines
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.restore import restore_index
from pypi_assets.parquet import appending, buckets
from pypi_assets.parquet.export import export_parquet
from pypi_assets.parquet.export_manifest import (
    EXPORTS,
    Export,
    ParquetError,
    clean_exports,
    file_path,
    manifest_path,
    newest_export,
    read_export,
)
from pypi_assets.parquet.latest import LATEST, encode_latest
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.compaction import compact
from pypi_assets_tests.demo_catalog import add_range, dumped_storage
from pypi_assets_tests.dump_rows import dump_row, histories, in_order, tombstone_of, write_dump
from pypi_assets_tests.examples import examples
from pypi_assets_tests.kills import forget_leases, run_and_kill
from pypi_assets_tests.naming import naming
from pypi_assets_tests.parquet.exports import committed_exports, exported, rows_of
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

FILES = [
    (project, version, f"{project}-{number}.zip") for project in "abcd" for version in ("1", "2") for number in (1, 2)
]
HOUR_S = 3600.0


def drawn_rows(file: tuple[str, str, str], serial: int) -> st.SearchStrategy[Row]:
    return st.builds(
        lambda modules: dump_row(*file, modules=modules, live_since=serial + 1),
        st.none() | st.lists(st.sampled_from(["m", "n"]), max_size=2),
    )


@pytest.fixture
def always_append(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small exports append, whatever the share of changed rows is."""
    monkeypatch.setattr(appending, "CHANGES_SHARE", 0.001)


def live_after(dumps: list[list[Row]]) -> list[Row]:
    live: dict[object, Row] = {}
    for row in (row for dump in dumps for row in dump):
        if row["tombstone"]:
            live.pop(row["filename"], None)
        else:
            live[row["filename"]] = row
    return in_order(list(live.values()))


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
@given(
    history=histories(FILES, drawn_rows, most=6),
    is_exported=st.lists(st.booleans(), min_size=5, max_size=5),
    shards=st.sampled_from([1, 16]),
    room=st.sampled_from([1, 3, 1_000]),
    growth=st.sampled_from([0, 1, 4]),
    share=st.sampled_from([0.001, 1, 8]),
)
def test_appended_exports_equal_exports_from_scratch(
    tmp_path_factory: pytest.TempPathFactory,
    history: tuple[list[list[Row]], list[Row]],
    is_exported: list[bool],
    shards: int,
    room: int,
    growth: int,
    share: float,
) -> None:
    folder = tmp_path_factory.mktemp("history")
    storage = open_storage((folder / "storage").as_uri())
    small = small_catalog(folder)
    made: list[tuple[Export, list[Row]]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "BUCKET_ROWS", room)
        patch.setattr(appending, "GROWTH", growth)
        patch.setattr(appending, "CHANGES_SHARE", share)
        for number, rows in enumerate(history[0]):
            write_dump(storage, SerialRange(number * 10, number * 10 + 10), rows, shards=1 if number else shards)
            restore_index(small.catalog, storage)
            if is_exported[number] or number in {0, len(history[0]) - 1}:
                export = export_parquet(small.catalog, storage).export
                made.append((export, live_after(history[0][: number + 1])))
        scratch = export_parquet(small.catalog, storage, force=True).export
    for export, live in made:  # later exports change nothing about earlier ones
        assert rows_of(storage, export) == [exported(row) for row in live]
        assert read_export(storage, export.directory) == export
    assert len(scratch.layers) == 1
    assert rows_of(storage, scratch) == rows_of(storage, made[-1][0])
    small.catalog.close()
    shutil.rmtree(folder)


@pytest.fixture
def many(catalog: Catalog, tmp_path: Path) -> Storage:
    """Return a storage with a full dump of 1,000 files up to serial 10."""
    storage = open_storage((tmp_path / "storage").as_uri())
    write_dump(storage, SerialRange(0, 10), [row(number) for number in range(1_000)], shards=16)
    restore_index(catalog, storage)
    return storage


def row(number: int, **columns: object) -> Row:
    return dump_row(f"p{number:04}", "1", f"p{number:04}-1.zip", **columns)


def export_range(catalog: Catalog, storage: Storage, end: int, rows: list[Row]) -> Export:
    write_dump(storage, SerialRange(end - 10, end), in_order(rows))
    restore_index(catalog, storage)
    return export_parquet(catalog, storage).export


def test_range_adds_only_its_rows_and_deletions(catalog: Catalog, many: Storage) -> None:
    whole = export_parquet(catalog, many).export
    before = set(many.list(EXPORTS))
    export = export_range(catalog, many, 20, [row(1, size=77), tombstone_of(row(2)), row(5_000)])
    written = set(many.list(EXPORTS)) - before
    assert {stored.path for stored in written} == {
        file_path("0-20/changes/changes0000.parquet"),
        manifest_path("0-20"),
    }
    assert export.layers[0] == whole.layers[0]
    assert (export.rows, export.changed_rows, whole.rows) == (1_000, 3, 1_000)
    found = {str(one["normalized"]): one for one in rows_of(many, export)}
    assert (found["p0001"]["size"], "p0002" in found, "p5000" in found) == (77, False, True)
    assert many.get(LATEST) == encode_latest(export)
    latest = orjson.loads(many.get(LATEST))
    assert latest["changes"] == [file_path("0-20/changes/changes0000.parquet")]
    assert latest["files"] == [file_path(file.name) for file in whole.files]
    assert all(many.exists(path) for path in (*latest["files"], *latest["changes"], latest["manifest"]))


def test_layers_of_similar_size_are_joined(catalog: Catalog, many: Storage) -> None:
    export_parquet(catalog, many)
    layers = []
    for number in range(1, 11):
        export = export_range(catalog, many, 10 + 10 * number, [row(number, size=1), row(number + 100, size=1)])
        assert len(rows_of(many, export)) == 1_000
        layers.append([layer.rows for layer in export.layers[1:]])
    assert layers[0] == [2]
    assert max(map(len, layers)) <= 2
    assert sum(layers[-1]) == 20
    export = export_range(catalog, many, 120, [row(number, size=2) for number in range(126)])
    assert len(export.layers) == 1  # an eighth of the rows has changed


def test_compaction_over_layers_needs_an_earlier_layer(
    small: SmallCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, always_append: None
) -> None:
    storage = dumped_storage(small, tmp_path, shards=16)
    monkeypatch.setattr(appending, "GROWTH", 0)
    export_parquet(small.catalog, storage)
    ranges = []
    for start in (100, 150, 200):
        ranges.append(add_range(small, storage, start))
        export = export_parquet(small.catalog, storage).export
    assert [layer.number for layer in export.layers] == [0, 1, 2, 3]
    compact(small.catalog, storage, *ranges[1:])
    add_range(small, storage, 250)
    after = export_parquet(small.catalog, storage).export
    assert [layer.number for layer in after.layers] == [0, 1, 2, 3, 4]
    compact(small.catalog, storage, "150-250", "250-300")
    add_range(small, storage, 300)
    last = export_parquet(small.catalog, storage).export
    assert [layer.held is not None for layer in last.layers] == [True] * len(last.layers)
    assert rows_of(storage, last) == rows_of(storage, export_parquet(small.catalog, storage, force=True).export)


def test_other_columns_or_buckets_begin_from_scratch(catalog: Catalog, many: Storage) -> None:
    export = export_parquet(catalog, many).export
    fewer = replace(export, columns=export.columns[:-1])
    many.put(manifest_path(export.directory), fewer.encode())
    assert read_export(many, export.directory) == fewer
    assert len(export_range(catalog, many, 20, [row(1, size=1)]).layers) == 1


def test_export_of_the_first_format_is_read_and_replaced(catalog: Catalog, many: Storage) -> None:
    export = export_parquet(catalog, many).export
    [file] = export.files
    old_name = "python_distribution_data0000.parquet"
    many.put(file_path(f"0-10/{old_name}"), many.get(file_path(file.name)))
    fields = orjson.loads(export.encode())
    del fields["layers"], fields["buckets"]
    fields |= {"format": 1, "files": export.layers[0].encoded_files()}
    fields["files"][0]["name"] = old_name
    many.put(manifest_path("0-10"), orjson.dumps(fields))
    many.delete(file_path(file.name))
    old = newest_export(many)
    assert old is not None
    assert (old.rows, old.size, old.buckets, old.files) == (
        1_000,
        file.size,
        0,
        (replace(file, name=f"0-10/{old_name}"),),
    )
    assert export_parquet(catalog, many).published is False
    assert orjson.loads(many.get(LATEST))["files"] == [file_path(f"0-10/{old_name}")]
    new = export_range(catalog, many, 20, [row(1, size=1)])
    assert (len(new.layers), new.layers[0].number, new.rows) == (1, 0, 1_000)


def test_files_of_earlier_exports_stay_while_an_export_names_them(catalog: Catalog, many: Storage) -> None:
    def clean(kept: int) -> None:
        later = replace(catalog, clock=lambda: catalog.clock() + 48 * HOUR_S)
        list(clean_exports(many, deletion_deadlines(later), kept=kept))

    export_parquet(catalog, many)
    for end in (20, 30, 40):
        export = export_range(catalog, many, end, [row(end, size=1)])
    clean(kept=1)
    assert committed_exports(many) == ["0-40"]
    assert newest_export(many) == export
    assert len(rows_of(many, export)) == 1_000
    assert {stored.path for stored in many.list(EXPORTS)} == {
        manifest_path("0-40"),
        *(file_path(file.name) for file in export.files),
    }
    scratch = export_parquet(catalog, many, force=True).export
    clean(kept=1)
    assert {stored.path for stored in many.list(EXPORTS)} == {
        manifest_path(scratch.directory),
        *(file_path(file.name) for file in scratch.files),
    }
    folder = many.local_path(EXPORTS)
    assert folder is not None
    assert [path.name for path in folder.iterdir()] == [scratch.directory]


def test_nothing_is_deleted_while_a_manifest_cannot_be_read(catalog: Catalog, many: Storage) -> None:
    for _ in range(3):
        export_parquet(catalog, many, force=True)
    many.put(manifest_path("0-10.3"), b'{"format": 99}')
    before = {stored.path for stored in many.list(EXPORTS)}
    later = replace(catalog, clock=lambda: catalog.clock() + 48 * HOUR_S)
    assert list(clean_exports(many, deletion_deadlines(later), kept=1)) == []
    assert {stored.path for stored in many.list(EXPORTS)} == before


def test_corrupt_rows_are_named_with_the_remedy(catalog: Catalog, many: Storage) -> None:
    [file] = export_parquet(catalog, many).export.files
    many.put(file_path(file.name), bytes(file.size))
    with pytest.raises(ParquetError, match=naming(file.name, "--force")):
        export_range(catalog, many, 20, [row(1, size=1)])
    assert len(rows_of(many, export_parquet(catalog, many, force=True).export)) == 1_000


def test_appending_works_on_s3(small: SmallCatalog, always_append: None) -> None:
    with pytest.MonkeyPatch.context() as environment, s3_server(environment):
        storage = open_storage(f"s3://{BUCKET}/prefix")
        write_dump(storage, SerialRange(0, 10), [row(number) for number in range(50)], shards=16)
        restore_index(small.catalog, storage)
        export_parquet(small.catalog, storage)
        export = export_range(small.catalog, storage, 20, [row(1, size=1), tombstone_of(row(2))])
        assert (len(export.layers), export.rows) == (2, 49)
        assert len(rows_of(storage, export)) == 49


def append(catalog: Catalog, storage: Storage) -> None:
    export_parquet(catalog, storage)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("step", "reached", "committed"),
    [
        (1, "before changes/changes0000.parquet", False),
        (2, "after changes/changes0000.parquet", False),
        (3, "before 0-20/_MANIFEST.json", False),
        (4, "after 0-20/_MANIFEST.json", True),
        (5, "before parquet/latest.json", True),
        (6, "after parquet/latest.json", True),
    ],
)
def test_kill_at_any_step_of_an_append_leaves_the_former_export_or_the_next(
    catalog: Catalog, many: Storage, step: int, reached: str, committed: bool
) -> None:
    before = export_parquet(catalog, many).export
    write_dump(many, SerialRange(10, 20), [row(1, size=1), tombstone_of(row(2))])
    restore_index(catalog, many)
    moment, _, path = run_and_kill(append, catalog, many, step).partition(" ")
    assert f"{moment} {'/'.join(path.split('/')[-2:])}" == reached
    assert (newest_export(many) != before) == committed
    forget_leases(catalog)
    result = export_parquet(catalog, many)
    assert (result.published, result.export.directory) == (not committed, "0-20" if committed else "0-20.2")
    assert len(rows_of(many, result.export)) == 999
    assert many.get(LATEST) == encode_latest(result.export)
