"""After a replay of the whole changelog, the catalog knows the shown files of every serial."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from starlette.responses import PlainTextResponse

from pypi_assets.catalog.database import Catalog, CatalogError, open_catalog
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.reports.moments import answerable_serial
from pypi_assets.catalog.tables import catalog_state, changes, events
from pypi_assets.crawl import stored_events
from pypi_assets.crawl.full_crawl import crawl_full, list_index
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.index.errors import TransientError
from pypi_assets_tests.crawl.drawn_changes import changes as operations
from pypi_assets_tests.crawl.drawn_changes import do
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex, live, served_index

Shown = dict[int, set[tuple[str, bool]]]


def grow(index: ServedIndex, shown: Shown, kind: str, project: str, version: str) -> None:
    """Apply the operation and note the shown files. If it writes several events, the last event changes the files."""
    before = index.serial
    do(index, kind, project, version)
    for serial in range(before + 1, index.serial):
        shown[serial] = shown[before]
    shown[index.serial] = index.shown()


def answered(catalog: Catalog, shown: Shown) -> Shown:
    return {serial: live(catalog, answerable_serial(catalog, serial)) for serial in shown}


def unexplained(catalog: Catalog) -> int:
    with catalog.read() as connection:
        return len(connection.execute(select(changes).where(changes.c.cause == UNEXPLAINED)).all())


@pytest.mark.nightly
@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.too_slow])
@given(
    batches=st.lists(st.lists(operations, min_size=1, max_size=12), min_size=3, max_size=3),
    window=st.sampled_from([1, 3, 50_000]),
)
def test_catalog_equals_the_index_at_every_serial(batches, window):
    with (
        tempfile.TemporaryDirectory() as folder,
        served_index(Path(folder)) as index,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(stored_events, "_SERIALS_AT_A_TIME", window)
        shown: Shown = {0: set()}
        fresh, followed = (open_catalog(sqlite_database(Path(folder, name))) for name in ("fresh", "followed"))
        for number, batch in enumerate(batches):
            for operation in batch:
                grow(index, shown, *operation)
            if number == 0:
                crawl_full(index.crawler(followed))
            crawl_incremental(index.crawler(followed))
        for catalog in (fresh, followed):
            crawl_full(index.crawler(catalog), with_history=True)
            assert answered(catalog, shown) == shown
            assert unexplained(catalog) == 0
            catalog.close()


def test_change_explained_by_earlier_events_is_no_longer_unexplained(index: ServedIndex, catalog: Catalog):
    sdist = index.sdist("one", "1.0")
    index.history.yank("one", "1.0")
    index.history.remove_file(sdist)
    crawl_full(index.crawler(catalog))
    index.wheel("one", "1.0")
    crawl_incremental(index.crawler(catalog))
    assert unexplained(catalog) == 1
    crawl_full(index.crawler(catalog), with_history=True)
    assert unexplained(catalog) == 0


def test_stopped_replay_continues(index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stored_events, "_SERIALS_AT_A_TIME", 4)
    shown: Shown = {0: set()}
    for operation in [("wheel", "Alpha", "1.0"), ("sdist", "Alpha", "1.0"), ("remove_project", "Alpha", "1.0")] * 2:
        grow(index, shown, *operation)
    requested = []

    def fail(request):
        if request.url.path == "/pypi":
            requested.append(request)
            if len(requested) in {3, 5}:
                return PlainTextResponse("", 503)
        return None

    index.faults = fail
    for _ in range(2):
        with pytest.raises(TransientError):
            crawl_full(index.crawler(catalog, retry_deadline_s=0.0), with_history=True)
    with catalog.read() as connection:
        assert 0 < connection.scalar(select(catalog_state.c.events_since)) < index.serial
    crawl_full(index.crawler(catalog), with_history=True)
    assert answered(catalog, shown) == shown
    serials = [event.serial for event in index.client().changelog_page(0)]
    with catalog.read() as connection:
        assert connection.scalars(select(events.c.serial).order_by(events.c.serial)).all() == serials


def test_open_crawl_listed_without_history_is_completed_first(index: ServedIndex, catalog: Catalog):
    wheel = index.wheel("one", "1.0")
    list_index(index.crawler(catalog))
    with pytest.raises(CatalogError, match=naming(4, "--with-history")):
        crawl_full(index.crawler(catalog), with_history=True)
    crawl_full(index.crawler(catalog))
    with pytest.raises(CatalogError, match=naming(1, 4)):
        answerable_serial(catalog, 1)
    crawl_full(index.crawler(catalog), with_history=True)
    assert live(catalog, answerable_serial(catalog, 1)) == set()
    assert live(catalog) == {(wheel, False)}


def test_listed_crawl_keeps_its_history_setting(index: ServedIndex, catalog: Catalog):
    index.wheel("gone", "1.0")
    seen = index.shown(), index.serial
    index.history.remove_project("gone")
    list_index(index.crawler(catalog), with_history=True)
    crawl_full(index.crawler(catalog))
    assert live(catalog, answerable_serial(catalog, seen[1])) == seen[0]


def test_history_is_replayed_again_for_more_projects(index: ServedIndex, catalog: Catalog):
    shown: Shown = {0: set()}
    for project in ("Alpha", "beta.pkg"):
        for operation in ("wheel", "sdist", "remove_file", "yank"):
            grow(index, shown, operation, project, "1.0")
    crawl_full(index.crawler(catalog, selection=Selection(frozenset({"alpha"}))), with_history=True)
    assert answerable_serial(catalog, 1) == 1
    crawl_full(index.crawler(catalog))
    with pytest.raises(CatalogError, match=naming(1, 14)):
        answerable_serial(catalog, 1)
    crawl_full(index.crawler(catalog), with_history=True)
    assert answered(catalog, shown) == shown
