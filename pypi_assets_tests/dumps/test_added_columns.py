"""Columns added to dumps: each has the facts of a real file, and dumps without them stay in use."""

from pathlib import Path
from typing import cast

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_columns import COLUMNS
from pypi_assets.catalog.publications.dump_registry import committed_dumps
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.dumps.restore import restore_index
from pypi_assets_tests.fewer_columns import FEWER_COLUMNS, cut, cut_dumps
from pypi_assets_tests.served_index import ServedIndex
from pypi_assets_tests.small_catalog import small_catalog

ENTRY_POINTS = """\
[console_scripts]
demo = demo.cli:main
demo-admin = demo.cli:admin [extra]
[gui_scripts]
demo-window = demo.window:open
[demo.plugins]
one = demo.plugins
"""
SETUP = "from setuptools import setup\n"
HEADERS = [
    ("License-Expression", "MIT OR Apache-2.0"),
    ("License", "Either of two"),
    ("Classifier", "License :: OSI Approved :: MIT License"),
    ("Classifier", "Programming Language :: Python"),
    ("Project-URL", "Documentation, https://docs.example.org/demo"),
    ("Project-URL", "Source, https://source.example.org/demo"),
    ("Import-Name", "demo"),
    ("Import-Name", "_demo; private"),
]
ADDED: Row = {
    "summary": "Shows each column",
    "license_expression": "MIT OR Apache-2.0",
    "license": "Either of two",
    "license_classifiers": ["License :: OSI Approved :: MIT License"],
    "console_scripts": ["demo = demo.cli:main", "demo-admin = demo.cli:admin [extra]"],
    "gui_scripts": ["demo-window = demo.window:open"],
    "entry_point_groups": ["console_scripts", "demo.plugins", "gui_scripts"],
    "project_urls": ["Documentation, https://docs.example.org/demo", "Source, https://source.example.org/demo"],
    "import_names": ["demo", "_demo; private"],
    "modules_grade": "exact",
    "start_up_paths": ["demo.pth"],
    "refusals": [],
    "installed_metadata": None,
    "project_status": "active",
    "provenance": None,
    "first_seen_at": None,
}
NOTHING: Row = {
    "summary": None,
    "license_expression": None,
    "license": None,
    "license_classifiers": [],
    "console_scripts": [],
    "gui_scripts": [],
    "entry_point_groups": [],
    "project_urls": [],
    "import_names": None,
    "modules_grade": "exact",
    "notes": [],
    "start_up_paths": [],
    "refusals": [],
    "installed_metadata": None,
    "project_status": "active",
    "provenance": None,
    "first_seen_at": None,
}


def dumped(index: ServedIndex, directory: str) -> dict[object, Row]:
    """Return the columns of NOTHING of each row, by filename."""
    rows = list(iter_dump(index.storage, directory))
    assert {tuple(row) for row in rows if not row["tombstone"]} <= {tuple(COLUMNS)}
    return {row["filename"]: {name: row[name] for name in row if name in NOTHING} for row in rows}


def add_demo(index: ServedIndex, version: str) -> str:
    return index.wheel(
        "demo",
        version,
        files={"demo.py": "", "demo.pth": "import demo\n"},
        summary="Shows each column",
        entry_points=ENTRY_POINTS,
        requires_python="not a version",
        extra_headers=HEADERS,
    )


@pytest.mark.nightly
def test_each_column_has_the_facts_of_a_wheel(index: ServedIndex, catalog: Catalog) -> None:
    demo = add_demo(index, "1.0")
    plain = index.wheel("plain", "1.0")
    crawl_full(index.crawler(catalog))
    rows = dumped(index, full_dump(catalog, index.storage, 1).directory)
    assert rows[plain] == NOTHING
    notes = cast("list[str]", rows[demo].pop("notes"))
    assert ["not a version" in note for note in notes] == [False, True], notes
    assert rows[demo] == ADDED


def test_unknown_facts_are_null(index: ServedIndex, catalog: Catalog) -> None:
    """An unreadable file has only unknown facts. For an sdist, only a build shows the start-up files and the values
    that setup.py computes.
    """
    computed = index.sdist("computed", "1.0", files={"setup.py": f"{SETUP}setup(entry_points=found())"})
    sdist = index.sdist("plain", "1.0", files={"setup.py": f"{SETUP}setup(name='plain')"})
    broken = index.raw("broken-1.0-py3-none-any.whl", b"no zip")
    crawl_full(index.crawler(catalog))
    rows = dumped(index, full_dump(catalog, index.storage, 1).directory)
    assert rows[sdist] | {"notes": []} == NOTHING | {"start_up_paths": None, "modules_grade": None}
    unknown = {"console_scripts": None, "gui_scripts": None, "entry_point_groups": None}
    assert rows[computed] | {"notes": []} == NOTHING | unknown | {"start_up_paths": None, "modules_grade": None}
    assert rows[broken] == dict.fromkeys(NOTHING) | {"project_status": "active"}


def test_nothing_to_import_differs_from_no_declaration(index: ServedIndex, catalog: Catalog) -> None:
    empty = index.wheel("empty", "1.0", extra_headers=[("Import-Name", "")])
    crawl_full(index.crawler(catalog))
    assert dumped(index, full_dump(catalog, index.storage, 1).directory)[empty]["import_names"] == []


@pytest.mark.nightly
def test_redone_dumps_have_all_columns(index: ServedIndex, catalog: Catalog) -> None:
    demo = add_demo(index, "1.0")
    crawl_full(index.crawler(catalog))
    first = full_dump(catalog, index.storage, 1)
    later = add_demo(index, "2.0")
    crawl_incremental(index.crawler(catalog))
    [second] = write_missing_ranges(catalog, index.storage)
    cut_dumps(catalog, index.storage, first.directory, second.directory)
    assert [dump.columns for dump in cover(catalog).dumps] == [FEWER_COLUMNS, FEWER_COLUMNS]
    assert cover(catalog).columns == FEWER_COLUMNS

    redone = full_dump(catalog, index.storage, 1, since=catalog.clock())
    last = add_demo(index, "3.0")
    crawl_incremental(index.crawler(catalog))
    [incremental] = write_missing_ranges(catalog, index.storage)
    assert [dump.columns for dump in cover(catalog).dumps] == [tuple(COLUMNS), tuple(COLUMNS)]
    assert cover(catalog).directories == (redone.directory, incremental.directory)
    assert dumped(index, redone.directory).keys() == {demo, later}
    assert dumped(index, incremental.directory)[last].items() >= ADDED.items()


def test_restored_catalog_reads_columns_from_manifests(index: ServedIndex, catalog: Catalog, tmp_path: Path) -> None:
    add_demo(index, "1.0")
    crawl_full(index.crawler(catalog))
    first = full_dump(catalog, index.storage, 1)
    cut_dumps(catalog, index.storage, first.directory)
    full_dump(catalog, index.storage, 1, since=catalog.clock())
    (tmp_path / "new").mkdir()
    new = small_catalog(tmp_path / "new").catalog
    restore_index(new, index.storage)
    columns = [(dump.directory, dump.columns) for dump in committed_dumps(catalog)]
    assert [(dump.directory, dump.columns) for dump in committed_dumps(new)] == columns
    assert [found for _, found in columns] == [FEWER_COLUMNS, tuple(COLUMNS)]
    new.close()


def test_dump_with_fewer_columns_is_read(index: ServedIndex, catalog: Catalog) -> None:
    add_demo(index, "1.0")
    crawl_full(index.crawler(catalog))
    directory = full_dump(catalog, index.storage, 1).directory
    rows = list(iter_dump(index.storage, directory))
    cut_dumps(catalog, index.storage, directory)
    assert list(iter_dump(index.storage, directory)) == [cut(row) for row in rows]
