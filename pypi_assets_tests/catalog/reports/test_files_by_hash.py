"""A file is found by its sha256, with the times when it was live, as they were known at a serial."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from pypi_assets.catalog.reports.live_files import FoundFile, files_with_sha256
from pypi_assets.catalog.tables import distributions
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

SHA256 = "ab" * 32
FILENAME = "demo-1.0.tar.gz"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    """A file that is added at serial 1, removed at 3 and shown again at 5; and a file with other bytes."""
    small = small_catalog(tmp_path)
    small.add(1, "Demo", "1.0", FILENAME)
    small.add(2, "other", "1.0", "other-1.0.tar.gz")
    small.remove(3, FILENAME)
    small.show_again(5, FILENAME)
    with small.catalog.write() as connection:
        connection.execute(update(distributions).values(sha256="cd" * 32))
        connection.execute(update(distributions).where(distributions.c.filename == FILENAME).values(sha256=SHA256))
    yield small
    small.catalog.close()


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
    small: SmallCatalog, serial: int, live: tuple[tuple[int, int | None], ...]
) -> None:
    assert files_with_sha256(small.catalog, serial, SHA256) == [FoundFile("Demo", "demo", "1.0", FILENAME, live)]


def test_what_was_never_live_by_then_is_not_found(small: SmallCatalog) -> None:
    assert files_with_sha256(small.catalog, 0, SHA256) == []
    assert files_with_sha256(small.catalog, 9, "00" * 32) == []


def test_the_same_bytes_in_several_projects_are_all_found(small: SmallCatalog) -> None:
    with small.catalog.write() as connection:
        connection.execute(update(distributions).values(sha256=SHA256))
    assert [one.normalized for one in files_with_sha256(small.catalog, 9, SHA256)] == ["demo", "other"]
