"""What was seen is loaded in the order in which it was stored."""

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.folding import load_sightings
from pypi_assets.catalog.derived.seen_pages import Sighting
from pypi_assets.catalog.derived.visits import begin_visits
from pypi_assets.catalog.observed.sightings import SeenNow, store_sightings
from pypi_assets.catalog.observed.snapshots import snapshot_content
from pypi_assets_tests.catalog.ended_visits import enter, visit


def page(serial: int, through: int, shown: dict[str, bool], seen_at: float) -> Sighting:
    return Sighting(serial, through, shown, is_page=True, seen_at=seen_at)


def test_sightings_are_those_of_visits_that_saw_a_page_or_its_absence(catalog: Catalog):
    with catalog.write() as connection:
        one, other = enter(connection, 2)
        visit(connection, [one], "page", 1.0)  # of serial 5
        visit(connection, [one], "exhausted", 2.0)
        visit(connection, [other], "no page", 3.0)  # explained by serial 7
        [visit_id] = begin_visits(connection, [one.id], "full", "crawl:1", 4.0).values()
        store_sightings(connection, [SeenNow(one.id, visit_id, 6, 1_100, snapshot_content([]), "active")], 4.0)
        found = load_sightings(connection, [one.id, other.id])
    assert found == {
        one.id: [page(5, 1_000, {}, 1.5), page(6, 1_100, {}, 4.0)],
        other.id: [Sighting(7, 1_000, {}, is_page=False, seen_at=3.5)],
    }
