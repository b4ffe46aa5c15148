"""Checks that follow an asset: the ledger, dumps and Parquet against the catalog, LevelDBs against their input lists.

Checks of freshness and failures, which also run on a schedule, are in `health.py`.
"""

import dagster as dg

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_columns import DumpKind
from pypi_assets.catalog.publications.dump_registry import Dump
from pypi_assets.catalog.reports.catalog_status import ledger_faults
from pypi_assets.catalog.reports.live_files import count_live
from pypi_assets.components import table_options_from
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.factories import CheckFactory, check, check_result
from pypi_assets.defs.policy import leveldb_asset
from pypi_assets.defs.resources import CatalogResource, SettingsResource, StorageResource
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_audit import audit_dump
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.full_dump import newest_dump
from pypi_assets.iceberg.table_audit import count_rows, scan_bucket
from pypi_assets.iceberg.table_catalog import opened_tables
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.build_need import Need
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.verify import Verification, verify
from pypi_assets.parquet.export_manifest import newest_export
from pypi_assets.storage.store import Storage
from pypi_assets.upkeep.due import due_datasets

AUDITED_RANGES = 50  # more than a run takes, and few enough to check after every range


@check("changelog")
def ranges_without_gap_or_overlap(catalog: CatalogResource) -> dg.AssetCheckResult:
    """No event of the package index is missing or counted twice: the ranges of serials are adjacent, from 0 on."""
    with expected_errors_as_failures(), catalog.get().read() as connection:
        faults = ledger_faults(connection)
    return check_result(
        passed=not faults,
        description="; ".join(faults[:10]) or "every range begins at the end of the previous one",
        metadata={"faults": len(faults)},
    )


@check("full_dump")
def full_dump_rows_match_catalog(catalog: CatalogResource, storage: StorageResource) -> dg.AssetCheckResult:
    """The newest full dump has exactly one row for each file that was on the index at its serial."""
    with expected_errors_as_failures():
        newest = newest_dump(catalog.get(), DumpKind.FULL)
        return _audit(catalog.get(), storage.get(), [newest] if newest else [])


@check("incremental_dump")
def incremental_dump_rows_match_catalog(catalog: CatalogResource, storage: StorageResource) -> dg.AssetCheckResult:
    """Each of the last 50 dumps of changes has exactly one row for each file that changed."""
    with expected_errors_as_failures():
        dumps = cover(catalog.get()).dumps[-AUDITED_RANGES:]
        incremental = [dump for dump in dumps if dump.kind == DumpKind.INCREMENTAL]
        return _audit(catalog.get(), storage.get(), incremental)


def _audit(catalog: Catalog, storage: Storage, dumps: list[Dump]) -> dg.AssetCheckResult:
    faults, rows, expected = [], 0, 0
    for dump in dumps:
        try:
            audit = audit_dump(catalog, storage, dump)
        except DumpDamagedError as error:
            faults.append(str(error))
            continue
        rows, expected = rows + audit.rows, expected + audit.expected
        if not audit.ok:
            faults.append(f"{audit.directory} has {audit.rows} rows, and the catalog counts {audit.expected}")
    return check_result(
        passed=not faults,
        description="; ".join(faults[:10]) or f"{len(dumps)} dumps have the rows that the catalog counts",
        metadata={"dumps": len(dumps), "rows": rows, "expected_rows": expected, "faults": len(faults)},
    )


def _matches_input_list(dataset: str) -> CheckFactory:
    @check(
        leveldb_asset(dataset),
        name=f"{dataset}_matches_input_list",
        description=f"The files of the newest version of {dataset} are complete, and match its manifest. The job"
        " `verify_leveldbs` also records here whether they equal a rebuild. Warns if there is no version yet because"
        " dumps lack columns.",
        blocking=True,
    )
    def of_dataset(
        settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
    ) -> dg.AssetCheckResult:
        with expected_errors_as_failures():
            versions = published_versions(storage.get(), dataset)
            if not versions:
                return _without_version(dataset, catalog.get(), storage.get())
            verified = verify(
                dataset, versions[-1], storage=storage.get(), work_dir=settings.get().leveldbs_dir, cached=True
            )
        return verification_result(verified, f"version {verified.version} is complete")

    return of_dataset


def verification_result(verified: Verification, passed: str) -> dg.AssetCheckResult:
    """Return the result of a check of a LevelDB version, with `passed` as its text unless there are problems."""
    return check_result(
        passed=verified.ok,
        description="; ".join(verified.problems[:10]) or passed,
        metadata={"version": verified.version, "records": verified.records, "problems": len(verified.problems)},
    )


def _without_version(dataset: str, catalog: Catalog, storage: Storage) -> dg.AssetCheckResult:
    need = due_datasets(catalog, storage, cover(catalog), [DATASETS[dataset]])[dataset].need
    if need.need != Need.LACKS_COLUMNS:
        return check_result(passed=False, description=f"no version of {dataset} is published")
    return check_result(passed=False, severity=dg.AssetCheckSeverity.WARN, description=need.reason)


MATCHES_INPUT_LIST = {dataset: _matches_input_list(dataset) for dataset in DATASETS}


@check("parquet_export")
def parquet_rows_match_catalog(catalog: CatalogResource, storage: StorageResource) -> dg.AssetCheckResult:
    """The newest Parquet export has exactly one row for each file that was on the index at its serial."""
    with expected_errors_as_failures():
        export = newest_export(storage.get())
        if export is None:
            return check_result(passed=False, description="there is no complete export")
        with catalog.get().read() as connection:
            expected = count_live(connection, export.serial)
    return check_result(
        passed=export.rows == expected,
        description=f"{export.directory} has {export.rows} rows, and the catalog counts {expected}",
        metadata={"serial": export.serial, "rows": export.rows, "expected_rows": expected},
    )


@check("iceberg_tables")
def table_rows_match_catalog(
    settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
) -> dg.AssetCheckResult:
    """The newest snapshots have one row for each file and for each event that the catalog has at their serial."""
    with (
        expected_errors_as_failures(),
        opened_tables(catalog.get(), storage.get(), table_options_from(settings.get())) as tables,
    ):
        counts = count_rows(catalog.get(), tables)
    return check_result(
        passed=all(count.rows == count.expected for count in counts),
        description="; ".join(
            f"{count.name} has {count.rows} rows, and the catalog counts {count.expected}" for count in counts
        ),
        metadata={
            "serial": counts[0].serial,
            **{f"{count.name} rows": count.rows for count in counts},
            **{f"expected {count.name} rows": count.expected for count in counts},
        },
    )


@check("iceberg_tables")
def table_scan_matches_catalog(
    settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
) -> dg.AssetCheckResult:
    """One bucket of the tables has exactly the files of its projects. The buckets take turns by the serial."""
    with (
        expected_errors_as_failures(),
        opened_tables(catalog.get(), storage.get(), table_options_from(settings.get())) as tables,
    ):
        scanned = scan_bucket(catalog.get(), tables)
    return check_result(
        passed=not scanned.differences,
        description="; ".join(scanned.differences[:10])
        or f"bucket {scanned.bucket} has the files of {scanned.projects} projects at serial {scanned.serial}",
        metadata={
            "serial": scanned.serial,
            "bucket": scanned.bucket,
            "rows": scanned.rows,
            "projects": scanned.projects,
            "differences": len(scanned.differences),
        },
    )


CHECKS = [
    ranges_without_gap_or_overlap,
    full_dump_rows_match_catalog,
    incremental_dump_rows_match_catalog,
    *MATCHES_INPUT_LIST.values(),
    parquet_rows_match_catalog,
    table_rows_match_catalog,
    table_scan_matches_catalog,
]
