"""The catalog's database, SQLite in WAL mode or PostgreSQL: open, migrate, read and write it.

No query belongs here: queries are in the subpackages.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    Select,
    String,
    Table,
    TableValuedAlias,
    Text,
    and_,
    bindparam,
    create_engine,
    event,
    func,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from pypi_assets.errors import ExpectedError
from pypi_assets.interrupts import Uninterrupted
from pypi_assets.visit_policies import BALANCED, VisitPolicy

_MIGRATIONS = Path(__file__).parent / "migrations"
_FIRST_RELEASED = "0100"  # later schemas have greater numbers
_MIGRATION_LOCK = 0x70797069  # an arbitrary constant that identifies the advisory lock
_SQLITE_BUSY_TIMEOUT_S = 120
_SQLITE_CACHE_KIB = 64 * 1024
_SQLITE_ONCE_KIB = 2 * 1024
_ROLLED_BACK = frozenset({"40001", "40P01"})
"""SQLSTATEs of a serialization failure and of a deadlock: the server has rolled the transaction back."""
_ATTEMPTS = 10
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 2.0
_STEPS_BETWEEN_LOOKS = 10_000
_PARAMETERS_AT_A_TIME = 1_000

_STEADY_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_T = TypeVar("_T")
_V = TypeVar("_V")


class CatalogError(ExpectedError):
    """The catalog cannot be used as requested. The message says what to do."""


class UnreleasedCatalogError(CatalogError):
    """The catalog has the schema of a version before the first release, which no migration reads."""

    def __init__(self, schema: str) -> None:
        super().__init__(
            f"the catalog has schema {schema}, from before the first release: this version of pypi-assets cannot"
            " migrate it; set PYPI_ASSETS_HOME to a new folder, and PYPI_ASSETS_DATABASE_URL, if it is set, to an empty"
            " database, and run `pypi-assets init`"
        )
        self.schema = schema


class NoCatalogError(CatalogError):
    """The catalog does not exist, and the caller asked not to create it."""


def steady_time() -> float:
    """Return the seconds since the machine's boot, including those in which it was suspended."""
    return time.clock_gettime(_STEADY_CLOCK)


@dataclass(frozen=True, slots=True)
class MachineClock:
    """The machine's clock, which can be set at any moment, and a `steady` clock, which cannot."""

    now: Callable[[], float] = time.time
    steady: Callable[[], float] = steady_time

    def __call__(self) -> float:
        """Return unix seconds."""
        return self.now()

    @property
    def offset_s(self) -> float:
        """Return how many seconds the clock is ahead of the steady clock."""
        return self.now() - self.steady()


@dataclass(frozen=True)
class Catalog:
    """An open catalog. `clock` returns unix seconds, by the server's clock if there is a server; tests replace it.

    `dump_ending` ends the names of new dump files, and so selects their compression.
    Visits that its transactions queue are placed by `visit_policy`.

    For example:

        with catalog.read() as connection:
            serial = complete_serial(connection)
    """

    engine: Engine
    clock: Callable[[], float] = field(default=time.time)
    dump_ending: str = ".json.gz"
    visit_policy: VisitPolicy = BALANCED

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a writing transaction that is not retried, for tests and migrations. Other code calls `transact`."""
        with Uninterrupted(), self.engine.connect() as connection:
            connection = connection.execution_options(sqlite_begin="IMMEDIATE", catalog=self)
            with connection.begin():
                yield connection

    def transact(self, work: Callable[[Connection], _T]) -> _T:
        """Run `work` in one short writing transaction and return its result. On SQLite it holds the only write lock.

        `work` may run several times, so it must change nothing but the catalog. It is retried after a random pause if
        the server has rolled the transaction back (because of a deadlock or a conflict with another transaction), or if
        the connection was lost before the commit. The tenth error is raised, and so is an error during the commit,
        which leaves open whether the transaction was committed. Ctrl-C waits until the transaction has ended.
        """
        attempt = _TransactionAttempt(self, work)
        retrying = Retrying(
            retry=retry_if_exception(attempt.can_run_again_after),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_random_exponential(_FIRST_PAUSE_S, max=_LONGEST_PAUSE_S),
            reraise=True,
        )
        result: _T = retrying(attempt.run)
        return result

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that reads one consistent state, however long it takes."""
        connection = None
        try:
            with Uninterrupted():
                connection = self._begin_reading()
            yield connection
        finally:
            if connection is not None:
                try:
                    with Uninterrupted():
                        connection.close()
                finally:
                    connection.close()  # if Ctrl-C came just before that block began

    def _begin_reading(self) -> Connection:
        connection = self.engine.connect().execution_options(catalog=self)
        if not self.is_sqlite:
            connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        connection.begin()
        return connection

    @contextmanager
    def read_once(self) -> Iterator[Connection]:
        """Like `read`, for large results that are read once: SQLite caches few of their pages in memory."""
        with self.read() as connection:
            if not self.is_sqlite:
                yield connection
                return
            connection.exec_driver_sql(f"PRAGMA cache_size = -{_SQLITE_ONCE_KIB}")
            try:
                yield connection
            finally:
                # Ctrl-C during a statement invalidates the connection, which is then not reused
                if not connection.invalidated:
                    connection.exec_driver_sql(f"PRAGMA cache_size = -{_SQLITE_CACHE_KIB}")

    def close(self) -> None:
        """Close all connections. One that a thread or a suspended generator still uses is closed on its return."""
        with Uninterrupted():
            event.listen(self.engine.pool, "checkin", _close_returned)  # the pool would keep it open
            self.engine.dispose()


def _close_returned(_connection: object, record: ConnectionPoolEntry) -> None:
    record.invalidate()


def catalog_of(connection: Connection) -> Catalog:
    """Return the catalog that opened this connection."""
    catalog: Catalog = connection.get_execution_options()["catalog"]
    return catalog


class _TransactionAttempt(Generic[_T]):
    """One run of `work` in a transaction; records whether it was connected and whether it was committing."""

    def __init__(self, catalog: Catalog, work: Callable[[Connection], _T]) -> None:
        self._catalog = catalog
        self._work = work
        self._is_connected = self._is_committing = False

    def run(self) -> _T:
        self._is_connected = self._is_committing = False
        with self._catalog.write() as connection:
            self._is_connected = True
            result = self._work(connection)
            self._is_committing = True
        return result

    def can_run_again_after(self, error: BaseException) -> bool:
        """Check whether `error` certainly left no change in the catalog and may not occur in another attempt."""
        if not isinstance(error, DBAPIError):
            return False
        if getattr(error.orig, "sqlstate", None) in _ROLLED_BACK:
            return True
        if not self._is_connected:  # a server that is restarting rejects connections
            return isinstance(error, OperationalError) and not self._catalog.is_sqlite
        return error.connection_invalidated and not self._is_committing


def open_catalog(url: str, clock: Callable[[], float] | None = None) -> Catalog:
    """Open the catalog at `url`, and create the tables in an empty database.

    Raises CatalogError if the database cannot be reached, or has the tables of an older or a newer version.
    """
    return _open(url, clock, migrate=False)[0]


def open_existing_catalog(url: str, clock: Callable[[], float] | None = None) -> Catalog:
    """Open the catalog at `url` like `open_catalog`, but create nothing: raises NoCatalogError if it does not exist."""
    return _open(url, clock, migrate=False, must_exist=True)[0]


def open_to_read(url: str, statement_timeout_s: float) -> Catalog:
    """Open an existing catalog for reading only. Statements are cancelled after `statement_timeout_s` seconds.

    On SQLite, `query_only` rejects writes. On a server, the user needs only the right to SELECT.
    """
    if make_url(url).get_backend_name() != "sqlite":
        milliseconds = int(statement_timeout_s * 1_000)
        options = f"-c default_transaction_read_only=on -c statement_timeout={milliseconds}"
        engine = create_engine(
            url, pool_pre_ping=True, pool_size=16, connect_args={"connect_timeout": 10, "options": options}
        )
        return Catalog(engine, _clock_of(engine))
    engine = _sqlite_engine(url)

    @event.listens_for(engine, "connect")
    def _refuse_to_write(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA query_only = ON")

    @event.listens_for(engine, "begin")
    def _limit(connection: Connection) -> None:
        ends = time.monotonic() + statement_timeout_s
        driver: Any = connection.connection.driver_connection
        driver.set_progress_handler(lambda: time.monotonic() > ends, _STEPS_BETWEEN_LOOKS)

    return Catalog(engine)


def migrate_catalog(url: str) -> tuple[str | None, str]:
    """Migrate the catalog at `url` to the newest schema. Return the schemas before and after.

    The schema before is None if the database was empty. Raises CatalogError if the database cannot be reached, or has
    the tables of a newer version.
    """
    catalog, before, after = _open(url, None, migrate=True)
    catalog.close()
    return before, after


def _open(
    url: str, clock: Callable[[], float] | None, *, migrate: bool, must_exist: bool = False
) -> tuple[Catalog, str | None, str]:
    """Return the catalog, its schema before it was opened, and its schema now."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise CatalogError(f"invalid database URL: {error}; check PYPI_ASSETS_DATABASE_URL") from error
    shown = parsed.render_as_string(hide_password=True)
    if must_exist and parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").exists():
        raise NoCatalogError(f"there is no file {parsed.database}")
    try:
        engine = _sqlite_engine(url) if parsed.get_backend_name() == "sqlite" else _server_engine(url)
    except OSError as error:
        raise CatalogError(
            f"cannot create the folder of {shown}: {error.strerror}; set PYPI_ASSETS_HOME to a writable folder"
        ) from error
    event.listen(engine, "handle_error", _name_database)
    with ExitStack() as on_failure:
        on_failure.callback(engine.dispose)
        with _driver_errors_as_catalog_errors(shown):
            catalog = Catalog(engine, clock or _clock_of(engine))
            before, after = _bring_up_to_date(catalog, migrate=migrate, must_exist=must_exist)
        on_failure.pop_all()
    return catalog, before, after


def _name_database(context: ExceptionContext) -> None:
    """Add the database's URL to an error of the driver, as its only detail: a process can open several catalogs."""
    error = context.sqlalchemy_exception
    if error is not None and context.engine is not None and not error.detail:
        error.add_detail(context.engine.url.render_as_string(hide_password=True))


def database_failure(error: DBAPIError) -> str:
    """Return a message for an error of the driver: which database failed, and why."""
    named = f" {error.detail[0]}" if error.detail else ""
    return f"the database{named} failed: {error.orig}"


def _clock_of(engine: Engine) -> Callable[[], float]:
    """Return the clock for the catalog's times.

    On a server, it is the server's clock, computed from its offset to this machine's steady clock at this moment. So
    claims and leases of several machines are compared by one clock, even if a machine's clock is set later. SQLite is
    used by one machine, so its own clock is enough.
    """
    if engine.dialect.name == "sqlite":
        return MachineClock()
    with engine.connect() as connection:
        before = steady_time()
        at_server = float(connection.execute(select(func.extract("epoch", func.clock_timestamp()))).scalar_one())
        ahead_s = at_server - (before + steady_time()) / 2
    return lambda: steady_time() + ahead_s


@contextmanager
def _driver_errors_as_catalog_errors(shown: str) -> Iterator[None]:
    """Convert errors of the driver to CatalogErrors that name the database as `shown`, which has no password."""
    try:
        yield
    except OperationalError as error:
        reason = str(error.orig).strip().splitlines()[0]
        settings = "PYPI_ASSETS_HOME and PYPI_ASSETS_DATABASE_URL" if _is_file(shown) else "PYPI_ASSETS_DATABASE_URL"
        raise CatalogError(f"cannot open the database {shown}: {reason}; check {settings}") from error
    except SQLAlchemyError as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise CatalogError(f"cannot use the database {shown}: {cause}; check PYPI_ASSETS_DATABASE_URL") from error


def _is_file(shown: str) -> bool:
    return shown.startswith("sqlite:")


def _sqlite_engine(url: str) -> Engine:
    path = make_url(url).database
    if not path or path == ":memory:":
        raise CatalogError("an SQLite catalog needs a file: sqlite:////absolute/path or sqlite:///relative/path")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": _SQLITE_BUSY_TIMEOUT_S, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver's own transactions begin too late and are never IMMEDIATE
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute(f"PRAGMA cache_size = -{_SQLITE_CACHE_KIB}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        mode = connection.get_execution_options().get("sqlite_begin", "DEFERRED")
        connection.exec_driver_sql(f"BEGIN {mode}")

    return engine


def _server_engine(url: str) -> Engine:
    return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10})


def _bring_up_to_date(catalog: Catalog, *, migrate: bool, must_exist: bool) -> tuple[str | None, str]:
    """Create or migrate the tables, and return the schema before and after.

    Without `migrate`, tables of an older version raise CatalogError and are not changed. With `must_exist`, a database
    without tables raises NoCatalogError.
    """
    from alembic import command  # slow to import, and not needed by processes that open no catalog
    from alembic.config import Config
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("path_separator", "os")
    script = ScriptDirectory.from_config(config)
    newest = str(script.get_current_head())
    with catalog.engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    if found == newest:
        return found, newest
    if found is None and must_exist:
        raise NoCatalogError("the database has no tables")
    with catalog.write() as connection:
        if not catalog.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        found = MigrationContext.configure(connection).get_current_revision()
        if found is not None and found not in {revision.revision for revision in script.walk_revisions()}:
            if not inspect(connection).has_table("distributions"):
                raise CatalogError(
                    "the database has tables of another program, such as Dagster: the catalog needs a separate"
                    " database; check PYPI_ASSETS_DATABASE_URL"
                )
            if found < _FIRST_RELEASED:
                raise UnreleasedCatalogError(found)
            raise CatalogError(
                f"the catalog has schema {found}, which this version of pypi-assets does not know:"
                " a newer version has migrated it; upgrade pypi-assets"
            )
        if found not in {None, newest} and not migrate:
            raise CatalogError(
                f"the catalog has schema {found}, and this version of pypi-assets needs {newest}: stop all processes"
                " that use it, back it up, and run `pypi-assets admin migrate`"
            )
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return found, newest


def at_a_time(values: Iterable[_V]) -> Iterator[Sequence[_V]]:
    """Yield `values` in chunks that are small enough for the parameters of one statement."""
    rest = iter(values)
    while chunk := list(islice(rest, _PARAMETERS_AT_A_TIME)):
        yield chunk


def read_by_index(connection: Connection) -> None:
    """Make this transaction join tables row by row, through indexes.

    So the cost of a statement depends on the size of its result. Otherwise PostgreSQL scans whole tables if it expects
    many rows, which depends on the sizes of the tables. It also assumes that only a tenth of a streamed result will be
    fetched, so it would read the projects in the order of the answer, and all files of each.
    """
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(
            "SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),"
            " set_config('enable_seqscan', 'off', true), set_config('cursor_tuple_fraction', '1', true)"
        )


def bare_rows(
    connection: Connection, query: Select[Any], parameters: Mapping[str, Any] | None = None
) -> Sequence[tuple[Any, ...]]:
    """Return the rows of `query` as the driver returns them, which takes a third less time.

    Use it for thousands of rows whose columns are texts and numbers, which need no conversion.
    """
    # a streamed result, for which the connection may be configured, has already fetched its first row
    result = connection.execute(query, parameters, execution_options={"stream_results": False, "yield_per": None})
    with closing(result):
        rows: Sequence[tuple[Any, ...]] = result.cursor.fetchall()
    return rows


def sent_values(connection: Connection, column: Column[Any], values: Sequence[Any]) -> TableValuedAlias:
    """Return a table with the single column `value` that contains `values`, to join with `column`.

    It takes one parameter for any number of values.
    """
    if connection.dialect.name == "sqlite":
        return func.json_each(json.dumps(values)).table_valued("value", name="sent")
    array = bindparam(None, values, type_=_array_type(column))
    return func.unnest(array).table_valued("value", name="sent").render_derived()


def sent_later(
    connection: Connection, column: Column[Any], name: str
) -> tuple[TableValuedAlias, Callable[[Sequence[Any]], Any]]:
    """Return a table like `sent_values`, for a statement that is built once, and a function that encodes its values.

    Each execution has the encoded values as its parameter `name`.
    """
    if connection.dialect.name == "sqlite":
        return func.json_each(bindparam(name)).table_valued("value", name=f"sent_{name}"), json.dumps
    array = bindparam(name, type_=_array_type(column))
    return func.unnest(array).table_valued("value", name=f"sent_{name}").render_derived(), list


def sent_rows(
    connection: Connection, columns: Sequence[Column[Any]], rows: Sequence[Sequence[Any]]
) -> tuple[FromClause, ColumnElement[bool]]:
    """Return a table that contains `rows`, and the condition that joins it with `columns`.

    Each row has a value for each of `columns`. The table takes one parameter on SQLite, and one for each column on
    PostgreSQL, for any number of rows.
    """
    sent, values = sent_columns(connection, columns, rows)
    return sent, and_(*(column == value for column, value in zip(columns, values, strict=True)))


def sent_columns(
    connection: Connection, columns: Sequence[Column[Any]], rows: Sequence[Sequence[Any]]
) -> tuple[FromClause, list[ColumnElement[Any]]]:
    """Return a table that contains `rows`, as `sent_rows` does, and its columns, which have the types of `columns`."""
    if connection.dialect.name == "sqlite":
        sent = func.json_each(json.dumps(rows)).table_valued("value", name="sent")
        values: list[ColumnElement[Any]] = [
            func.json_extract(sent.c.value, f"$[{number}]") for number in range(len(columns))
        ]
    else:
        arrays = [
            bindparam(None, [row[number] for row in rows], type_=_array_type(column))
            for number, column in enumerate(columns)
        ]
        sent = func.unnest(*arrays).table_valued(*(column.name for column in columns), name="sent").render_derived()
        values = list(sent.c)
    return sent, values


def lock_rows(connection: Connection, table: Table, *conditions: ColumnElement[bool]) -> None:
    """Lock the rows that meet `conditions`, in the order of their keys.

    Call it before a statement that changes many rows: two transactions that lock the same rows in different orders
    would deadlock. On SQLite it does nothing, since there is only one writer at a time.
    """
    if connection.dialect.name != "sqlite":
        key = list(table.primary_key)
        rows = select(*key).where(*conditions).order_by(*key).with_for_update(key_share=True).subquery()
        connection.execute(select(func.count()).select_from(rows))


def lock_name(connection: Connection, name: str) -> None:
    """Lock `name` until the transaction ends. Call it before the transaction locks anything else."""
    if connection.dialect.name != "sqlite":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))


def storable(text: str) -> str:
    """Return `text` with the characters that a database cannot store (NUL and lone surrogates) replaced."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def insert_missing(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert those `rows` that violate no unique constraint. Return the number of inserted rows.

    All rows have the same keys.
    """
    if not rows:
        return 0
    options = {"preserve_rowcount": True}
    if connection.dialect.name == "sqlite":
        bare = _bare_insert(table, tuple(rows[0]), None)
        return connection.exec_driver_sql(bare.text, bare.parameters(rows), execution_options=options).rowcount
    statement, parameters = _server_insert(table, rows)
    return connection.execute(statement.on_conflict_do_nothing(), parameters, execution_options=options).rowcount


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    key: Iterable[str],
    update: Iterable[str] | Callable[[Any], Mapping[str, ColumnElement[Any]]],
) -> None:
    """Insert `rows`. If a row with the same `key` exists, its `update` columns take the new values instead.

    If `update` is a function, it gets the new row's columns and returns the values to set. All rows have the same keys,
    and no two rows have the same `key`.
    """
    if not rows:
        return
    if connection.dialect.name == "sqlite" and not callable(update):
        bare = _bare_insert(table, tuple(rows[0]), (tuple(key), tuple(update)))
        connection.exec_driver_sql(bare.text, bare.parameters(rows))
        return
    statement, parameters = (
        (sqlite.insert(table), list(rows)) if connection.dialect.name == "sqlite" else _server_insert(table, rows)
    )
    connection.execute(_on_conflict(statement, table, key, update), parameters)


def _on_conflict(
    statement: Any,
    table: Table,
    key: Iterable[str],
    update: Iterable[str] | Callable[[Any], Mapping[str, ColumnElement[Any]]],
) -> Any:
    new = statement.excluded
    values = update(new) if callable(update) else {name: new[name] for name in update}
    return statement.on_conflict_do_update(index_elements=[table.c[name] for name in key], set_=values)


_SQLITE = sqlite.dialect(paramstyle="qmark")


class _BareInsert(NamedTuple):
    """An insert statement in the driver's own form, which takes a third of the time for thousands of rows."""

    text: str
    names: tuple[str, ...]
    converters: tuple[tuple[int, Callable[[Any], Any]], ...]

    def parameters(self, rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
        """Return the values of each row, in the statement's order."""
        found = [tuple([row[name] for name in self.names]) for row in rows]
        if not self.converters:
            return found
        changed = [list(values) for values in found]
        for position, convert in self.converters:
            for values in changed:
                values[position] = convert(values[position])
        return [tuple(values) for values in changed]


@lru_cache(maxsize=256)
def _bare_insert(
    table: Table, names: tuple[str, ...], conflict: tuple[tuple[str, ...], tuple[str, ...]] | None
) -> _BareInsert:
    """Return the statement that inserts rows with the columns `names`.

    `conflict` has the columns of the key, and the columns to update if a row with the same key exists. If it is None,
    existing rows do not change.
    """
    bare = sqlite.insert(table).inline()
    statement = bare.on_conflict_do_nothing() if conflict is None else _on_conflict(bare, table, *conflict)
    compiled: Any = statement.compile(dialect=_SQLITE, column_keys=list(names))
    order = tuple(compiled.positiontup)
    types = (table.c[name].type.dialect_impl(_SQLITE) for name in order)
    converters = ((position, of_type.bind_processor(_SQLITE)) for position, of_type in enumerate(types))
    return _BareInsert(str(compiled), order, tuple((at, convert) for at, convert in converters if convert is not None))


def _server_insert(table: Table, rows: Sequence[Mapping[str, Any]]) -> tuple[Any, Any]:
    """Return the statement that inserts `rows`, and its parameters.

    The parameters are one array for each column, which costs a server far less than one statement for each row.
    """
    names = list(rows[0])
    arrays = [bindparam(name, type_=_array_type(table.c[name])) for name in names]
    sent = func.unnest(*arrays).table_valued(*names).render_derived()
    statement = postgresql.insert(table).from_select(names, select(sent))
    return statement, {name: [row[name] for row in rows] for name in names}


def _array_type(column: Column[Any]) -> postgresql.ARRAY[Any]:
    # a cast to String would cut long texts
    return postgresql.ARRAY(Text() if isinstance(column.type, String) else column.type)
