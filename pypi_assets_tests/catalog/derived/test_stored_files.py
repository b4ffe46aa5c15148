"""Inputs of a recomputation: rows and intervals of files, and sightings."""

from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.folding import load_sightings
from pypi_assets.catalog.derived.project_state import Interval
from pypi_assets.catalog.derived.seen_pages import Sighting, seen_pages
from pypi_assets.catalog.derived.stored_files import PageFacts, intervals_of_projects, load_files
from pypi_assets.catalog.derived.visits import begin_visits
from pypi_assets.catalog.observed.sightings import SeenNow, store_sightings
from pypi_assets.catalog.observed.snapshots import snapshot_content
from pypi_assets.catalog.tables import distributions, live_intervals, projects, yanked_intervals
from pypi_assets.index.models import ChangelogEvent, IndexFile
from pypi_assets_tests.catalog.ended_visits import enter, visit
from pypi_assets_tests.small_catalog import SmallCatalog


def test_facts_match_file_columns_and_page_fields():
    assert set(PageFacts._fields) <= set(distributions.c.keys())
    file = IndexFile("a.zip", "u\0", "a" * 64, 5, "now", ">=3", True, "bad", True, "b" * 64)
    assert PageFacts.of(file) == ("u\ufffd", "a" * 64, 5, "now", ">=3", "bad", True, "b" * 64, None)


def test_files_and_intervals_belong_to_the_projects(small: SmallCatalog):
    small.add(1, "Demo", "1.0", "demo-1.0.tar.gz", requires_python=">=3.9")
    small.add(2, "Demo", "2.0", "demo-2.0-py3-none-any.whl")
    small.add(3, "other", "1.0", "other-1.0.tar.gz")
    small.yank(4, "demo-1.0.tar.gz")
    small.remove(5, "demo-1.0.tar.gz")
    small.show_again(7, "demo-1.0.tar.gz")
    with small.catalog.read() as connection:
        demo = connection.scalar(select(projects.c.id).where(projects.c.normalized == "demo"))
        assert demo is not None
        found = load_files(connection, [demo, -1])
        live = intervals_of_projects(connection, live_intervals, [demo])
        yanked = intervals_of_projects(connection, yanked_intervals, [demo])
    assert found[-1] == {}
    first, second = found[demo].values()
    assert (first.filename, first.version, first.outcome) == ("demo-1.0.tar.gz", "1.0", "data")
    assert (first.facts.url, first.facts.requires_python) == ("https://files.example.org/demo-1.0.tar.gz", ">=3.9")
    assert not first.facts.core_metadata
    assert (second.filename, second.version) == ("demo-2.0-py3-none-any.whl", "2.0")
    assert live == {first.id: (Interval(1, 5), Interval(7, None)), second.id: (Interval(2, None),)}
    assert yanked == {first.id: (Interval(4, None),)}


def page(serial: int, through: int, shown: dict[str, bool], seen_at: float) -> Sighting:
    return Sighting(serial, through, shown, is_page=True, seen_at=seen_at)


def test_sightings_come_from_visits_that_saw_a_page_or_its_absence(catalog: Catalog):
    with catalog.write() as connection:
        one, other = enter(connection, 2)
        visit(connection, [one], "page", 1.0)  # at serial 5
        visit(connection, [one], "exhausted", 2.0)
        visit(connection, [other], "no page", 3.0)  # explained by serial 7
        [visit_id] = begin_visits(connection, [one.id], "full", "crawl:1", 4.0).values()
        store_sightings(connection, [SeenNow(one.id, visit_id, 6, 1_100, snapshot_content([]), "active")], 4.0)
        found = load_sightings(connection, [one.id, other.id])
    assert found == {
        one.id: [page(5, 1_000, {}, 1.5), page(6, 1_100, {}, 4.0)],
        other.id: [Sighting(7, 1_000, {}, is_page=False, seen_at=3.5)],
    }


ONE, OTHER = {"one-1.0.zip": False}, {"other-1.0.zip": True}


def events(*serials: int) -> list[ChangelogEvent]:
    return [ChangelogEvent("Demo", None, 0, "docupdate", serial) for serial in serials]


def sighting(serial: int, through: int, shown: dict[str, bool]) -> Sighting:
    return Sighting(serial, through, shown, is_page=True)


def seen(sightings: list[Sighting], known: list[ChangelogEvent], known_since: int) -> list[tuple[int, object]]:
    return [(one.serial, one.yanked) for one in seen_pages(sightings, known, known_since)]


def test_page_holds_from_its_serial_to_the_last_stored_event():
    assert seen([sighting(5, 9, ONE)], [], 0) == [(5, ONE), (9, ONE)]


def test_page_holds_until_an_event_or_newer_page():
    assert seen([sighting(5, 9, ONE)], events(7), 0) == [(5, ONE)]
    assert seen([sighting(5, 9, ONE), sighting(8, 8, OTHER)], [], 0) == [
        (5, ONE),
        (8, OTHER),
        (8, OTHER),
    ]


def test_later_page_of_same_serial_counts_from_where_it_was_seen():
    assert seen([sighting(5, 6, ONE), sighting(5, 9, OTHER)], [], 0) == [
        (5, ONE),
        (6, ONE),
        (9, OTHER),
    ]


def test_unexplained_404_counts_from_where_it_was_seen():
    assert seen([Sighting(None, 9, {}, is_page=False)], events(3), 0) == [(9, {})]


def test_only_newest_page_counts_before_the_stored_events():
    found = list(seen_pages([sighting(2, 2, ONE), sighting(4, 4, OTHER), sighting(12, 12, ONE)], [], 10))
    assert [seen.serial for seen in found if seen.yanked == OTHER] == [4, 4]
    assert [seen.serial for seen in found if seen.yanked == ONE] == [2, 12, 12]
