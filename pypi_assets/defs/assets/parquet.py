"""The asset of the Parquet export, which has the live distributions at the end of the dumps, for people to query."""

import time

import dagster as dg

from pypi_assets.catalog.publications.dump_columns import COLUMNS_VERSION
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.factories import asset
from pypi_assets.defs.reporting import arrow_schema, count_log
from pypi_assets.defs.resources import CatalogResource, SettingsResource, StorageResource
from pypi_assets.parquet.export import export_parquet
from pypi_assets.parquet.export_manifest import FORMAT, PARQUET_COLUMNS, manifest_path
from pypi_assets.parquet.latest import LATEST


@asset(
    deps=["full_dump", "incremental_dump", "late_dump", "compacted_dump"],
    kinds={"parquet"},
    metadata=arrow_schema(PARQUET_COLUMNS),
    code_version=f"{FORMAT}.{COLUMNS_VERSION}",
)
def parquet_export(
    context: dg.AssetExecutionContext,
    settings: SettingsResource,
    catalog: CatalogResource,
    storage: StorageResource,
) -> dg.MaterializeResult[None]:
    """All files on the package index, one row each, as Parquet for DuckDB, pandas and others.

    It needs the extra `parquet`, and is as of the end of the dumps. An export adds the changes since the last one,
    until they are many. If the dumps have not changed, nothing is written. All cores of the machine write the buckets.
    """
    started = time.monotonic()
    with expected_errors_as_failures():
        result = export_parquet(
            catalog.get(),
            storage.get(),
            memory_bytes=settings.get().leveldb_memory_bytes,
            progress=count_log(context, "rows written"),
        )
    export = result.export
    return dg.MaterializeResult(
        data_version=dg.DataVersion(export.directory),
        metadata={
            "dagster/row_count": export.rows,
            "bytes": export.size,
            "files": len(export.files),
            "serial": export.serial,
            "dumps": len(export.cover),
            "published": result.published,
            "seconds": round(time.monotonic() - started, 3),
            "changed_rows": export.changed_rows,
            "latest": dg.MetadataValue.path(storage.get().uri(LATEST)),
            "manifest": dg.MetadataValue.path(storage.get().uri(manifest_path(export.directory))),
        },
    )
