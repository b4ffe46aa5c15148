"""Fill tables of PostgreSQL in bulk by COPY: constraints and indexes are dropped before, and created again afterwards.

It follows the definitions of the tables: a column that a table does not have is omitted, and a missing value for a
required column is an error.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Table
from sqlalchemy.engine import make_url

from pypi_assets.catalog.tables import metadata

PERIODS = 52
"""The parts of the year. Rows of a part are stored after the rows of earlier parts, as in a live catalog."""
_SENT_BYTES = 8 * 1024**2
_SPOOLED_BYTES = 128 * 1024
_KINDS = ("f", "p", "u", "c")  # foreign keys first
_SCHEMA_FILE = "schema.json"


class UnfilledColumnError(Exception):
    """A table has a new column that requires a value."""


def connect(url: str) -> psycopg.Connection[Any]:
    """Return a connection of the driver itself, with autocommit; `url` is an SQLAlchemy URL."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(plain, autocommit=True)


def drop_constraints(url: str, folder: Path) -> None:
    """Drop the constraints and indexes of the catalog's tables, and write their definitions to `folder`."""
    noted = folder / _SCHEMA_FILE
    with connect(url) as connection:
        found = connection.execute(
            "SELECT conrelid::regclass::text, conname, contype, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE connamespace = 'public'::regnamespace AND contype = ANY(%s)",
            (list(_KINDS),),
        ).fetchall()
        named = {name for _, name, kind, _ in found if kind in "pu"}
        indexes = [
            (name, definition)
            for name, definition in connection.execute(
                "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
            )
            if name not in named
        ]
        noted.write_text(json.dumps({"constraints": found, "indexes": indexes}))
        for table, name, _, _ in sorted(found, key=lambda row: _KINDS.index(row[2])):
            connection.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')  # type: ignore[arg-type]
        for name, _ in indexes:
            connection.execute(f'DROP INDEX "{name}"')  # type: ignore[arg-type]


def make_constraints(url: str, folder: Path) -> None:
    """Create the constraints and indexes again, two at a time, set the sequences, and collect statistics.

    Constraints are validated: rows that contradict each other are an error.
    """
    noted = json.loads((folder / _SCHEMA_FILE).read_text())
    by_kind: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for table, name, kind, definition in noted["constraints"]:
        by_kind[kind].append(f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition}')
    indexes = [definition for _, definition in noted["indexes"]]
    for statements in ([*by_kind["p"], *by_kind["u"], *indexes], [*by_kind["c"], *by_kind["f"]]):
        _execute_each(url, statements)
    with connect(url) as connection:
        for table in metadata.sorted_tables:
            if (column := table.autoincrement_column) is not None:
                name = f'"{column.name}"'
                connection.execute(
                    f"SELECT setval(pg_get_serial_sequence('{table.name}', '{column.name}'),"  # type: ignore[arg-type]
                    f" (SELECT coalesce(max({name}), 0) + 1 FROM {table.name}))"
                    f" WHERE pg_get_serial_sequence('{table.name}', '{column.name}') IS NOT NULL"
                )
    _execute_each(url, [f"VACUUM ANALYZE {table.name}" for table in metadata.sorted_tables])


def _execute_each(url: str, statements: Sequence[str]) -> None:
    def execute(statement: str) -> None:
        with connect(url) as connection:
            connection.execute("SET maintenance_work_mem = '512MB'")
            connection.execute(statement)  # type: ignore[arg-type]

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(execute, statements))


class BulkFill:
    """Takes rows of tables, each with its period: 0 is the full crawl, 1 to PERIODS the year.

    Rows of period 0 are sent immediately. Rows of the year wait in files below `folder` until `send_period`.
    """

    def __init__(self, url: str, folder: Path, worker: int) -> None:
        self._connection = connect(url)
        self._connection.execute("SET synchronous_commit = off")
        self._folder = folder
        self._worker = worker
        self._fillers: list[TableFiller] = []

    def table(self, name: str, *columns: str, **constant: Any) -> "TableFiller":
        """Return a filler for a table. `columns` are given for each row, in their order; `constant` values are equal in
        all rows.

        The filler of a missing table discards all rows.
        """
        filler = TableFiller(self, metadata.tables.get(name), columns, constant)
        self._fillers.append(filler)
        return filler

    def send(self, table: str, columns: Sequence[str], rows: bytes) -> None:
        listed = ", ".join(f'"{column}"' for column in columns)
        with self._connection.cursor().copy(f"COPY {table} ({listed}) FROM STDIN") as copy:  # type: ignore[arg-type]
            copy.write(rows)

    def path(self, table: str, period: int) -> Path:
        return self._folder / f"{table}.{period}.{self._worker}.rows"

    def end_crawl(self) -> None:
        """End the input: send the rest of the full crawl, and write the rest of the year to its files."""
        for filler in self._fillers:
            filler.flush()

    def send_period(self, period: int) -> None:
        for filler in self._fillers:
            filler.send_period(period)

    def close(self) -> None:
        self._connection.close()


class TableFiller:
    """Rows of one table, as lines of COPY's text format."""

    def __init__(self, fill: BulkFill, table: Table | None, columns: Sequence[str], constant: dict[str, Any]) -> None:
        self._fill = fill
        self._buffers: list[list[str]] = [[] for _ in range(PERIODS + 1)]
        self._sizes = [0] * (PERIODS + 1)
        self.count = 0
        self.add: Callable[..., None] = self._drop
        if table is None:
            return
        self._name = table.name
        known = {column.name: column for column in table.columns}
        constant = {name: value for name, value in constant.items() if name in known}
        self._columns = [name for name in columns if name in known] + list(constant)
        self._take = [at for at, name in enumerate(columns) if name in known]
        self._end = "".join(f"\t{_text(value)}" for value in constant.values()) + "\n"
        lacking = [
            name
            for name, column in known.items()
            if not column.nullable
            and column.server_default is None
            and name not in self._columns
            and column is not table.autoincrement_column
        ]
        if lacking:
            raise UnfilledColumnError(f"{table.name} needs values of {', '.join(lacking)}")
        self.add = self._add if len(self._take) == len(columns) else self._add_some

    def _drop(self, _period: int, *_values: Any) -> None:
        """Discard the row, since there is no such table."""

    def _add_some(self, period: int, *values: Any) -> None:
        self._add(period, *[values[at] for at in self._take])

    def _add(self, period: int, *values: Any) -> None:
        line = "\t".join([_text(value) for value in values]) + self._end
        self._buffers[period].append(line)
        self._sizes[period] += len(line)
        self.count += 1
        if self._sizes[period] > (_SPOOLED_BYTES if period else _SENT_BYTES):
            self._empty(period)

    def flush(self) -> None:
        for period in range(PERIODS + 1):
            self._empty(period)

    def _empty(self, period: int) -> None:
        if not self._buffers[period]:
            return
        rows = "".join(self._buffers[period]).encode()
        self._buffers[period], self._sizes[period] = [], 0
        if period == 0:
            self._fill.send(self._name, self._columns, rows)
        else:
            with self._fill.path(self._name, period).open("ab") as spool:
                spool.write(rows)

    def send_period(self, period: int) -> None:
        if not self.count or not (path := self._fill.path(self._name, period)).exists():
            return
        with path.open("rb") as spool:
            for rows in _whole_lines(spool.read, _SENT_BYTES):
                self._fill.send(self._name, self._columns, rows)
        path.unlink()


def _whole_lines(read: Callable[[int], bytes], size: int) -> Iterator[bytes]:
    rest = b""
    while piece := read(size):
        whole, newline, last = piece.rpartition(b"\n")
        if newline:
            yield rest + whole + newline
            rest = last
        else:
            rest += piece
    if rest:
        yield rest


def _text(value: Any) -> str:
    if value is None:
        return "\\N"
    if type(value) is str:
        if "\\" in value or "\n" in value or "\t" in value or "\r" in value:
            return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
        return value
    if value is True:
        return "t"
    if value is False:
        return "f"
    return f"\\\\x{value.hex()}" if type(value) is bytes else str(value)
