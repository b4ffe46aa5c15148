"""Audits: one at a time, with findings of the list and of the visits."""

import pytest
from sqlalchemy import func, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.tables import visit_statuses, visits
from pypi_assets.catalog.work.audits import (
    Drift,
    Findings,
    complete_audit,
    last_completed_audit,
    note_listed,
    open_audit,
)
from pypi_assets.catalog.work.visit_queue import queue_visits
from pypi_assets_tests.catalog.ended_visits import enter, visit


def test_an_open_audit_is_joined_and_keeps_its_share(catalog: Catalog):
    opened = open_audit(catalog, 5.0)
    assert open_audit(catalog, 50.0) == opened
    assert complete_audit(catalog, opened).completed_at is not None
    other = open_audit(catalog, 50.0)
    assert (other.id > opened.id, other.share_percent) == (True, 50.0)
    with catalog.read() as connection:
        completed = last_completed_audit(connection)
    assert completed is not None
    assert completed.id == opened.id


def test_all_projects_are_counted_and_some_are_named():
    findings = Findings()
    for number in range(25):
        findings.add(Drift.NOT_LISTED, f"project{number}")
    assert findings.counts == {"project not listed": 25}
    assert findings.examples == {"project not listed": [f"project{number}" for number in range(10)]}


@pytest.mark.parametrize("times", [1, 2])
def test_differences_of_pages_of_one_serial_are_found_once(catalog: Catalog, times: int):
    audit = open_audit(catalog, 100.0)
    with catalog.write() as connection:
        same, archived, newer, never_seen = enter(connection, 4)
        visit(connection, [same, archived, newer], "page", 1.0)
        listed = Findings()
        listed.add(Drift.UNKNOWN_PROJECT, "unknown")
        audit = note_listed(connection, audit, 1_000, listed)
        queue_visits(connection, audit.workload, [(one.id, 0, 0) for one in (same, archived, newer, never_seen)])
        for project in (same, archived, newer, never_seen):
            visit(connection, [project], "page", 2.0, audit.workload)
        for project, changed in ((archived, {"page_status": "archived"}), (newer, {"page_serial": 6})):
            latest = select(func.max(visits.c.id)).where(visits.c.project_id == project.id).scalar_subquery()
            visited = visit_statuses.c.visit_id == latest
            connection.execute(update(visit_statuses).where(visited).values(changed))
    for _ in range(times):
        found = complete_audit(catalog, audit)
    assert found.serial == 1_000
    assert found.findings.counts == {"unknown project": 1, "status changed": 1}
    assert found.findings.examples == {"unknown project": ["unknown"], "status changed": [archived.name]}
