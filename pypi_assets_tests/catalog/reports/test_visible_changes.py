"""The serials at which an answer about a project changes are those at which dumps of it differ."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select, update

from pypi_assets.catalog.publications.dump_rows import project_rows_at
from pypi_assets.catalog.reads.past_generations import keep_past_generations
from pypi_assets.catalog.reports.removals import answerable_before, answerable_changes, changed_serials
from pypi_assets.catalog.tables import distributions, serial_ranges
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path, database_url)
    small.add(3, "Demo", "1.0", "demo-1.0.tar.gz")
    small.add(5, "other", "1.0", "other-1.0.tar.gz")
    small.add(7, "Demo", "1.0", "demo-1.0-py3-none-any.whl")
    small.yank(9, "demo-1.0.tar.gz")
    small.unyank(11, "demo-1.0.tar.gz")
    small.remove(13, "demo-1.0-py3-none-any.whl")
    small.show_again(17, "demo-1.0-py3-none-any.whl")
    for end in (8, 12, 20):
        small.complete(end)
    with small.catalog.write() as connection:
        [id_] = connection.scalars(select(distributions.c.id).where(distributions.c.filename == "demo-1.0.tar.gz"))
        keep_past_generations(connection, {id_: 15})
        connection.execute(distributions.update().where(distributions.c.id == id_).values(sha256="99" * 32))
    yield small
    small.catalog.close()


def test_they_are_those_at_which_dumps_differ(small: SmallCatalog):
    def rows(serial: int) -> list[object]:
        return [as_dumped(row) for row in project_rows_at(small.catalog, serial, "demo")]

    expected = [serial for serial in range(1, 21) if rows(serial) != rows(serial - 1)]
    assert expected == [3, 7, 9, 11, 13, 15, 17]
    with small.catalog.read() as connection:
        assert changed_serials(connection, "demo", 0, 20) == expected
        assert changed_serials(connection, "demo", 7, 13) == [9, 11, 13]
        assert changed_serials(connection, "demo", 7, 7) == []
        assert changed_serials(connection, "nothing\0", 0, 20) == []
        assert answerable_changes(connection, "demo", 0, 20) == expected


def test_where_no_events_are_known_the_next_serial_with_an_answer_counts(small: SmallCatalog):
    with small.catalog.write() as connection:
        connection.execute(update(serial_ranges).where(serial_ranges.c.start == 8).values(exact_from=12))
    with small.catalog.read() as connection:
        assert answerable_changes(connection, "demo", 0, 20) == [3, 7, 12, 13, 15, 17]
        assert answerable_changes(connection, "demo", 7, 12) == [12]
        assert answerable_before(connection, 12) == 8
        assert answerable_before(connection, 13) == 12
        assert answerable_before(connection, 8) == 7
