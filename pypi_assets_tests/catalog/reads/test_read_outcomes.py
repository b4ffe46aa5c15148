"""The read outcome of a record, and the kind of a failure."""

from pathlib import Path

import pytest
from sqlalchemy import select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.read_outcomes import (
    FinishedRead,
    ReadOutcome,
    StoredPack,
    enter_pack,
    forget_pack,
    have_extracts,
    record_columns,
    record_outcome,
    store_record_parts,
    used_packs,
)
from pypi_assets.catalog.tables import distribution_data, name_lists, shared_details
from pypi_assets.distributions.record import (
    EXTRACTOR_VERSION,
    DistributionKind,
    DistributionRecord,
    ErrorKind,
    ReadError,
)
from pypi_assets_tests.small_catalog import small_catalog


def test_pack_is_entered_once(catalog: Catalog) -> None:
    pack = StoredPack("a" * 64, 100, {7: (50, 10)})
    with catalog.write() as connection:
        [(pack_id, *place)] = enter_pack(connection, pack).values()
        assert place == [50, 10]
        assert enter_pack(connection, pack) == {7: (pack_id, 50, 10)}
        assert list(used_packs(connection, "", 10)) == []


def test_pack_in_use_is_not_forgotten(tmp_path: Path, database_url: str) -> None:
    small = small_catalog(tmp_path, database_url)
    small.add(1, "demo", "1", "demo-1.zip")
    name = "a" * 64
    with small.catalog.write() as connection:
        [(pack_id, *_)] = enter_pack(connection, StoredPack(name, 100, {1: (50, 10)})).values()
        connection.execute(update(distribution_data).values(pack_id=pack_id, pack_offset=50, pack_length=10))
        assert list(used_packs(connection, "", 10)) == [name]
        assert have_extracts(connection, [("demo", "demo-1.zip")])
        assert not have_extracts(connection, [("demo", "demo-1.zip"), ("demo", "demo-2.zip")])
        assert not forget_pack(connection, name)
        connection.execute(update(distribution_data).values(pack_id=None))
        assert forget_pack(connection, name)
        assert forget_pack(connection, name)
    small.catalog.close()


WHOLE = DistributionRecord(
    "demo-1.zip", DistributionKind.SDIST, "demo", "1", summary="One", requires_dist=(), modules=("demo",)
)
BROKEN = DistributionRecord(
    "demo-2.zip", DistributionKind.SDIST, "demo", "2", error=ReadError(ErrorKind.NO_METADATA, "there is none")
)


def test_rows_refer_to_lists_and_shared_details(catalog: Catalog) -> None:
    with catalog.write() as connection:
        whole, broken, same = store_record_parts(connection, [WHOLE, BROKEN, WHOLE])
        lists = dict(connection.execute(select(name_lists.c.id, name_lists.c.length)).all())
        [details_id] = connection.scalars(select(shared_details.c.id))
    assert whole == same
    assert (whole["extractor_version"], whole["shared_details_id"]) == (EXTRACTOR_VERSION, details_id)
    assert (lists[whole["requires_dist_id"]], lists[whole["modules_id"]]) == (0, 1)
    assert [broken[name] for name in ("requires_dist_id", "modules_id", "shared_details_id")] == [None, None, None]
    assert whole["record_digest"] != broken["record_digest"]


def test_record_error_has_kind_and_text() -> None:
    assert record_columns(WHOLE) == dict.fromkeys(("error_kind", "error_text", "metadata_version", "requires_python"))
    columns = record_columns(BROKEN)
    assert (columns["error_kind"], columns["error_text"]) == ("no metadata", "there is none")


def record(kind: ErrorKind | None) -> DistributionRecord:
    error = None if kind is None else ReadError(kind, "text")
    return DistributionRecord("demo-1.zip", DistributionKind.SDIST, "demo", "1", error=error)


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (None, ReadOutcome.DATA),
        (ErrorKind.CORRUPT_ARCHIVE, ReadOutcome.ERROR),
        (ErrorKind.UNSUPPORTED_KIND, ReadOutcome.UNSUPPORTED),
    ],
)
def test_outcome_follows_from_the_error(kind: ErrorKind | None, outcome: ReadOutcome) -> None:
    assert record_outcome(record(kind)) == outcome


def test_only_errors_and_exhausted_reads_are_failures() -> None:
    broken = record(ErrorKind.CORRUPT_ARCHIVE)
    assert FinishedRead(1, ReadOutcome.ERROR, broken).failure == "corrupt archive"
    assert FinishedRead(1, ReadOutcome.EXHAUSTED, error_kind="HTTP 503").failure == "HTTP 503"
    assert FinishedRead(1, ReadOutcome.DATA, record(None)).failure is None
    assert FinishedRead(1, ReadOutcome.VANISHED, error_kind="HTTP 404").failure is None
