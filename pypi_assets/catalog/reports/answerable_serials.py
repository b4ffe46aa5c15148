"""Which serials the catalog can answer for."""

from sqlalchemy import select

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.range_ledger import complete_serial, inexact_spans
from pypi_assets.catalog.tables import (
    catalog_state,
)
from pypi_assets.catalog.work.full_crawls import last_completed_crawl


def answerable_serial(catalog: Catalog, serial: int | None = None) -> int:
    """The serial that a question about `serial` (None: the complete serial) is answered at.

    Raises CatalogError, which names the serials that can be asked about, where the catalog is not exact at `serial`.
    """
    with catalog.read() as connection:
        if last_completed_crawl(connection) is None:
            raise CatalogError("no full crawl is complete yet, so nothing can be told: run `pypi-assets crawl full`")
        complete = complete_serial(connection)
        exact_from = connection.scalar(select(catalog_state.c.exact_from)) or 0
        spans = [] if serial is None else inexact_spans(connection, around=serial)
    if serial is None:
        return complete
    if exact_from <= serial <= complete and spans:
        raise CatalogError(
            f"nothing can be told of serial {serial}: the list of projects told what changed between the serials"
            f" {spans[0].start} and {spans[-1].end}, and no events are known of that time; ask for one of the two, or"
            " follow the changelog once it answers (`pypi-assets crawl incremental`)"
        )
    if exact_from <= serial <= complete:
        return serial
    if exact_from > complete:
        raise CatalogError(
            f"nothing can be told of serial {serial} yet: the catalog is exact from serial {exact_from} on, and"
            f" complete up to {complete}; run `pypi-assets crawl incremental`"
        )
    raise CatalogError(f"nothing can be told of serial {serial}, only of serials {exact_from} to {complete}")
