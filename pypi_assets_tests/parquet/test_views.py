"""The views of `parquet/pypi.duckdb` have the rows of the newest export, and readers keep what they opened."""

import sys
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from pypi_assets.catalog.coordination.leases import deletion_deadlines
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.restore import restore_index
from pypi_assets.parquet.export import export_parquet
from pypi_assets.parquet.export_manifest import PARQUET_COLUMNS, Export, ExportLayer, ParquetError, clean_exports
from pypi_assets.parquet.views import VIEW_NAMES, VIEWS, view_queries, write_views
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.dump_rows import dump_row, tombstone_of, write_dump
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import naming
from pypi_assets_tests.parquet.exports import rows_of
from pypi_assets_tests.s3_server import BUCKET, s3_server

REQUIREMENTS = (
    "plain",
    "Some.Name_X>=1.0",
    "spaced >= 1 , < 2",
    "brackets (>=1,!=1.5)",
    "extras[a, B.c]~=2.0 ; python_version < '3.9' and extra == 'test'",
    "url @ https://example.org/a;b-1.0.zip",
    "url[x] @ https://example.org/a.zip ; sys_platform == 'linux'",
    "exact===1.0+local",
    "wild==1.*; os_name=='nt'",
)


@pytest.fixture
def storage(catalog: Catalog, tmp_path: Path) -> Storage:
    """Return a storage whose name needs quotes, with a full dump of 100 files up to serial 10."""
    storage = open_storage((tmp_path / "it's here").as_uri())
    fill(catalog, storage)
    return storage


def row(number: int, **columns: object) -> Row:
    required = [f"p{number + 1:04} >= 1", REQUIREMENTS[number % len(REQUIREMENTS)]]
    facts = {"requires_dist": required, "modules": ["m", f"m.n{number}"], "console_scripts": [f"run-{number} = m:main"]}
    return dump_row(f"p{number:04}", "1", f"p{number:04}-1.zip", **(facts | columns))


def fill(catalog: Catalog, storage: Storage) -> None:
    write_dump(storage, SerialRange(0, 10), [row(number) for number in range(100)], shards=16)
    restore_index(catalog, storage)


def export_range(catalog: Catalog, storage: Storage) -> Export:
    changes = [row(1, size=77, modules=["changed"]), tombstone_of(row(2)), row(5_000)]
    write_dump(storage, SerialRange(10, 20), changes)
    restore_index(catalog, storage)
    return export_parquet(catalog, storage).export


def attached(storage: Storage) -> duckdb.DuckDBPyConnection:
    """Return a connection that has done what the docs tell readers to do."""
    connection = duckdb.connect()
    path = str(storage.local_path(VIEWS)).replace("'", "''")
    connection.execute(f"ATTACH '{path}' AS pypi (READ_ONLY)")
    return connection


def test_views_have_the_rows_of_the_export(catalog: Catalog, storage: Storage) -> None:
    for is_appended in (False, True):
        export = export_range(catalog, storage) if is_appended else export_parquet(catalog, storage, views=True).export
        assert len(export.layers) == 1 + is_appended
        with attached(storage) as connection:
            columns = [column[0] for column in connection.execute("FROM pypi.distributions LIMIT 0").description or ()]
            assert columns == list(PARQUET_COLUMNS)
            order = "FROM pypi.distributions ORDER BY normalized, version, filename"
            rows = [dict(zip(columns, found, strict=True)) for found in connection.execute(order).fetchall()]
            assert rows == rows_of(storage, export)
            latest = connection.execute("FROM pypi.latest").fetchall()
            assert latest == [(export.serial, export.directory, export.rows)]
            for view, column in (
                ("modules", "modules"),
                ("commands", "console_scripts"),
                ("requirements", "requires_dist"),
            ):
                [(count,)] = connection.execute(f"SELECT count(*) FROM pypi.{view}").fetchall()
                assert count == sum(len(found[column]) for found in rows)
            one = "SELECT module FROM pypi.modules WHERE normalized = 'p0001' ORDER BY module"
            found = [module for (module,) in connection.execute(one).fetchall()]
            assert found == (["changed"] if is_appended else ["m", "m.n1"])
            command = "SELECT command, target FROM pypi.commands WHERE normalized = 'p0003'"
            assert connection.execute(command).fetchall() == [("run-3", "m:main")]


def test_views_of_the_database_are_documented(catalog: Catalog, storage: Storage) -> None:
    export_parquet(catalog, storage, views=True)
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    with attached(storage) as connection:
        views = connection.execute(
            "SELECT view_name, comment FROM duckdb_views() WHERE database_name = 'pypi' AND NOT internal"
        ).fetchall()
    assert {name for name, _ in views} == set(VIEW_NAMES)
    assert all(f"| `{name}` | {comment}" in page for name, comment in views)


NAMES = st.sampled_from(["a", "Some.Name_X", "z-9", "A--b", " a", "\tSome.Name_X"])
EXTRAS = st.sampled_from(["", "[x]", " [ x , y.Z ]", "[]"])
SPECIFIERS = st.sampled_from(["", ">=1", " >= 1 , < 2", " (>=1,!=1.5)", "===1.0+local", "==1.*", "~=2.0"])
MARKERS = st.sampled_from(["", ";os_name=='nt'", " ; python_version < '3.9' and extra == 'te;st'"])
URLS = st.sampled_from(["@https://example.org/a;b-1.0.zip", " @ https://example.org/a.zip"])
URL_MARKERS = st.sampled_from(["", " ; sys_platform == 'linux'"])
REQUIREMENT = st.builds("".join, st.tuples(NAMES, EXTRAS, SPECIFIERS, MARKERS)) | st.builds(
    "".join, st.tuples(NAMES, EXTRAS, URLS, URL_MARKERS)
)


@settings(max_examples=examples(10))
@given(texts=st.lists(REQUIREMENT, min_size=1, max_size=40))
def test_requirements_are_taken_apart_as_packaging_does(texts: list[str]) -> None:
    empty = Export(0, "0-0", (), 1, (ExportLayer(0, None, 0, ()),))
    _, query = view_queries(open_storage("memory:///"), empty)["requirements"]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE distributions (project TEXT, normalized TEXT, version TEXT, filename TEXT, yanked BOOLEAN,"
            " uploaded_at TIMESTAMPTZ, requires_dist TEXT[])"
        )
        connection.execute("INSERT INTO distributions (requires_dist) VALUES (?)", [texts])
        columns = "requirement, required, extras, specifier, url, marker"
        found = connection.execute(f"SELECT {columns} FROM ({query})").fetchall()
    assert len(found) == len(texts)
    for text, required, extras, specifier, url, marker in found:
        expected = Requirement(text)
        assert required == canonicalize_name(expected.name), text
        assert (set(extras), SpecifierSet(specifier), url) == (expected.extras, expected.specifier, expected.url), text
        assert (Marker(marker) if marker else None) == expected.marker, text


def test_requirements_of_the_fixture_are_of_all_kinds() -> None:
    parsed = [Requirement(text) for text in REQUIREMENTS]
    assert any(one.url for one in parsed)
    assert any(one.marker for one in parsed)


def test_reader_keeps_the_export_that_it_opened(catalog: Catalog, storage: Storage) -> None:
    export_parquet(catalog, storage, views=True)
    with attached(storage) as before:
        export_range(catalog, storage)
        export_parquet(catalog, storage, force=True)
        assert before.execute("SELECT serial FROM pypi.latest").fetchall() == [(10,)]
        assert before.execute("SELECT count(*) FROM pypi.modules WHERE module = 'm.n2'").fetchall() == [(1,)]
        list(clean_exports(storage, deletion_deadlines(catalog, 24 * 3600.0), kept=1))  # its files stay for a day
        assert before.execute("SELECT count(*) FROM pypi.requirements").fetchall() == [(200,)]
        with attached(storage) as after:
            assert after.execute("SELECT serial FROM pypi.latest").fetchall() == [(20,)]
            assert after.execute("SELECT count(*) FROM pypi.modules WHERE module = 'm.n2'").fetchall() == [(0,)]


def test_newest_is_the_release_that_was_uploaded_last(catalog: Catalog, storage: Storage) -> None:
    rows = [
        dump_row(
            "demo", version, f"demo-{version}-{number}.zip", uploaded_at=f"2026-01-{day:02}T00:00:00Z", yanked=yanked
        )
        for version, day, yanked in (("1.10", 3, False), ("1.9", 2, False), ("2.0", 4, True))
        for number in range(2)
    ]
    write_dump(storage, SerialRange(10, 20), rows)
    restore_index(catalog, storage)
    export_parquet(catalog, storage, views=True)
    with attached(storage) as connection:
        query = "SELECT filename FROM pypi.newest WHERE normalized = 'demo' ORDER BY filename"
        assert connection.execute(query).fetchall() == [("demo-1.10-0.zip",), ("demo-1.10-1.zip",)]
        assert connection.execute("SELECT count(*) FROM pypi.newest").fetchall() == [(102,)]


def test_views_are_written_only_when_wanted(catalog: Catalog, storage: Storage) -> None:
    export_parquet(catalog, storage)
    assert not storage.exists(VIEWS)
    assert export_parquet(catalog, storage, views=True).published is False
    assert storage.exists(VIEWS)


def test_error_without_duckdb_names_the_package_before_anything_is_written(
    catalog: Catalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "duckdb", None)
        with pytest.raises(ParquetError, match=naming("pypi-assets[views]")):
            export_parquet(catalog, storage, views=True)
    assert not any(storage.list("parquet"))
    export_parquet(catalog, storage, views=True)
    written = list(storage.list("parquet"))
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ParquetError, match=naming("pypi-assets[views]")):
        export_parquet(catalog, storage, force=True)  # it would leave the views behind
    assert list(storage.list("parquet")) == written


def test_views_of_a_remote_storage_name_its_urls_and_read_nothing(catalog: Catalog) -> None:
    with pytest.MonkeyPatch.context() as environment, s3_server(environment):
        storage = open_storage(f"s3://{BUCKET}/prefix")
        fill(catalog, storage)
        export_parquet(catalog, storage)
        export = export_range(catalog, storage)
        requests: list[str] = []
        get_range, get = Storage.get_range, Storage.get
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Storage, "get_range", lambda *given: requests.append(given[1]) or get_range(*given))
            patch.setattr(Storage, "get", lambda *given: requests.append(given[1]) or get(*given))
            write_views(storage, export)
        assert requests == []
        assert storage.head(VIEWS).size > 0
        names = [file.name for file in export.files]
        sql = view_queries(storage, export)["distributions"][1]
        assert all(f"'s3://{BUCKET}/prefix/parquet/python_distribution_data/{name}'" in sql for name in names)
