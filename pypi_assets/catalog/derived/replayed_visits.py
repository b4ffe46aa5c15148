"""Replay visits of the journal into a catalog that has no other writer.

A record has the whole visit, so only the last one counts. It has the difference of the page's files from an earlier
page of the project. If the journal lacks that page, the snapshot is stored without its files.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from pypi_assets.catalog.database import at_a_time, sent_rows, storable, upsert
from pypi_assets.catalog.derived.visits import SUCCESSFUL, VisitStatus
from pypi_assets.catalog.observed.snapshots import (
    Entries,
    content_of,
    find_snapshots,
    read_entries,
    store_known_snapshots,
)
from pypi_assets.catalog.tables import visit_statistics, visit_statuses, visits

Record = Mapping[str, Any]
VISIT_FIELDS = (
    *("visit", "workload", "visit_kind", "started_at", "rulesets", "statuses"),
    *("snapshot", "files", "base", "gone", "changed"),
)
"""The fields of a record that describe the visit."""


VisitRecords = Mapping[tuple[str, int], Record]
"""Records by normalized name and number of the visit, in the order of the journal."""


def enter_pages(connection: Connection, records: VisitRecords, ids: Mapping[str, int]) -> None:
    """Store the pages that these visits have seen. `ids` has the projects' ids."""
    if records:
        _enter_snapshots(connection, _by_project(records, ids))


def enter_visits(connection: Connection, records: VisitRecords, ids: Mapping[str, int]) -> None:
    """Store these visits, whose pages are stored. `ids` has the projects' ids.

    The statistics of the projects follow from their visits.
    """
    if not records:
        return
    by_project = _by_project(records, ids)
    known = _visit_ids(connection, by_project)
    new = {
        id_: [record for record in visits_of_project if (id_, record["visit"]) not in known]
        for id_, visits_of_project in by_project.items()
    }
    _count(connection, {id_: visits_of_project for id_, visits_of_project in new.items() if visits_of_project})
    _enter_rows(connection, by_project, new, known)


def _by_project(records: VisitRecords, ids: Mapping[str, int]) -> dict[int, list[Record]]:
    by_project: dict[int, list[Record]] = defaultdict(list)
    for (normalized, _), record in records.items():
        by_project[ids[normalized]].append(record)
    return by_project


def _visit_ids(connection: Connection, by_project: Mapping[int, Sequence[Record]]) -> dict[tuple[int, int], int]:
    """Return the ids of those visits that are stored, by project id and number."""
    c = visits.c
    wanted = sorted((id_, record["visit"]) for id_, records in by_project.items() for record in records)
    sent, is_sent = sent_rows(connection, (c.project_id, c.visit), wanted)
    stored = connection.execute(select(c.id, c.project_id, c.visit).select_from(sent).join(visits, is_sent))
    return {(row.project_id, row.visit): row.id for row in stored}


def _enter_snapshots(connection: Connection, by_project: Mapping[int, Sequence[Record]]) -> None:
    """Store the pages of these visits.

    The first new pages of many projects are stored together, then their second ones: each is stored as a difference
    from the project's page before it.
    """
    for projects in at_a_time(sorted(by_project)):
        seen = {id_: [one for one in by_project[id_] if one["snapshot"] is not None] for id_ in projects}
        files = {record["snapshot"]: record["files"] or 0 for records in seen.values() for record in records}
        new = {id_: _contents(connection, records) for id_, records in seen.items()}
        newest: dict[int, int] = {}
        while new:
            contents: dict[int, tuple[str, bytes]] = {}
            after: dict[bytes, int] = {}
            for project_id, pages in list(new.items()):
                if (page := next(pages, None)) is None:
                    del new[project_id]
                    continue
                sha256, content, base_id = page
                contents[project_id] = sha256, content
                if before := newest.get(project_id, base_id):
                    after[content] = before
            stored = {sha256: files[sha256] for sha256, _ in contents.values()}
            found = store_known_snapshots(connection, stored, (content for _, content in contents.values()), after)
            newest |= {project_id: found[sha256] for project_id, (sha256, _) in contents.items()}
        store_known_snapshots(connection, files, (), {})


def _contents(connection: Connection, seen: Sequence[Record]) -> Iterator[tuple[str, bytes, int]]:
    """Yield hash and content of a project's new pages, each with the id of the project's last stored snapshot, or 0.

    Pages whose base is unknown are skipped, and pages that do not have the hash that names them.
    """
    new = [record for record in seen if record["base"] != record["snapshot"]]
    if not new:
        return
    base_ids = find_snapshots(connection, {record["base"] for record in new if record["base"] is not None})
    stored = read_entries(connection, base_ids.values())
    known: dict[str, Entries] = {sha256: stored[id_] for sha256, id_ in base_ids.items() if id_ in stored}
    after = max(stored, default=0)
    for record in new:
        base = {} if record["base"] is None else known.get(record["base"])
        if base is None:
            continue
        gone = frozenset(record["gone"])
        entries = {name: entry for name, entry in base.items() if name not in gone}
        entries |= {name: (sha256, yanked) for name, sha256, yanked in record["changed"]}
        content = content_of(entries)
        if hashlib.sha256(content).hexdigest() == record["snapshot"]:
            known[record["snapshot"]] = entries
            yield record["snapshot"], content, after


def _enter_rows(
    connection: Connection,
    by_project: Mapping[int, Sequence[Record]],
    new: Mapping[int, Sequence[Record]],
    known: Mapping[tuple[int, int], int],
) -> None:
    """Replace the statuses of the `known` visits, and add the `new` visits. Only deletions lock rows."""
    for chunk in at_a_time(sorted(known.values())):
        connection.execute(delete(visit_statuses).where(visit_statuses.c.visit_id.in_(chunk)))
    rows = [
        {
            "project_id": project_id,
            "visit": record["visit"],
            "kind": record["visit_kind"],
            "workload": record["workload"],
            "started_at": record["started_at"],
            "rulesets": record["rulesets"],
        }
        for project_id, records in new.items()
        for record in records
    ]
    if rows:
        connection.execute(insert(visits), rows)
    visit_ids = _visit_ids(connection, by_project)
    pages = {record["snapshot"] for records in by_project.values() for record in records} - {None}
    snapshot_ids = find_snapshots(connection, pages)
    statuses = [
        status
        for project_id, records in by_project.items()
        for record in records
        for status in _statuses(record, visit_ids[project_id, record["visit"]], snapshot_ids)
    ]
    connection.execute(insert(visit_statuses), statuses)


def _statuses(record: Record, visit_id: int, snapshot_ids: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    snapshot_id = None if record["snapshot"] is None else snapshot_ids[record["snapshot"]]
    for status in record["statuses"]:
        has_ended = status["status"] not in {VisitStatus.CREATED, VisitStatus.ONGOING}
        texts = {name: None if status.get(name) is None else storable(status[name]) for name in ("page_status", "text")}
        yield {
            "visit_id": visit_id,
            "at": status["at"],
            "status": status["status"],
            "page_serial": status.get("page_serial"),
            "seen_through": status.get("seen_through"),
            "snapshot_id": None if status.get("seen_through") is None else snapshot_id,
            **texts,
            "logged_serial": record["serial"] if has_ended else None,
        }


def _count(connection: Connection, by_project: Mapping[int, Sequence[Record]]) -> None:
    """Add these visits to the statistics of their projects."""
    c = visit_statistics.c
    columns = ("last_visited_at", "last_successful_at", "last_outcome", "successive_outcomes")
    known: dict[int, dict[str, Any]] = {}
    for ids in at_a_time(sorted(by_project)):
        query = select(c.project_id, *(c[name] for name in columns)).where(c.project_id.in_(ids))
        known |= {row.project_id: row._asdict() for row in connection.execute(query)}
    rows = []
    for project_id, records in sorted(by_project.items()):
        row: dict[str, Any] = dict.fromkeys(columns) | {"successive_outcomes": 0} | known.get(project_id, {})
        for record in sorted(records, key=lambda record: int(record["visit"])):
            last = record["statuses"][-1]
            is_same = row["last_outcome"] == last["status"]
            row["successive_outcomes"] = row["successive_outcomes"] + 1 if is_same else 1
            row["last_visited_at"], row["last_outcome"] = last["at"], last["status"]
            if last["status"] in SUCCESSFUL:
                row["last_successful_at"] = last["at"]
        rows.append(row | {"project_id": project_id})
    upsert(connection, visit_statistics, rows, key=("project_id",), update=columns)
