"""Opening, creating, migrating and rejecting a catalog, and the reads and writes of its transactions."""

import gc
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, delete, insert, inspect, select, text, update
from sqlalchemy.exc import DBAPIError

from pypi_assets.catalog import database
from pypi_assets.catalog.database import (
    Catalog,
    CatalogError,
    NoCatalogError,
    UnreleasedCatalogError,
    bare_rows,
    insert_missing,
    migrate_catalog,
    open_catalog,
    open_existing_catalog,
    read_by_index,
    upsert,
)
from pypi_assets.catalog.tables import full_crawls, leases, metadata, snapshots
from pypi_assets_tests.interrupted_steps import interrupted_steps
from pypi_assets_tests.naming import naming

_A_LEASE = {"name": "dumps", "holder": "a", "taken_at": 0.0, "expires_at": 1.0}
_NOTES = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "9001", "NEWEST", None, None


def upgrade():
    op.add_column("leases", sa.Column("notes", sa.Text()))
"""


def test_connection_in_use_is_closed_after_the_catalog(catalog: Catalog, subtests: pytest.Subtests) -> None:
    def generate() -> Iterator[Connection]:
        with catalog.read() as connection:
            yield connection

    driver = catalog.engine.dialect.loaded_dbapi
    for name in ("generator", "late thread"):
        with subtests.test(name=name):
            if name == "generator":
                connections = generate()
                used = next(connections).connection.dbapi_connection
                catalog.close()
                next(connections, None)
            else:  # a thread that began to use the catalog just before it was closed
                with catalog.read() as connection:
                    used = connection.connection.dbapi_connection
            assert used is not None
            with pytest.raises(driver.Error):
                used.cursor().execute("SELECT 1")


def test_concurrent_opens_create_the_tables_once(catalog: Catalog):
    url = catalog.engine.url.render_as_string(hide_password=False)
    with catalog.write() as connection:
        metadata.drop_all(connection)
        connection.execute(text("DROP TABLE alembic_version"))
    with ThreadPoolExecutor(4) as pool:
        for opened in pool.map(open_catalog, [url] * 4):
            opened.close()
    with catalog.engine.connect() as connection:
        assert set(metadata.tables) <= set(inspect(connection).get_table_names())


def test_catalog_of_newer_version_is_rejected(catalog: Catalog):
    with catalog.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(CatalogError, match=naming(9999)):
        open_catalog(catalog.engine.url.render_as_string(hide_password=False))


def test_catalog_from_before_the_first_release_is_rejected_and_unchanged(catalog: Catalog):
    url = catalog.engine.url.render_as_string(hide_password=False)
    with catalog.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0018'"))
    for opens in (open_catalog, open_existing_catalog, migrate_catalog):
        with pytest.raises(UnreleasedCatalogError, match=naming("PYPI_ASSETS_HOME", "pypi-assets init")) as raised:
            opens(url)
        assert raised.value.schema == "0018"
    with catalog.read() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "0018"


def test_database_of_another_program_is_rejected(catalog: Catalog):
    with catalog.write() as connection:
        metadata.drop_all(connection)
        connection.execute(text("UPDATE alembic_version SET version_num = '29b539ebc72a'"))
    with pytest.raises(CatalogError, match=naming("PYPI_ASSETS_DATABASE_URL")):
        open_catalog(catalog.engine.url.render_as_string(hide_password=False))


def test_catalog_of_older_version_is_unchanged_until_migrated(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    url = catalog.engine.url.render_as_string(hide_password=False)
    row = {"name": "a", "holder": "h", "taken_at": 0.0, "expires_at": 1.0}
    with catalog.write() as connection:
        connection.execute(insert(leases).values(row))
    ours = database._MIGRATIONS
    [*_, ours_newest] = sorted(path.name[:4] for path in (ours / "versions").glob("[0-9]*.py"))
    newer = shutil.copytree(ours, tmp_path / "migrations")
    (newer / "versions" / "9001_notes.py").write_text(_NOTES.replace("NEWEST", ours_newest))
    monkeypatch.setattr(database, "_MIGRATIONS", newer)
    before = inspect(catalog.engine).get_columns("leases")
    with pytest.raises(CatalogError, match=naming(9001, "pypi-assets admin migrate")):
        open_catalog(url)
    assert len(inspect(catalog.engine).get_columns("leases")) == len(before)
    assert migrate_catalog(url) == (ours_newest, "9001")
    assert migrate_catalog(url) == ("9001", "9001")
    opened = open_catalog(url)
    with opened.read() as connection:
        assert connection.execute(text("SELECT name, notes FROM leases")).all() == [("a", None)]
    opened.close()
    monkeypatch.setattr(database, "_MIGRATIONS", ours)
    for refused in (open_catalog, migrate_catalog):
        with pytest.raises(CatalogError, match=naming(9001)):
            refused(url)


@pytest.mark.parametrize(
    ("url", "values"),
    [
        ("postgresql+psycopg://someone:secret@127.0.0.1:1/x", ["PYPI_ASSETS_DATABASE_URL", "127.0.0.1"]),
        ("no url at all", []),
        ("sqlite://", ["sqlite:///"]),
        ("sqlite:////proc/nowhere/catalog.sqlite", ["PYPI_ASSETS_HOME"]),
        ("sqlite:////proc", ["PYPI_ASSETS_DATABASE_URL"]),
    ],
)
def test_connection_error_is_one_line_without_the_password(url: str, values: list[str]):
    with pytest.raises(CatalogError, match=naming(*values)) as caught:
        open_catalog(url)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def insert_twice(catalog: Catalog, row: dict[str, object]) -> None:
    with catalog.write() as connection:
        connection.execute(insert(leases).values(row))
        connection.execute(insert(leases).values(row))


def test_transaction_is_atomic_and_readers_see_one_state(catalog: Catalog):
    row = {"name": "a", "holder": "h", "taken_at": 0.0, "expires_at": 1.0}
    with pytest.raises(DBAPIError):
        insert_twice(catalog, row)
    with catalog.read() as reader:
        assert reader.execute(select(leases)).all() == []
        with catalog.write() as writer:
            writer.execute(insert(leases).values(row))
        assert reader.execute(select(leases)).all() == []
    with catalog.read() as reader:
        assert len(reader.execute(select(leases)).all()) == 1


def test_insert_returns_new_row_count_and_upsert_replaces(catalog: Catalog):
    rows = [{"name": f"n{number}", "holder": "a", "taken_at": 0.0, "expires_at": 0.0} for number in range(20_000)]
    with catalog.write() as connection:
        assert insert_missing(connection, leases, rows[:5]) == 5
        assert insert_missing(connection, leases, rows) == len(rows) - 5
        upsert(connection, leases, [rows[0] | {"holder": "b"}], key=("name",), update=("holder",))
        assert connection.scalar(select(leases.c.holder).where(leases.c.name == "n0")) == "b"
        connection.execute(delete(leases))


TEXTS = ["", "NULL", "{}", 'a "b", c', "back\\slash", "two\nlines", "ü\U0001f40d", "'; --"]


def test_bulk_rows_round_trip(catalog: Catalog):
    crawl = {"serial": 2**62, "selection": "[]", "opened_at": 1.5, "open": None, "completed_at": 1 / 3}
    crawls = [crawl | {"selection": text, "listed_at": number / 7 or None} for number, text in enumerate(TEXTS)]
    contents = [{"sha256": str(number), "content": bytes([number, 0, 255, 92]), "files": 0} for number in range(256)]
    with catalog.write() as connection:
        assert insert_missing(connection, full_crawls, crawls) == len(crawls)
        assert insert_missing(connection, snapshots, contents) == len(contents)
        columns = [full_crawls.c[name] for name in crawls[0]]
        found = [row._asdict() for row in connection.execute(select(*columns).order_by(full_crawls.c.id))]
        assert found == crawls
        kept = select(snapshots.c.sha256, snapshots.c.content, snapshots.c.files).order_by(snapshots.c.id)
        assert [row._asdict() for row in connection.execute(kept)] == contents


def test_bare_rows_returns_all_rows_of_a_streaming_connection(catalog: Catalog):
    with catalog.write() as connection:
        insert_missing(
            connection, snapshots, [{"sha256": str(number), "content": b"", "files": 0} for number in range(5)]
        )
        connection.execution_options(yield_per=2)
        found = bare_rows(connection, select(snapshots.c.sha256).order_by(snapshots.c.sha256))
        assert [tuple(row) for row in found] == [(str(number),) for number in range(5)]


def test_server_rejects_too_long_text_without_truncation(postgres_database_url: str):
    catalog = open_catalog(postgres_database_url)
    with catalog.write() as connection, pytest.raises(DBAPIError, match="too long"):
        insert_missing(connection, snapshots, [{"sha256": "a" * 65, "content": b"", "files": 0}])
    catalog.close()


def test_transaction_is_retried_after_a_deadlock(catalog: Catalog):
    rows = [{"name": name, "holder": "none", "taken_at": 0.0, "expires_at": 0.0} for name in ("a", "b")]
    with catalog.write() as connection:
        insert_missing(connection, leases, rows)
    both_hold_one = threading.Barrier(2, timeout=120)
    tries: list[str] = []

    def take(holder: str, *names: str) -> None:
        def work(connection: Connection) -> None:
            tries.append(holder)
            for name in names:
                connection.execute(update(leases).where(leases.c.name == name).values(holder=holder))
                if len(tries) <= 2 and name == names[0] and not catalog.is_sqlite:
                    both_hold_one.wait()

        catalog.transact(work)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(take, "first", "a", "b"), pool.submit(take, "second", "b", "a")]:
            done.result()
    assert len(tries) == (2 if catalog.is_sqlite else 3)
    with catalog.read() as connection:
        [holder] = set(connection.scalars(select(leases.c.holder)))
    assert holder in {"first", "second"}


def test_blocked_transaction_is_retried_a_bounded_number_of_times(
    postgres_database_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pypi_assets.catalog.database._LONGEST_PAUSE_S", 0.01)
    catalog = open_catalog(postgres_database_url)
    tries: list[int] = []

    def work(connection: Connection) -> str:
        tries.append(1)
        if len(tries) < failing:
            connection.execute(text("DO 'BEGIN RAISE EXCEPTION USING ERRCODE = ''40001''; END'"))
        return "done"

    failing = 3
    assert catalog.transact(work) == "done"
    assert len(tries) == failing
    tries.clear()
    failing = 1_000
    with pytest.raises(DBAPIError):
        catalog.transact(work)
    assert len(tries) == 10
    catalog.close()


def test_transaction_is_retried_after_connection_loss_before_commit(postgres_database_url: str):
    catalog = open_catalog(postgres_database_url)
    row = {"name": "a", "holder": "h", "taken_at": 0.0, "expires_at": 1.0}
    tries: list[int] = []

    def work(connection: Connection) -> None:
        tries.append(1)
        connection.execute(insert(leases).values(row))
        if len(tries) == 1:
            _end_session(catalog, connection)
            connection.execute(text("SELECT 1"))

    catalog.transact(work)
    assert len(tries) == 2
    with catalog.read() as reader:
        assert reader.scalars(select(leases.c.name)).all() == ["a"]
    catalog.close()


def test_connection_loss_during_commit_is_an_error(postgres_database_url: str):
    catalog = open_catalog(postgres_database_url)
    tries: list[int] = []

    def work(connection: Connection) -> None:
        tries.append(1)
        _end_session(catalog, connection)

    with pytest.raises(DBAPIError):
        catalog.transact(work)
    assert len(tries) == 1
    catalog.close()


def _end_session(catalog: Catalog, connection: Connection) -> None:
    """End the server process of `connection`, as a restart of the server does."""
    pid = connection.scalar(text("SELECT pg_backend_pid()"))
    with catalog.engine.connect() as other:
        assert other.scalar(text("SELECT pg_terminate_backend(:pid, 60000)"), {"pid": pid})


def test_clock_is_the_servers_on_machines_with_differing_clocks(
    postgres_database_url: str, monkeypatch: pytest.MonkeyPatch
):
    real = time.time
    found = []
    for ahead_s in (0.0, 3_600.0):
        monkeypatch.setattr(database.time, "time", lambda ahead_s=ahead_s: real() + ahead_s)
        catalog = open_catalog(postgres_database_url)
        found.append(catalog.clock())
        catalog.close()
    assert 0 <= found[1] - found[0] < 60


def test_other_errors_are_not_retried(catalog: Catalog):
    tries = []

    def work(connection: Connection) -> None:
        tries.append(connection)
        connection.execute(text("SELECT nonsense"))

    with pytest.raises(DBAPIError):
        catalog.transact(work)
    assert len(tries) == 1


def test_readers_open_only_existing_catalogs(tmp_path: Path, empty_postgres_database_url: str) -> None:
    path = tmp_path / "below" / "catalog.sqlite"
    for url in (f"sqlite:///{path}", empty_postgres_database_url):
        with pytest.raises(NoCatalogError):
            open_existing_catalog(url)
    assert not path.parent.exists()
    path.parent.mkdir()
    path.touch()
    with pytest.raises(NoCatalogError):
        open_existing_catalog(f"sqlite:///{path}")
    for url in (f"sqlite:///{path}", empty_postgres_database_url):
        open_catalog(url).close()
        open_existing_catalog(url).close()


def test_read_by_index_applies_to_one_transaction(catalog: Catalog):
    if catalog.is_sqlite:
        pytest.skip("SQLite joins by index alone")
    of_joins = text("SELECT name, setting FROM pg_settings WHERE name LIKE 'enable_%' OR name LIKE 'cursor_%'")
    with catalog.read() as connection:
        before = dict(connection.execute(of_joins).all())
        read_by_index(connection)
        within = dict(connection.execute(of_joins).all())
    with catalog.read() as connection:
        assert dict(connection.execute(of_joins).all()) == before
    changed = {name: setting for name, setting in within.items() if setting != before[name]}
    assert changed.pop("cursor_tuple_fraction") == "1"
    assert changed == dict.fromkeys(("enable_hashjoin", "enable_mergejoin", "enable_seqscan"), "off")


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Make SIGINT raise KeyboardInterrupt, even if the tests were started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.nightly
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_at_any_point_leaves_no_open_transaction(catalog: Catalog):
    url = catalog.engine.url.render_as_string(hide_password=False)
    other = Catalog(
        create_engine(url, connect_args={"timeout": 0} if catalog.is_sqlite else {"options": "-c lock_timeout=1"})
    )
    catalog.transact(lambda connection: connection.execute(insert(leases).values(_A_LEASE)))
    steps = 0
    for _ in interrupted_steps(lambda: catalog.transact(_extend)):
        steps += 1
        other.transact(_extend)
    assert steps > 100
    other.close()


@pytest.mark.nightly
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("reading", [Catalog.read, Catalog.read_once])
def test_ctrl_c_at_any_point_of_a_read_raises_keyboard_interrupt(
    catalog: Catalog, reading: Callable[[Catalog], AbstractContextManager[Connection]]
):
    def read() -> None:
        with reading(catalog) as connection:
            connection.execute(select(leases.c.name)).all()

    steps = 0
    for _ in interrupted_steps(read):
        steps += 1
    assert steps > 100
    gc.collect()  # a connection left in a reference cycle returns to the pool, which closes it


def _extend(connection: Connection) -> None:
    connection.execute(update(leases).values(expires_at=leases.c.expires_at + 1))
