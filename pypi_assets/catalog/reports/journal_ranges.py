"""The records of the journal for some serials, from one reading of the catalog for all streams."""

from collections.abc import Callable, Collection, Iterator
from typing import Protocol

from sqlalchemy import Connection

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.journal_contents import ContentRecords
from pypi_assets.catalog.reports.journal_format import JournalStream, Numbering, Record
from pypi_assets.catalog.reports.journal_records import ObservedRecords, index_records
from pypi_assets.catalog.reports.journal_visits import visit_records
from pypi_assets.catalog.reports.logged_changes import LoggedBatch, logged_batches


class _OfFiles(Protocol):
    """Makes the records of a stream from batches of changed files, which are given in order."""

    def of(self, batch: LoggedBatch) -> Iterator[Record]: ...

    def rest(self) -> Iterator[Record]: ...


_OF_FILES: dict[JournalStream, Callable[[Connection, SerialRange], _OfFiles]] = {
    JournalStream.OBSERVED: ObservedRecords,
    JournalStream.CONTENT: ContentRecords,
}
BY_RANGE = (*_OF_FILES, JournalStream.VISITS)
"""The streams that have a segment for each range of the ledger."""


def journal_records(
    connection: Connection, serials: SerialRange, streams: Collection[JournalStream]
) -> Iterator[tuple[JournalStream, Iterator[Record]]]:
    """Yield the records of these streams in a sealed range, in parts.

    Use up each part before the next one. The parts of a stream are in order; parts of several streams alternate.
    """
    if JournalStream.INDEX in streams:
        yield JournalStream.INDEX, index_records(connection, serials)
    makers = {stream: _OF_FILES[stream](connection, serials) for stream in streams if stream in _OF_FILES}
    numbering = {stream: Numbering(stream) for stream in streams}
    for batch in logged_batches(connection, serials) if makers else ():
        for stream, maker in makers.items():
            yield stream, numbering[stream].of(maker.of(batch))
    for stream, maker in makers.items():
        yield stream, numbering[stream].of(maker.rest())
    if JournalStream.VISITS in streams:
        yield JournalStream.VISITS, visit_records(connection, serials)
