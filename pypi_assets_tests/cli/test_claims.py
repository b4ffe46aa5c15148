"""A home and a storage belong to one index and one catalog from the first byte on, once the index has responded."""

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from pypi_assets.settings import load_settings
from pypi_assets.storage.root_owner import OWNER
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.forked import COMMAND_LINE, run_forked
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.served_index import ServedIndex

DAY_S = 24 * 3600.0


@pytest.fixture(params=["file", pytest.param("s3", marks=pytest.mark.nightly)])
def storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    """Return an empty storage, and name it in the settings."""
    if request.param == "file":
        url = (tmp_path / "shared").as_uri()
        monkeypatch.setenv("PYPI_ASSETS_STORAGE_URL", url)
        yield open_storage(url)
        return
    with s3_server(monkeypatch):
        monkeypatch.setenv("PYPI_ASSETS_STORAGE_URL", f"s3://{BUCKET}/shared")
        yield open_storage(f"s3://{BUCKET}/shared")


def contents(storage: Storage) -> dict[str, bytes]:
    return {stored.path: storage.get(stored.path) for stored in storage.list()}


def owner(storage: Storage) -> str:
    catalog = json.loads(storage.get(OWNER))["catalog"]
    assert isinstance(catalog, str)
    return catalog


def use_home(monkeypatch: pytest.MonkeyPatch, home: Path, database_url: str | None = None) -> None:
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(home))
    if database_url is not None:
        monkeypatch.setenv("PYPI_ASSETS_DATABASE_URL", database_url)


@pytest.mark.parametrize("projects", ["", pytest.param("demo, other", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("lister", ["auto", "simple", "xmlrpc", "pages"])
def test_wrong_url_claims_neither_home_nor_storage(
    lister: str,
    projects: str,
    commands: Commands,
    index: ServedIndex,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    index.wheel("demo", "1.0")
    monkeypatch.setenv("PYPI_ASSETS_LISTER", lister)
    if projects:
        monkeypatch.setenv("PYPI_ASSETS_PROJECTS", projects)
    page = HTMLResponse("<html><title>Welcome</title></html>")
    site: dict[str, Response] = {"/blog/": page, "/blog/demo/": page, "/blog/other/": page}
    index.faults = lambda request: site.get(request.url.path)
    storage = open_storage((commands.home / "storage").as_uri())
    wrong = {
        "connection refused": "http://127.0.0.1:9/simple/",
        "mistyped path": index.url.replace("/simple/", "/simpel/"),
        "not an index": index.url.replace("/simple/", "/blog/"),
    }
    if lister in {"auto", "xmlrpc"}:  # then the changelog may have another, correct URL
        monkeypatch.setenv("PYPI_ASSETS_CHANGELOG_URL", index.url.replace("/simple/", "/pypi"))
    for name, url in wrong.items():
        with subtests.test(name):
            monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", url)
            for command in (("crawl", "full"), ("scope", "create", "tools", "demo")):
                assert commands.run(*command).exit_code in {1, 2}  # 2: a setting is invalid
            assert contents(storage) == {}
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", index.url)
    crawled = commands.json("crawl", "full")
    assert crawled["reads"]["data"] == 1
    assert json.loads(storage.get(OWNER))["index_url"] == index.url
    commands.done("dump", "full")


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def test_second_home_is_rejected_without_loss(
    database: str,
    commands: Commands,
    index: ServedIndex,
    storage: Storage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    second_url = request.getfixturevalue("postgres_database_url") if database == "postgresql" else None
    filename = index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    before = contents(storage)
    assert len(before) == 2
    use_home(monkeypatch, tmp_path / "second", second_url)
    for command in (
        ("crawl", "full"),
        ("scope", "create", "tools", "demo"),
        ("dump", "full"),
        ("admin", "extracts", "clean"),
    ):
        message = commands.run(*command)
        assert message.exit_code == 1
        if command[0] in {"crawl", "scope"}:
            assert unnamed(message.stderr, storage.url, "PYPI_ASSETS_STORAGE_URL") == []
    assert contents(storage) == before
    monkeypatch.delenv("PYPI_ASSETS_DATABASE_URL", raising=False)
    use_home(monkeypatch, commands.home)
    if storage.root is not None:
        for path in (storage.root / "extracts").rglob("*.pack"):
            os.utime(path, (time.time() - 3 * DAY_S,) * 2)
    commands.done("dump", "full")
    assert commands.json("admin", "extracts", "clean")["deleted"] == []
    assert commands.run("admin", "inspect", filename, "--from-extract").exit_code == 0
    monkeypatch.setenv("PYPI_ASSETS_STORAGE_URL", (tmp_path / "own").as_uri())
    use_home(monkeypatch, tmp_path / "second", second_url)
    commands.done("crawl", "full")
    commands.done("dump", "full")
    assert owner(storage) != owner(open_storage((tmp_path / "own").as_uri()))


def test_one_of_two_simultaneous_first_crawls_is_rejected_and_can_move(
    commands: Commands, index: ServedIndex, storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        index.wheel(f"demo{number}", "1.0")
    homes = [tmp_path / name for name in ("one", "two")]

    def crawl(home: Path) -> int:
        env = os.environ | {"PYPI_ASSETS_HOME": str(home)}
        return run_forked(COMMAND_LINE, "crawl", "full", env=env).returncode

    with ThreadPoolExecutor(2) as threads:
        codes = list(threads.map(crawl, homes))
    assert sorted(codes) == [0, 1]
    winner, loser = (homes[codes.index(code)] for code in (0, 1))
    before = contents(storage)
    use_home(monkeypatch, loser)
    assert unnamed(commands.refused("crawl", "full"), storage.url, "PYPI_ASSETS_STORAGE_URL") == []
    assert contents(storage) == before
    use_home(monkeypatch, winner)
    for number in range(3):
        assert commands.run("admin", "inspect", f"demo{number}-1.0-py3-none-any.whl", "--from-extract").exit_code == 0
    monkeypatch.setenv("PYPI_ASSETS_STORAGE_URL", (tmp_path / "own").as_uri())
    use_home(monkeypatch, loser)
    assert commands.json("crawl", "full")["reads"]["data"] == 3


def test_catalogs_with_scopes_do_not_share_a_storage(
    commands: Commands, index: ServedIndex, storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    commands.done("scope", "create", "tools", "demo")
    assert contents(storage) == {}
    commands.done("scope", "run", "tools")
    first = owner(storage)
    use_home(monkeypatch, tmp_path / "second")
    assert unnamed(commands.refused("scope", "create", "tools", "demo"), storage.url) == []
    use_home(monkeypatch, commands.home)
    commands.done("crawl", "full")
    commands.done("dump", "full")
    assert owner(storage) == first


def test_restored_or_moved_catalog_is_still_the_owner(
    commands: Commands, index: ServedIndex, storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    with closing(sqlite3.connect(commands.home / "catalog.sqlite")) as connection:  # a backup of the same moment
        connection.execute("VACUUM INTO ?", (str(tmp_path / "backup.sqlite"),))
    index.wheel("demo", "2.0")
    commands.done("crawl", "incremental")
    first = owner(storage)
    shutil.rmtree(commands.home)
    moved = tmp_path / "moved"
    moved.mkdir()
    shutil.copy(tmp_path / "backup.sqlite", load_settings(home=moved).resolved_database_url.removeprefix("sqlite:///"))
    use_home(monkeypatch, moved)
    commands.done("crawl", "incremental")
    commands.done("dump", "full")
    assert owner(storage) == first
    assert commands.run("admin", "inspect", "demo-2.0-py3-none-any.whl", "--from-extract").exit_code == 0
    monkeypatch.setenv("PYPI_ASSETS_STORAGE_URL", (tmp_path / "elsewhere").as_uri())
    index.wheel("demo", "3.0")
    commands.done("crawl", "incremental")  # into an empty root, which the catalog then owns too
    assert owner(open_storage((tmp_path / "elsewhere").as_uri())) == first


def test_index_without_selected_projects_is_accepted(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    monkeypatch.setenv("PYPI_ASSETS_PROJECTS", "missing")
    assert commands.json("crawl", "full")["missing_projects"] == ["missing"]
    index.faults = lambda request: PlainTextResponse("", 404) if request.url.path == "/simple/" else None
    index.wheel("missing", "1.0")  # only the first crawl requests the list
    commands.done("crawl", "incremental")
    assert [file["project"] for file in commands.json("lookup", "files")] == ["missing"]
