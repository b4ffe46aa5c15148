"""The Parquet export as Dagster runs it: made once for what is new, checked, and refused where there are no dumps."""

import dagster as dg

from pypi_assets.defs.assets.parquet import parquet_export
from pypi_assets.parquet.export_manifest import newest_export
from pypi_assets_tests.defs.conftest import Pipeline, failure_text
from pypi_assets_tests.named import unnamed


def test_an_export_is_made_checked_and_not_made_again(pipeline: Pipeline) -> None:
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
    assert str(numbers["read_parquet"]).endswith(f"/{export.directory}/*.parquet")
    assert pipeline.run("export_parquet").success
    assert pipeline.metadata("parquet_export")["published"] is False


def test_without_dumps_the_error_names_what_to_do(pipeline: Pipeline) -> None:
    assert unnamed(failure_text(pipeline.materialize(parquet_export)), "dump full") == []
    check = pipeline.check("parquet_rows_match_catalog")
    assert isinstance(check, dg.AssetCheckResult)
    assert not check.passed


def test_the_columns_are_shown(pipeline: Pipeline) -> None:
    spec = pipeline.defs.resolve_asset_graph().get(dg.AssetKey("parquet_export"))
    columns = {column.name: column for column in spec.metadata["dagster/column_schema"].columns}
    assert "tombstone" not in columns
    assert (columns["modules"].type, columns["modules"].constraints.nullable) == ("list<string>", True)
