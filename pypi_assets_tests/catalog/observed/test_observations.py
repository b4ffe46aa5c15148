"""Observations of an index without serials: all pollers share one store and one counter."""

import threading
from dataclasses import replace

import pytest
from sqlalchemy import insert

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.observed.index_state import read_lister_state
from pypi_assets.catalog.observed.observations import Observations, counted_serial, require_counter
from pypi_assets.catalog.tables import catalog_state
from pypi_assets.index.kind_names import PAGES
from pypi_assets.index.models import IndexFile
from pypi_assets.index.observing.comparison import KnownFile, KnownPage, NewEvent
from pypi_assets.index.observing.round_state import KnownList, KnownProject, Look
from pypi_assets.index.observing.shown_pages import NO_VALIDATORS, ShownProject, Validators
from pypi_assets.visit_policies import HOUR_S, ChangeTimes
from pypi_assets_tests.naming import naming

URL = "https://pages.example.org/simple/"


@pytest.fixture
def memory(catalog: Catalog) -> Observations:
    return Observations(replace(catalog, clock=lambda: 100.0), URL)


def page_of(project: str, *names: str) -> KnownPage:
    files = {
        name: KnownFile(IndexFile(name, f"{URL}{name}", "ab" * 32, 7, None, ">=3", True, "why", True, None), "1.0")
        for name in names
    }
    return KnownPage(project, is_there=True, was_there=True, files=files)


def look(known: KnownProject, *actions: str, page: KnownPage | None = None, at: float = 100.0) -> Look:
    events = tuple(NewEvent("1.0", action) for action in actions)
    return Look(known, page or page_of(known.project), events, Validators('"x"', "yesterday"), at, at + 50.0, 50.0)


def entered(memory: Observations, *names: str) -> list[KnownProject]:
    memory.enter([ShownProject(name) for name in names], 90.0)
    return memory.take_due(100.0, 200.0, 10, seen_before=100.0, among=None)


def test_poll_is_stored_completely(memory: Observations) -> None:
    [known] = entered(memory, "Demo")
    assert known == KnownProject("demo", KnownPage("demo"))
    page = page_of("demo", "demo-1.0.tar.gz")
    assert memory.save([look(known, "create", "add source file demo-1.0.tar.gz", page=page)]) == (2, 0)
    stored = memory.load("demo")
    assert stored == KnownProject(
        "demo", page, None, 1, 2, Validators('"x"', "yesterday"), 50.0, 100.0, changes=ChangeTimes(100.0)
    )
    assert memory.save([look(stored, "yank release", page=page, at=100.0 + HOUR_S)]) == (1, 0)
    changed = memory.load("demo")
    assert changed is not None
    assert changed.changes == ChangeTimes(100.0 + HOUR_S, HOUR_S)
    assert memory.load("other") is None
    assert memory.last_serial() == 3
    assert [
        (event.serial, event.name, event.version, event.action, event.timestamp) for event in memory.events(0, 10)
    ] == [
        (1, "demo", "1.0", "create", 100),
        (2, "demo", "1.0", "add source file demo-1.0.tar.gz", 100),
        (3, "demo", "1.0", "yank release", 3_700),
    ]
    assert [event.serial for event in memory.events(1, 1)] == [2]
    assert [(one.name, one.last_serial) for one in memory.listed()[1]] == [("demo", 3)]


def test_overtaken_poll_is_dropped(memory: Observations) -> None:
    [known] = entered(memory, "demo")
    assert memory.save([look(known, "create")]) == (1, 0)
    assert memory.save([look(known, "create", page=page_of("demo", "x-1.0.zip"))]) == (0, 1)
    found = memory.load("demo")
    assert found is not None
    assert (found.page.files, found.serial, memory.last_serial()) == ({}, 1, 1)


def test_failed_poll_keeps_known_state(memory: Observations) -> None:
    [known] = entered(memory, "demo")
    memory.save([look(known, "create")])
    before = memory.load("demo")
    assert before is not None
    memory.save([Look(before, None, (), NO_VALIDATORS, 150.0, 400.0, 50.0, "HTTP 503 \0")])
    after = memory.load("demo")
    assert after is not None
    assert replace(after, revision=before.revision, failures=0) == before
    assert after.failures == 1
    assert memory.count_due(399.0, seen_before=400.0, among=None) == 0
    assert memory.count_due(400.0, seen_before=400.0, among=None) == 1
    assert memory.count_due(400.0, seen_before=400.0, among={"other"}) == 0
    assert memory.count_due(400.0, seen_before=100.0, among=None) == 0


def test_two_pollers_get_different_projects(memory: Observations) -> None:
    first = [known.project for known in entered(memory, "a", "b", "c")[:2]]
    assert first == ["a", "b"]
    assert memory.take_due(199.0, 300.0, 10, seen_before=100.0, among=None) == []
    again = memory.take_due(200.0, 300.0, 2, seen_before=100.0, among=None)
    assert [known.project for known in again] == ["a", "b"]
    rest = memory.take_due(200.0, 300.0, 2, seen_before=100.0, among={"a", "c"})
    assert [one.project for one in rest] == ["c"]


def test_serials_of_concurrent_pollers_are_gapless_and_unique(memory: Observations) -> None:
    known = entered(memory, *(f"p{number}" for number in range(8)))

    def save(mine: list[KnownProject]) -> None:
        for one in mine:
            memory.save([look(one, "create", "add source file x")])

    threads = [threading.Thread(target=save, args=(known[start::2],)) for start in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = memory.events(0, 100)
    assert [one.serial for one in found] == list(range(1, 17))
    assert all(found[place].name == found[place + 1].name for place in range(0, 16, 2))


def test_list_enters_projects_and_makes_unlisted_ones_due(memory: Observations) -> None:
    assert memory.known_list() == KnownList()
    memory.save_list([ShownProject("Demo.Pkg", f"{URL}Demo.Pkg/"), ShownProject("b")], Validators('"1"'), 100.0)
    assert memory.known_list() == KnownList(100.0, Validators('"1"'))
    found = memory.take_due(100.0, 200.0, 10, seen_before=100.0, among=None)
    assert [(one.project, one.url) for one in found] == [("b", None), ("demo-pkg", f"{URL}Demo.Pkg/")]
    memory.save([look(one, "create") for one in found])
    memory.save_list([ShownProject("b", f"{URL}b/")], Validators(None, "x" * 2_000), 120.0)
    assert memory.known_list() == KnownList(120.0)
    [left] = memory.take_due(120.0, 200.0, 10, seen_before=120.0, among=None)
    assert left.project == "demo-pkg"
    moved = memory.load("b")
    assert moved is not None
    assert moved.url == f"{URL}b/"
    memory.save_list(None, NO_VALIDATORS, 130.0)
    assert memory.known_list() == KnownList(130.0)
    memory.make_due(130.0, {"b"})
    assert [observed.project for observed in memory.take_due(130.0, 200.0, 10, seen_before=130.0, among=None)] == ["b"]


@pytest.mark.parametrize("name", ["", "x" * 600, "a\0b", "\ud800"])
def test_invalid_project_names_are_skipped(memory: Observations, name: str) -> None:
    memory.enter([ShownProject(name), ShownProject("good")], 1.0)
    assert [observed.project for observed in memory.take_due(1.0, 2.0, 9, seen_before=1.0, among=None)] == ["good"]


def test_first_index_serials_are_reported_once(memory: Observations) -> None:
    assert [memory.note_serials() for _ in range(3)] == [True, False, False]


def test_catalog_has_serials_of_one_kind(catalog: Catalog, memory: Observations) -> None:
    """Once the catalog has one kind, the other kind is rejected and nothing changes."""
    with catalog.read() as connection:
        for is_observed in (True, False):
            require_counter(connection, URL, is_observed=is_observed)
    [known] = entered(memory, "demo")
    memory.save([look(known, "create")])
    with catalog.read() as connection:
        require_counter(connection, URL, is_observed=True)
        with pytest.raises(CatalogError, match=naming(URL)):
            require_counter(connection, URL, is_observed=False)
        with pytest.raises(CatalogError, match=naming(URL, "http://other/", "PYPI_ASSETS_INDEX_URL")):
            require_counter(connection, "http://other/", is_observed=True)
        assert counted_serial(connection, URL) == 1


def test_catalog_with_index_serials_cannot_be_observed(catalog: Catalog, memory: Observations) -> None:
    state = {"index_url": URL, "events_since": 5, "events_through": 9, "exact_from": 5, "next_dump_sequence": 1}
    with catalog.write() as connection:
        connection.execute(insert(catalog_state).values(id=1, **state))
    known = entered(memory, "demo")
    with pytest.raises(CatalogError, match=naming(URL)):
        memory.save([look(known[0], "create")])
    with catalog.read() as connection:
        assert read_lister_state(connection, PAGES, URL).revision == 0
