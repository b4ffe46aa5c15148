"""Dumps are compared with the counts of the catalog."""

from pypi_assets.catalog.publications.dump_columns import DumpKind
from pypi_assets.dumps.dump_audit import audit_dump
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import dump_each_shard, newest_dump
from pypi_assets.storage.store import Storage
from pypi_assets_tests.small_catalog import SmallCatalog


def test_range_audit_counts_changes(small: SmallCatalog, storage: Storage) -> None:
    catalog = small.catalog
    list(dump_each_shard(catalog, storage, [0], 1))
    assert newest_dump(catalog, DumpKind.INCREMENTAL) is None
    small.add(119, "delta", "1.0", "delta-1.0.tar.gz")
    small.remove(120, "other-2.tar.gz")
    small.complete(120)
    list(write_missing_ranges(catalog, storage))
    dump = newest_dump(catalog, DumpKind.INCREMENTAL)
    assert dump is not None
    audit = audit_dump(catalog, storage, dump)
    assert (audit.rows, audit.expected) == (2, 2)
    with catalog.engine.connect() as connection:
        connection.exec_driver_sql(f"DELETE FROM changes WHERE logged_serial = {dump.serials.end}")
        connection.commit()
    assert not audit_dump(catalog, storage, dump).ok
