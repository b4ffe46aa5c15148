"""A record as it is stored: the columns of its row, with lists of names and shared details stored once each."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from pypi_assets.catalog.reads.shared_details import record_details, store_shared_details
from pypi_assets.catalog.reads.stored_lists import store_lists
from pypi_assets.distributions.installability import is_installable
from pypi_assets.distributions.record import EXTRACTOR_VERSION, DistributionRecord
from pypi_assets.distributions.record_building import record_digest


def record_columns(record: DistributionRecord) -> dict[str, str | None]:
    """The columns that are stored as they are in the record."""
    return {
        "error_kind": None if record.error is None else record.error.kind,
        "error_text": None if record.error is None else record.error.text,
        "metadata_version": record.metadata_version,
        "requires_python": record.requires_python,
    }


def store_record_parts(connection: Connection, records: Sequence[DistributionRecord]) -> list[dict[str, Any]]:
    """Stores the lists and the shared details of `records`; returns of each the values of all columns of its row.

    The number of statements does not depend on that of the records.
    """
    lists = store_lists(
        connection,
        [record.requires_dist for record in records if record.requires_dist is not None],
        [record.modules for record in records if record.modules is not None],
    )
    details = [record_details(record) for record in records]
    shared = store_shared_details(connection, [one.shared for one in details if one.shared is not None])
    return [
        record_columns(record)
        | {
            "extractor_version": EXTRACTOR_VERSION,
            "record_digest": record_digest(record),
            "requires_dist_id": None if record.requires_dist is None else lists[record.requires_dist],
            "modules_id": None if record.modules is None else lists[record.modules],
            "details": of_record.own,
            "is_rejected": not is_installable(record.refusals),
            "shared_details_id": None if of_record.shared is None else shared[of_record.shared],
        }
        for record, of_record in zip(records, details, strict=True)
    ]
