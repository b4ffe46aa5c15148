"""Write the data files of the table `events`: all stored events, in the order of their serials.

Events are only added. A data file with few rows is joined with the next events, so there are never many small files.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlalchemy import Connection

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.events import events_since, stored_events
from pypi_assets.iceberg.arrow_schemas import SCHEMAS
from pypi_assets.iceberg.bucket_files import read_data_files, write_without_buckets
from pypi_assets.iceberg.snapshots import EVENTS_SINCE, data_files, property_of, serial_of
from pypi_assets.iceberg.table_columns import EVENTS

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

_SCHEMA = SCHEMAS[EVENTS]
ROWS_OF_A_FILE = 131_072
_AT_A_TIME = 8_192


@dataclass(frozen=True, slots=True)
class WrittenEvents:
    """The data files of the next snapshot of `events`, and its properties."""

    added: list["DataFile"]
    deleted: list["DataFile"]
    properties: Mapping[str, str]


def write_events(catalog: Catalog, table: "Table", serial: int, report: Callable[[], object]) -> WrittenEvents:
    """Write the events up to `serial` that the table lacks. `report` is called from time to time.

    If a crawl of the history has stored earlier events in the meantime, they are added too. If the table has events
    after `serial`, because `files` begins again with an older full dump, all events are written again.
    """
    newest = table.current_snapshot()
    through, before = serial_of(newest) or 0, property_of(newest, EVENTS_SINCE)
    present = [file for files in data_files(table, newest).values() for file in files]
    small = [file for file in present if file.record_count < ROWS_OF_A_FILE]
    deleted = small
    if through > serial:
        before, small, deleted = None, [], present
    with catalog.read() as connection:
        since = events_since(connection)
        spans = [(since if before is None else through, serial)]
        if before is not None and since < int(before):
            spans.insert(0, (since, int(before)))

        def pieces() -> Iterator[pa.Table]:
            waiting = [read_data_files(table, small, _SCHEMA)]
            for start, end in spans:
                for batch in _batches(connection, start, end):
                    waiting.append(pa.Table.from_batches([batch]))
                    report()
                    if sum(one.num_rows for one in waiting) >= ROWS_OF_A_FILE:
                        yield _in_order(waiting)
                        waiting = []
            yield _in_order(waiting)

        added = list(write_without_buckets(table, pieces()))
    return WrittenEvents(added, deleted, {EVENTS_SINCE: str(since)})


def _in_order(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables([_SCHEMA.empty_table(), *tables]).sort_by("serial")


def _batches(connection: Connection, after: int, through: int) -> Iterator[pa.RecordBatch]:
    for rows in stored_events(connection, after, through, _AT_A_TIME):
        serials, names, normalized, versions, seconds, actions = zip(*rows, strict=True)
        times = [datetime.fromtimestamp(one, UTC) for one in seconds]
        columns = (serials, names, normalized, versions, times, actions)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
