"""What happened last: events that change files, the newest first, at a cost that does not grow."""

from sqlalchemy import insert

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.project_history import recent_events
from pypi_assets.catalog.tables import catalog_state, events, followed_intervals, projects
from pypi_assets_tests.naming import mentions

EVENTS = [
    (2, 1, "1.0", "add source file demo-1.0.tar.gz"),
    (3, 1, None, "add Owner somebody"),
    (5, 1, "2.0", "add source file demo-2.0.tar.gz"),
    (6, 1, "2.0", "add py3 file demo-2.0-py3-none-any.whl"),
    (7, 1, "2.0", "yank release"),
    (8, 2, None, "remove project"),
]


def store(catalog: Catalog) -> None:
    with catalog.write() as connection:
        for number, name in ((1, "Demo"), (2, "other")):
            values = {"id": number, "normalized": name.lower(), "name": name, "bucket": 0, "shard": 0, "known_since": 0}
            connection.execute(insert(projects).values(values))
        for serial, project, version, action in EVENTS:
            values = {"serial": serial, "project_id": project, "name": "Demo", "version": version}
            connection.execute(insert(events).values(values | {"timestamp": 100 + serial, "action": action, "kind": 0}))


def shown(catalog: Catalog, serial: int, most: int) -> list[tuple[int, int, str, str]]:
    with catalog.read() as connection:
        found = recent_events(connection, serial, most)
    return [(one["first_serial"], one["serial"], one["project"], one["text"]) for one in found]


def test_the_newest_come_first_and_uploads_to_a_release_are_one(catalog: Catalog):
    store(catalog)
    found = shown(catalog, 8, 9)
    assert [entry[:3] for entry in found] == [(8, 8, "other"), (7, 7, "demo"), (5, 6, "demo"), (2, 2, "demo")]
    assert mentions(found[1][3], "2.0")
    assert mentions(found[2][3], 2, "2.0")
    assert mentions(found[3][3], "demo-1.0.tar.gz")


def test_it_ends_at_the_serial_and_after_most(catalog: Catalog):
    store(catalog)
    assert [one[1] for one in shown(catalog, 5, 9)] == [5, 2]
    assert [one[1] for one in shown(catalog, 8, 1)] == [8]
    assert shown(catalog, 1, 9) == []


def test_what_is_not_followed_is_left_out(catalog: Catalog):
    store(catalog)
    with catalog.write() as connection:
        connection.execute(
            insert(catalog_state).values(
                id=1,
                index_url="http://index.invalid/",
                events_since=0,
                events_through=9,
                exact_from=0,
                next_dump_sequence=1,
                follows_all=False,
            )
        )
        connection.execute(insert(followed_intervals).values(project_id=2, start=1, exact_from=1))
    assert [one[2] for one in shown(catalog, 8, 9)] == ["other"]
