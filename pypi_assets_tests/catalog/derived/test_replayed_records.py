"""Journal records become rows, and reading these rows returns the contents of the records."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.derived.replayed_records import (
    ReplayedRecords,
    ReplayedSpan,
    enter_records,
    finish_replay,
    follows_some,
    has_rows,
)
from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.ledger.range_ledger import complete_serial, inexact_spans, read_state, sealed_end
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import COLUMNS, FIRST_EXTRACTOR
from pypi_assets.catalog.publications.dump_rows import CONTENT
from pypi_assets.catalog.reports.catalog_status import count_differences
from pypi_assets.catalog.reports.listed_times import look_before
from pypi_assets.catalog.tables import changes, distribution_data, distributions, events, live_intervals
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets_tests.crawl.followers import empty_catalog
from pypi_assets_tests.dump_rows import content_rows
from pypi_assets_tests.examples import examples

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
lists = st.lists(texts, max_size=3)
OF_TYPE = {
    "string": texts,
    "string or null": st.none() | texts,
    "integer": st.integers(0, 3),
    "integer or null": st.none() | st.integers(0, 3),
    "array of strings": lists,
    "array of strings or null": st.none() | lists,
}
scripts = st.dictionaries(st.sampled_from(["run", "go"]), st.just("demo:main"), max_size=2)


@st.composite
def contents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the columns of a file that some extractor version read or failed to read."""
    groups = draw(st.none() | st.dictionaries(st.sampled_from(["console_scripts", "gui_scripts", "own"]), scripts))
    version = draw(st.integers(1, EXTRACTOR_VERSION))
    lines = {
        group: None if groups is None else [f"{name} = {to}" for name, to in groups.get(group, {}).items()]
        for group in ("console_scripts", "gui_scripts")
    }
    found = {
        name: draw(OF_TYPE[COLUMNS[name].type]) if COLUMNS[name].since <= max(version, FIRST_EXTRACTOR) else None
        for name in CONTENT
    }
    found |= lines | {"entry_point_groups": None if groups is None else sorted(groups)}
    grade = draw(st.sampled_from([None, "exact", "derived", "guessed"]))
    return found | {
        "outcome": draw(st.sampled_from(["data", "data", "error", "vanished", "gave up"])),
        "extractor_version": version,
        "modules_grade": grade,
    }


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Any:
    catalog = open_catalog(f"sqlite:///{tmp_path_factory.mktemp('replayed')}/catalog.sqlite")
    yield catalog
    catalog.close()


def observed(serial: int, filename: str = "demo-1.tar.gz", **fields: Any) -> dict[str, Any]:
    record = {
        **dict.fromkeys(("url", "size", "uploaded_at", "requires_python", "yanked_reason", "core_metadata_sha256")),
        "serial": serial,
        "of_serial": serial,
        "stream": "observed",
        "kind": "file added",
        "cause": "add file",
        "project": "Demo",
        "normalized": "demo",
        "version": "1",
        "filename": filename,
        "sha256": "a" * 64,
        "distribution_kind": "sdist",
        "generation": 1,
        "live": [[serial, None]],
        "yanked": [],
        "project_status": None,
    }
    return record | fields


def content(serial: int, found: dict[str, Any], **fields: Any) -> dict[str, Any]:
    place = {"serial": serial, "of_serial": serial, "stream": "content", "cause": "add file", "project": "Demo"}
    return found | place | {"normalized": "demo", "filename": "demo-1.tar.gz", "sha256": "a" * 64} | fields


def enter(catalog: Catalog, *records: dict[str, Any]) -> None:
    entered = ReplayedRecords()
    for record in records:
        entered.add(record)
    with catalog.write() as connection:
        enter_records(connection, entered, 0)


@settings(max_examples=examples(25))
@given(contents(), st.sampled_from(["sdist", "wheel"]))
def test_replayed_content_round_trips(scratch: Catalog, found: dict[str, Any], kind: str) -> None:
    empty_catalog(scratch)
    enter(scratch, observed(3, distribution_kind=kind), content(3, found))
    with scratch.read_once() as connection:
        [row] = content_rows(connection, connection.scalars(select(distributions.c.id)).all(), None).values()
    got = {name: plain(row[name]) for name in CONTENT}
    for name in CONTENT:
        assert got[name] == found[name], name


def test_file_without_installer_support_is_marked(catalog: Catalog) -> None:
    refusals = {"one.zip": ["pip skips: odd"], "two.zip": ["pip skips: odd", "uv fails: odd"], "three.zip": None}
    for filename, of_file in refusals.items():
        enter(catalog, observed(3, filename), content(3, READ | {"refusals": of_file}, filename=filename))
    query = select(distributions.c.filename, distribution_data.c.is_rejected).join(distribution_data)
    with catalog.read() as connection:
        found = {filename: is_rejected for filename, is_rejected in connection.execute(query)}
    assert found == {"one.zip": False, "two.zip": True, "three.zip": False}


def plain(value: Any) -> Any:
    import orjson

    return orjson.loads(orjson.dumps(value))


PLAIN = dict.fromkeys(CONTENT) | {"outcome": "data", "extractor_version": 1, "provides_extra": [], "stubs": []}
READ = PLAIN | {"left_out": 0, "modules": ["demo"]}


def test_last_record_of_a_file_counts_and_all_changes_stay(catalog: Catalog) -> None:
    enter(catalog, observed(3), content(3, READ), observed(5, of_serial=4, cause="corrected", live=[[4, 5]]))
    enter(catalog, observed(7, live=[[4, 5], [7, None]], cause="unquarantine project"))
    with catalog.read() as connection:
        intervals = connection.execute(select(live_intervals.c.start, live_intervals.c.end)).all()
        assert [tuple(interval) for interval in intervals] == [(4, 5), (7, None)]
        logged = connection.execute(select(changes.c.serial, changes.c.cause, changes.c.logged_serial))
        assert sorted(tuple(change) for change in logged) == [
            (3, "add file", 3),
            (4, "corrected", 5),
            (7, "unquarantine project", 7),
        ]


def test_entering_records_twice_changes_nothing(catalog: Catalog) -> None:
    event = {"serial": 3, "stream": "index", "project": "Demo", "normalized": "demo", "at": 5, "version": "1"}
    records = (event | {"action": "add source file demo-1.tar.gz"}, observed(3), content(3, READ))
    for _ in range(2):
        enter(catalog, *records)
        with catalog.read() as connection:
            assert connection.scalars(select(events.c.kind)).all() == ["add file"]
            assert len(connection.execute(select(changes)).all()) == 1
            assert connection.scalars(select(distributions.c.filename)).all() == ["demo-1.tar.gz"]


def test_late_read_is_logged_as_late(catalog: Catalog) -> None:
    enter(catalog, observed(3))
    enter(catalog, content(9, READ, of_serial=3, cause="read late"))
    with catalog.read() as connection:
        logged = connection.execute(select(changes.c.serial, changes.c.cause, changes.c.logged_serial))
        assert {tuple(change) for change in logged} == {(3, "add file", 3), (3, "read late", 9)}


def test_content_of_other_bytes_does_not_count(catalog: Catalog) -> None:
    enter(catalog, observed(3, sha256="b" * 64), content(3, READ))
    with catalog.read_once() as connection:
        assert content_rows(connection, connection.scalars(select(distributions.c.id)).all(), None) == {}


def test_records_of_another_generation_are_entered_separately() -> None:
    records = ReplayedRecords()
    records.add(observed(3))
    assert not records.is_full_for(observed(4))
    assert not records.is_full_for(observed(4, "other.zip", generation=2))
    assert records.is_full_for(observed(4, generation=2))


def test_replayed_span_counts_once_finished(catalog: Catalog) -> None:
    with catalog.read() as connection:
        assert not has_rows(connection)
    enter(catalog, observed(3), content(3, READ))
    with catalog.write() as connection:
        assert has_rows(connection)
        assert complete_serial(connection) == 0
        span = ReplayedSpan("https://index.example.org/simple/", 2, 1, 10, follows_all=True, gaps=((5, 8, 1_000.0),))
        finish_replay(connection, span, 1.0)
        assert (complete_serial(connection), sealed_end(connection)) == (10, 10)
        assert inexact_spans(connection) == [SerialRange(4, 8)]
        assert (look_before(connection, 4), look_before(connection, 9)) == (None, 1_000.0)
        state = read_state(connection)
        assert (state["events_since"], state["events_through"], state["exact_from"]) == (2, 10, 1)
        finish_replay(connection, ReplayedSpan(span.index_url, 2, 1, 20, follows_all=True), 2.0)
        assert complete_serial(connection) == 20
        assert count_differences(connection) == {}
        assert not follows_some(connection)


def test_change_to_complete_serials_starts_a_new_epoch(catalog: Catalog) -> None:
    """Changes after the complete serial start no epoch."""
    enter(catalog, observed(3), observed(5, "other.zip"), content(5, READ))
    with catalog.write() as connection:
        finish_replay(connection, ReplayedSpan("https://index.example.org/simple/", 0, 0, 10, follows_all=True), 1.0)
    enter(catalog, observed(12, live=[[3, 12]], cause="remove file"), observed(13, "new.zip", cause="unexplained"))
    assert epochs_at(catalog) == [*range(11)]
    enter(catalog, observed(14, "other.zip", of_serial=6, live=[[5, 6]], cause="corrected"))
    assert epochs_at(catalog) == [0, 1, 2, 3, 4, 5, 11, 11, 11, 11, 11]
    enter(catalog, content(15, READ | {"modules": ["late"]}, of_serial=15))
    assert epochs_at(catalog) == [0, 1, 2, *[12] * 8]
    enter(catalog, observed(16, "new.zip", project="DEMO", live=[[13, None]]))
    assert epochs_at(catalog) == [0, 1, 2, *[13] * 8]
    with catalog.read() as connection:
        assert count_differences(connection) == {}


def epochs_at(catalog: Catalog) -> list[int]:
    with catalog.read() as connection:
        return [epoch_of(connection, serial) for serial in range(11)]


def test_statements_are_bounded_for_many_files(tmp_path: Path) -> None:
    from sqlalchemy import event

    counts = []
    for number in (5, 400):
        catalog = open_catalog(f"sqlite:///{tmp_path}/{number}.sqlite")
        statements: list[str] = []
        event.listen(catalog.engine, "before_cursor_execute", lambda *found, to=statements: to.append(found[2]))
        enter(catalog, *(observed(3, f"demo-{n}.zip") for n in range(number)))
        counts.append(len(statements))
        catalog.close()
    assert counts[0] == counts[1]
