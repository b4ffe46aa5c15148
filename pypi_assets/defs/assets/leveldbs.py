"""The LevelDB versions that lookups read, built from the cover of the dumps."""

import time

import dagster as dg
from dagster import ResourceParam

from pypi_assets.catalog.publications.leveldb_versions import require_version
from pypi_assets.defs.assets.crawl import OWNERS, RETRIES
from pypi_assets.defs.assets.dumps import full_dump, incremental_dump
from pypi_assets.defs.marking import count_log, marking
from pypi_assets.defs.partitions import leveldb_versions
from pypi_assets.defs.parts import Parts
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.leveldbs.versions.publish import build_version

GROUP = "leveldbs"


def _leveldb(dataset: str, description: str) -> dg.AssetsDefinition:
    @dg.asset(
        name=f"{dataset}_leveldb",
        description=f"{description}\n\nA partition is a version number that the catalog handed out, like `00042`;"
        " other keys are refused. It is built on the version before where the cover has only grown, else from scratch."
        " Where nothing is new, nothing is published.",
        group_name=GROUP,
        deps=[
            dg.AssetDep(full_dump, partition_mapping=dg.AllPartitionMapping()),
            dg.AssetDep(incremental_dump, partition_mapping=dg.AllPartitionMapping()),
        ],
        partitions_def=leveldb_versions,
        backfill_policy=dg.BackfillPolicy.multi_run(1),
        kinds={"leveldb"},
        owners=OWNERS,
        pool=f"{dataset}_leveldb",
        retry_policy=RETRIES,
        code_version=str(DATASETS[dataset].format),
    )
    def leveldb(context: dg.AssetExecutionContext, parts: ResourceParam[Parts]) -> dg.MaterializeResult[None]:
        with marking(context) as mark:
            for name in sorted(context.partition_keys):
                started = time.monotonic()
                result = build_version(
                    dataset,
                    storage=parts.storage,
                    catalog=parts.catalog,
                    version=require_version(parts.catalog, name).version,
                    write_buffer_bytes=parts.settings.leveldb_write_buffer_bytes,
                    memory_bytes=parts.settings.leveldb_memory_bytes,
                    work_dir=parts.settings.leveldbs_dir,
                    progress=count_log(context, f"rows applied to {dataset}"),
                )
                files = read_published(parts.storage, dataset, result.version).manifest.files
                mark(
                    name,
                    {
                        "published": result.published,
                        "reason": result.reason,
                        "version": result.version,
                        "serial": result.serial,
                        "records": sum(result.counts.values()),
                        "rows_applied": result.rows,
                        "records_written": result.written,
                        "bytes": sum(file.size for file in files),
                        "files": len(files),
                        "seconds": round(time.monotonic() - started, 3),
                    },
                )
        return dg.MaterializeResult()

    return leveldb


modules_leveldb = _leveldb("modules", "Which distributions provide a module: from module names to projects.")
depgraph_leveldb = _leveldb("depgraph", "What a project and version requires: from distributions to requirements.")
