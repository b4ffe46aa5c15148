"""The commands `journal tail` and `journal consumers`: the journal's records, and its named readers."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

import click

from pypi_assets.cli.contexts import existing_catalog
from pypi_assets.cli.options import JSON, command
from pypi_assets.terminal import local_time, plain, print_json_rows, print_message, print_table
from pypi_assets.times import utc_text

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.journal.cursors import Cursor
    from pypi_assets.journal.filters import RecordFilter
    from pypi_assets.journal.record_reader import Journal, Placed

_POLL_S = 1.0
"""Seconds between two polls for new records, with --follow."""
_SEEN_EVERY_S = 3_600.0
"""Seconds after which a consumer is recorded as seen, even if there are no new records."""
_RECORDS_AT_A_TIME = 1_000
"""Number of records to write before the output is flushed and the consumer's cursor is stored."""
_Format = Callable[[Sequence["Placed"]], bytes]
"""Returns the lines to print for some records."""
_COLUMNS = ("consumer", "serial", "lag_serials", "lag_seconds", "waiting", "dead", "seen")


@command("tail", "--since 2026-03-01 --project requests --json", within="journal")
@click.option(
    "--since",
    metavar="CURSOR|SERIAL|DATE",
    help="Begin after this record, serial or UTC time; now: with the next record. Default: the beginning.",
)
@click.option("--project", "projects", multiple=True, metavar="NAME", help="Only records of this project; repeatable.")
@click.option(
    "--kind", "kinds", multiple=True, metavar="KIND", help="Only records of this kind, such as file-added; repeatable."
)
@click.option(
    "--stream",
    "streams",
    multiple=True,
    metavar="STREAM",
    help="Only records of this stream: index, observed or content; repeatable.",
)
@click.option(
    "--module",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="Only records of the stream content that name this module or a submodule; repeatable.",
)
@click.option(
    "--gained",
    multiple=True,
    metavar="FACT",
    help="Only releases with this fact that the previous release lacks, such as start-up or commands; repeatable.",
)
@click.option("--follow", is_flag=True, help="Wait for new records, until stopped.")
@click.option("--limit", type=click.IntRange(1), help="Stop after this many records.")
@click.option(
    "--consumer",
    metavar="NAME",
    help="Continue where the consumer of this name stopped, and store its progress.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line, each with its cursor.")
def journal_tail_command(
    *,
    since: str | None,
    projects: Sequence[str],
    kinds: Sequence[str],
    streams: Sequence[str],
    modules: Sequence[str],
    gained: Sequence[str],
    follow: bool,
    limit: int | None,
    consumer: str | None,
    as_json: bool,
) -> None:
    """Print the records of the journal, in order.

    Without --json, the columns are serial, time, kind, project, version and file. A consumer gets each record at least
    once: its cursor is stored after the output is flushed.
    """
    from pypi_assets.catalog.database import NoCatalogError
    from pypi_assets.components import storage_from
    from pypi_assets.journal.filters import FilterError, RecordFilter
    from pypi_assets.journal.journal_errors import SinceError
    from pypi_assets.journal.record_reader import Journal
    from pypi_assets.settings import load_settings

    settings = load_settings()
    try:
        wanted = RecordFilter.parse(projects, kinds, streams, modules, gained)
    except FilterError as error:
        raise click.UsageError(f"--{error}") from None
    check_consumer(consumer)
    with ExitStack() as stack:
        catalog = None
        if consumer is not None or since is not None:
            try:
                catalog = stack.enter_context(existing_catalog(settings))
            except NoCatalogError:
                if consumer is not None:
                    raise
                # a mirror may have no catalog, which a serial or a cursor does not need
        journal = Journal(storage_from(settings, catalog, read_only=True))
        try:
            after = _beginning(journal, catalog, wanted, since, consumer)
        except SinceError as error:
            raise click.UsageError(f"--since: {error}") from None
        tail = Printer(journal, wanted, after, sys.stdout.buffer, catalog, consumer, as_json=as_json)
        while not tail.print_all(limit) and follow:
            time.sleep(_POLL_S)


def check_consumer(name: str | None) -> None:
    """Raise UsageError if `name` is not a valid name of a consumer."""
    from pypi_assets.catalog.publications.journal_deliveries import ConsumerNameError, check_name

    try:
        if name is not None:
            check_name(name)
    except ConsumerNameError as error:
        raise click.UsageError(f"--consumer: {error}") from None


def _beginning(
    journal: "Journal", catalog: "Catalog | None", wanted: "RecordFilter", since: str | None, consumer: str | None
) -> "Cursor":
    from pypi_assets.catalog.publications.journal_deliveries import find_consumer
    from pypi_assets.journal.cursors import Cursor
    from pypi_assets.journal.tailing import beginning, cursor_since

    if since is not None:
        return cursor_since(since, journal, catalog, wanted)
    if consumer is not None and catalog is not None:
        with catalog.read() as connection:
            known = find_consumer(connection, consumer)
        if known is not None:
            return Cursor.parse(known.cursor)
    return beginning(journal, wanted)


class Printer:
    """Prints records, and stores the progress of its consumer."""

    def __init__(
        self,
        journal: "Journal",
        wanted: "RecordFilter",
        after: "Cursor",
        out: BinaryIO,
        catalog: "Catalog | None",
        consumer: str | None,
        *,
        as_json: bool,
    ) -> None:
        self._journal, self._wanted, self._cursor, self._out = journal, wanted, after, out
        self._catalog, self._consumer = catalog, consumer
        self._format: _Format = _json_lines if as_json else _plain_lines
        self._printed = 0
        self._stored_at = -math.inf

    def print_all(self, limit: int | None) -> bool:
        """Print the records that are published now. Return whether `limit` records were printed in total."""
        from pypi_assets.journal.cursors import Cursor
        from pypi_assets.journal.tailing import Scan

        scan = Scan(self._journal, self._cursor, self._wanted)
        wanted = ((place, line) for place, line in scan if line is not None)
        while True:
            most = _RECORDS_AT_A_TIME if limit is None else min(_RECORDS_AT_A_TIME, limit - self._printed)
            some = list(islice(wanted, most))
            is_end = len(some) < most
            self._flush(some, scan.end if is_end else Cursor(*some[-1][0]))
            if is_end or self._printed == limit:
                return not is_end

    def _flush(self, some: Sequence["Placed"], cursor: "Cursor") -> None:
        from pypi_assets.catalog.publications.journal_deliveries import move_consumer

        if some:
            self._out.write(self._format(some))
            self._out.flush()
            self._printed += len(some)
        has_moved = cursor != self._cursor or time.monotonic() > self._stored_at + _SEEN_EVERY_S
        self._cursor = cursor
        if self._catalog is not None and self._consumer is not None and has_moved:
            move_consumer(self._catalog, self._consumer, str(cursor), cursor.serial)
            self._stored_at = time.monotonic()


def _json_lines(records: Sequence["Placed"]) -> bytes:
    """Return JSON lines in ASCII, which are safe on any terminal. Each has the cursor after its record."""
    import orjson

    from pypi_assets.journal.cursors import cursor_text

    parts: list[bytes | memoryview] = []
    for place, line in records:
        if line.isascii():
            parts += memoryview(line)[:-1], b',"cursor":"', cursor_text(*place), b'"}\n'
        else:
            record = {**orjson.loads(line), "cursor": cursor_text(*place).decode()}
            parts += json.dumps(record, separators=(",", ":")).encode(), b"\n"
    return b"".join(parts)


def _plain_lines(records: Sequence["Placed"]) -> bytes:
    """Return lines of columns separated by tabs."""
    import orjson

    lines = []
    for _, line in records:
        record = orjson.loads(line)
        cells = (
            record["serial"],
            utc_text(record["at"]),
            record["kind"],
            record["project"],
            record.get("version"),
            record.get("filename") or record.get("module"),
        )
        lines.append("\t".join(map(plain, cells)) + "\n")
    return "".join(lines).encode(errors="replace")


@command("consumers", within="journal")
@click.option("--forget", metavar="NAME", help="Delete the consumer of this name and its undelivered letters.")
@JSON
def journal_consumers_command(*, forget: str | None, as_json: bool) -> None:
    """List the named readers of the journal, and how far they lag the catalog.

    Each name of `journal tail --consumer NAME` is a consumer, and so is each webhook. A consumer that was not seen for
    30 days does not keep segments from being pruned.
    """
    from pypi_assets.catalog.publications.journal_deliveries import consumer_lags, forget_consumer
    from pypi_assets.settings import load_settings

    with existing_catalog(load_settings()) as catalog:
        if forget is not None:
            if not forget_consumer(catalog, forget):
                raise click.UsageError(f"there is no consumer {forget!r}: `pypi-assets journal consumers` lists them")
            print_message(f"the consumer {forget} is deleted")
            return
        now = catalog.clock()
        with catalog.read() as connection:
            found = consumer_lags(connection, now)
    if as_json:
        rows: Iterable[dict[str, object]] = (
            {
                "name": one.name,
                "serial": one.serial,
                "cursor": one.cursor,
                "lag_serials": one.lag_serials,
                "lag_seconds": one.lag_seconds,
                "waiting": one.waiting,
                "dead": one.dead,
                "is_living": one.is_living(now),
                "created": utc_text(one.created_at),
                "seen": utc_text(one.seen_at),
            }
            for one in found
        )
        print_json_rows(rows)
        return
    print_table(
        _COLUMNS,
        (
            (
                one.name,
                one.serial,
                one.lag_serials,
                None if one.lag_seconds is None else round(one.lag_seconds),
                one.waiting,
                one.dead,
                local_time(one.seen_at),
            )
            for one in found
        ),
    )
    if not found:
        print_message("there are no consumers: `pypi-assets journal tail --consumer NAME` makes one")
