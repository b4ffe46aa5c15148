"""A model of journal readers: rows of dumps, made from the last records of each file."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from sqlalchemy import Connection

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import RangeState, complete_serial, ledger, read_state
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_registry import open_range_dump, range_dump_rows
from pypi_assets.catalog.publications.dump_rows import CONTENT
from pypi_assets.catalog.publications.journal_segments import seal_range
from pypi_assets.catalog.reads.stored_json import to_utf8_json
from pypi_assets.catalog.reports.journal_contents import FILE_READ, NOT_READ
from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.catalog.reports.journal_ranges import journal_records
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets_tests.crawl.model_dumps import full_dump_of
from pypi_assets_tests.crawl.model_following import Following, draining_in_place
from pypi_assets_tests.crawl.model_steps import Step

UNKNOWABLE = frozenset({"project_status", "provenance"})
"""Columns that no record keeps up to date: a project's status changes without a change of its files; the last one is
observed nowhere."""
Key = tuple[str, str]


def journal_of(catalog: Catalog, serials: SerialRange) -> list[Record]:
    """Return the records of complete serials as read from segments, with the observed stream first."""
    seal_complete(catalog)
    with catalog.read_once() as connection:
        records = [
            *stream_records(connection, serials, JournalStream.OBSERVED),
            *stream_records(connection, serials, JournalStream.CONTENT),
        ]
    return [orjson.loads(to_utf8_json(record)) for record in records]


def stream_records(connection: Connection, serials: SerialRange, stream: JournalStream) -> Iterator[Record]:
    """Yield the records of one stream."""
    for _, records in journal_records(connection, serials, (stream,)):
        yield from records


def seal_complete(catalog: Catalog) -> None:
    """Seal all complete ranges, as writing their journals does."""
    with catalog.read() as connection:
        ranges = [entry.serials for entry in ledger(connection) if entry.state == RangeState.COMPLETE]
    for serials in ranges:
        seal_range(catalog, serials)


class JournalReader:
    """Keeps the last records of each file while the journal grows."""

    def __init__(self) -> None:
        self.serial = 0
        self.observed: dict[Key, Record] = {}
        self.content: dict[Key, Record] = {}

    def take(self, records: list[Record], end: int) -> None:
        self.serial = end
        for record in records:
            if "filename" not in record:
                continue
            if record["stream"] == "observed":
                self.observed[record["normalized"], record["filename"]] = record
            elif record["kind"] in {FILE_READ, NOT_READ}:
                self.content[record["normalized"], record["filename"]] = record

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the live rows by filename."""
        rows = {key[1]: self.row(key) for key in self.observed}
        return {filename: row for filename, row in rows.items() if not row["tombstone"]}

    def row(self, key: Key) -> dict[str, Any]:
        return row_of(self.observed[key], self.content.get(key), self.serial)


def row_of(observed: Record, content: Record | None, serial: int) -> dict[str, Any]:
    """Return the row of a dump that ends at `serial`, made from the last records of a file."""
    place = {name: observed[name] for name in ("project", "normalized", "version", "filename")}
    since = next((start for start, end in observed["live"] if end is None), None)
    if since is None or not _is_followed(observed, serial):
        return place | {"tombstone": True}
    # if the page has no hash of a file, the hash is known as soon as its bytes are read
    is_read = content is not None and (content["sha256"] == observed["sha256"] or None in _hashes(observed, content))
    read: Mapping[str, Any] = content if content is not None and is_read else {"outcome": "pending"}
    yanked = any(end is None for _, end in observed["yanked"])
    shown = ("url", "sha256", "size", "uploaded_at", "core_metadata_sha256", "first_seen_at", "project_status")
    empty = {"provides_extra": [], "stubs": [], "left_out": 0}
    return {
        **place,
        "tombstone": False,
        **{name: read.get(name, empty.get(name)) for name in CONTENT},
        **{name: observed[name] for name in shown},
        "sha256": observed["sha256"] or read.get("sha256"),
        "kind": observed["distribution_kind"],
        "requires_python": observed["requires_python"] or read.get("requires_python"),
        "yanked": yanked,
        "yanked_reason": observed["yanked_reason"] if yanked else None,
        "live_since": since,
    }


def _hashes(*records: Record) -> set[str | None]:
    return {record["sha256"] for record in records}


def _is_followed(observed: Record, serial: int) -> bool:
    spans = observed.get("followed")
    if spans is None:
        return True
    return any(exact_from <= serial and (end is None or end > serial) for _, end, exact_from in spans)


def compared(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without the columns that the journal cannot keep up to date."""
    return {name: value for name, value in row.items() if name not in UNKNOWABLE}


class JournalFollowing(Following):
    """Writes the journal of each range as soon as it is complete, and compares its readers with the dumps."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog)
        self.journal = JournalReader()
        self.records: dict[SerialRange, list[Record]] = {}

    def require_dumps(self) -> None:
        super().require_dumps()
        self.go_on()

    def go_on(self) -> None:
        """Write the journal of complete ranges and compare it with the dump of each range."""
        with self.catalog.read() as connection:
            complete, exact_from = complete_serial(connection), read_state(connection)["exact_from"]
            ranges = [entry.serials for entry in ledger(connection) if entry.state == RangeState.COMPLETE]
        if complete == 0 or complete < exact_from:
            return
        for serials in ranges:
            if self.journal.serial <= serials.start < complete:
                dumped = list(map(as_dumped, range_dump_rows(self.catalog, open_range_dump(self.catalog, serials))))
                self.records[serials] = journal_of(self.catalog, serials)
                self.journal.take(self.records[serials], serials.end)
                for row in dumped:
                    found = self.journal.row((str(row["normalized"]), str(row["filename"])))
                    assert compared(found) == compared(row), f"{row['filename']} in {serials}"

    def require_dumped(self) -> None:
        super().require_dumped()
        if self.index.serial == 0:
            return  # no range is complete
        self.go_on()
        fresh = full_dump_of(self.catalog)
        found = self.journal.rows()
        assert found.keys() == fresh.keys()
        for filename, row in fresh.items():
            assert compared(found[filename]) == compared(row), filename


def follow_with_journal(catalog: Catalog, history: list[Step]) -> JournalFollowing:
    """Follow a history. Raise AssertionError if the journal and the dumps differ."""
    import random

    following = JournalFollowing(catalog)
    with draining_in_place():
        for name, arguments in history:
            random.seed(0)
            following.step(name, arguments)
        following.settle()
    return following
