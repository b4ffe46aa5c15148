"""Connections to SQLite files are kept, bounded, closed, and never shared by threads or with a forked process."""

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection

from pypi_assets.dagster_instance.kept_engines import KeptEngines
from pypi_assets_tests.dagster_instance.instances import open_files


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.db"
    make(path)
    return path


def make(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE numbers (number INTEGER)")


def insert(connection: Connection, number: int) -> None:
    connection.exec_driver_sql("INSERT INTO numbers VALUES (?)", (number,))


def numbers(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as database:
        return [number for (number,) in database.execute("SELECT number FROM numbers ORDER BY number")]


def test_a_block_commits_and_its_connection_is_kept_while_the_folder_is_held(file: Path):
    engines = KeptEngines()
    engines.hold(file.parent)
    with engines.begin(file) as connection:
        insert(connection, 1)
        first = connection.connection.driver_connection
    with engines.begin(file) as connection:
        assert connection.connection.driver_connection is first
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 1
    assert numbers(file) == [1]
    assert open_files(file.parent)
    engines.hold(file.parent)
    engines.release(file.parent)
    assert open_files(file.parent)
    engines.release(file.parent)
    assert not open_files(file.parent)


def test_where_no_process_part_holds_the_folder_nothing_stays_open(file: Path):
    engines = KeptEngines()
    with engines.begin(file) as connection:
        insert(connection, 1)
    assert not open_files(file.parent)


def test_a_block_that_fails_stores_nothing(file: Path):
    engines = KeptEngines()

    def fail() -> None:
        with engines.begin(file) as connection:
            insert(connection, 1)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert numbers(file) == []


def test_a_block_in_a_block_is_the_same_transaction(file: Path):
    engines = KeptEngines()
    with engines.begin(file) as outer:
        insert(outer, 1)
        with engines.begin(file) as inner:
            assert inner is outer
            insert(inner, 2)
        assert numbers(file) == []
    assert numbers(file) == [1, 2]


def test_threads_have_connections_of_their_own(file: Path):
    engines = KeptEngines()
    seen: list[Connection] = []

    def read() -> None:
        with engines.begin(file) as connection:
            seen.append(connection)
            assert connection.exec_driver_sql("SELECT count(*) FROM numbers").scalar_one() == 0

    with engines.begin(file) as mine:
        insert(mine, 1)
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    assert len(seen) == 1
    assert seen[0] is not mine


def test_no_more_files_are_open_than_allowed(tmp_path: Path):
    engines = KeptEngines(most_files=3)
    engines.hold(tmp_path)
    for number in range(10):
        path = tmp_path / f"{number}.db"
        make(path)
        with engines.begin(path) as connection:
            insert(connection, number)
    assert {path.name for path in open_files(tmp_path) if path.suffix == ".db"} == {"7.db", "8.db", "9.db"}
    engines.release(tmp_path)
    assert not open_files(tmp_path)


def test_a_file_that_was_made_again_is_opened_again(file: Path, tmp_path: Path):
    engines = KeptEngines()
    engines.hold(file.parent)
    with engines.begin(file) as connection:
        insert(connection, 1)
    make(tmp_path / "other")
    for path in tmp_path.glob("some.db*"):
        path.unlink()
    (tmp_path / "other").rename(file)
    with engines.begin(file) as connection:
        insert(connection, 2)
    assert numbers(file) == [2]
    engines.release(file.parent)


def test_a_forked_process_opens_its_own_connections(file: Path):
    engines = KeptEngines()
    engines.hold(file.parent)
    in_block, over = threading.Event(), threading.Event()

    def work() -> None:
        with engines.begin(file) as connection:
            insert(connection, 1)
            in_block.set()
            over.wait(0.3)

    thread = threading.Thread(target=work)
    thread.start()
    in_block.wait()
    child = os.fork()  # waits for the thread
    if child == 0:
        with engines.begin(file) as connection:
            insert(connection, 2)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    with engines.begin(file) as connection:
        insert(connection, 3)
    assert numbers(file) == [1, 2, 3]
    engines.release(file.parent)


def test_a_process_that_was_forked_in_a_transaction_cannot_use_its_file(file: Path):
    engines = KeptEngines()
    engines.hold(file.parent)
    with engines.begin(file) as connection:
        insert(connection, 1)
        child = os.fork()
        if child == 0:
            os._exit(_is_refused(engines, file))
        insert(connection, 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with engines.begin(file) as connection:
        insert(connection, 3)
    assert numbers(file) == [1, 2, 3]
    engines.release(file.parent)


def _is_refused(engines: KeptEngines, file: Path) -> int:
    try:
        with engines.begin(file):
            return 1
    except RuntimeError as error:
        return int("parent alone" not in str(error))
