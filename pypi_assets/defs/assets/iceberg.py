"""The asset of the Iceberg tables, which have a snapshot for each dump, for engines that read Apache Iceberg."""

import time

import dagster as dg

from pypi_assets.catalog.publications.dump_columns import COLUMNS_VERSION
from pypi_assets.components import table_options_from
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.factories import asset
from pypi_assets.defs.reporting import arrow_schema, count_log
from pypi_assets.defs.resources import CatalogResource, SettingsResource, StorageResource
from pypi_assets.iceberg.newest_tables import FORMAT, NEWEST_PATH
from pypi_assets.iceberg.table_catalog import require_iceberg
from pypi_assets.iceberg.table_columns import TABLES

_COLUMNS = arrow_schema(
    {f"{table}.{name}": column for table, columns in TABLES.items() for name, column in columns.items()}
)


@asset(
    deps=["full_dump", "incremental_dump", "late_dump", "compacted_dump"],
    kinds={"iceberg"},
    metadata=_COLUMNS,
    code_version=f"{FORMAT}.{COLUMNS_VERSION}",
)
def iceberg_tables(
    context: dg.AssetExecutionContext, settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
) -> dg.MaterializeResult[None]:
    """All files, requirements, modules, commands and events as Apache Iceberg tables, with a snapshot for each dump.

    It needs the extra `tables`, and is as of the end of the dumps. If the dumps have not changed, nothing is written.
    """
    started = time.monotonic()
    with expected_errors_as_failures():
        require_iceberg()
        from pypi_assets.iceberg.updates import update_tables  # its requirements are an extra

        options = table_options_from(settings.get())
        result = update_tables(catalog.get(), storage.get(), options, progress=count_log(context, "rows written"))
    newest = result.newest
    return dg.MaterializeResult(
        data_version=dg.DataVersion(" ".join(newest.dumps)),
        metadata={
            "dagster/row_count": newest.tables["files"].rows,
            **{f"{name} rows": table.rows for name, table in newest.tables.items()},
            "serial": newest.serial,
            "snapshots": sum(result.added.values()),
            "seconds": round(time.monotonic() - started, 3),
            "latest": dg.MetadataValue.path(storage.get().uri(NEWEST_PATH)),
        },
    )
