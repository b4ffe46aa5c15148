"""A catalog follows an index without serials: whole crawls over HTTP, on SQLite and PostgreSQL."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.observed.observations import Observations
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.publications.dump_rows import project_rows_at, providing_releases, requiring_releases
from pypi_assets.catalog.reads.past_generations import past_generations_of
from pypi_assets.catalog.reports.catalog_status import read_followed
from pypi_assets.catalog.reports.live_files import files_with_sha256, live_files
from pypi_assets.catalog.reports.project_history import read_history
from pypi_assets.catalog.reports.visit_requests import find_request
from pypi_assets.catalog.scopes.scope_status import scope_status
from pypi_assets.catalog.scopes.stored_scopes import require_scope
from pypi_assets.catalog.tables import observed_projects
from pypi_assets.catalog.work.requested_visits import UnknownProjectsError
from pypi_assets.components import crawler_from, index_from, storage_from
from pypi_assets.crawl.crawler import Crawler, observe
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.index_audit import audit_index
from pypi_assets.crawl.requested import request_now, run_requested
from pypi_assets.crawl.scope_crawl import run_scope, start_scope
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets.index.errors import PackageIndexError
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.scopes.root_files import named_roots
from pypi_assets.settings import load_settings
from pypi_assets.status import measure_lag, query_last_serial
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.naming import mentions, naming
from pypi_assets_tests.served_index import live, logged_changes, shared_readers
from pypi_assets_tests.served_pages import HTML, ServedPages, served_pages

LOGIN = (200, {"Content-Type": HTML}, b"<form><input type=password></form>")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedPages]:
    with served_pages(tmp_path / "served") as served:
        served.wheel("demo", "1.0")
        served.sdist("demo", "1.0")
        served.wheel("other-thing", "1.0")
        yield served


@pytest.fixture
def follow(tmp_path: Path, index: ServedPages, catalog: Catalog) -> Iterator[Callable[..., Crawler]]:
    """Yield a function that makes crawlers. Notices for operators are appended to its `notices` list."""
    opened = []

    def made(notices: list[str] | None = None, **settings: object) -> Crawler:
        defaults = {"lister": "pages", "index_url": index.url, "poll_shortest_s": 0, "poll_confirm_s": 0}
        loaded = load_settings(home=tmp_path, request_attempts=1, **(defaults | settings))
        client = index_from(loaded, catalog)
        opened.append(client)
        notify = None if notices is None else notices.append
        return crawler_from(loaded, client, catalog, storage_from(loaded), shared_readers(), notify=notify)

    yield made
    for client in opened:
        client.close()


@pytest.mark.nightly
def test_catalog_equals_the_pages_after_each_poll(
    index: ServedPages, catalog: Catalog, follow: Callable[..., Crawler]
) -> None:
    crawler = follow()
    result = crawl_full(crawler)
    assert (result.visits.exhausted, result.reads.data, live(catalog)) == (0, 3, index.shown())
    new = index.wheel("demo", "2.0")
    index.projects["demo"][new].yanked = "broken"
    index.speaks_json = True
    [ranged] = crawl_incremental(crawler)
    assert (ranged.lister, ranged.events.events, ranged.unexplained_changes) == ("pages", 2, 0)
    assert live(catalog) == index.shown()
    del index.projects["demo"][new]
    assert crawl_incremental(crawler) == []
    crawl_incremental(crawler)
    assert live(catalog) == index.shown()
    del index.projects["other-thing"]
    for _ in range(2):
        crawl_incremental(crawler)
    assert live(catalog) == index.shown()
    audit = audit_index(crawler, 100.0)
    assert audit.audit.findings is not None
    assert audit.audit.findings.counts == {}
    assert live(catalog, 4) == {(name, False) for name in ("demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz")}


def test_files_without_hashes_are_read(index: ServedPages, catalog: Catalog, follow: Callable[..., Crawler]) -> None:
    index.has_hashes = False
    result = crawl_full(follow())
    assert result.reads.data == 3
    digests = {name: hashlib.sha256(one.content).hexdigest() for name, one in index.projects["demo"].items()}
    found = {file.filename: file.sha256 for file in live_files(catalog) if file.filename in digests}
    assert found == digests


def test_only_named_projects_are_followed_without_a_list(
    index: ServedPages, catalog: Catalog, follow: Callable[..., Crawler]
) -> None:
    index.has_list = False
    with pytest.raises(PackageIndexError, match=naming("PYPI_ASSETS_PROJECTS")):
        crawl_full(follow())
    result = crawl_full(follow(projects="Other.Thing missing"))
    assert (result.listing.projects, result.listing.missing) == (2, ("missing",))
    assert live(catalog) == {("other_thing-1.0-py3-none-any.whl", False)}
    assert "/simple/demo/" not in index.requests


def test_requested_project_is_polled_now(index: ServedPages, catalog: Catalog, follow: Callable[..., Crawler]) -> None:
    """Other projects are not polled, and a name without a page is not stored."""
    crawl_full(follow())
    new = index.wheel("demo", "2.0")
    fresh = index.wheel("fresh", "1.0")
    index.requests.clear()
    crawler = follow(poll_shortest_s=3_600, poll_longest_s=86_400)
    ids = request_now(crawler, ["demo", "fresh"])
    assert run_requested(crawler) == 2
    with catalog.read() as connection:
        found = [find_request(connection, id_, catalog.clock()) for id_ in ids]
        assert [{(one.change, one.filename) for one in request.changed} for request in found if request] == [
            {("came", new)},
            {("came", fresh)},
        ]
    assert "/simple/other-thing/" not in index.requests
    with pytest.raises(UnknownProjectsError):
        request_now(crawler, ["missing"])
    with catalog.read() as connection:
        assert connection.scalar(select(func.count()).select_from(observed_projects)) == 3


def test_login_pages_change_nothing(index: ServedPages, catalog: Catalog, follow: Callable[..., Crawler]) -> None:
    notices: list[str] = []
    crawler = follow(notices)
    crawl_full(crawler)
    before = live(catalog)
    index.answers = lambda path: LOGIN if path == "/simple/demo/" else None
    assert [crawl_incremental(crawler) for _ in range(3)] == [[], [], []]
    assert mentions(notices[0], 1, 2, "demo")
    index.answers = lambda _: LOGIN
    with pytest.raises(PackageIndexError, match=naming(index.url)):
        crawl_incremental(crawler)
    assert live(catalog) == before


def test_catalog_keeps_its_kind_of_serials(
    index: ServedPages, catalog: Catalog, follow: Callable[..., Crawler]
) -> None:
    crawl_full(follow())
    before = live(catalog)
    for lister in ("xmlrpc", "simple"):
        with pytest.raises(CatalogError, match=naming(index.url, "PYPI_ASSETS_LISTER")):
            crawl_full(follow(lister=lister))
        with pytest.raises(CatalogError, match=naming(index.url, "PYPI_ASSETS_LISTER")):
            crawl_incremental(follow(lister=lister))
    assert crawl_incremental(follow(lister="auto")) == []
    assert live(catalog) == before
    assert Observations(catalog, index.url).last_serial() == 5


def test_poll_reports_its_progress(index: ServedPages, follow: Callable[..., Crawler]) -> None:
    crawler = follow()
    found = observe(crawler, everything=True)
    assert (found.looked_at, found.events) == (2, 5)
    assert observe(crawler).events == 0


def test_overwritten_file_is_the_next_generation(
    index: ServedPages, catalog: Catalog, follow: Callable[..., Crawler]
) -> None:
    crawler = follow()
    crawl_full(crawler)
    before = {file.filename: file.sha256 for file in live_files(catalog)}
    name = index.wheel("demo", "1.0", files={"other_module.py": ""})
    [ranged] = crawl_incremental(crawler)
    assert (ranged.events.events, ranged.reads.data, ranged.unexplained_changes) == (1, 1, 0)
    after = {file.filename: file.sha256 for file in live_files(catalog)}
    assert after[name] == hashlib.sha256(index.projects["demo"][name].content).hexdigest() != before[name]
    assert (name, ranged.serials.end, "replaced") in logged_changes(catalog, "demo")
    with catalog.read() as connection:
        project = find_project(connection, "demo")
        assert project is not None
        [past] = past_generations_of(connection, project.id)
        history = read_history(connection, project)
    kinds = [entry.kind for entry in history if entry.serial == ranged.serials.end]
    [found, added] = [entry for entry in history if entry.kind == "add file" and name in entry.filenames]
    assert found.not_before is None
    assert found.text != added.text  # nobody saw the first upload
    assert added.serial == ranged.serials.end
    assert added.at is not None
    assert added.not_before is not None
    assert added.not_before <= added.at + 1  # whose fraction is truncated
    assert (past.generation, past.until, past.sha256) == (1, ranged.serials.end, before[name])
    assert past.facts["modules"] == ["demo"]
    assert kinds[:2] == ["add file", "replaced"]


@pytest.mark.nightly
def test_past_answers_have_the_past_content(
    index: ServedPages, catalog: Catalog, follow: Callable[..., Crawler]
) -> None:
    crawler = follow()
    name = index.wheel("demo", "1.0", files={"first.py": ""}, requires_dist=["one"])
    serials, hashes = [], []
    crawl_full(crawler)
    for number, requires in enumerate(("one", "two", "three")):
        if number:
            index.wheel("demo", "1.0", files={f"module{number}.py": ""}, requires_dist=[requires])
            crawl_incremental(crawler)
        with catalog.read() as connection:
            serials.append(complete_serial(connection))
        hashes.append(hashlib.sha256(index.projects["demo"][name].content).hexdigest())
    modules, requirements = ("first", "module1", "module2"), ("one", "two", "three")
    for number, serial in enumerate(serials):
        [row] = [row for row in project_rows_at(catalog, serial, "demo") if row["filename"] == name]
        decoded = as_dumped(row)
        assert (decoded["sha256"], decoded["modules"], decoded["requires_dist"]) == (
            hashes[number],
            [modules[number]],
            [requirements[number]],
        )
        [file] = [file for file in live_files(catalog, serial) if file.filename == name]
        assert file.sha256 == hashes[number]
        for other in range(3):
            provided = {found[2] for found in providing_releases(catalog, serial, modules[other])}
            assert provided == ({"1.0"} if other == number else set())
            required = list(requiring_releases(catalog, serial, requirements[other]))
            assert required == ([("demo", "1.0", 0)] if other == number else [])
            found = [one.live for one in files_with_sha256(catalog, serial, hashes[other])]
            ends = [*serials[1:], None]
            since = 1 if other == 0 else serials[other]
            until = ends[other] if other < number else None
            assert [(span[0][0] > 0, span[0][1]) for span in found] == ([(True, until)] if other <= number else [])
            assert other == 0 or not found or found[0][0][0] == since


def test_changed_bytes_without_sha256_are_reread(
    index: ServedPages, catalog: Catalog, follow: Callable[..., Crawler]
) -> None:
    """A weaker hash shows that the bytes differ. Their SHA-256 is known once they are read."""
    index.weak_hashes = True
    crawler = follow()
    crawl_full(crawler)
    name = index.wheel("demo", "1.0", files={"other_module.py": ""})
    [ranged] = crawl_incremental(crawler)
    assert ranged.reads.data == 1
    after = {file.filename: file.sha256 for file in live_files(catalog)}
    assert after[name] == hashlib.sha256(index.projects["demo"][name].content).hexdigest()


@pytest.mark.nightly
def test_scope_without_a_list_polls_only_its_members(
    index: ServedPages, catalog: Catalog, follow: Callable[..., Crawler]
) -> None:
    index.wheel("app", "1.0", requires_dist=["demo"])
    index.answers = lambda path: (404, {}, b"") if path == "/simple/" else None
    crawler = follow()
    start_scope(crawler, ScopePlan("mine", named_roots(["app"]).extras))
    assert run_scope(crawler, "mine").is_complete
    crawl_incremental(crawler)
    assert {name.split("-")[0] for name, _ in live(catalog)} == {"app", "demo"}
    index.wheel("app", "2.0", requires_dist=["other-thing"])
    crawl_incremental(crawler)
    assert {name.split("-")[0] for name, _ in live(catalog)} == {"app", "demo"}
    crawl_incremental(crawler, everything=True)  # projects seen for the first time are in the next range
    assert {name.split("-")[0] for name, _ in live(catalog)} == {"app", "demo", "other_thing"}
    with catalog.read() as connection:
        scope = require_scope(connection, "mine")
        assert scope_status(connection, scope, catalog.clock()).late == 0


def test_status_shows_the_counter(
    index: ServedPages, catalog: Catalog, follow: Callable[..., Crawler], tmp_path: Path
) -> None:
    crawler = follow()
    crawl_full(crawler)
    settings = load_settings(lister="pages", index_url=index.url, home=tmp_path)
    with catalog.read() as connection:
        lag = measure_lag(settings, read_followed(connection), 100.0)
    assert (lag.complete_serial, lag.index_serial, lag.index_error, lag.lagging_since) == (5, 5, None, None)
    index.wheel("demo", "2.0")
    observe(crawler)
    with catalog.read() as connection:
        lag = measure_lag(settings, read_followed(connection), 100.0)
    assert (lag.complete_serial, lag.index_serial) == (5, 6)
    assert lag.lagging_since is not None
    assert query_last_serial(settings, None) == (None, None)
    for lister in ("pages", "simple", "auto"):
        other = load_settings(lister=lister, index_url="http://127.0.0.1:9/simple", home=tmp_path)
        with catalog.read() as connection:
            lag = measure_lag(other, read_followed(connection), 100.0)
        assert (lag.complete_serial, lag.index_serial, lag.lagging_since) == (5, None, None)
        assert unnamed(lag.index_error or "", index.url, "http://127.0.0.1:9/simple/") == []
    with catalog.read() as connection:
        detected = load_settings(lister="auto", index_url=index.url, home=tmp_path)
        assert measure_lag(detected, read_followed(connection), 100.0).index_error is None
