"""Pages of projects in the dataset `simple`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.reports.simple_page import SimpleFile
from pypi_assets.dumps.dump_format import Row
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.lookup.reader import Closing, OpenVersion
from pypi_assets.lookup.simple_reader import SimpleReader, in_page_order, page_versions
from pypi_assets_tests.dump_rows import dump_row
from pypi_assets_tests.leveldbs.built_records import build


class OneVersion:
    """The only version of the dataset, at `path`."""

    dataset = "simple"

    def __init__(self, path: Path) -> None:
        self.skipped: dict[int, str] = {}
        self._path = path

    def open_newest(self, *, check_hashes: bool, beyond: int = 0) -> OpenVersion:
        from contextlib import ExitStack

        stack = ExitStack()
        db = stack.enter_context(open_leveldb(self._path, "a test"))
        return OpenVersion(db, "a test", 1, 9, check_hashes, Closing(stack))


ROWS: list[Row] = [
    dump_row("demo", version, f"demo-{version}-py3-none-any.whl", uploaded_at=f"2026-01-0{number}T00:00:00Z", **columns)
    for number, (version, columns) in enumerate(
        {
            "1.10": {"project_status": "archived", "size": 7},
            "1.9": {"project_status": "active", "yanked": True, "yanked_reason": "x"},
            "1.10rc1": {"project_status": "active", "yanked": True},
            "odd": {"project_status": None, "sha256": None, "url": "https://files.example.org/odd"},
        }.items(),
        1,
    )
]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[SimpleReader]:
    rows = [*ROWS, dump_row("demo-2", "1.0", "demo_2-1.0.tar.gz", uploaded_at=None)]
    build(tmp_path / "db", "simple", [rows])
    with SimpleReader(OneVersion(tmp_path / "db"), check_hashes=False) as opened:
        yield opened


def test_page_has_its_files_in_order(reader: SimpleReader) -> None:
    page = reader.page("Demo")
    assert page is not None
    assert [file.version for file in page.files] == ["odd", "1.9", "1.10rc1", "1.10"]
    assert [file.yanked for file in page.files] == [False, "x", True, False]
    assert page.project == "demo"
    assert page_versions(page.files) == ["odd", "1.9", "1.10rc1", "1.10"]
    assert reader.page("demo-3") is None
    assert reader.page("dem") is None


def test_page_of_a_file_has_only_that_file(reader: SimpleReader) -> None:
    page = reader.page("demo", "demo-1.10-py3-none-any.whl")
    assert page is not None
    assert [(file.filename, file.size) for file in page.files] == [("demo-1.10-py3-none-any.whl", 7)]
    assert reader.page("demo", "demo_2-1.0.tar.gz") is None
    other = reader.page("demo.2", "demo_2-1.0.tar.gz")
    assert other is not None
    assert other.files[0].kind == "sdist"


def test_status_is_that_of_the_newest_upload(reader: SimpleReader) -> None:
    page = reader.page("demo")
    assert page is not None
    assert page.status == "active"  # its page states no status
    first = reader.page("demo", "demo-1.10-py3-none-any.whl")
    assert first is not None
    assert first.status == "archived"


def test_files_have_their_metadata_source(reader: SimpleReader) -> None:
    answer = reader.files("demo")
    assert (answer.serial, len(answer.results)) == (9, 4)
    assert answer.results[0]["url"] == "https://files.example.org/odd"
    assert {result["metadata_by"] for result in answer.results} == {None}
    assert reader.files("nope").results == ()
    assert reader.suggest("dmeo") == ("demo",)


def test_equal_versions_are_ordered_by_filename() -> None:
    def file(version: str, filename: str) -> SimpleFile:
        return SimpleFile(filename, version, "wheel", None, None, None, None, None, False, None, False)

    files = [file("1.0", "z"), file("1.0.0", "a"), file("1.0", "b"), file("0.9", "zz"), file("x", "0")]
    assert [one.filename for one in in_page_order(files)] == ["0", "zz", "a", "b", "z"]
    assert page_versions(files) == ["x", "0.9", "1.0", "1.0.0"]
