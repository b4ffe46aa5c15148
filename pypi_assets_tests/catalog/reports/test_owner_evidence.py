"""What the catalog knows of candidates at a serial, on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.reports.past_releases import (
    count_dependents,
    lists_with_modules,
    live_files_of,
    rows_of_files,
    rows_of_projects,
)
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path, database_url)
    small.add(1, "demo", "1.0", "demo-1.0.zip", modules=("demo", "demo.a"), requires_dist=("base", "base>1"))
    small.add(2, "demo", "2.0", "demo-2.0.zip", modules=("demo",), requires_dist=("base",), stubs=("demo.b",))
    small.add(3, "other", "1.0", "other-1.0.zip", modules=("tests", "demo.a"), requires_dist=("Base; extra=='x'",))
    small.yank(4, "demo-1.0.zip")
    small.remove(5, "other-1.0.zip")
    small.complete(9)
    yield small
    small.catalog.close()


def test_it_is_that_of_the_serial(small: SmallCatalog) -> None:
    with small.catalog.read() as connection:
        lists = lists_with_modules(connection, {"demo", "demo.a", "tests", "unknown"})
    assert {module: len(ids) for module, ids in lists.items()} == {"demo": 2, "demo.a": 2, "tests": 1, "unknown": 0}
    assert set(lists["tests"]) < set(lists["demo.a"])

    def files(serial: int) -> list[tuple[str, int, bool]]:
        found = live_files_of(small.catalog, serial, ["demo", "other", "unknown"])
        return sorted((one.filename, one.live_since, one.yanked) for one in found)

    assert files(1) == [("demo-1.0.zip", 1, False)]
    assert files(4) == [("demo-1.0.zip", 1, True), ("demo-2.0.zip", 2, False), ("other-1.0.zip", 3, False)]
    assert files(5) == files(4)[:2]

    names = ["base", "demo", "unknown"]
    assert [count_dependents(small.catalog, serial, names) for serial in (0, 1, 3, 5)] == [
        {},
        {"base": 1},
        {"base": 2},
        {"base": 1},
    ]


def test_rows_are_those_of_dumps(small: SmallCatalog) -> None:
    ids = [one.distribution_id for one in live_files_of(small.catalog, 4, ["demo"]) if one.version == "2.0"]
    [row] = rows_of_files(small.catalog, 4, ids)
    assert (row["filename"], row["stubs"], row["yanked"], row["live_since"]) == ("demo-2.0.zip", ["demo.b"], False, 2)
    assert list(rows_of_files(small.catalog, 1, ids)) == []
    rows = list(rows_of_projects(small.catalog, 5, ["demo", "other"]))
    assert [row["filename"] for row in rows] == ["demo-1.0.zip", "demo-2.0.zip"]
