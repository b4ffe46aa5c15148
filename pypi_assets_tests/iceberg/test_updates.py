"""Tables hold the state at each dump's serial, however often and by however many processes they are updated."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO

from pypi_assets.catalog.coordination.leases import LeaseTakenError, lease
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_writer import write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.dumps.restore import restore_index
from pypi_assets.iceberg import bucket_files, event_files, updates
from pypi_assets.iceberg.newest_tables import read_newest
from pypi_assets.iceberg.snapshots import commit, serial_of
from pypi_assets.iceberg.table_catalog import TableOptions, TablesError, opened_tables
from pypi_assets.iceberg.table_columns import TABLES
from pypi_assets.iceberg.updates import LEASE_NAME, update_tables
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.compaction import compact
from pypi_assets_tests.demo_catalog import add_range, demo_catalog
from pypi_assets_tests.dump_rows import dump_row, histories, write_dump
from pypi_assets_tests.examples import examples
from pypi_assets_tests.iceberg.tables import OPTIONS, expected_files, expected_modules, rows_of, updated
from pypi_assets_tests.kills import killed_at
from pypi_assets_tests.naming import naming
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

_FILES = [
    (project, version, f"{project}-{number}.zip") for project in "abc" for version in ("1", "1.0") for number in (1, 2)
]
_WRITES = ((PyArrowFileIO, "new_output"), (SqlCatalog, "commit_table"), (Storage, "put"))


@st.composite
def drawn_rows(draw: st.DrawFn, file: tuple[str, str, str], serial: int) -> Row:
    return dump_row(
        *file,
        modules=draw(st.none() | st.lists(st.sampled_from(["m", "m.n", "é"]), max_size=3)),
        requires_dist=draw(st.none() | st.lists(st.sampled_from(["b", "c>1; extra == 'x'", "?"]), max_size=2)),
        size=draw(st.none() | st.integers(0, 2**40)),
        live_since=serial,
    )


def live_at(dumps: list[list[Row]]) -> list[Row]:
    """Return the rows that are live after the last of `dumps`."""
    live = {}
    for row in (row for dump in dumps for row in dump):
        live[row["normalized"], row["filename"]] = row
    return [row for row in live.values() if not row["tombstone"]]


@settings(max_examples=examples(5), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    history=histories(_FILES, drawn_rows, most=6), rows_of_a_bucket=st.sampled_from([1, 4_096]), seen=st.integers(1, 5)
)
def test_tables_equal_the_live_rows_at_each_serial(
    tmp_path_factory: pytest.TempPathFactory,
    history: tuple[list[list[Row]], list[Row]],
    rows_of_a_bucket: int,
    seen: int,
) -> None:
    dumps, _ = history
    folder = tmp_path_factory.mktemp("history")
    storage = open_storage((folder / "storage").as_uri())
    small = small_catalog(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(updates, "ROWS_OF_A_BUCKET", rows_of_a_bucket)
        for number, rows in enumerate(dumps):
            write_dump(storage, SerialRange(number * 10, number * 10 + 10), rows, shards=1 if number else 4)
            if number + 1 in (seen, len(dumps)):
                restore_index(small.catalog, storage)
                updated(small.catalog, storage)
    for number in range(len(dumps)):
        live, tag = live_at(dumps[: number + 1]), f"serial-{number * 10 + 10}"
        assert rows_of(small.catalog, storage, "files", tag) == expected_files(live)
        assert rows_of(small.catalog, storage, "modules", tag) == expected_modules(live)
        required = sorted(str(text) for row in live for text in row["requires_dist"] or ())  # type: ignore[attr-defined]
        found = rows_of(small.catalog, storage, "requirements", tag)
        assert sorted(str(row["requirement"]) for row in found) == required
    small.catalog.close()


def filenames(small: SmallCatalog, storage: Storage, tag: str | None = None) -> list[str]:
    return sorted(row["filename"] for row in rows_of(small.catalog, storage, "files", tag))


def serials(catalog: Catalog, storage: Storage, name: str = "files") -> list[int | None]:
    with opened_tables(catalog, storage, OPTIONS) as tables:
        table = tables.find(name)
        return [] if table is None else [serial_of(snapshot) for snapshot in table.snapshots()]


def test_each_dump_becomes_one_snapshot_and_a_repeat_adds_none(small: SmallCatalog, storage: Storage) -> None:
    before = ["demo_pkg-1.0-py3-none-any.whl", "demo_pkg-1.0.tar.gz", "other-2.tar.gz"]
    result = updated(small.catalog, storage)
    assert (result.newest.serial, result.newest.tables["files"].rows) == (100, 3)
    assert result.added == dict.fromkeys(TABLES, 1)
    for start in (100, 150):
        add_range(small, storage, start)
    assert updated(small.catalog, storage).added == dict.fromkeys(TABLES, 2)
    result = updated(small.catalog, storage)
    assert result.added == {}
    assert read_newest(storage) == result.newest
    assert [serials(small.catalog, storage, name) for name in TABLES] == [[100, 150, 200]] * len(TABLES)
    assert filenames(small, storage, "serial-100") == before
    assert filenames(small, storage, "serial-150") == sorted([*before, "new-100.tar.gz"])
    assert filenames(small, storage) == sorted([*before, "new-100.tar.gz", "new-150.tar.gz"])


def test_compaction_of_known_dumps_adds_no_snapshot(small: SmallCatalog, storage: Storage) -> None:
    ranges = [add_range(small, storage, start) for start in (100, 150)]
    updated(small.catalog, storage)
    compact(small.catalog, storage, *ranges)
    assert updated(small.catalog, storage).added == {}
    add_range(small, storage, 200)
    assert updated(small.catalog, storage).added == dict.fromkeys(TABLES, 1)


def test_new_full_dump_replaces_all_rows(small: SmallCatalog, storage: Storage) -> None:
    updated(small.catalog, storage)
    small.reprocess("demo_pkg-1.0.tar.gz", ("renewed",), ())
    full_dump(small.catalog, storage, 4, since=small.catalog.clock())
    assert updated(small.catalog, storage).added == dict.fromkeys(TABLES, 1)
    assert serials(small.catalog, storage) == [100, 100]
    modules = {row["module"]: row["files"] for row in rows_of(small.catalog, storage, "modules")}
    assert modules == {"demo": 1, "renewed": 1}


def test_requirements_are_parsed_and_the_others_kept_as_written(storage: Storage, tmp_path: Path) -> None:
    texts = ("B>=2; extra == 'x'", "c[z,Y] @ https://example.org/c.whl", "d (<2)", "!", "e ==1.*.x")
    small = small_catalog(tmp_path / "other")
    small.add(1, "a", "1", "a-1.zip", requires_dist=texts)
    small.complete(10)
    storage = open_storage((tmp_path / "other" / "storage").as_uri())
    full_dump(small.catalog, storage, 1)
    updated(small.catalog, storage)
    columns = ("required", "condition", "specifier", "marker", "extras")
    found = {
        row["requirement"]: tuple(row[name] for name in columns)
        for row in rows_of(small.catalog, storage, "requirements")
    }
    assert found == {
        texts[0]: ("b", "extra", ">=2", 'extra == "x"', []),
        texts[1]: ("c", "always", None, None, ["y", "z"]),
        texts[2]: ("d", "always", "<2", None, []),
        texts[3]: (None, None, None, None, None),
        texts[4]: ("e", "always", None, None, None),
    }
    small.catalog.close()


def test_lost_derived_table_is_made_again(small: SmallCatalog, storage: Storage) -> None:
    updated(small.catalog, storage)
    before = rows_of(small.catalog, storage, "commands")
    with opened_tables(small.catalog, storage, OPTIONS) as tables:
        tables.drop("commands")
    assert updated(small.catalog, storage).added == {"commands": 1}
    assert rows_of(small.catalog, storage, "commands") == before


def test_from_scratch_makes_tables_without_history(small: SmallCatalog, storage: Storage) -> None:
    updated(small.catalog, storage)
    add_range(small, storage, 100)
    expected = [*filenames(small, storage), "new-100.tar.gz"]
    update_tables(small.catalog, storage, OPTIONS, from_scratch=True)
    assert serials(small.catalog, storage) == [100, 150]
    assert filenames(small, storage) == sorted(expected)


def test_one_process_writes_at_a_time(small: SmallCatalog, storage: Storage) -> None:
    with lease(small.catalog, LEASE_NAME), pytest.raises(LeaseTakenError):
        updated(small.catalog, storage)
    assert serials(small.catalog, storage) == []


def test_concurrent_writers_add_no_row_twice(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    updated(small.catalog, storage)
    add_range(small, storage, 100)

    @contextmanager
    def no_lease(catalog: Catalog, _name: str, ttl_s: float) -> Iterator[Any]:
        with lease(catalog, f"lost {len(overtaken)}", ttl_s) as held:
            yield held

    overtaken: list[int] = []

    def overtake(*arguments: Any, **options: Any) -> Any:
        if not overtaken:
            overtaken.append(1)
            updated(small.catalog, storage)
        return commit(*arguments, **options)

    monkeypatch.setattr(updates, "lease", no_lease)
    monkeypatch.setattr(updates, "commit", overtake)
    assert updated(small.catalog, storage).added == {}
    assert overtaken
    assert [serials(small.catalog, storage, name) for name in TABLES] == [[100, 150]] * len(TABLES)
    assert len(filenames(small, storage)) == 4


def steps_until_done(small: SmallCatalog, storage: Storage, steps: range) -> int:
    """Kill an update at each of `steps`, check what is left, and return the last step that was reached."""
    last = 0
    for step in steps:
        with killed_at(step, *_WRITES) as reached:
            updated(small.catalog, storage)
        for name in TABLES:
            found = serials(small.catalog, storage, name)
            assert found == sorted(set(found) & {100, 150}), (step, name)
        if not reached:
            break
        last = step
    return last


@pytest.mark.parametrize("steps", [range(1, 4), range(20, 23)])
def test_kill_leaves_the_last_snapshot_and_the_repeat_finishes(
    small: SmallCatalog, storage: Storage, steps: range
) -> None:
    assert steps_until_done(small, storage, steps) == steps[-1]
    add_range(small, storage, 100)
    updated(small.catalog, storage)
    assert [serials(small.catalog, storage, name) for name in TABLES] == [[100, 150]] * len(TABLES)
    assert len(filenames(small, storage)) == 4


@pytest.mark.nightly
def test_kill_at_any_write_leaves_the_last_snapshot_and_the_repeat_finishes(tmp_path: Path) -> None:
    for step in range(1, 1_000, 7):
        small = demo_catalog(tmp_path / str(step))
        storage = open_storage((tmp_path / str(step) / "storage").as_uri())
        full_dump(small.catalog, storage, 1)
        add_range(small, storage, 100)
        reached = steps_until_done(small, storage, range(step, step + 1))
        updated(small.catalog, storage)
        assert [serials(small.catalog, storage, name) for name in TABLES] == [[100, 150]] * len(TABLES)
        assert len(filenames(small, storage)) == 4
        small.catalog.close()
        if not reached:
            break
    assert step > 50


def test_rows_in_several_groups_reach_their_buckets(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updates, "ROWS_OF_A_BUCKET", 1)
    monkeypatch.setattr(updates, "ROWS_OF_A_GROUP", 1)
    monkeypatch.setattr(bucket_files, "_ROWS_SORTED_AT_ONCE", 1)
    monkeypatch.setattr(event_files, "ROWS_OF_A_FILE", 1)
    updated(small.catalog, storage)
    assert len(filenames(small, storage)) == 3
    with opened_tables(small.catalog, storage, OPTIONS) as tables:
        table = tables.find("files")
        assert table is not None
        assert len(list(table.scan().plan_files())) == 2  # a bucket for each project
        assert len(list(table.scan("normalized = 'other'").plan_files())) == 1


def test_error_names_the_remedy(small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TablesError, match=naming("memory:///")):
        update_tables(small.catalog, open_storage("memory:///"), OPTIONS)
    with pytest.raises(TablesError, match=naming("PYPI_ASSETS_TABLES_CATALOG_URL", "http://127.0.0.1:9/")):
        update_tables(small.catalog, storage, TableOptions("http://127.0.0.1:9/"))
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog.sql", None)
    with pytest.raises(TablesError, match=naming("pypi-assets[tables]")):
        updated(small.catalog, storage)


def test_tables_need_a_full_dump(tmp_path: Path) -> None:
    small = demo_catalog(tmp_path / "empty")
    with pytest.raises(TablesError, match=naming("dump full")):
        updated(small.catalog, open_storage((tmp_path / "empty" / "storage").as_uri()))
    small.catalog.close()


def test_tables_are_in_a_folder_with_a_space_and_in_a_database_server(
    tmp_path: Path, postgres_database_url: str
) -> None:
    small = small_catalog(tmp_path, postgres_database_url)
    small.add(1, "a", "1", "a-1.zip")
    small.complete(100)
    storage = open_storage((tmp_path / "a folder").as_uri())
    full_dump(small.catalog, storage, 1)
    updated(small.catalog, storage)
    small.remove(110, "a-1.zip")
    write_range(small.catalog, storage, small.complete(120))
    updated(small.catalog, storage)
    assert filenames(small, storage, "serial-100") == ["a-1.zip"]
    assert filenames(small, storage) == []
    assert (tmp_path / "a folder" / "tables" / "pypi" / "files" / "metadata").is_dir()
    small.catalog.close()


@pytest.mark.nightly
def test_tables_are_on_s3(small: SmallCatalog) -> None:
    with pytest.MonkeyPatch.context() as environment, s3_server(environment):
        storage = open_storage(f"s3://{BUCKET}/prefix")
        full_dump(small.catalog, storage, 1)
        updated(small.catalog, storage)
        add_range(small, storage, 100)
        updated(small.catalog, storage)
        assert len(filenames(small, storage)) == 4
        assert len(filenames(small, storage, "serial-100")) == 3
