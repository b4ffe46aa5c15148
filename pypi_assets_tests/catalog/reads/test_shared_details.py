"""What the files of a release have in common is stored once, and each record keeps all that it has."""

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, delete, event, func, select
from sqlalchemy.exc import IntegrityError

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_rows import rows_at, stream_rows
from pypi_assets.catalog.reads.stored_contents import merged_details, record_details, store_shared_details
from pypi_assets.catalog.tables import shared_details
from pypi_assets.distributions.record import DistributionKind, DistributionRecord, ErrorKind, ModulesGrade, ReadError
from pypi_assets_tests.small_catalog import small_catalog

RECORD = DistributionRecord(
    "demo-1-py3-none-any.whl",
    DistributionKind.WHEEL,
    "demo",
    "1",
    summary="größe",
    provides_extra=("x",),
    entry_points={"console_scripts": {"demo": "demo:main"}},
    modules_by="archive",
    stubs=("demo",),
    left_out=2,
    declared=("demo",),
    license_expression="MIT",
    license="as is",
    license_classifiers=("License :: OSI Approved",),
    project_urls=("Homepage, https://example.org",),
    import_names=("demo",),
    start_up_paths=("demo.pth",),
    refusals=("pip skips: odd",),
    installed_metadata=("Name: demo",),
    notes=("odd",),
)


def count_rows(connection: Connection) -> int:
    return int(connection.scalar(select(func.count()).select_from(shared_details)) or 0)


def test_both_parts_together_have_all_details() -> None:
    parts = record_details(RECORD)
    assert merged_details(parts.own, parts.shared) == {
        "name": "demo",
        "version": "1",
        "summary": "größe",
        "provides_extra": ["x"],
        "entry_points": {"console_scripts": {"demo": "demo:main"}},
        "license_expression": "MIT",
        "license": "as is",
        "license_classifiers": ["License :: OSI Approved"],
        "project_urls": ["Homepage, https://example.org"],
        "import_names": ["demo"],
        "start_up_paths": ["demo.pth"],
        "refusals": ["pip skips: odd"],
        "installed_metadata": ["Name: demo"],
        "modules_by": "archive",
        "stubs": ["demo"],
        "left_out": 2,
        "declared": ["demo"],
        "notes": ["odd"],
    }
    assert record_details(replace(RECORD, filename="other", version="2", notes=())).shared == parts.shared


def test_a_record_with_nothing_to_share_shares_nothing() -> None:
    parts = record_details(DistributionRecord("demo-1.zip", DistributionKind.SDIST, "demo", "1", entry_points={}))
    assert (parts.own, parts.shared) == ('{"name":"demo","version":"1"}', None)


def test_nothing_to_import_is_not_the_same_as_no_declaration() -> None:
    parts = record_details(replace(RECORD, import_names=()))
    assert merged_details(parts.own, parts.shared)["import_names"] == []
    parts = record_details(replace(RECORD, import_names=None))
    assert "import_names" not in merged_details(parts.own, parts.shared)


def test_unknown_entry_points_are_not_the_same_as_none() -> None:
    """The files of a release share the rest all the same."""
    unknown = record_details(replace(RECORD, entry_points=None))
    none = record_details(replace(RECORD, entry_points={}))
    assert merged_details(unknown.own, unknown.shared)["entry_points"] is None
    assert "entry_points" not in merged_details(none.own, none.shared)
    assert unknown.shared == none.shared
    error = ReadError(ErrorKind.CORRUPT_ARCHIVE, "it is cut")
    assert record_details(replace(RECORD, entry_points=None, error=error)).own == none.own


def test_only_a_grade_that_is_not_exact_is_stored() -> None:
    exact, guessed = (
        record_details(replace(RECORD, modules=("demo",), modules_grade=grade))
        for grade in (ModulesGrade.EXACT, ModulesGrade.GUESSED)
    )
    assert "modules_grade" not in merged_details(exact.own, exact.shared)
    assert merged_details(guessed.own, guessed.shared)["modules_grade"] == "guessed"
    assert exact.shared == guessed.shared


def test_half_a_surrogate_pair_stays_what_it_is() -> None:
    parts = record_details(replace(RECORD, summary="half \udc80", notes=("other half \udc81",)))
    details = merged_details(parts.own, parts.shared)
    assert (details["summary"], details["notes"]) == ("half \udc80", ["other half \udc81"])


def test_the_same_details_are_stored_once(catalog: Catalog) -> None:
    contents = [b'{"summary":"a"}', b'{"summary":"b"}', b'{"summary":"a"}']
    with catalog.write() as connection:
        first = store_shared_details(connection, contents[:1])
        assert first.items() <= store_shared_details(connection, contents).items()
        assert count_rows(connection) == 2
        assert store_shared_details(connection, []) == {}


def test_files_of_a_release_store_what_they_share_once(tmp_path: Path, database_url: str) -> None:
    """However many they are: neither rows nor statements grow with them."""
    small = small_catalog(tmp_path, database_url)
    statements: list[str] = []
    event.listen(small.catalog.engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    counted = []
    for release, files in enumerate((3, 30)):
        names = [f"demo-{release}-{number}.zip" for number in range(files)]
        for name in names:
            small.add(1, "demo", str(release), name)
        statements.clear()
        small.store(replace(RECORD, filename=name, summary=f"of release {release}") for name in names)
        counted.append(len(statements))
        with small.catalog.read() as connection:
            assert count_rows(connection) == release + 1
    assert counted[0] == counted[1]
    rows = list(stream_rows(small.catalog, rows_at(small.catalog, 1)))
    assert {(row["version"], row["summary"]) for row in rows} == {("0", "of release 0"), ("1", "of release 1")}
    assert {tuple(row["console_scripts"]) for row in rows} == {("demo = demo:main",)}  # type: ignore[arg-type]
    small.catalog.close()


def test_details_that_a_record_refers_to_cannot_be_deleted(tmp_path: Path, database_url: str) -> None:
    small = small_catalog(tmp_path, database_url)
    small.add(1, "demo", "1", RECORD.filename)
    small.store([RECORD])
    with pytest.raises(IntegrityError), small.catalog.write() as connection:
        connection.execute(delete(shared_details))
    small.catalog.close()
