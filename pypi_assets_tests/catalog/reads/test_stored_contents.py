"""Contents are read by id with one statement per call, and the contents of the last call are cached."""

import json
import zlib
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from sqlalchemy import Connection, delete, event, func, insert, select
from sqlalchemy.exc import IntegrityError

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_rows import rows_at, stream_rows
from pypi_assets.catalog.reads.stored_contents import (
    StoredContents,
    StoredLists,
    content_digest,
    list_digest,
    lists_with_module,
    merged_details,
    record_details,
    store_lists,
    store_shared_details,
)
from pypi_assets.catalog.reads.stored_json import from_json, to_dump, to_json, to_utf8_json
from pypi_assets.catalog.tables import name_lists, required_names, shared_details
from pypi_assets.distributions.record import DistributionKind, DistributionRecord, ErrorKind, ModulesGrade, ReadError
from pypi_assets_tests.small_catalog import small_catalog


@pytest.mark.parametrize("value", [{"a": ["ü"]}, "half \udc80", [None, 1, True]])
def test_json_round_trips_any_text(value: object):
    assert json.loads(to_json(value)) == from_json(to_json(value)) == from_json(to_json(value).decode()) == value
    assert b" " not in to_json(value).replace(b"half ", b"")


def test_dump_copies_stored_json_unless_it_is_not_utf_8():
    assert isinstance(to_dump(to_json(["ü"])), orjson.Fragment)
    assert to_dump(to_json(["half \udc80"])) == ["half \udc80"]


def test_json_for_others_is_utf_8():
    assert to_utf8_json({"a": ["ü", "half \udc80", 1]}) == '{"a":["ü","half ?",1]}'.encode()


def test_contents_of_the_last_call_are_cached(catalog: Catalog) -> None:
    contents = {number: f'{{"summary":"{number}"}}'.encode() for number in range(1, 6)}
    with catalog.write() as connection:
        for number, content in contents.items():
            row = {"id": number, "sha256": content_digest(content), "content": zlib.compress(content)}
            connection.execute(insert(shared_details).values(row))
    statements: list[str] = []
    event.listen(catalog.engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    with catalog.read() as connection:
        stored = StoredContents(connection, shared_details)
        statements.clear()
        assert stored.load([1, 2, None, 2]) == {1: contents[1], 2: contents[2]}
        assert stored.load([2, 3, 4, 5]) == {number: contents[number] for number in (2, 3, 4, 5)}
        assert len(statements) == 2
        assert stored.load([5, 3]) == {3: contents[3], 5: contents[5]}
        assert stored.load([None]) == {}
        assert len(statements) == 2


LISTS = [(), ("one",), ("one", "two"), ("two", "one"), ("größe", "名"), ("half a pair \udc80",), ("nul \0",)]


def test_lists_round_trip(catalog: Catalog):
    with catalog.write() as connection:
        ids = store_lists(connection, [*LISTS, LISTS[1]])
        loaded = StoredLists(connection).load(ids.values())
    assert {names: loaded[list_id] for names, list_id in ids.items()} == {names: list(names) for names in LISTS}


def test_list_is_stored_once_under_its_hash(catalog: Catalog):
    with catalog.write() as connection:
        first = store_lists(connection, LISTS[:3])
        again = store_lists(connection, LISTS)
        assert connection.scalar(select(func.count()).select_from(name_lists)) == len(LISTS)
        stored = dict(connection.execute(select(name_lists.c.id, name_lists.c.sha256)).all())
    assert first.items() <= again.items()
    assert {names: stored[list_id] for names, list_id in again.items()} == {
        names: list_digest(names) for names in LISTS
    }


def test_module_lists_are_found_by_module(catalog: Catalog):
    names = "größe" * 2_000
    with catalog.write() as connection:
        as_requirements = store_lists(connection, [("one", "two.a")])
        assert list(lists_with_module(connection, "one")) == []
        ids = store_lists(connection, [("other",)], [("one", "two.a"), ("two.b",), ("two",), (), (names,), LISTS[5]])
        assert ids[("one", "two.a")] == as_requirements[("one", "two.a")]
        assert store_lists(connection, [], [("one", "two.a")]).items() <= ids.items()

        def found(module: str) -> set[int]:
            return set(lists_with_module(connection, module))

        assert found("one") == found("two.a") == {ids[("one", "two.a")]}
        assert found("two") == {ids[("two",)]}
        assert found(names) == {ids[(names,)]}
        assert found(LISTS[5][0]) == {ids[LISTS[5]]}
        assert found("other") == found(names[:512]) == found("") == set()


def test_requirement_lists_are_found_by_required_project(catalog: Catalog) -> None:
    requirements = ("Base_Two; extra == 'x'", "base ; python_version < '3'", "base", "no requirement!", "n" * 600)
    with catalog.write() as connection:
        as_modules = store_lists(connection, [], [("one",), requirements])
        assert connection.execute(select(required_names)).all() == []
        ids = store_lists(connection, [("one",), requirements, ()], [("two",)])
        assert ids.items() >= as_modules.items()
        expected = [
            ("base", ids[requirements], 0),
            ("base-two", ids[requirements], 2),
            ("one", ids[("one",)], 0),
        ]
        assert sorted(connection.execute(select(required_names)).all()) == expected
        store_lists(connection, [("one",), requirements])
        assert len(connection.execute(select(required_names)).all()) == len(expected)
        flags = select(name_lists.c.id).where(name_lists.c.has_required)
        assert set(connection.scalars(flags)) == {ids[("one",)], ids[requirements], ids[()]}


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


def test_own_and_shared_details_merge_to_all_details() -> None:
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


def test_record_without_shareable_details_shares_none() -> None:
    parts = record_details(DistributionRecord("demo-1.zip", DistributionKind.SDIST, "demo", "1", entry_points={}))
    assert (parts.own, parts.shared) == ('{"name":"demo","version":"1"}', None)


def test_empty_import_declaration_differs_from_none() -> None:
    parts = record_details(replace(RECORD, import_names=()))
    assert merged_details(parts.own, parts.shared)["import_names"] == []
    parts = record_details(replace(RECORD, import_names=None))
    assert "import_names" not in merged_details(parts.own, parts.shared)


def test_unknown_entry_points_differ_from_no_entry_points() -> None:
    """The files of a release share all other details in both cases."""
    unknown = record_details(replace(RECORD, entry_points=None))
    none = record_details(replace(RECORD, entry_points={}))
    assert merged_details(unknown.own, unknown.shared)["entry_points"] is None
    assert "entry_points" not in merged_details(none.own, none.shared)
    assert unknown.shared == none.shared
    error = ReadError(ErrorKind.CORRUPT_ARCHIVE, "it is cut")
    assert record_details(replace(RECORD, entry_points=None, error=error)).own == none.own


def test_only_inexact_grades_are_stored() -> None:
    exact, guessed = (
        record_details(replace(RECORD, modules=("demo",), modules_grade=grade))
        for grade in (ModulesGrade.EXACT, ModulesGrade.GUESSED)
    )
    assert "modules_grade" not in merged_details(exact.own, exact.shared)
    assert merged_details(guessed.own, guessed.shared)["modules_grade"] == "guessed"
    assert exact.shared == guessed.shared


def test_lone_surrogate_is_preserved() -> None:
    parts = record_details(replace(RECORD, summary="half \udc80", notes=("other half \udc81",)))
    details = merged_details(parts.own, parts.shared)
    assert (details["summary"], details["notes"]) == ("half \udc80", ["other half \udc81"])


def test_equal_details_are_stored_once(catalog: Catalog) -> None:
    contents = [b'{"summary":"a"}', b'{"summary":"b"}', b'{"summary":"a"}']
    with catalog.write() as connection:
        first = store_shared_details(connection, contents[:1])
        assert first.items() <= store_shared_details(connection, contents).items()
        assert count_rows(connection) == 2
        assert store_shared_details(connection, []) == {}


def test_shared_details_of_a_release_are_stored_once(tmp_path: Path, database_url: str) -> None:
    """Neither rows nor statements grow with the number of files."""
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


def test_referenced_details_cannot_be_deleted(tmp_path: Path, database_url: str) -> None:
    small = small_catalog(tmp_path, database_url)
    small.add(1, "demo", "1", RECORD.filename)
    small.store([RECORD])
    with pytest.raises(IntegrityError), small.catalog.write() as connection:
        connection.execute(delete(shared_details))
    small.catalog.close()
