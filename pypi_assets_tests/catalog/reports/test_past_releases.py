"""Releases, files and projects at a serial, as resolutions, look-ups and pages read them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from sqlalchemy import insert, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_rows import project_rows_at
from pypi_assets.catalog.reads.past_generations import keep_past_generations
from pypi_assets.catalog.reports.live_files import (
    FoundFile,
    files_with_sha256,
    known_names,
    names_by_skeleton,
    offered_projects,
    skeleton,
)
from pypi_assets.catalog.reports.past_releases import (
    PastReleases,
    count_dependents,
    lists_with_modules,
    live_files_of,
    rows_of_files,
    rows_of_projects,
)
from pypi_assets.catalog.tables import catalog_state, distribution_data, distributions, events, projects
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> SmallCatalog:
    small = small_catalog(tmp_path, database_url)
    small.add(1, "Demo", "1.0", "demo-1.0.tar.gz", requires_dist=("base>1",), requires_python=">=3.9")
    small.add(2, "Demo", "1.0", "demo-1.0-py3-none-any.whl", requires_dist=("base>1", "other"))
    small.add(3, "Demo", "2.0", "demo-2.0.tar.gz", modules=None, requires_dist=None)
    small.add(4, "other", "2.0", "other-2.0.tar.gz", requires_dist=())
    small.yank(5, "demo-1.0.tar.gz")
    small.remove(6, "demo-2.0.tar.gz")
    small.unyank(7, "demo-1.0.tar.gz")
    small.complete(9)
    with small.catalog.write() as connection:  # the sdist was replaced at serial 8
        [id_] = connection.scalars(select(distributions.c.id).where(distributions.c.filename == "demo-1.0.tar.gz"))
        keep_past_generations(connection, {id_: 8})
        connection.execute(distributions.update().where(distributions.c.id == id_).values(sha256="99" * 32, size=7))
        connection.execute(
            distribution_data.update()
            .where(distribution_data.c.distribution_id == id_)
            .values(requires_dist_id=None, outcome="error")
        )
    return small


@pytest.mark.nightly
@pytest.mark.parametrize("serial", range(10))
def test_files_equal_the_dumps_at_each_serial(small: SmallCatalog, serial: int):
    past = PastReleases(small.catalog, serial)
    found = past.projects(["Other", "demo", "nothing"])
    rows = {
        name: [as_dumped(row) for row in project_rows_at(small.catalog, serial, name)] for name in ("demo", "Other")
    }
    assert found.keys() == {name for name, of_project in rows.items() if of_project}
    wanted = [(project, list(project.releases)) for project in found.values()]
    files = dict(zip(found, past.files(wanted), strict=True))
    for name, project in found.items():
        assert project.name == rows[name][0]["project"]
        assert set(project.releases) == {str(row["version"]) for row in rows[name]}
        assert files[name] == sorted(
            ({column: row[column] for column in files[name][0]} for row in rows[name]), key=lambda one: one["filename"]
        )
        [of_release] = past.files([(project, [next(iter(project.releases))])])
        assert of_release == [file for file in files[name] if file["version"] == next(iter(project.releases))]
    small.catalog.close()


def test_file_that_is_replaced_between_two_reads_has_its_former_content(candidates: SmallCatalog) -> None:
    past = PastReleases(candidates.catalog, 5)
    demo = past.projects(["demo"])["demo"]
    before = past.files([(demo, ["2.0"])])
    with candidates.catalog.write() as connection:
        [id_] = connection.scalars(select(distributions.c.id).where(distributions.c.filename == "demo-2.0.zip"))
        keep_past_generations(connection, {id_: 8})
        connection.execute(distributions.update().where(distributions.c.id == id_).values(sha256="99" * 32))
        connection.execute(
            distribution_data.update()
            .where(distribution_data.c.distribution_id == id_)
            .values(requires_dist_id=None, outcome="error")
        )
    assert past.files([(demo, ["2.0"])]) == before
    [[later]] = PastReleases(candidates.catalog, 9).files([(demo, ["2.0"])])
    assert (later["sha256"], later["requires_dist"]) == ("99" * 32, None)


def test_unknown_projects_are_missing_and_no_files_are_asked_for(small: SmallCatalog):
    past = PastReleases(small.catalog, 9)
    assert past.projects(["nothing\0", "lone \ud800"]) == {}
    assert past.projects([]) == {}
    assert past.files([]) == []
    assert past.files([(past.projects(["demo"])["demo"], [])]) == [[]]
    small.catalog.close()


@pytest.fixture
def candidates(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    candidates = small_catalog(tmp_path, database_url)
    candidates.add(1, "demo", "1.0", "demo-1.0.zip", modules=("demo", "demo.a"), requires_dist=("base", "base>1"))
    candidates.add(2, "demo", "2.0", "demo-2.0.zip", modules=("demo",), requires_dist=("base",), stubs=("demo.b",))
    candidates.add(3, "other", "1.0", "other-1.0.zip", modules=("tests", "demo.a"), requires_dist=("Base; extra=='x'",))
    candidates.yank(4, "demo-1.0.zip")
    candidates.remove(5, "other-1.0.zip")
    candidates.complete(9)
    yield candidates
    candidates.catalog.close()


def test_live_files_and_dependents_are_as_of_the_serial(candidates: SmallCatalog) -> None:
    with candidates.catalog.read() as connection:
        lists = lists_with_modules(connection, {"demo", "demo.a", "tests", "unknown"})
    assert {module: len(ids) for module, ids in lists.items()} == {"demo": 2, "demo.a": 2, "tests": 1, "unknown": 0}
    assert set(lists["tests"]) < set(lists["demo.a"])

    def files(serial: int) -> list[tuple[str, int, bool]]:
        found = live_files_of(candidates.catalog, serial, ["demo", "other", "unknown"])
        return sorted((file.filename, file.live_since, file.yanked) for file in found)

    assert files(1) == [("demo-1.0.zip", 1, False)]
    assert files(4) == [("demo-1.0.zip", 1, True), ("demo-2.0.zip", 2, False), ("other-1.0.zip", 3, False)]
    assert files(5) == files(4)[:2]

    names = ["base", "demo", "unknown"]
    assert [count_dependents(candidates.catalog, serial, names) for serial in (0, 1, 3, 5)] == [
        {},
        {"base": 1},
        {"base": 2},
        {"base": 1},
    ]


def test_rows_equal_the_dumps(candidates: SmallCatalog) -> None:
    ids = [file.distribution_id for file in live_files_of(candidates.catalog, 4, ["demo"]) if file.version == "2.0"]
    [row] = rows_of_files(candidates.catalog, 4, ids)
    assert (row["filename"], row["stubs"], row["yanked"], row["live_since"]) == ("demo-2.0.zip", ["demo.b"], False, 2)
    assert list(rows_of_files(candidates.catalog, 1, ids)) == []
    rows = list(rows_of_projects(candidates.catalog, 5, ["demo", "other"]))
    assert [row["filename"] for row in rows] == ["demo-1.0.zip", "demo-2.0.zip"]


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
def offered(catalog: Catalog) -> Iterator[SmallCatalog]:
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
def test_skeleton_ignores_hyphens_and_digits_for_letters(one: str, other: str, are_alike: bool) -> None:
    assert (skeleton(one) == skeleton(other)) is are_alike


def test_database_computes_the_same_skeletons_and_order(offered: SmallCatalog) -> None:
    for number, name in enumerate(NAMES):
        offered.add(number + 1, name, "1.0", f"file{number}-1.0.tar.gz")
    names = sorted({canonicalize_name(name) for name in NAMES})
    with offered.catalog.read() as connection:
        assert list(names_by_skeleton(connection)) == sorted((skeleton(name), name) for name in names)
        assert list(known_names(connection)) == names


def test_project_exists_since_it_last_had_no_file(offered: SmallCatalog) -> None:
    offered.add(2, "Demo", "1.0", "demo-1.0.tar.gz")
    offered.remove(3, "demo-1.0.tar.gz")
    offered.add(5, "Demo", "2.0", "demo-2.0-py3-none-any.whl")
    offered.add(6, "Demo", "3.0", "demo-3.0-py3-none-any.whl")
    offered.remove(7, "demo-2.0-py3-none-any.whl")
    offered.yank(8, "demo-3.0-py3-none-any.whl")
    offered.add(8, "gone", "1.0", "gone-1.0.tar.gz")
    offered.remove(9, "gone-1.0.tar.gz")
    with offered.catalog.write() as connection:
        project = connection.scalar(projects.select().where(projects.c.normalized == "demo"))
        connection.execute(
            insert(events).values(
                serial=5, project_id=project, name="Demo", timestamp=1_700_000_000, action="x", kind="x"
            )
        )
    with offered.catalog.read() as connection:
        [demo] = offered_projects(connection, 9, ["demo", "gone", "nope"]).values()
        assert (demo.normalized, demo.name, demo.since_serial, demo.since) == ("demo", "Demo", 5, 1_700_000_000.0)
        assert demo.releases == {"3.0": True}
        before = offered_projects(connection, 2, ["demo"])["demo"]
        assert (before.since_serial, before.since, before.releases) == (2, UPLOADED, {"1.0": False})
        assert set(offered_projects(connection, 8, ["demo", "gone"])) == {"demo", "gone"}
        assert offered_projects(connection, 4, ["demo"]) == {}


SHA256 = "ab" * 32
FILENAME = "demo-1.0.tar.gz"


@pytest.fixture
def hashed(tmp_path: Path) -> Iterator[SmallCatalog]:
    """Yield a catalog with a file that is added at serial 1, removed at 3 and shown again at 5, and a file with another
    hash.
    """
    hashed = small_catalog(tmp_path)
    hashed.add(1, "Demo", "1.0", FILENAME)
    hashed.add(2, "other", "1.0", "other-1.0.tar.gz")
    hashed.remove(3, FILENAME)
    hashed.show_again(5, FILENAME)
    with hashed.catalog.write() as connection:
        connection.execute(update(distributions).values(sha256="cd" * 32))
        connection.execute(update(distributions).where(distributions.c.filename == FILENAME).values(sha256=SHA256))
    yield hashed
    hashed.catalog.close()


@pytest.mark.parametrize(
    ("serial", "live"),
    [
        (1, ((1, None),)),
        (2, ((1, None),)),
        (3, ((1, 3),)),
        (4, ((1, 3),)),
        (5, ((1, 3), (5, None))),
        (9, ((1, 3), (5, None))),
    ],
)
def test_intervals_are_as_of_the_serial(
    hashed: SmallCatalog, serial: int, live: tuple[tuple[int, int | None], ...]
) -> None:
    assert files_with_sha256(hashed.catalog, serial, SHA256) == [FoundFile("Demo", "demo", "1.0", FILENAME, live)]


def test_file_not_yet_live_is_not_found(hashed: SmallCatalog) -> None:
    assert files_with_sha256(hashed.catalog, 0, SHA256) == []
    assert files_with_sha256(hashed.catalog, 9, "00" * 32) == []


def test_same_hash_in_several_projects_is_found_in_all(hashed: SmallCatalog) -> None:
    with hashed.catalog.write() as connection:
        connection.execute(update(distributions).values(sha256=SHA256))
    assert [file.normalized for file in files_with_sha256(hashed.catalog, 9, SHA256)] == ["demo", "other"]
