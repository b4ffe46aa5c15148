"""A catalog that an earlier version made and filled has all of it after the migrations."""

import hashlib
import json
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, MetaData, create_engine, func, insert, select, text

from pypi_assets.catalog import database
from pypi_assets.catalog.database import Catalog, migrate_catalog, open_catalog
from pypi_assets.catalog.ledger.range_ledger import read_state
from pypi_assets.catalog.observed.file_origins import known_file_origin, store_file_origin
from pypi_assets.catalog.observed.followed import followed_of, follows_all
from pypi_assets.catalog.observed.sightings import sightings_of
from pypi_assets.catalog.observed.snapshots import read_snapshots
from pypi_assets.catalog.publications.dump_columns import COLUMNS, FIRST_COLUMNS
from pypi_assets.catalog.publications.dump_registry import committed_dumps, open_full_dump
from pypi_assets.catalog.publications.dump_rows import requiring_releases, rows_at, stream_rows
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    metadata,
    name_lists,
    projects,
    read_queue,
    releases,
    required_names,
    visit_queue,
)
from pypi_assets.catalog.work.full_crawls import selected_names
from pypi_assets.catalog.work.scopes import members_of, require_scope

REQUIREMENTS = ["Base_Two>=1; extra == 'x'", "base", "n" * 600]
_FIRST_VERSION = """
INSERT INTO catalog_state (id, index_url, events_since, events_through, exact_from, next_dump_sequence)
VALUES (1, 'https://index.example.org/simple/', 0, 10, 0, 3);
INSERT INTO projects (id, normalized, name, bucket, shard, known_since) VALUES (1, 'demo', 'Demo', 0, 0, 0);
INSERT INTO releases (id, project_id, version) VALUES (1, 1, '1.0');
INSERT INTO distributions (id, project_id, release_id, filename, kind)
VALUES (1, 1, 1, 'demo-1.0-py3-none-any.whl', 'wheel');
INSERT INTO live_intervals (distribution_id, start) VALUES (1, 5);
INSERT INTO name_lists (id, sha256, length, content, has_roots)
VALUES (1, 'aa', 0, {empty_list}, {true}), (2, 'bb', 3, {required}, {true}), (3, 'cc', 1, {modules}, {true});
INSERT INTO distribution_data (distribution_id, outcome, extractor_version, modules_id, requires_dist_id, details)
VALUES
(1, 'data', 2, 1, 2, '{{"summary":"One","left_out":2,"entry_points":{{"console_scripts":{{"demo":"m:main"}}}}}}');
INSERT INTO serial_ranges (id, start, "end", state, asked_at, completed_at) VALUES (1, 0, 10, 'complete', 0, 0);
INSERT INTO dumps (kind, start, "end", directory, sequence, shards, state, inputs, opened_at, committed_at)
VALUES ('full', 0, 10, '0-10', 1, 1, 'committed', '[]', 0, 0), ('full', 0, 10, '0-10.2', 2, 1, 'open', '[]', 0, NULL);
"""


@pytest.fixture
def first_version_url(tmp_path: Path, database_url: str, request: pytest.FixtureRequest) -> str:
    """A database whose tables the first version made and filled."""
    url = f"sqlite:///{tmp_path / 'first.sqlite'}"
    if not database_url.startswith("sqlite"):
        url = request.getfixturevalue("empty_postgres_database_url")
    with first_version_of_the_code(tmp_path):
        catalog = open_catalog(url)
        lists = {"empty_list": [], "required": REQUIREMENTS, "modules": ["demo"]}
        contents = {name: zlib.compress(json.dumps(names).encode()).hex() for name, names in lists.items()}
        quoted = "x'{}'" if catalog.is_sqlite else r"'\x{}'"
        values = {name: quoted.format(content) for name, content in contents.items()}
        values["true"] = "1" if catalog.is_sqlite else "true"
        with catalog.write() as connection:
            execute_all(connection, _FIRST_VERSION.format(**values))
        catalog.close()
    return url


@contextmanager
def first_version_of_the_code(tmp_path: Path) -> Iterator[None]:
    """One that has the first migration alone."""
    first = shutil.copytree(
        database._MIGRATIONS, tmp_path / "first", ignore=shutil.ignore_patterns("000[2-9]_*", "001*")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_MIGRATIONS", first)
        yield


def execute_all(connection: Connection, statements: str) -> None:
    for statement in statements.split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)


@pytest.fixture
def migrated(first_version_url: str) -> Iterator[Catalog]:
    assert migrate_catalog(first_version_url)[0] == "0001"
    catalog = open_catalog(first_version_url)
    yield catalog
    catalog.close()


def test_the_migrations_lead_to_the_tables_of_the_code(migrated: Catalog) -> None:
    with migrated.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_dumps_of_the_first_version_have_the_first_columns(migrated: Catalog) -> None:
    [dump] = committed_dumps(migrated)
    assert (dump.directory, dump.columns) == ("0-10", FIRST_COLUMNS)
    with migrated.read() as connection:
        assert connection.execute(text("SELECT columns FROM dumps")).all() == [(None,), (None,)]


def test_an_open_dump_of_the_first_version_is_not_joined(migrated: Catalog) -> None:
    """Its shards lack columns, which all shards of one dump share."""
    dump = open_full_dump(migrated, 1)
    assert (dump.directory, dump.columns) == ("0-10.3", tuple(COLUMNS))
    assert open_full_dump(migrated, 1) == dump


def test_records_of_the_first_version_are_read_as_before(migrated: Catalog) -> None:
    [row] = stream_rows(migrated, rows_at(migrated, 10))
    assert (row["summary"], row["console_scripts"], row["left_out"]) == ("One", ["demo = m:main"], 2)
    assert (row["gui_scripts"], row["entry_point_groups"], row["notes"]) == ([], ["console_scripts"], [])
    assert (row["license_classifiers"], row["project_urls"], row["start_up_paths"]) == (None, None, None)


def test_a_catalog_of_before_has_chosen_no_host_of_files(migrated: Catalog) -> None:
    """The pages that were visited first decide, once the next file is read."""
    with migrated.write() as connection:
        assert known_file_origin(connection) is None
        assert store_file_origin(connection, "https://files.example.org")
        assert known_file_origin(connection) == "https://files.example.org"


def test_who_required_a_project_is_known_of_what_the_first_version_read(migrated: Catalog) -> None:
    assert list(requiring_releases(migrated, 10, "base")) == [("demo", "1.0", 0)]
    assert list(requiring_releases(migrated, 10, "base.two")) == [("demo", "1.0", 2)]
    with migrated.read() as connection:
        entered = dict(connection.execute(select(name_lists.c.id, name_lists.c.has_required)).all())
        assert entered == {1: False, 2: True, 3: False}
        assert connection.scalar(select(func.count()).select_from(required_names)) == 2


def test_more_lists_than_are_entered_at_a_time(tmp_path: Path) -> None:
    """As many as take several rounds, with lists of modules in between."""
    url = f"sqlite:///{tmp_path / 'many.sqlite'}"
    with first_version_of_the_code(tmp_path):
        catalog = open_catalog(url)
        project = {"id": 1, "normalized": "demo", "name": "Demo", "bucket": 0, "shard": 0, "known_since": 0}
        lists, of_project, data = [], [], []
        for number in range(1, 2_501):
            content = zlib.compress(json.dumps([f"base-{number % 7}>={number}"]).encode())
            lists.append({"id": number, "sha256": str(number), "length": 1, "content": content})
            file = {"id": number, "project_id": 1, "release_id": 1, "filename": f"demo-{number}.zip", "kind": "sdist"}
            of_project.append(file)
            data.append(
                {"distribution_id": number, "outcome": "data", "requires_dist_id": number if number % 2 else None}
            )
        with catalog.write() as connection:
            connection.execute(insert(projects).values(project))
            connection.execute(insert(releases).values(id=1, project_id=1, version="1.0"))
            connection.execute(insert(name_lists), lists)
            connection.execute(insert(distributions), of_project)
            connection.execute(insert(distribution_data), data)
        catalog.close()
    migrate_catalog(url)
    catalog = open_catalog(url)
    with catalog.read() as connection:
        assert connection.scalar(select(func.count()).select_from(required_names)) == 1_250
        assert connection.scalar(select(func.count()).where(name_lists.c.has_required)) == 1_250
    catalog.close()


_STUCK = """
INSERT INTO distributions (id, project_id, release_id, filename, kind, url)
VALUES (2, 1, 1, 'demo-1.0.zip', 'sdist', 'u'), (3, 1, 1, 'demo-1.0.tar.gz', 'sdist', 'u');
INSERT INTO live_intervals (distribution_id, start, "end") VALUES (2, 5, NULL), (3, 5, 6);
INSERT INTO distribution_data (distribution_id, outcome) VALUES (2, 'vanished'), (3, 'vanished');
UPDATE projects SET page_serial = 9;
INSERT INTO visit_statistics (project_id, last_outcome) VALUES (1, 'full');
INSERT INTO visit_queue (scope, project_id, shard, min_serial, state, error_text)
VALUES ('range:0-9', 1, 0, 9, 'gave up', '503'), ('range:9-10', 1, 0, 10, 'gave up', '503')
"""


def test_what_was_stuck_in_a_catalog_of_before_goes_on(first_version_url: str) -> None:
    """A live file that had vanished is read again, and a visit that a later success made up for is done."""
    engine = create_engine(first_version_url)
    with engine.begin() as connection:
        execute_all(connection, _STUCK)
    engine.dispose()
    migrate_catalog(first_version_url)
    catalog = open_catalog(first_version_url)
    with catalog.read() as connection:
        assert dict(
            connection.execute(select(distribution_data.c.distribution_id, distribution_data.c.outcome)).all()
        ) == {
            1: "data",
            2: "pending",
            3: "vanished",
        }
        assert connection.execute(select(read_queue.c.distribution_id, read_queue.c.project_id)).all() == [(2, 1)]
        states = select(visit_queue.c.workload, visit_queue.c.state)
        assert dict(connection.execute(states).all()) == {"range:0-9": "done", "range:9-10": "gave up"}
    catalog.close()


def test_what_visits_saw_is_kept_apart_from_them_and_read_as_before(tmp_path: Path, database_url: str, request) -> None:
    """Pages that repeat the one before are left out; 404s without an event stay."""
    shown = [[["demo-1.0.zip", "a" * 64, False]], []]
    url = f"sqlite:///{tmp_path / 'visited.sqlite'}"
    if not database_url.startswith("sqlite"):
        url = request.getfixturevalue("empty_postgres_database_url")
    with first_version_of_the_code(tmp_path):
        catalog = open_catalog(url)
        contents = [json.dumps(files, separators=(",", ":")).encode() for files in shown]
        with catalog.write() as connection:
            metadata_then = MetaData()
            metadata_then.reflect(connection, only=["projects", "snapshots", "visits", "visit_statuses"])
            then = metadata_then.tables
            project = {"id": 1, "normalized": "demo", "name": "Demo", "bucket": 0, "shard": 0, "known_since": 0}
            connection.execute(insert(then["projects"]).values(project))
            for number, content in enumerate(contents, 1):
                row = {"id": number, "sha256": hashlib.sha256(content).hexdigest(), "content": zlib.compress(content)}
                connection.execute(insert(then["snapshots"]).values(row))
            visit = {"id": 1, "project_id": 1, "visit": 1, "kind": "full", "scope": "crawl:1", "started_at": 1.0}
            connection.execute(insert(then["visits"]).values(visit))
            names = ("page_serial", "seen_through", "snapshot_id", "page_status")
            for at, seen in enumerate(
                [
                    (None, None, None, None),
                    (5, 9, 1, "active"),
                    (5, 10, 1, "active"),
                    (5, 10, 2, "active"),
                    (5, 11, 1, "active"),
                    (None, 12, 2, None),
                    (None, 13, 2, None),
                ]
            ):
                row = {"visit_id": 1, "at": float(at), "status": "full"} | dict(zip(names, seen, strict=True))
                connection.execute(insert(then["visit_statuses"]).values(row))
        catalog.close()
    migrate_catalog(url)
    catalog = open_catalog(url)
    with catalog.read() as connection:
        found = [(row.page_serial, row.seen_through, row.snapshot_id) for row in sightings_of(connection, [1])]
        assert [snapshot.files for _, snapshot in read_snapshots(connection, [1, 2])] == shown
    catalog.close()
    assert found == [(5, 9, 1), (5, 10, 2), (5, 11, 1), (None, 12, 2), (None, 13, 2)]


_SELECTED = """
INSERT INTO full_crawls (id, serial, selection, opened_at, listed_at, completed_at, with_history)
VALUES (1, 10, '["absent", "demo"]', 1, 2, 3, {false})
"""


def test_the_projects_that_the_settings_chose_are_a_scope(first_version_url: str, tmp_path: Path) -> None:
    with first_version_of_the_code(tmp_path / "again"):
        catalog = open_catalog(first_version_url)
        with catalog.write() as connection:
            connection.exec_driver_sql(_SELECTED.format(false="0" if catalog.is_sqlite else "false"))
        catalog.close()
    migrate_catalog(first_version_url)
    catalog = open_catalog(first_version_url)
    with catalog.read() as connection:
        scope = require_scope(connection, "projects")
        assert (sorted(scope.roots), scope.most_depth) == (["absent", "demo"], 0)
        assert not follows_all(connection)
        [member] = members_of(connection, scope.id)
        assert followed_of(connection, [member]) == {member}
        assert selected_names(connection) == {"absent", "demo"}
        state = read_state(connection)
        assert state["all_events_since"] == state["events_through"]
    assert [file.filename for file in live_files(catalog, 10)] == ["demo-1.0-py3-none-any.whl"]
    catalog.close()


@pytest.mark.parametrize("installers", [("pip", "uv"), ("pip",)])
def test_a_file_that_no_installer_takes_is_marked(
    installers: tuple[str, ...], first_version_url: str, tmp_path: Path
) -> None:
    refusals = [f"{installer} skips: the metadata have the Version 2" for installer in installers]
    with first_version_of_the_code(tmp_path / "again"):
        catalog = open_catalog(first_version_url)
        with catalog.write() as connection:
            details = json.dumps({"notes": ["uv skips: a note"], "refusals": refusals})
            connection.execute(text("UPDATE distribution_data SET details = :details"), {"details": details})
        catalog.close()
    migrate_catalog(first_version_url)
    catalog = open_catalog(first_version_url)
    with catalog.read() as connection:
        assert connection.scalars(select(distribution_data.c.is_rejected)).all() == [len(installers) == 2]
    catalog.close()
