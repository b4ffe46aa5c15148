"""What an index offers is in order of what looks alike, with since when, on both databases."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from packaging.utils import canonicalize_name
from sqlalchemy import insert

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.live_files import known_names, names_by_skeleton, offered_projects, skeleton
from pypi_assets.catalog.tables import catalog_state, events, projects
from pypi_assets_tests.small_catalog import SmallCatalog

NAMES = [
    "Pillow",
    "pi1low",
    "pi-llow",
    "soap",
    "50ap",
    "zope.interface",
    "zope-1nterface",
    "b",
    "a-b",
    "0",
    "o",
    "ünïcode",
]
UPLOADED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()


@pytest.fixture
def small(catalog: Catalog) -> Iterator[SmallCatalog]:
    with catalog.write() as connection:
        connection.execute(
            insert(catalog_state).values(
                id=1, index_url="x", events_since=0, events_through=9, exact_from=0, next_dump_sequence=1
            )
        )
    return SmallCatalog(catalog)


@pytest.mark.parametrize(
    ("one", "other", "are_alike"),
    [
        ("foo-bar", "foobar", True),
        ("0penssl", "openssl", True),
        ("pi1low", "pillow", True),
        ("re5earch", "research", True),
        ("requests", "requestr", False),
        ("a2", "az", False),
    ],
)
def test_names_look_alike_by_hyphens_and_by_digits_for_letters(one: str, other: str, are_alike: bool) -> None:
    assert (skeleton(one) == skeleton(other)) is are_alike


def test_the_database_has_the_same_skeletons_and_the_same_order(small: SmallCatalog) -> None:
    for number, name in enumerate(NAMES):
        small.add(number + 1, name, "1.0", f"file{number}-1.0.tar.gz")
    names = sorted({canonicalize_name(name) for name in NAMES})
    with small.catalog.read() as connection:
        assert list(names_by_skeleton(connection)) == sorted((skeleton(name), name) for name in names)
        assert list(known_names(connection)) == names


def test_a_project_is_there_since_it_last_had_no_file(small: SmallCatalog) -> None:
    small.add(2, "Demo", "1.0", "demo-1.0.tar.gz")
    small.remove(3, "demo-1.0.tar.gz")
    small.add(5, "Demo", "2.0", "demo-2.0-py3-none-any.whl")
    small.add(6, "Demo", "3.0", "demo-3.0-py3-none-any.whl")
    small.remove(7, "demo-2.0-py3-none-any.whl")
    small.yank(8, "demo-3.0-py3-none-any.whl")
    small.add(8, "gone", "1.0", "gone-1.0.tar.gz")
    small.remove(9, "gone-1.0.tar.gz")
    with small.catalog.write() as connection:
        project = connection.scalar(projects.select().where(projects.c.normalized == "demo"))
        connection.execute(
            insert(events).values(
                serial=5, project_id=project, name="Demo", timestamp=1_700_000_000, action="x", kind="x"
            )
        )
    with small.catalog.read() as connection:
        [demo] = offered_projects(connection, 9, ["demo", "gone", "nope"]).values()
        assert (demo.normalized, demo.name, demo.since_serial, demo.since) == ("demo", "Demo", 5, 1_700_000_000.0)
        assert demo.releases == {"3.0": True}
        before = offered_projects(connection, 2, ["demo"])["demo"]
        assert (before.since_serial, before.since, before.releases) == (2, UPLOADED, {"1.0": False})
        assert set(offered_projects(connection, 8, ["demo", "gone"])) == {"demo", "gone"}
        assert offered_projects(connection, 4, ["demo"]) == {}
