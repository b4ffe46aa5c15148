"""At which serials what a page showed is known to hold."""

from pypi_assets.catalog.derived.seen_pages import Sighting, seen_pages
from pypi_assets.index.models import ChangelogEvent

ONE, OTHER = {"one-1.0.zip": False}, {"other-1.0.zip": True}


def events(*serials: int) -> list[ChangelogEvent]:
    return [ChangelogEvent("Demo", None, 0, "docupdate", serial) for serial in serials]


def page(serial: int, through: int, shown: dict[str, bool]) -> Sighting:
    return Sighting(serial, through, shown, is_page=True)


def seen(sightings: list[Sighting], known: list[ChangelogEvent], known_since: int) -> list[tuple[int, object]]:
    return [(one.serial, one.yanked) for one in seen_pages(sightings, known, known_since)]


def test_a_page_holds_at_its_serial_and_up_to_where_events_were_stored():
    assert seen([page(5, 9, ONE)], [], 0) == [(5, ONE), (9, ONE)]


def test_an_event_or_a_newer_page_in_between_ends_that():
    assert seen([page(5, 9, ONE)], events(7), 0) == [(5, ONE)]
    assert seen([page(5, 9, ONE), page(8, 8, OTHER)], [], 0) == [
        (5, ONE),
        (8, OTHER),
        (8, OTHER),
    ]


def test_what_a_later_page_of_the_same_serial_shows_counts_from_where_it_was_seen():
    assert seen([page(5, 6, ONE), page(5, 9, OTHER)], [], 0) == [
        (5, ONE),
        (6, ONE),
        (9, OTHER),
    ]


def test_an_unexplained_404_counts_from_where_it_was_seen():
    assert seen([Sighting(None, 9, {}, is_page=False)], events(3), 0) == [(9, {})]


def test_before_the_stored_events_only_the_newest_page_counts():
    found = list(seen_pages([page(2, 2, ONE), page(4, 4, OTHER), page(12, 12, ONE)], [], 10))
    assert [seen.serial for seen in found if seen.yanked == OTHER] == [4, 4]
    assert [seen.serial for seen in found if seen.yanked == ONE] == [2, 12, 12]
