"""Asset checks: the ledger of ranges, dumps and Parquet against the catalog, LevelDBs against their input lists."""

import dagster as dg
from dagster import ResourceParam

from pypi_assets.catalog.publications.dump_files import DumpKind
from pypi_assets.catalog.publications.dump_registry import Dump
from pypi_assets.catalog.reports.ledger_faults import ledger_faults
from pypi_assets.catalog.reports.live_files import count_live
from pypi_assets.defs.assets.changes import changelog
from pypi_assets.defs.assets.dumps import full_dump, incremental_dump
from pypi_assets.defs.assets.leveldbs import depgraph_leveldb, modules_leveldb
from pypi_assets.defs.assets.parquet import parquet_export
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.parts import Parts
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_audit import audit_dump
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.full_dump import newest_dump
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.parquet.export_manifest import newest_export

AUDITED_RANGES = 50  # more than one run takes, and few enough for a check after every range


@dg.asset_check(asset=changelog)
def ranges_without_gap_or_overlap(parts: ResourceParam[Parts]) -> dg.AssetCheckResult:
    """The ledger's serial ranges follow each other from 0 without a gap or an overlap."""
    with expected_errors_as_failures(), parts.catalog.read() as connection:
        faults = ledger_faults(connection)
    return dg.AssetCheckResult(
        passed=not faults,
        description="; ".join(faults[:10]) or "every range begins where the one before it ends",
        metadata={"faults": len(faults)},
    )


@dg.asset_check(asset=full_dump)
def full_dump_rows_match_catalog(parts: ResourceParam[Parts]) -> dg.AssetCheckResult:
    """The newest full dump has as many rows as the catalog has live distributions at its serial."""
    with expected_errors_as_failures():
        newest = newest_dump(parts.catalog, DumpKind.FULL)
        return _audit(parts, [newest] if newest else [])


@dg.asset_check(asset=incremental_dump)
def incremental_dump_rows_match_catalog(parts: ResourceParam[Parts]) -> dg.AssetCheckResult:
    """The last incremental dumps that readers use have as many rows as distributions changed in their ranges."""
    with expected_errors_as_failures():
        dumps = cover(parts.catalog).dumps[-AUDITED_RANGES:]
        return _audit(parts, [dump for dump in dumps if dump.kind == DumpKind.INCREMENTAL])


def _audit(parts: Parts, dumps: list[Dump]) -> dg.AssetCheckResult:
    faults, rows, expected = [], 0, 0
    for dump in dumps:
        try:
            audit = audit_dump(parts.catalog, parts.storage, dump)
        except DumpDamagedError as error:
            faults.append(str(error))
            continue
        rows, expected = rows + audit.rows, expected + audit.expected
        if not audit.ok:
            faults.append(f"{audit.directory} has {audit.rows} rows, and the catalog counts {audit.expected}")
    return dg.AssetCheckResult(
        passed=not faults,
        description="; ".join(faults[:10]) or f"{len(dumps)} dumps have the rows that the catalog counts",
        metadata={"dumps": len(dumps), "rows": rows, "expected_rows": expected, "faults": len(faults)},
    )


def _matches_input_list(dataset: str, asset: dg.AssetsDefinition) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=asset,
        name=f"{dataset}_matches_input_list",
        description=f"The newest version of {dataset} is whole, and what its manifest and its input list say it is.",
        blocking=True,
    )
    def check(parts: ResourceParam[Parts]) -> dg.AssetCheckResult:
        with expected_errors_as_failures():
            versions = published_versions(parts.storage, dataset)
            if not versions:
                return dg.AssetCheckResult(passed=False, description=f"no version of {dataset} is published")
            verified = verify(
                dataset, versions[-1], storage=parts.storage, work_dir=parts.settings.leveldbs_dir, cached=True
            )
        return dg.AssetCheckResult(
            passed=verified.ok,
            description="; ".join(verified.problems[:10]) or f"version {verified.version} is whole",
            metadata={"version": verified.version, "records": verified.records, "problems": len(verified.problems)},
        )

    return check


@dg.asset_check(asset=parquet_export)
def parquet_rows_match_catalog(parts: ResourceParam[Parts]) -> dg.AssetCheckResult:
    """The newest Parquet export has as many rows as the catalog has live distributions at its serial."""
    with expected_errors_as_failures():
        export = newest_export(parts.storage)
        if export is None:
            return dg.AssetCheckResult(passed=False, description="there is no whole export")
        with parts.catalog.read() as connection:
            expected = count_live(connection, export.serial)
    return dg.AssetCheckResult(
        passed=export.rows == expected,
        description=f"{export.directory} has {export.rows} rows, and the catalog counts {expected}",
        metadata={"serial": export.serial, "rows": export.rows, "expected_rows": expected},
    )


CHECKS = [
    ranges_without_gap_or_overlap,
    full_dump_rows_match_catalog,
    incremental_dump_rows_match_catalog,
    _matches_input_list("modules", modules_leveldb),
    _matches_input_list("depgraph", depgraph_leveldb),
    parquet_rows_match_catalog,
]
