"""Rows of dumps: stored lists are copied into a dump unparsed, and the dump equals one made from decoded lists."""

import gzip
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, update

from pypi_assets.catalog.publications import dump_rows
from pypi_assets.catalog.publications.dump_rows import (
    providing_releases,
    releases_rows_at,
    rows_at,
    shard_at,
    stream_rows,
    version_yanks_at,
)
from pypi_assets.catalog.reads.stored_json import to_json
from pypi_assets.catalog.tables import distribution_data, distributions, projects
from pypi_assets.distributions.record import DistributionKind, DistributionRecord
from pypi_assets.dumps.dump_format import write_rows
from pypi_assets.dumps.dump_manifest import shard_of
from pypi_assets.lookup.newest_requirements import NewestRelease
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets_tests.examples import examples
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

LINE = (
    b'{"project":"Demo","normalized":"demo","version":"1","filename":"demo-1.zip","tombstone":false,"kind":"sdist",'
    b'"url":"https://files.example.org/demo-1.zip",'
    b'"sha256":"a4ea16d1f076ecc2827c9a264338054accd6362ceda5e0961e9ee2d567e1a88b","size":10,'
    b'"uploaded_at":"2026-01-02T03:04:05Z","requires_python":">=3.8","yanked":false,"yanked_reason":null,'
    b'"core_metadata_sha256":null,"live_since":1,"outcome":"data","error_kind":null,"extractor_version":1,'
    b'"metadata_version":"2.1","requires_dist":["a>=1","b ; extra == \\"x\\""],"provides_extra":["x"],'
    b'"modules":["demo","d\xc3\xa9mo.a"],"modules_by":"archive","requires_by":"METADATA","stubs":["demo"],"left_out":2,'
    b'"summary":"One line","license_expression":null,"license":null,"license_classifiers":[],"console_scripts":[],'
    b'"gui_scripts":[],"entry_point_groups":[],"project_urls":[],"import_names":null,"modules_grade":"exact",'
    b'"notes":[],"start_up_paths":null,"refusals":[],"installed_metadata":null,"project_status":null,'
    b'"provenance":null,"first_seen_at":null}'
)
names = st.lists(
    st.text(max_size=5)
    | st.text(st.characters(categories=["Cs", "Cc", "Lo"]), max_size=3)
    | st.sampled_from(['"', "\\", "\\ud800", "\ud83d\ude00", "half\ud800", "\U0001f600", ""]),
    max_size=4,
)
_numbers = count()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path)
    yield small
    small.catalog.close()


def set_details(small: SmallCatalog, filename: str, details: dict[str, object]) -> None:
    of_file = distributions.c.filename == filename
    with small.catalog.write() as connection:
        connection.execute(
            update(distribution_data)
            .where(distribution_data.c.distribution_id == distributions.c.id, of_file)
            .values(details=to_json(details).decode())
        )


def dumped(rows: Iterator[dict[str, object]]) -> bytes:
    target = io.BytesIO()
    write_rows(target, rows)
    return gzip.decompress(target.getvalue())


def test_yanked_versions_are_as_of_the_serial(small: SmallCatalog) -> None:
    small.add(1, "Demo", "1", "demo-1.zip")
    small.add(2, "Demo", "1", "demo-1.tar.gz")
    small.add(3, "other", "2", "other-2.zip")
    small.yank(4, "demo-1.zip")
    small.remove(5, "other-2.zip")
    small.complete(9)
    both = [("demo", "1", False), ("demo", "1", True)]
    for serial, expected in {
        0: [],
        3: [both[0], ("other", "2", False)],
        4: [*both, ("other", "2", False)],
        5: both,
    }.items():
        assert sorted(version_yanks_at(small.catalog, serial, {"demo", "other", "nope"})) == expected
    assert list(version_yanks_at(small.catalog, 9, [])) == list(version_yanks_at(small.catalog, 9, ["other"])) == []


def test_release_rows_match_project_and_version_exactly(tmp_path: Path, database_url: str) -> None:
    small = small_catalog(tmp_path, database_url)
    for serial, (project, version) in enumerate([("a", "1"), ("a", "2"), ("B.b", "1"), ("B.b", "2"), ("c", "1")], 1):
        small.add(serial, project, version, f"{project}-{version}.zip", requires_dist=(f"x>{serial}",))
    small.remove(6, "c-1.zip")
    small.complete(9)
    wanted = {("a", "1"), ("b-b", "2"), ("c", "1"), ("none", "1")}
    for serial, expected in {
        3: ["a-1.zip"],
        5: ["a-1.zip", "B.b-2.zip", "c-1.zip"],
        9: ["a-1.zip", "B.b-2.zip"],
    }.items():
        assert [row["filename"] for row in releases_rows_at(small.catalog, serial, wanted)] == expected
    graph = CatalogSnapshot(small.catalog, 9)
    assert list(graph.newest(["c", "b-b", "a"])) == [
        None,
        NewestRelease("2", (("x>4",),)),
        NewestRelease("2", (("x>2",),)),
    ]
    assert (list(graph.requiring("x")), list(graph.requiring("x", "a"))) == (["a", "b-b"], ["b-b"])
    small.catalog.close()


def test_row_serializes_to_the_expected_line(small: SmallCatalog) -> None:
    modules, requires_dist = ("demo", "démo.a"), ("a>=1", 'b ; extra == "x"')
    small.add(1, "Demo", "1", "demo-1.zip", modules=modules, requires_dist=requires_dist, requires_python=">=3.8")
    details = {"provides_extra": ["x"], "modules_by": "archive", "requires_by": "METADATA", "stubs": ["demo"]}
    set_details(small, "demo-1.zip", details | {"left_out": 2, "summary": "One line"})
    assert dumped(stream_rows(small.catalog, rows_at(small.catalog, 1))) == b"[\n" + LINE + b"\n]\n"


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(modules=st.none() | names, requires_dist=st.none() | names, stubs=names)
def test_stored_lists_are_dumped_as_if_decoded(
    small: SmallCatalog, modules: list[str] | None, requires_dist: list[str] | None, stubs: list[str]
) -> None:
    number = next(_numbers)
    lists = [None if names is None else tuple(names) for names in (modules, requires_dist)]
    small.add(1, f"p{number}", "1", f"p{number}-1.zip", modules=lists[0], requires_dist=lists[1])
    set_details(small, f"p{number}-1.zip", {"stubs": stubs})
    query = rows_at(small.catalog, 1).where(distributions.c.filename == f"p{number}-1.zip")
    (row,) = stream_rows(small.catalog, query)
    names_of = {"modules": modules, "requires_dist": requires_dist, "stubs": stubs}
    decoded = row | {column: json.loads(to_json(names)) for column, names in names_of.items()}
    assert dumped(iter([row])) == dumped(iter([decoded]))


@pytest.mark.parametrize(
    ("filename", "modules", "details", "expected"),
    [
        ("demo-1-py3-none-any.whl", (), {}, []),
        ("demo-1-py3-none-any.whl", None, {}, None),
        ("demo-1.zip", (), {}, []),
        ("demo-1.zip", (), {"entry_points": {"other": {"a": "b:c"}}}, []),
        ("demo-1.zip", (), {"entry_points": None}, None),
        ("demo-1.zip", None, {}, None),
    ],
)
def test_no_commands_differ_from_unknown_commands(
    small: SmallCatalog, filename: str, modules: tuple[str, ...] | None, details: dict[str, object], expected: object
) -> None:
    """A file with unknown modules could not be read, so its commands are unknown."""
    small.add(1, "demo", "1", filename, modules=modules)
    set_details(small, filename, details)
    [row] = stream_rows(small.catalog, rows_at(small.catalog, 1))
    assert row["console_scripts"] == row["gui_scripts"] == expected
    groups = details.get("entry_points") or {}
    assert row["entry_point_groups"] == (None if expected is None else list(groups))  # type: ignore[call-overload]


@pytest.mark.parametrize("shards", [1, 16, 256])
def test_each_live_row_is_in_exactly_its_shard(small: SmallCatalog, shards: int) -> None:
    for number in range(20):
        small.add(1, f"many{number}", "1", f"many{number}-1.zip")
    small.remove(2, "many7-1.zip")
    wanted = {f"many{number}" for number in range(20)} - {"many7"}
    for shard in range(shards):
        found = {
            str(row["normalized"]) for row in stream_rows(small.catalog, shard_at(small.catalog, 2, shards, shard))
        }
        assert found == {name for name in wanted if shard_of(name, shards) == shard}


def test_statements_do_not_grow_with_batch_rows(small: SmallCatalog) -> None:
    """A batch takes one statement for the rows, one for their lists, and one for shared details."""
    statements: list[str] = []
    event.listen(small.catalog.engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    counts = []
    for project, files in (("few", 3), ("many", 300)):
        for number in range(files):
            small.add(1, project, "1", f"{project}-{number}.zip", modules=(f"module{number}",))
        record = DistributionRecord("", DistributionKind.SDIST, project, "1")
        small.store(
            replace(record, filename=f"{project}-{number}.zip", summary=f"file {number}", modules=(f"module{number}",))
            for number in range(files)
        )
        statements.clear()
        rows = list(stream_rows(small.catalog, rows_at(small.catalog, 1).where(projects.c.normalized == project)))
        assert [row["summary"] for row in rows] == [f"file {number}" for number in sorted(range(files), key=str)]
        counts.append(len([statement for statement in statements if statement.startswith("SELECT")]))
    assert counts == [4, 4]


@pytest.mark.parametrize("length", [511, 512, 513, 5_000])
def test_module_names_of_any_length(tmp_path: Path, length: int):
    small = small_catalog(tmp_path)
    name = "größe" * length
    small.add(1, "demo", "1", "demo-1.zip", modules=(name[:length], name[:length] + ".x"))
    for module in (name[:length], name[:length] + ".x"):
        assert list(providing_releases(small.catalog, 1, module)) == [("demo", "demo", "1")]
    assert list(providing_releases(small.catalog, 1, name[: length + 1])) == []
    small.catalog.close()


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"modules_by": "archive"}, "exact"),
        ({"modules_by": "top_level.txt", "modules_grade": "derived"}, "derived"),
        ({}, None),
    ],
)
def test_known_modules_have_a_grade(small: SmallCatalog, details: dict[str, object], expected: str | None) -> None:
    small.add(1, "Demo", "1", "demo-1.zip", modules=("demo",))
    set_details(small, "demo-1.zip", details)
    (row,) = stream_rows(small.catalog, rows_at(small.catalog, 1))
    assert row["modules_grade"] == expected


def test_later_column_is_unknown_for_files_of_an_earlier_extractor(
    small: SmallCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.add(1, "Demo", "1", "demo-1.zip", modules=("demo",))
    for since, expected in ((1, []), (2, None)):
        monkeypatch.setattr(dump_rows, "_LATER", {"notes": since, "license_classifiers": since})
        [row] = stream_rows(small.catalog, rows_at(small.catalog, 1))
        assert row["extractor_version"] == 1
        assert (row["notes"], row["license_classifiers"], row["refusals"]) == (expected, expected, [])
