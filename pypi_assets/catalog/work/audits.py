"""Audits: find differences between the catalog and the index that no event explains.

An audit first compares the list of projects, then visits a share of the projects. At most one audit is open. Its
findings are counted when the list is compared, and again from the visits at its end.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from pypi_assets.catalog.database import Catalog, at_a_time, insert_missing
from pypi_assets.catalog.observed.sightings import newest_sightings
from pypi_assets.catalog.tables import audits, projects, sightings, visit_statuses, visits
from pypi_assets.catalog.work.visit_queue import audit_workload, projects_to_visit

_EXAMPLES = 10


class Drift(StrEnum):
    """The ways in which the catalog can differ from the index without an event."""

    UNKNOWN_PROJECT = "unknown project"
    NOT_LISTED = "project not listed"
    SERIAL_AHEAD = "serial ahead"
    SERIAL_LAGS = "serial behind"
    FILES_DIFFER = "files differ without an event"
    STATUS_CHANGED = "status changed"


@dataclass
class Findings:
    """For each cause, the number of projects and the names of a few of them."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, cause: Drift, project: str) -> None:
        self.counts[cause.value] = self.counts.get(cause.value, 0) + 1
        examples = self.examples.setdefault(cause.value, [])
        if len(examples) < _EXAMPLES:
            examples.append(project)


@dataclass(frozen=True, slots=True)
class Audit:
    """One audit. `serial` is None until its list of projects was compared, then the list's serial.

    Times are unix seconds.
    """

    id: int
    share_percent: float
    serial: int | None
    findings: Findings
    opened_at: float
    completed_at: float | None

    @property
    def workload(self) -> str:
        return audit_workload(self.id)


def open_audit(catalog: Catalog, share_percent: float) -> Audit:
    """Join the open audit, which keeps its own share, or open one."""

    def join_or_open(connection: Connection) -> Audit:
        first = {"share_percent": share_percent, "opened_at": catalog.clock(), "open": 1}
        insert_missing(connection, audits, [first])  # a unique constraint allows one open audit
        return _audit(connection.execute(select(audits).where(audits.c.open == 1)).one())

    return catalog.transact(join_or_open)


def find_open_audit(connection: Connection) -> Audit | None:
    """Return the open audit; None if there is none."""
    row = connection.execute(select(audits).where(audits.c.open == 1)).first()
    return None if row is None else _audit(row)


def lock_audit(connection: Connection, audit: Audit) -> Audit:
    """Return the current state of the audit, and lock it until the transaction ends."""
    return _audit(connection.execute(select(audits).where(audits.c.id == audit.id).with_for_update()).one())


def note_listed(connection: Connection, audit: Audit, serial: int, findings: Findings) -> Audit:
    """Record that the audit's list of projects was compared, in the transaction that queues its visits.

    This happens once: the caller has locked the audit, and its `serial` was None.
    """
    values = {"serial": serial, "findings": _to_json(findings)}
    connection.execute(update(audits).where(audits.c.id == audit.id).values(values))
    return replace(audit, serial=serial, findings=findings)


def complete_audit(catalog: Catalog, audit: Audit) -> Audit:
    """Add the findings of the visits, and close the audit."""

    def complete(connection: Connection) -> Audit:
        current = lock_audit(connection, audit)
        if current.completed_at is not None:
            return current
        findings, now = current.findings, catalog.clock()
        for cause, project in _found_by_visits(connection, audit.workload):
            findings.add(cause, project)
        values = {"findings": _to_json(findings), "completed_at": now, "open": None}
        connection.execute(update(audits).where(audits.c.id == audit.id).values(values))
        return replace(current, completed_at=now)

    return catalog.transact(complete)


def last_completed_audit(connection: Connection) -> Audit | None:
    """Return the completed audit that was opened last; None if there is none."""
    row = connection.execute(
        select(audits).where(audits.c.completed_at.is_not(None)).order_by(audits.c.id.desc()).limit(1)
    ).first()
    return None if row is None else _audit(row)


def _found_by_visits(connection: Connection, workload: str) -> Iterator[tuple[Drift, str]]:
    """Yield differences between the last page that the audit saw of each project, and the last that another visit saw.

    Both pages have the same serial, so no event lies between.
    """
    for ids in at_a_time(projects_to_visit(connection, workload)):
        rows = connection.execute(
            select(
                visits.c.project_id,
                visits.c.id,
                projects.c.name,
                visit_statuses.c.page_serial,
                visit_statuses.c.snapshot_id,
                visit_statuses.c.page_status,
            )
            .join(visits, visits.c.id == visit_statuses.c.visit_id)
            .join(projects, projects.c.id == visits.c.project_id)
            .where(
                visits.c.project_id.in_(ids), visits.c.workload == workload, visit_statuses.c.page_serial.is_not(None)
            )
            .order_by(visit_statuses.c.id)
        ).all()
        of_audit = [row.id for row in rows]
        of_others = func.coalesce(sightings.c.visit_id, 0).not_in(of_audit)
        known = newest_sightings(connection, {row.project_id for row in rows}, of_others)
        seen = {row.project_id: row for row in rows}
        for project_id, now in seen.items():
            before = known.get(project_id)
            if before is None or before.page_serial != now.page_serial:
                continue
            if before.snapshot_id != now.snapshot_id:
                yield Drift.FILES_DIFFER, now.name
            if before.page_status != now.page_status:
                yield Drift.STATUS_CHANGED, now.name


def _audit(row: Row[Any]) -> Audit:
    findings = Findings(**json.loads(row.findings)) if row.findings else Findings()
    return Audit(row.id, row.share_percent, row.serial, findings, row.opened_at, row.completed_at)


def _to_json(findings: Findings) -> str:
    return json.dumps({"counts": findings.counts, "examples": findings.examples})
