"""Rows and intervals of files, as they are loaded for a recomputation."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from pypi_assets.catalog.derived.project_state import Interval
from pypi_assets.catalog.derived.stored_files import PageFacts, intervals_of_projects, load_files
from pypi_assets.catalog.tables import distributions, live_intervals, projects, yanked_intervals
from pypi_assets.index.models import IndexFile
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    made = small_catalog(tmp_path, database_url)
    yield made
    made.catalog.close()


def test_facts_have_the_columns_of_a_file_and_the_fields_of_a_page():
    assert set(PageFacts._fields) <= set(distributions.c.keys())
    file = IndexFile("a.zip", "u\0", "a" * 64, 5, "now", ">=3", True, "bad", True, "b" * 64)
    assert PageFacts.of(file) == ("u\ufffd", "a" * 64, 5, "now", ">=3", "bad", True, "b" * 64, None)


def test_files_and_intervals_are_those_of_the_projects(small: SmallCatalog):
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
