"""Rows of the changelog that were kept aside, and that this version of the code can read: their events are stored late.
So are the meanings of actions that it knows, and that an older version did not.

What is broken is decided in `index/changelog.py`; where such rows are kept is in `catalog/observed/kept_aside.py`.
"""

import json
from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection

from pypi_assets.catalog.derived.checkpoints import discard_checkpoints
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import (
    classify_again,
    events_through,
    events_understood_now,
    has_at_least,
    store_events,
)
from pypi_assets.catalog.observed.kept_aside import KeptEntry, forget_rows, kept_rows
from pypi_assets.catalog.observed.projects import find_project, project_shard
from pypi_assets.catalog.work.visit_queue import revisit_soon
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.index.actions import NO_FILE_CHANGE, file_change
from pypi_assets.index.changelog import read_event
from pypi_assets.index.models import ChangelogEvent


def store_readable_rows(crawler: Crawler) -> int:
    """Stores the events of the rows that can be read now, and what is known now of actions that were unknown. Returns
    how many these are together.

    Revisits of the projects whose files they change are queued. A row whose serial does not fit its place stays aside.
    """
    readable = crawler.catalog.transact(_store)
    late = [event for _, event in readable]
    rows = [id_ for id_, _ in readable]
    crawler.catalog.transact(
        partial(_revisit, late=late, rows=rows)
    )  # apart, since storing events locks the state first
    return len(readable) + crawler.catalog.transact(_classify_again)


def _classify_again(connection: Connection) -> int:
    understood = events_understood_now(connection)
    _revisit(connection, understood, [])
    classify_again(connection, understood)
    return len(understood)


def _store(connection: Connection) -> list[tuple[int, ChangelogEvent]]:
    """Stores the events; returns them, each with the id of its row."""
    readable = [
        (kept.id, event)
        for kept in kept_rows(connection)
        if (event := _event_of(kept)) is not None and _fits(connection, kept.entry.after or 0, event.serial)
    ]
    for _, event in readable:
        store_events(connection, [event], event.serial - 1, event.serial)
    return readable


def _revisit(connection: Connection, late: Sequence[ChangelogEvent], rows: Sequence[int]) -> None:
    visits: dict[int, tuple[int, int, int]] = {}
    for event in late:
        project = find_project(connection, event.name)
        if project is not None and file_change(event).action not in NO_FILE_CHANGE:
            visits[project.id] = (project.id, project_shard(project.normalized), event.serial)
    discard_checkpoints(connection, list(visits))  # they lack the events
    revisit_soon(connection, list(visits.values()))
    forget_rows(connection, rows)


def _event_of(kept: KeptEntry) -> ChangelogEvent | None:
    try:
        return read_event(json.loads(kept.entry.text))
    except ValueError:  # it was cut
        return None


def _fits(connection: Connection, after: int, serial: int) -> bool:
    """Whether a row that follows the serial `after` can have this serial: no stored event lies between."""
    if not after < serial <= events_through(connection):
        return False
    return serial == after + 1 or not has_at_least(connection, SerialRange(after, serial - 1), 1)
