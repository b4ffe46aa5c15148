"""Files without an upload time in the index use their first sighting: real pip and uv respect a cutoff by it."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pypi_assets.catalog.database import open_catalog
from pypi_assets.components import crawler_from, index_from
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.journal.publishing import write_missing
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.service.service import open_service
from pypi_assets.settings import load_settings
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.installers import resolve_by_pip, resolve_by_uv
from pypi_assets_tests.served_index import shared_readers
from pypi_assets_tests.served_pages import JSON, ServedPages, served_pages
from pypi_assets_tests.service.forked_pip import forked_pip
from pypi_assets_tests.service.published import Client, client_of
from pypi_assets_tests.service.test_feeds import read
from pypi_assets_tests.service.test_mirror_methods import called

FIRST, SECOND = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 10, tzinfo=UTC)
BETWEEN = datetime(2026, 3, 5, tzinfo=UTC)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedPages]:
    with served_pages(tmp_path / "served") as served:
        yield served


@pytest.fixture
def client(tmp_path: Path, index: ServedPages, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Yield a client of a service whose catalog saw demo 1.0 on the first day and demo 2.0 on the second."""
    clear_settings(monkeypatch)
    named = {"home": tmp_path, "lister": "pages", "index_url": index.url, "poll_shortest_s": 0}
    settings = load_settings(**named, request_attempts=1, service_refresh_s=3_600)
    moment = [FIRST]
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"), clock=lambda: moment[0].timestamp())
    storage = open_storage((tmp_path / "storage").as_uri())
    with index_from(settings, catalog) as followed:
        crawler = crawler_from(settings, followed, catalog, storage, shared_readers())
        index.wheel("demo", "1.0")
        crawl_full(crawler)
        full_dump(catalog, storage, 1)
        moment[0] = SECOND
        index.wheel("demo", "2.0")
        crawl_incremental(crawler)
        list(write_missing_ranges(catalog, storage))
        for name in DATASETS:
            build_version(name, storage=storage, catalog=catalog)
        list(write_missing(catalog, storage))
    catalog.close()
    service = open_service(settings)
    with client_of(service) as client:
        yield client
    service.close()


def test_pages_state_and_mark_first_sightings(client: Client) -> None:
    def times(path: str) -> list[tuple[str, bool]]:
        page = client.session.get(f"{client.url}{path}", headers={"Accept": JSON}, timeout=20).json()
        return [(file["upload-time"], file["_upload-time-is-first-seen"]) for file in page["files"]]

    first = ("2026-03-01T00:00:00Z", True)
    assert times("simple/demo/") == [first, ("2026-03-10T00:00:00Z", True)]
    assert times("at/2/simple/demo/") == times("at/2,safe/simple/demo/") == [first]


def test_pages_for_people_show_the_days_of_first_sightings(client: Client) -> None:
    for prefix in ("", "at/3/"):
        for path, days in (("project/demo/", ("10", "01")), ("release/demo/1.0/", ("01",))):
            page = client.session.get(f"{client.url}{prefix}{path}", timeout=20)
            assert page.status_code == 200, path
            found = re.findall(r'<td class="day">(.*?)</td>', page.text)
            assert found == [f"2026-03-{day}" for day in days], (prefix, path)


def test_list_and_pages_have_the_serials_of_the_counter(client: Client) -> None:
    """The catalog counts the events of an index without serials."""

    def serials(path: str) -> tuple[int, ...]:
        found = client.session.get(f"{client.url}{path}", headers={"Accept": JSON}, timeout=20)
        [project] = found.json()["projects"]
        page = client.session.get(f"{client.url}{path}demo/", headers={"Accept": JSON}, timeout=20)
        described = client.session.get(f"{client.url}{path.replace('simple/', 'pypi/demo/json')}", timeout=20)
        headers = [int(one.headers["X-PyPI-Last-Serial"]) for one in (found, page, described)]
        shown = [one.json()["meta"]["_last-serial"] for one in (found, page)]
        return (project["_last-serial"], *shown, described.json()["last_serial"], *headers)

    assert serials("at/2/simple/") == (2,) * 7
    assert serials("at/3/simple/") == serials("simple/") == (3,) * 7


@pytest.mark.nightly
def test_pip_uv_and_resolutions_respect_a_cutoff(client: Client, tmp_path: Path) -> None:
    with forked_pip() as pip:
        for path in ("simple/", "at/3/simple/"):
            for cutoff, expected in (
                ("2026-03-05T00:00:00Z", {"demo": "1.0"}),
                ("2026-02-01T00:00:00Z", None),
                (None, {"demo": "2.0"}),
            ):
                by_uv = ["--no-cache"] if cutoff is None else ["--no-cache", f"--exclude-newer={cutoff}"]
                by_pip = [] if cutoff is None else [f"--uploaded-prior-to={cutoff}"]
                assert resolve_by_uv(client.url + path, ["demo"], tmp_path, by_uv).pins == expected, cutoff
                assert resolve_by_pip(pip, client.url + path, ["demo"], tmp_path, by_pip).pins == expected, cutoff
    ages = {"/at/3/v1/resolve": SECOND - BETWEEN, "/v1/resolve": datetime.now(UTC) - BETWEEN}
    for path, age in ages.items():
        body = {"requirements": ["demo"], "python": "3.12", "cooldown_hours": int(age.total_seconds() // 3_600)}
        result = client.post(path, body, allow_redirects=True).json()["result"]
        assert [(release["project"], release["version"]) for release in result["releases"]] == [("demo", "1.0")], path


def test_followers_get_the_events_of_the_own_counter(client: Client) -> None:
    """The index announces no releases, so the feed has the releases of its new files."""
    rows = called(client.url, "changelog_since_serial", 0)
    assert [(row[0], row[1], row[3]) for row in rows] == [
        ("demo", None, "create"),
        ("demo", "1.0", "add py3 file demo-1.0-py3-none-any.whl"),
        ("demo", "2.0", "add py3 file demo-2.0-py3-none-any.whl"),
    ]
    assert called(client.url, "changelog_last_serial") == rows[-1][4] == 3
    assert called(client.url, "list_packages_with_serial") == {"demo": 3}
    assert read(client, "/rss/updates.xml").titles == ["demo 2.0", "demo 1.0"]
