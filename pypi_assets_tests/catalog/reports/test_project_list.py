"""The list of projects at a serial equals the list that the index had then, whatever happened before and after."""

import json
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from packaging.utils import canonicalize_name

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.epochs import note_change
from pypi_assets.catalog.reports import project_list
from pypi_assets.catalog.reports.moments import first_exact_serial
from pypi_assets.catalog.reports.past_pages import page_at
from pypi_assets.catalog.reports.project_list import ListedAt, projects_at
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.devindex.devindex_errors import OperationRefusedError
from pypi_assets.devindex.served_pages import simple_index_json
from pypi_assets_tests.examples import examples
from pypi_assets_tests.served_index import ServedIndex, served_index

SPELLINGS = {"a": ("A", "a"), "b-c": ("b-c", "B_C", "b.c"), "d": ("d",), "e": ("e", "E")}
ACTIONS = ("add", "add", "add", "remove_file", "remove_release", "remove_project", "quarantine", "unquarantine")


def change(index: ServedIndex, drawn: Random, number: int) -> None:
    """Change the index at random, if it allows the drawn change."""
    action, name = drawn.choice(ACTIONS), drawn.choice(list(SPELLINGS))
    version = str(drawn.randrange(3))
    with suppress(OperationRefusedError):
        if action == "add":
            index.wheel(drawn.choice(SPELLINGS[name]), version, build=str(number))
        elif action == "remove_file":
            files = sorted(filename for filename, _ in index.shown())
            if files:
                index.history.remove_file(drawn.choice(files))
        elif action == "remove_release":
            index.history.remove_release(name, version)
        else:
            getattr(index.history, action)(name)


def listed_by_the_index(index: ServedIndex, serial: int) -> dict[str, int]:
    document = json.loads(simple_index_json(index.history.state_at(serial)))
    return {project["name"]: project["_last-serial"] for project in document["projects"]}


def require_equal_lists(index: ServedIndex, catalog: Catalog, *, with_history: bool) -> None:
    """Compare the lists, and the serials on pages, at each serial that the catalog can answer.

    Without the history, a catalog does not know how names were spelled before its first event about a project.
    """
    with catalog.read() as connection:
        first = first_exact_serial(connection)
    assert first is not None
    for serial in range(max(first, 1), index.serial + 1):
        if index.history.state_at(serial).last_serial != serial:  # an upload has several serials
            continue
        found = list(projects_at(catalog, serial))
        assert [one.normalized for one in found] == sorted({one.normalized for one in found})
        truth = listed_by_the_index(index, serial)
        if not with_history and serial < index.serial:
            assert {one.normalized: one.serial for one in found} == {
                canonicalize_name(name): last for name, last in truth.items()
            }, serial
        else:
            assert {one.name: one.serial for one in found} == truth, serial
        for one in found:
            page = page_at(catalog, serial, one.name)
            assert page is not None
            assert page.last_serial == one.serial, (serial, one)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(examples(4)))
@pytest.mark.parametrize("with_history", [True, False], ids=["with history", "without history"])
def test_list_equals_the_list_of_the_index_at_each_serial(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, *, with_history: bool
) -> None:
    monkeypatch.setattr(project_list, "_AT_ONCE", 2)
    drawn = Random(seed)
    with served_index(tmp_path / "served") as index:
        index.wheel("first", "1.0")
        crawler = index.crawler(catalog)
        numbers = iter(range(1, 1_000))
        for _ in range(15):
            change(index, drawn, next(numbers))
        crawl_full(crawler, with_history=with_history)
        for _ in range(25):
            change(index, drawn, next(numbers))
            if drawn.random() < 0.2:
                crawl_incremental(crawler)
        crawl_incremental(crawler)
        require_equal_lists(index, catalog, with_history=with_history)


def test_project_without_known_events_has_the_serial_of_its_page(catalog: Catalog, tmp_path: Path) -> None:
    with served_index(tmp_path / "served") as index:
        index.wheel("Demo", "1.0")
        index.wheel("other", "1.0")
        crawl_full(index.crawler(catalog))
        assert list(projects_at(catalog, index.serial)) == [ListedAt("demo", "Demo", 4), ListedAt("other", "other", 8)]
        page = page_at(catalog, index.serial, "demo")
        assert page is not None
        assert page.last_serial == 4


def test_list_of_an_expired_epoch_ends_with_an_error(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_list, "_AT_ONCE", 1)
    with served_index(tmp_path / "served") as index:
        for name in ("a", "b"):
            index.wheel(name, "1.0")
        crawl_full(index.crawler(catalog))
        whole = projects_at(catalog, index.serial, index.serial)
        assert [one.name for one in whole] == ["a", "b"]
        changed = projects_at(catalog, index.serial, index.serial)
        assert next(changed).name == "a"
        with catalog.write() as connection:
            note_change(connection, index.serial)
        with pytest.raises(CatalogError):
            next(changed)
        assert [one.name for one in projects_at(catalog, index.serial)] == ["a", "b"]
