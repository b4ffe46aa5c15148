"""Live files at a serial."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select, update

from pypi_assets.catalog.reads.past_generations import keep_past_generations
from pypi_assets.catalog.reports.live_files import (
    count_live,
    live_files,
    next_module_root,
    next_project,
    providers_of_root,
)
from pypi_assets.catalog.tables import distributions, past_generations
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    made = small_catalog(tmp_path, database_url)
    made.add(2, "Demo", "1.0", "demo-1.0.tar.gz", requires_python=">=3.9")
    made.add(3, "Demo", "2.0", "demo-2.0-py3-none-any.whl", modules=None)
    made.add(3, "another", "1.0", "another-1.0.tar.gz")
    made.yank(4, "demo-1.0.tar.gz")
    made.remove(6, "demo-1.0.tar.gz")
    made.unyank(6, "demo-1.0.tar.gz")
    made.show_again(8, "demo-1.0.tar.gz")
    made.complete(8)
    yield made
    made.catalog.close()


def test_file_is_live_until_the_serial_before_its_end(small: SmallCatalog):
    found = {}
    for serial in range(1, 9):
        files = list(live_files(small.catalog, serial))
        found[serial] = [(file.filename, file.live_since, file.yanked) for file in files]
        with small.catalog.read() as connection:
            assert count_live(connection, serial) == len(files)
    other, wheel = ("another-1.0.tar.gz", 3, False), ("demo-2.0-py3-none-any.whl", 3, False)
    assert found[1] == []
    assert found[2] == [("demo-1.0.tar.gz", 2, False)]
    assert found[3] == [other, ("demo-1.0.tar.gz", 2, False), wheel]
    assert found[4] == found[5] == [other, ("demo-1.0.tar.gz", 2, True), wheel]
    assert found[6] == found[7] == [other, wheel]
    assert found[8] == [other, ("demo-1.0.tar.gz", 8, False), wheel]


def test_live_files_default_to_the_complete_serial_and_any_spelling(small: SmallCatalog):
    small.remove(9, "demo-1.0.tar.gz")
    first, second = live_files(small.catalog, project="DEMO")
    assert (first.project, first.version, first.kind, first.outcome) == ("Demo", "1.0", "sdist", "data")
    assert (first.url, first.requires_python) == ("https://files.example.org/demo-1.0.tar.gz", ">=3.9")
    assert (second.version, second.kind, second.outcome) == ("2.0", "wheel", "error")


def test_replaced_content_is_shown_with_and_without_project_filter(small: SmallCatalog) -> None:
    with small.catalog.write() as connection:
        ids = dict(connection.execute(select(distributions.c.filename, distributions.c.id)).all())
        keep_past_generations(connection, dict.fromkeys(ids.values(), 5))
        connection.execute(update(distributions).values(url="https://files.example.org/replaced"))
    for serial, is_replaced in ((4, False), (5, True)):
        listed = list(live_files(small.catalog, serial))
        assert {file.url == "https://files.example.org/replaced" for file in listed} == {is_replaced}
        named = [file for project in ("another", "demo") for file in live_files(small.catalog, serial, project)]
        assert named == listed


def test_project_filter_reads_no_replaced_content_of_other_projects(small: SmallCatalog) -> None:
    with small.catalog.write() as connection:
        other = connection.scalars(select(distributions.c.id).where(distributions.c.filename.startswith("another")))
        keep_past_generations(connection, {other.one(): 5})
        connection.execute(update(past_generations).values(content=b"no zlib"))
    with pytest.raises(zlib.error):
        list(live_files(small.catalog, 4))
    assert len(list(live_files(small.catalog, 4, "demo"))) == 2


def test_names_are_ordered_by_code_points(tmp_path: Path, database_url: str) -> None:
    small = small_catalog(tmp_path, database_url)
    small.add(1, "b-project", "1", "b-1.zip", modules=("Upper.one", "lower", "größe"))
    small.add(2, "a", "1", "a-1.zip", modules=("lower", "lower.two"))
    small.add(3, "A", "2", "a-2.zip", modules=("lower",))
    with small.catalog.read() as connection:
        assert [next_project(connection, least) for least in ("", "a", "a\x01", "b-project", "c")] == [
            "a",
            "a",
            "b-project",
            "b-project",
            None,
        ]
        found, least = [], "\x01"
        while (name := next_module_root(connection, least)) is not None:
            found.append(name)
            least = f"{name}\x01"
        assert found == ["Upper", "größe", "lower"]
        provided = providers_of_root(connection, "lower", 10)
        assert sorted(provided) == [("a", "a", "1"), ("a", "a", "2"), ("b-project", "b-project", "1")]
        assert len(providers_of_root(connection, "lower", 2)) == 2
        assert providers_of_root(connection, "low", 10) == []
    small.catalog.close()
