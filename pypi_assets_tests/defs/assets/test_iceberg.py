"""The Iceberg tables as Dagster makes and checks them."""

import dagster as dg

from pypi_assets.defs.assets.iceberg import iceberg_tables
from pypi_assets.iceberg.newest_tables import read_newest
from pypi_assets.iceberg.table_columns import TABLES
from pypi_assets_tests.defs.conftest import Pipeline, failure_text
from pypi_assets_tests.named import unnamed


def test_tables_are_made_and_checked_once(pipeline: Pipeline) -> None:
    pipeline.crawled(16)
    result = pipeline.run("update_tables")
    assert result.success
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert {name: check.passed for name, check in checks.items()} == {
        "table_rows_match_catalog": True,
        "table_scan_matches_catalog": True,
    }
    counts, scan = (checks[name].metadata for name in ("table_rows_match_catalog", "table_scan_matches_catalog"))
    assert (counts["files rows"].value, counts["expected files rows"].value) == (4, 4)
    assert counts["events rows"].value == counts["expected events rows"].value
    assert (scan["rows"].value, scan["differences"].value) == (4, 0)
    numbers = pipeline.metadata("iceberg_tables")
    newest = read_newest(pipeline.storage)
    assert newest is not None
    assert (numbers["dagster/row_count"], numbers["snapshots"]) == (4, len(TABLES))
    assert (numbers["serial"], numbers["modules rows"]) == (newest.serial, newest.tables["modules"].rows)
    assert pipeline.run("update_tables").success
    assert pipeline.metadata("iceberg_tables")["snapshots"] == 0


def test_error_without_dumps_names_the_remedy(pipeline: Pipeline) -> None:
    assert unnamed(failure_text(pipeline.materialize(iceberg_tables)), "dump full") == []


def test_columns_of_tables_are_shown(pipeline: Pipeline) -> None:
    spec = pipeline.defs.resolve_asset_graph().get(dg.AssetKey("iceberg_tables"))
    columns = {column.name: column for column in spec.metadata["dagster/column_schema"].columns}
    assert columns["requirements.extras"].type == "list<string>"
    assert not columns["modules.module"].constraints.nullable
