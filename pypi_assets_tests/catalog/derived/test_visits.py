"""Visits are numbered within their project, are never updated, and end if their worker died."""

import pytest
from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived import visits as visits_module
from pypi_assets.catalog.derived.visits import (
    ABANDONED_VISIT,
    UnexplainedPageError,
    VisitStatus,
    VisitVerdict,
    begin_visits,
    parts_of_work,
    record_verdicts,
)
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.catalog.tables import live_intervals, projects, sightings, visit_statuses, visits
from pypi_assets.index.models import ChangelogEvent, IndexFile, ProjectPage
from pypi_assets_tests.catalog.ended_visits import enter, visit


def test_visits_are_numbered_per_project_and_other_workloads_continue(catalog: Catalog):
    with catalog.write() as connection:
        one, other = enter(connection, 2)
        assert begin_visits(connection, [], "full", "crawl:1", 1.0) == {}
        begin_visits(connection, [one.id, other.id], "full", "crawl:1", 1.0)
        begin_visits(connection, [one.id], "incremental", "range:0-5", 2.0)
        ids = begin_visits(connection, [one.id], "full", "crawl:1", 3.0)
        rows = connection.execute(
            select(visits.c.visit, visits.c.workload, visit_statuses.c.status, visit_statuses.c.text)
            .join(visit_statuses, visit_statuses.c.visit_id == visits.c.id)
            .where(visits.c.project_id == one.id)
            .order_by(visits.c.visit, visit_statuses.c.id)
        ).all()
        latest = connection.scalar(select(visits.c.visit).where(visits.c.id == ids[one.id]))
    assert rows == [
        (1, "crawl:1", VisitStatus.ONGOING, None),
        (1, "crawl:1", VisitStatus.FAILED, ABANDONED_VISIT),
        (2, "range:0-5", VisitStatus.ONGOING, None),
        (3, "crawl:1", VisitStatus.ONGOING, None),
    ]
    assert latest == 3


def test_stale_page_is_stored_with_the_failure(catalog: Catalog):
    with catalog.write() as connection:
        [one] = enter(connection, 1)
        visit(connection, [one], "old page", 1.0)
        rows = connection.execute(
            select(visit_statuses.c.status, visit_statuses.c.page_serial, visit_statuses.c.text).order_by(
                visit_statuses.c.id
            )
        ).all()
    assert rows == [
        (VisitStatus.ONGOING, None, None),
        (VisitStatus.FULL, 5, None),
        (VisitStatus.PARTIAL, None, "stale"),
    ]


def test_only_equal_or_newer_page_changes_the_stored_project(catalog: Catalog):
    with catalog.write() as connection:
        [one] = enter(connection, 1)
        found = []
        for serial, status in ((5, "active"), (7, "archived"), (6, "active"), (7, "quarantined")):
            [visit_id] = begin_visits(connection, [one.id], "full", "crawl:1", 1.0).values()
            page = ProjectPage(one.name, serial, status, ())
            record_verdicts(connection, [VisitVerdict(visit_id, one, VisitStatus.FULL, page)], 2.0)
            found.append(tuple(connection.execute(select(projects.c.page_serial, projects.c.status)).one()))
    assert found == [(5, "active"), (7, "archived"), (7, "archived"), (7, "quarantined")]


def test_page_with_a_display_name_counts_at_its_serial(catalog: Catalog):
    with catalog.write() as connection:
        [one] = enter(connection, 1)
        normalized = one.normalized
        for serial, name in ((900, normalized.replace("-", ".")), (901, None), (800, normalized.upper()), (902, "x")):
            [visit_id] = begin_visits(connection, [one.id], "full", "crawl:1", 1.0).values()
            page = ProjectPage(normalized, serial, "active", (), name=name)
            record_verdicts(connection, [VisitVerdict(visit_id, one, VisitStatus.FULL, page)], 2.0)
        found = connection.execute(select(projects.c.name, projects.c.named_at).where(projects.c.id == one.id)).one()
    assert found == (normalized.replace("-", "."), 900)


def test_unexplained_page_is_rejected_until_events_are_stored(catalog: Catalog):
    """Its early changes then count from their event, and not from the page's own serial."""
    file = IndexFile("demo-1.0.zip", "https://example.org/d", "a" * 64, 1, None, None, False, None, False, None)
    with catalog.write() as connection:
        [one] = enter(connection, 1)
    seen_at = 1_001
    with catalog.write() as connection:
        event = ChangelogEvent(one.name, "1.0", 0, f"add source file {file.filename}", seen_at)
        store_events(connection, [event], 1_000, seen_at)
        [visit_id] = begin_visits(connection, [one.id], "full", "crawl:1", 1.0).values()
    verdict = VisitVerdict(visit_id, one, VisitStatus.FULL, ProjectPage(one.normalized, seen_at, "active", ()))
    with pytest.raises(UnexplainedPageError) as error, catalog.write() as connection:
        record_verdicts(connection, [verdict], 2.0, is_explained=False)
    assert error.value.project_ids == {one.id}
    with catalog.write() as connection:
        removed = ChangelogEvent(one.name, "1.0", 0, f"remove file {file.filename}", 1_005)
        store_events(connection, [removed], seen_at, 1_005)
        record_verdicts(connection, [verdict], 2.0, shows_through=1_005)
        live = connection.execute(select(live_intervals.c.start, live_intervals.c.end)).all()
        assert connection.scalar(select(sightings.c.shows_through)) == 1_005
    assert live == [(seen_at, 1_005)]


def test_projects_are_recomputed_in_batches_of_bounded_work(catalog: Catalog):
    with catalog.write() as connection, pytest.MonkeyPatch.context() as patch:
        patch.setattr(visits_module, "_WORK_AT_ONCE", 5)
        found = [project.id for project in enter(connection, 6)]
        name = connection.scalar(select(projects.c.name).where(projects.c.id == found[1]))
        many = [ChangelogEvent(name, None, 0, "docupdate", serial) for serial in range(1_001, 1_010)]
        store_events(connection, many, 1_000, 1_010)
        assert parts_of_work(connection, found) == [found[:1], found[1:2], found[2:]]
        assert parts_of_work(connection, []) == []
