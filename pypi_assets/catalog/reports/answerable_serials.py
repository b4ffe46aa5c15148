"""Which serials the catalog can answer for."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, select

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.ledger.range_ledger import complete_serial, inexact_spans
from pypi_assets.catalog.tables import (
    catalog_state,
)
from pypi_assets.catalog.work.full_crawls import has_baseline

_T = TypeVar("_T")


class NotExactError(CatalogError):
    """The catalog has no exact answer at a serial; the message names those at which it has."""


def pinned_answer(catalog: Catalog, serial: int, answer: Callable[[], _T]) -> tuple[_T, int]:
    """What `answer` returns of `serial`, and the epoch that it belongs to.

    It is called again where something visible at the serial changed meanwhile.
    """
    before = _epoch(catalog, serial)
    while True:
        found = answer()
        after = _epoch(catalog, serial)
        if after == before:
            return found, after
        before = after


def _epoch(catalog: Catalog, serial: int) -> int:
    with catalog.read() as connection:
        return epoch_of(connection, serial)


def first_exact_serial(connection: Connection) -> int | None:
    """The least serial with an answer; None before a full crawl is complete."""
    if not has_baseline(connection):
        return None
    return connection.scalar(select(catalog_state.c.exact_from)) or 0


def answerable_serial(catalog: Catalog, serial: int | None = None) -> int:
    """The serial at which a question about `serial` (None: the complete serial) is answered.

    Raises NotExactError, with the answerable serials, where the catalog is not exact at `serial`.
    """
    with catalog.read() as connection:
        exact_from = first_exact_serial(connection)
        if exact_from is None:
            raise CatalogError(
                "no full crawl is complete yet, so there is no answer yet: run `pypi-assets crawl full`, or"
                " `pypi-assets scope run` where a scope was created"
            )
        complete = complete_serial(connection)
        spans = [] if serial is None else inexact_spans(connection, around=serial)
    if serial is None:
        return complete
    if exact_from <= serial <= complete and spans:
        raise NotExactError(
            f"there is no answer for serial {serial}: between the serials {spans[0].start} and {spans[-1].end} only the"
            " list of projects showed what changed, and no events are known; use one of the two serials, or"
            " follow the changelog once it answers (`pypi-assets crawl incremental`)"
        )
    if exact_from <= serial <= complete:
        return serial
    if exact_from > complete:
        raise NotExactError(
            f"there is no answer for serial {serial} yet: the catalog is exact from serial {exact_from} on, and"
            f" complete up to {complete}; run `pypi-assets crawl incremental`"
        )
    answerable = f"serial {complete}" if exact_from == complete else f"serials {exact_from} to {complete}"
    raise NotExactError(f"there is no answer for serial {serial}, only for {answerable}")
