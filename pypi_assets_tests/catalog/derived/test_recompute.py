"""Rows of projects follow from events and pages: only what differs is written, and it is logged once."""

from sqlalchemy import Connection, func, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.derived.recompute import recompute
from pypi_assets.catalog.derived.visits import Verdict, VisitStatus, begin_visits, record_verdicts
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.catalog.observed.projects import Project, Selection
from pypi_assets.catalog.reads.read_outcomes import Outcome
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


def see(connection: Connection, project: Project, serial: int, *files: IndexFile) -> None:
    """A visit sees a page of `serial` with `files`."""
    [visit_id] = begin_visits(connection, [project.id], "full", "crawl:1", 1.0).values()
    page = ProjectPage(project.name, serial, "active", files)
    record_verdicts(connection, [Verdict(visit_id, project, VisitStatus.FULL, page)], 2.0)


def happen(connection: Connection, project: Project, serial: int, action: str, version: str = "1.0") -> None:
    event = ChangelogEvent(project.name, version, serial, action, serial)
    store_events(connection, [event], serial - 1, serial, Selection())


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


def test_events_and_pages_lead_to_rows_intervals_changes_and_reads(catalog: Catalog):
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
        (GONE, "0.1", "sdist", Outcome.VANISHED),
        (ONE, "1.0", "sdist", Outcome.PENDING),
        (TWO, "2.0", "wheel", Outcome.PENDING),
    ]


def test_what_is_recomputed_without_news_writes_and_logs_nothing(catalog: Catalog):
    with catalog.write() as connection:
        [project] = enter(connection, 1)
        happen(connection, project, 1_001, f"add source file {ONE}")
        see(connection, project, 1_001, shown(ONE), shown(TWO))
        before = (intervals(connection, live_intervals), logged(connection))
        recompute(connection, [project], {})
        see(connection, project, 1_001, shown(ONE), shown(TWO))
        assert (intervals(connection, live_intervals), logged(connection)) == before
        assert connection.scalar(select(func.count()).select_from(distributions)) == 2


def test_other_bytes_under_a_name_are_read_again_and_a_file_without_an_event_ends_unexplained(catalog: Catalog):
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
