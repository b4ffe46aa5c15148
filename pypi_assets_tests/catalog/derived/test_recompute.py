"""Rows of projects are derived from events and pages: only differences are written, and each is logged once."""

import pytest
from sqlalchemy import Connection, func, select

from pypi_assets.catalog.counters import read_counts
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.derived.file_updates import CORRECTED
from pypi_assets.catalog.derived.recompute import UNEXPLAINED_CHANGES, recompute
from pypi_assets.catalog.derived.visits import VisitStatus, VisitVerdict, begin_visits, record_verdicts
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.catalog.observed.projects import CatalogProject
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reports.catalog_status import count_again
from pypi_assets.catalog.tables import (
    changes,
    distribution_data,
    distributions,
    live_intervals,
    read_queue,
    releases,
    yanked_intervals,
)
from pypi_assets.index.models import ChangelogEvent, IndexFile, ProjectPage
from pypi_assets_tests.catalog.ended_visits import enter

ONE, TWO, GONE = "demo-1.0.tar.gz", "demo-2.0-py3-none-any.whl", "demo-0.1.tar.gz"


def shown(filename: str, sha256: str = "a" * 64, *, yanked: bool = False) -> IndexFile:
    return IndexFile(filename, f"https://example.org/{filename}", sha256, 1, None, None, yanked, None, False, None)


def see(
    connection: Connection, project: CatalogProject, serial: int, *files: IndexFile, versions: tuple[str, ...] = ()
) -> None:
    """Record a visit that sees a page of `serial` with `files`."""
    [visit_id] = begin_visits(connection, [project.id], "full", "crawl:1", 1.0).values()
    page = ProjectPage(project.name, serial, "active", files, versions=versions)
    record_verdicts(connection, [VisitVerdict(visit_id, project, VisitStatus.FULL, page)], 2.0)


def happen(
    connection: Connection, project: CatalogProject, serial: int, action: str, version: str | None = "1.0"
) -> None:
    event = ChangelogEvent(project.name, version, serial, action, serial)
    store_events(connection, [event], serial - 1, serial)


def intervals(connection: Connection, table) -> dict[str, list[tuple[int, int | None]]]:
    query = select(distributions.c.filename, table.c.start, table.c.end)
    found: dict[str, list[tuple[int, int | None]]] = {}
    rows = connection.execute(
        query.join(distributions, distributions.c.id == table.c.distribution_id).order_by(table.c.start)
    )
    for filename, start, end in rows:
        found.setdefault(filename, []).append((start, end))
    return found


def logged(connection: Connection) -> list[tuple[str, int, str]]:
    query = select(distributions.c.filename, changes.c.serial, changes.c.cause)
    rows = connection.execute(query.join(distributions, distributions.c.id == changes.c.distribution_id))
    return sorted(tuple(row) for row in rows)


def test_events_and_pages_produce_rows_intervals_changes_and_reads(catalog: Catalog):
    with catalog.write() as connection:
        [project] = enter(connection, 1)
        happen(connection, project, 1_001, f"add source file {GONE}", "0.1")
        happen(connection, project, 1_002, f"remove file {GONE}", "0.1")
        happen(connection, project, 1_003, f"add source file {ONE}")
        happen(connection, project, 1_004, "yank release")
        see(connection, project, 1_004, shown(ONE, yanked=True), shown(TWO))
        assert intervals(connection, live_intervals) == {
            GONE: [(1_001, 1_002)],
            ONE: [(1_003, None)],
            TWO: [(0, None)],
        }
        assert intervals(connection, yanked_intervals) == {ONE: [(1_004, None)]}
        assert (ONE, 1_004, "yank release") in logged(connection)
        rows = connection.execute(
            select(distributions.c.filename, releases.c.version, distributions.c.kind, distribution_data.c.outcome)
            .join(releases, releases.c.id == distributions.c.release_id)
            .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
            .order_by(distributions.c.filename)
        ).all()
        queued = connection.scalars(
            select(distributions.c.filename).join(read_queue, read_queue.c.distribution_id == distributions.c.id)
        )
        assert sorted(queued) == [ONE, TWO]
    assert rows == [
        (GONE, "0.1", "sdist", ReadOutcome.VANISHED),
        (ONE, "1.0", "sdist", ReadOutcome.PENDING),
        (TWO, "2.0", "wheel", ReadOutcome.PENDING),
    ]


def test_recompute_without_news_writes_and_logs_nothing(catalog: Catalog):
    with catalog.write() as connection:
        [project] = enter(connection, 1)
        happen(connection, project, 1_001, f"add source file {ONE}")
        see(connection, project, 1_001, shown(ONE), shown(TWO))
        before = (intervals(connection, live_intervals), logged(connection))
        recompute(connection, [project], {})
        see(connection, project, 1_001, shown(ONE), shown(TWO))
        assert (intervals(connection, live_intervals), logged(connection)) == before
        assert connection.scalar(select(func.count()).select_from(distributions)) == 2


def test_replaced_bytes_are_reread_and_file_without_event_ends_unexplained(catalog: Catalog):
    with catalog.write() as connection:
        [project] = enter(connection, 1)
        see(connection, project, 900, shown(ONE), shown(TWO))
        connection.execute(read_queue.delete())
        see(connection, project, 950, shown(ONE, "b" * 64))
        assert connection.scalars(select(distributions.c.sha256).where(distributions.c.filename == ONE)).all() == [
            "b" * 64
        ]
        assert connection.scalar(select(func.count()).select_from(read_queue)) == 1
        [(start, end)] = intervals(connection, live_intervals)[TWO]
        assert (TWO, end, UNEXPLAINED) in logged(connection)
        assert start < end <= 1_000


@pytest.mark.parametrize(("explained_at", "cause"), [(1_001, CORRECTED), (1_002, "add file")])
def test_change_explained_by_a_later_event_is_no_longer_unexplained(catalog: Catalog, explained_at: int, cause: str):
    """The logged change gets the cause of the event, and the count of unexplained changes falls."""
    with catalog.write() as connection:
        [project] = enter(connection, 1)
        see(connection, project, 900, shown(ONE))
        store_events(connection, [], 1_000, 1_002)
        see(connection, project, 1_002, shown(ONE), shown(TWO))
        see(connection, project, 1_002, shown(ONE), shown(TWO), shown(GONE))
        assert {(TWO, 1_002, UNEXPLAINED), (GONE, 1_002, UNEXPLAINED)} <= set(logged(connection))
        assert read_counts(connection)[UNEXPLAINED_CHANGES] == 2
        event = ChangelogEvent(project.name, "2.0", explained_at, f"add py3 file {TWO}", explained_at)
        store_events(connection, [event], 1_000, 1_002)
        recompute(connection, [project], {})
        assert intervals(connection, live_intervals)[TWO] == [(explained_at, None)]
        of_two = [row for row in logged(connection) if row[0] == TWO]
        assert (TWO, 1_002, cause) in of_two
        assert UNEXPLAINED not in {cause for _, _, cause in of_two}
        assert (GONE, 1_002, UNEXPLAINED) in logged(connection)
        assert count_again(connection)[UNEXPLAINED_CHANGES] == read_counts(connection)[UNEXPLAINED_CHANGES] == 1


def test_newer_page_with_same_files_writes_no_file_row(catalog: Catalog):
    """The row of a file has the serial of the page where it disappeared or where its facts changed."""
    with catalog.write() as connection:
        [project] = enter(connection, 1)
        serials = select(distributions.c.filename, distributions.c.page_serial).order_by(distributions.c.filename)
        see(connection, project, 900, shown(ONE), shown(TWO))
        see(connection, project, 910, shown(ONE), shown(TWO))
        assert connection.execute(serials).all() == [(ONE, 900), (TWO, 900)]
        see(connection, project, 920, shown(ONE, "b" * 64))
        assert connection.execute(serials).all() == [(ONE, 920), (TWO, 910)]
        assert connection.scalar(select(distributions.c.sha256).where(distributions.c.filename == TWO)) == "a" * 64
        see(connection, project, 905, shown(ONE, "c" * 64), shown(TWO, "c" * 64))  # older than the facts of both
        see(connection, project, 915, shown(TWO, "d" * 64))
        see(connection, project, 930, shown(ONE, "b" * 64))
        assert connection.execute(serials).all() == [(ONE, 920), (TWO, 915)]
        hashes = select(distributions.c.sha256).order_by(distributions.c.filename)
        assert connection.scalars(hashes).all() == ["b" * 64, "d" * 64]


def test_vanished_file_is_read_once_it_is_live_again(catalog: Catalog):
    """The read ended with a 404 while a quarantine hid the file. Either an event or only a page shows it again."""
    with catalog.write() as connection:
        by_event, by_page = enter(connection, 2)
        queued = select(distributions.c.project_id).join(read_queue, read_queue.c.distribution_id == distributions.c.id)
        for number, project in enumerate((by_event, by_page)):
            see(connection, project, 900 + number, shown(ONE))
        for number, project in enumerate((by_event, by_page), 1):
            happen(connection, project, 1_000 + number, "project quarantined", None)
            see(connection, project, 1_000 + number)
        connection.execute(read_queue.delete())
        connection.execute(distribution_data.update().values(outcome=ReadOutcome.VANISHED, error_kind="gone"))
        happen(connection, by_event, 1_003, "project quarantine cleared", None)
        recompute(connection, [by_event], {})
        assert connection.scalars(queued).all() == [by_event.id]
        see(connection, by_page, 1_002, shown(ONE))  # only the page shows it
        assert sorted(connection.scalars(queued)) == sorted([by_event.id, by_page.id])
        outcomes = connection.execute(select(distribution_data.c.outcome, distribution_data.c.error_kind)).all()
    assert outcomes == [(ReadOutcome.PENDING, None)] * 2


@pytest.mark.parametrize(("kind", "outcome"), [("gone", ReadOutcome.VANISHED), ("transient", ReadOutcome.EXHAUSTED)])
def test_exhausted_missing_file_has_vanished_once_no_page_shows_it(catalog: Catalog, kind: str, outcome: ReadOutcome):
    """A file that vanishes without an event is live until a page lacks it."""
    with catalog.write() as connection:
        [project] = enter(connection, 1)
        see(connection, project, 900, shown(ONE))
        connection.execute(read_queue.delete())
        connection.execute(distribution_data.update().values(outcome=ReadOutcome.EXHAUSTED, error_kind=kind))
        see(connection, project, 900, shown(ONE))
        assert connection.scalar(select(distribution_data.c.outcome)) == ReadOutcome.EXHAUSTED
        see(connection, project, 901)
        assert connection.scalar(select(distribution_data.c.outcome)) == outcome
        see(connection, project, 902, shown(ONE))
        is_queued = connection.scalar(select(func.count()).select_from(read_queue)) == 1
    assert is_queued == (kind == "gone")


def test_quarantined_file_known_from_events_is_read_once_a_page_shows_it(catalog: Catalog):
    with catalog.write() as connection:
        [project] = enter(connection, 1)
        see(connection, project, 900)
        happen(connection, project, 1_001, f"add source file {ONE}")
        happen(connection, project, 1_002, "project quarantined", None)
        see(connection, project, 1_002)
        outcome = select(distribution_data.c.outcome)
        assert connection.scalar(outcome) == ReadOutcome.VANISHED
        happen(connection, project, 1_003, "project quarantine cleared", None)
        see(connection, project, 1_003, shown(ONE))
        assert connection.scalar(outcome) == ReadOutcome.PENDING
        assert connection.scalar(select(func.count()).select_from(read_queue)) == 1


def test_filename_version_is_mapped_to_a_release_of_the_page(catalog: Catalog):
    """The wheel and the sdist of a release agree, and an existing mapping does not change."""
    wheel, sdist = "demo-1.0.0-py3-none-any.whl", "demo-1.0.tar.gz"
    other, unlike = "demo-2.0.0-py3-none-any.whl", "demo-3.0.0-py3-none-any.whl"
    with catalog.write() as connection:
        [project] = enter(connection, 1)
        versions = select(distributions.c.filename, releases.c.version).join_from(distributions, releases)
        see(connection, project, 900, shown(wheel))
        assert dict(connection.execute(versions).all()) == {wheel: "1.0.0"}
        files = [shown(name) for name in (wheel, sdist, other, unlike)]
        see(connection, project, 910, *files, versions=("1.0", "2.0.0", "2.0", "3", "3.0"))
        mapped = {wheel: "1.0", sdist: "1.0", other: "2.0.0", unlike: "3.0.0"}  # two releases are equal to 3.0.0
        assert dict(connection.execute(versions).all()) == mapped
        assert (wheel, CORRECTED) in [(filename, cause) for filename, _, cause in logged(connection)]
        see(connection, project, 920, *files)
        recompute(connection, [project], {})
        assert dict(connection.execute(versions).all()) == mapped
