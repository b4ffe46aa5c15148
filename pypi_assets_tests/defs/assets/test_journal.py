"""The journal, the Parquet export and LevelDB versions as Dagster runs them."""

import dagster as dg
import pytest

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.defs.assets.leveldbs import LEVELDBS
from pypi_assets.defs.assets.parquet import parquet_export
from pypi_assets.defs.factories import ForIndex
from pypi_assets.defs.policy import leveldb_asset
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.record_reader import Journal
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import leveldb_path
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.parquet.export_manifest import newest_export
from pypi_assets_tests.defs.conftest import Pipeline, failure_text
from pypi_assets_tests.journal.written import records_of
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


@pytest.mark.nightly
def test_range_is_written_to_the_journal_after_earlier_ranges(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    baseline = index.serial
    added = index.wheel("newcomer", "1.0")
    (key,) = pipeline.requested("new_serial_range")
    assert pipeline.run("incremental_crawl", key).success
    numbers = pipeline.metadata("change_journal", key)
    counts = {stream: numbers.get(f"records: {stream}", 0) for stream in JournalStream}
    assert (numbers["dagster/partition_row_count"], counts) == (
        4,
        {JournalStream.INDEX: 0, JournalStream.OBSERVED: 1, JournalStream.CONTENT: 2, JournalStream.VISITS: 1},
    )
    journal = Journal(pipeline.storage)
    head = journal.head("observed")
    assert (head.number, head.start, head.through) == (2, 0, index.serial)
    records = records_of(journal, Cursor.after_serial(baseline))
    assert [record["kind"] for record in records if record.get("filename") == added] == [
        "add file",
        "file added",
        "file read",
    ]
    before = {one["filename"] for one in records_of(journal) if one["kind"] == "file read"}
    assert len(before - {added}) == 4


@pytest.mark.nightly
def test_repeated_run_writes_nothing(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.wheel("newcomer", "1.0")
    (key,) = pipeline.requested("new_serial_range")
    assert pipeline.run("incremental_crawl", key).success
    written = {one.path: one.last_modified for one in pipeline.storage.list("journal")}
    assert pipeline.materialize(pipeline.asset("change_journal"), key).success
    assert {one.path: one.last_modified for one in pipeline.storage.list("journal")} == written


def test_export_is_made_and_checked_once(pipeline: Pipeline) -> None:
    pipeline.crawled(16)
    result = pipeline.run("export_parquet")
    (check,) = result.get_asset_check_evaluations()
    assert (result.success, check.passed) == (True, True)
    assert check.metadata["rows"].value == 4
    numbers = pipeline.metadata("parquet_export")
    assert (numbers["dagster/row_count"], numbers["files"], numbers["dumps"]) == (4, 1, 1)
    assert numbers["published"] is True
    export = newest_export(pipeline.storage)
    assert export is not None
    assert (numbers["serial"], numbers["bytes"]) == (export.serial, export.size)
    assert numbers["changed_rows"] == 0
    assert str(numbers["latest"]).endswith("/parquet/latest.json")
    assert pipeline.run("export_parquet").success
    assert pipeline.metadata("parquet_export")["published"] is False


def test_error_without_dumps_names_the_remedy(pipeline: Pipeline) -> None:
    assert unnamed(failure_text(pipeline.materialize(parquet_export)), "dump full") == []
    check = pipeline.check("parquet_rows_match_catalog")
    assert isinstance(check, dg.AssetCheckResult)
    assert not check.passed


def test_export_columns_are_shown(pipeline: Pipeline) -> None:
    spec = pipeline.defs.resolve_asset_graph().get(dg.AssetKey("parquet_export"))
    columns = {column.name: column for column in spec.metadata["dagster/column_schema"].columns}
    assert "tombstone" not in columns
    assert (columns["modules"].type, columns["modules"].constraints.nullable) == ("list<string>", True)


def test_each_dataset_has_an_asset_with_description_and_format() -> None:
    assert [asset.name for asset in LEVELDBS] == [leveldb_asset(name) for name in DATASETS]
    for asset, dataset in zip(LEVELDBS, DATASETS.values(), strict=True):
        [spec] = asset.make(ForIndex()).specs
        assert unnamed(str(spec.description), dataset.description) == []
        assert spec.code_version == str(dataset.format)


@pytest.mark.nightly
@pytest.mark.parametrize("dataset", DATASETS)
def test_unknown_versions_are_rejected(pipeline: Pipeline, dataset: str) -> None:
    pipeline.crawled()
    pipeline.instance.add_dynamic_partitions("leveldb_versions", ["00007"])
    leveldb = pipeline.asset(leveldb_asset(dataset))
    assert unnamed(failure_text(pipeline.materialize(leveldb, "00007")), "00007") == []
    assert pipeline.marked(leveldb_asset(dataset)) == []


def test_version_shows_its_location_keys_and_sample_records(index: ServedIndex, pipeline: Pipeline) -> None:
    index.wheel("evil", "1.0", requires_dist=["beta @ https://evil.example.org/a"], files={"[a](b)/__init__.py": b""})
    pipeline.crawled()
    (name,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", name).success
    for dataset in DATASETS:
        shown = pipeline.metadata(leveldb_asset(dataset), name)
        path = leveldb_path(dataset, name)
        assert shown["uri"] == pipeline.storage.uri(path)
        assert shown["manifest"].startswith(f"{shown['uri']}/")
        assert pipeline.storage.get(f"{path}/{shown['manifest'].rpartition('/')[2]}")
        schema = shown["key schema"].splitlines()[2:]
        assert len(schema) == len(DATASETS[dataset].key_schema)
        counts = [cells[3].strip() for row in schema if (cells := row.split("|")) and cells[3].strip()]
        assert sum(map(int, counts)) == shown["records"] > 0
        samples = shown["samples"].splitlines()[2:]
        assert len(samples) == max(5, len({form[0] for form in DATASETS[dataset].key_schema}))
        forms = {sample.split(" \\\\0 ")[0].removeprefix("| ") for sample in samples}
        assert forms == set(read_published(pipeline.storage, dataset, 1).manifest.counts)
    assert "| m \\\\0 MODULE \\\\0 PROJECT | " in pipeline.metadata("modules_leveldb", name)["key schema"]
    assert (
        "| m \\\\0 alpha_module \\\\0 alpha | alpha_module |" in pipeline.metadata("modules_leveldb", name)["samples"]
    )


def test_each_stored_kind_of_key_is_described(index: ServedIndex, pipeline: Pipeline) -> None:
    index.wheel("many", "1.0", entry_points="[console_scripts]\nmany = many:main\n")
    pipeline.crawled()
    (name,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", name).success
    for dataset in DATASETS.values():
        counts = read_published(pipeline.storage, dataset.name, 1).manifest.counts
        assert set(counts) <= {form[0] for form in dataset.key_schema}, dataset.name
