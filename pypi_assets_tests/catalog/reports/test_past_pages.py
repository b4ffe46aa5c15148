"""Pages at earlier serials equal the pages that the index served then."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, update

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.epochs import note_change
from pypi_assets.catalog.reports import past_pages
from pypi_assets.catalog.reports.past_pages import StoredFiles, page_at
from pypi_assets.catalog.reports.simple_page import SimpleFile, SimplePage
from pypi_assets.catalog.tables import distributions
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.crawl.drawn_changes import PROJECTS, do, drawn_changes
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.served_index import ServedIndex, served_index


def shown(index: ServedIndex, project: str, serial: int) -> object:
    """Return the status and files that the project's page showed at `serial`, or None if it had no page."""
    state = index.history.state_at(serial).project(project)
    if state is None:
        return None
    return state.status.value, {
        file.filename: (
            release.version,
            file.sha256,
            file.size,
            file.requires_python,
            file.uploaded_at,
            release.yanked and (release.yanked_reason or True),
        )
        for release in state.visible_releases()
        for file in release.files.values()
    }


def answered(page: SimplePage | None) -> object:
    """Return the same values for a page of the catalog."""
    if page is None:
        return None
    return page.status, {
        file.filename: (file.version, file.sha256, file.size, file.requires_python, file.uploaded_at, file.yanked)
        for file in page.files
    }


@pytest.mark.nightly
@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.too_slow])
@given(batches=st.lists(st.lists(drawn_changes("yank_for"), min_size=1, max_size=6), min_size=2, max_size=4))
def test_past_page_equals_the_index_at_its_serial(batches):
    with tempfile.TemporaryDirectory() as folder, served_index(Path(folder)) as index:
        index.wheel("first", "1.0")
        catalog = open_catalog(sqlite_database(Path(folder, "catalog")))
        crawl_full(index.crawler(catalog))
        first, stored = index.serial, StoredFiles(most_files=5)
        for batch in batches:
            for step in batch:
                do(index, *step)
            crawl_incremental(index.crawler(catalog))
            assert_remembered(catalog, index, first, stored)
        for serial in serials_since(index, first):
            for project in PROJECTS:
                expected, found = shown(index, project, serial), answered(page_at(catalog, serial, project))
                assert found == expected or _is_unseen(expected, found), (project, serial)
        catalog.close()


def serials_since(index: ServedIndex, first: int) -> list[int]:
    return [serial for serial in index.history._serials if serial >= first]


def assert_remembered(catalog: Catalog, index: ServedIndex, first: int, stored: StoredFiles) -> None:
    """Check that pages built from cached files equal pages built without the cache. The files may come from other
    serials, or from before a visit.
    """
    for serial in serials_since(index, first):
        for project in PROJECTS:
            for is_safe in (False, True):
                page = page_at(catalog, serial, project, is_safe=is_safe, stored=stored)
                assert page == page_at(catalog, serial, project, is_safe=is_safe), (serial, project)


def _is_unseen(expected: object, found: object) -> bool:
    """Check whether two answers differ only in facts that no page has shown: of files that were removed before a visit,
    or of a yank that was undone before it.
    """
    if expected is None or found is None:
        return False
    (status, files), (found_status, found_files) = expected, found
    if status != found_status or files.keys() != found_files.keys():
        return False
    return all(
        found_files[name] == facts
        or found_files[name][1] is None
        or (found_files[name][:5] == facts[:5] and found_files[name][5] is True and facts[5])
        for name, facts in files.items()
    )


def test_file_is_read_once_for_many_serials_until_it_may_have_changed(tmp_path, monkeypatch):
    with served_index(tmp_path / "index") as index:
        for number in range(4):
            index.wheel("demo", f"1.{number}")
        catalog = open_catalog(sqlite_database(tmp_path / "catalog"))
        crawl_full(index.crawler(catalog))
        first = index.serial
        index.history.yank("demo", "1.0", "broken")
        index.wheel("demo", "1.4")
        crawl_incremental(index.crawler(catalog))
        read: list[int] = []
        read_files = past_pages._read_files

        def counted(connection: Connection, ids: Sequence[int]) -> dict[int, SimpleFile]:
            read.append(len(ids))
            return read_files(connection, ids)

        monkeypatch.setattr(past_pages, "_read_files", counted)
        stored = StoredFiles()
        for serial in (first, index.serial, first + 1, first):
            page_at(catalog, serial, "demo", stored=stored)
        assert read == [4, 1]  # a yank does not make a file be read again; only the new file is read

        with catalog.write() as connection:
            note_change(connection, first + 1)
            connection.execute(update(distributions).values(size=1))
        page = page_at(catalog, first, "demo", stored=stored)
        assert {file.size for file in page.files} == {1}
        assert read == [4, 1, 4]

        small = StoredFiles(most_files=2)
        pages = [page_at(catalog, index.serial, "demo", stored=small) for _ in range(2)]
        assert pages[0] == pages[1] == page_at(catalog, index.serial, "demo")
        assert read == [4, 1, 4, 5, 3, 5]
        catalog.close()


def test_project_spans_are_read_once_for_all_earlier_serials(tmp_path, monkeypatch):
    with served_index(tmp_path / "index") as index:
        for number in range(3):
            index.wheel("demo", f"1.{number}")
        catalog = open_catalog(sqlite_database(tmp_path / "catalog"))
        crawl_full(index.crawler(catalog))
        first = index.serial
        read: list[int] = []
        read_history = past_pages._read_history

        def counted(connection: Connection, project_id: int) -> Any:
            read.append(project_id)
            return read_history(connection, project_id)

        monkeypatch.setattr(past_pages, "_read_history", counted)
        stored, small = StoredFiles(), StoredFiles(most_files=2)
        for serial in (first, first, first):
            page_at(catalog, serial, "demo", stored=stored)
            page_at(catalog, serial, "demo", stored=small)
        assert len(read) == 1 + 3  # three spans are more than the two that fit

        index.history.remove_release("demo", "1.0")
        index.history.yank("demo", "1.1", "broken")
        crawl_incremental(index.crawler(catalog))
        read.clear()
        for serial in range(index.serial, first - 1, -1):
            page = page_at(catalog, serial, "demo", stored=stored)
            assert page == page_at(catalog, serial, "demo", stored=small), serial
        assert sorted(file.filename for file in page.files) == [
            f"demo-1.{number}-py3-none-any.whl" for number in range(3)
        ]
        serials = index.serial - first + 1
        assert len(read) == 1 + serials  # new serials make it read once more

        with catalog.read() as before:
            project_id = read[0]
            stored.as_of(before).shown(before, project_id, first)
            with catalog.write() as connection:
                note_change(connection, first)
            page_at(catalog, first, "demo", stored=stored)
            read.clear()
            for _ in range(2):
                stored.as_of(before).shown(
                    before, project_id, first
                )  # began before the change, so it must not be cached
            page_at(catalog, first, "demo", stored=stored)
        assert len(read) == 2
        catalog.close()
