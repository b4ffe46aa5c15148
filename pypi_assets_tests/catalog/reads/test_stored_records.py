"""Records become rows: what they share with others is stored once, and what is unknown stays unknown."""

from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.read_outcomes import record_columns, store_record_parts
from pypi_assets.catalog.tables import name_lists, shared_details
from pypi_assets.distributions.record import (
    EXTRACTOR_VERSION,
    DistributionKind,
    DistributionRecord,
    ErrorKind,
    ReadError,
)

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


def test_the_error_of_a_record_has_its_kind_and_text() -> None:
    assert record_columns(WHOLE) == dict.fromkeys(("error_kind", "error_text", "metadata_version", "requires_python"))
    columns = record_columns(BROKEN)
    assert (columns["error_kind"], columns["error_text"]) == ("no metadata", "there is none")
