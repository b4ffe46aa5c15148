"""Distributions as they were at a serial, told in the columns of the dumps: docs/formats.md.

Where a file was live and yanked is told by its intervals; what was read of it is as of now.
"""

import json
from collections.abc import Iterator

from packaging.utils import canonicalize_name
from sqlalchemy import ColumnElement, Select, and_, or_, select

from pypi_assets.catalog.database import Catalog, at_a_time
from pypi_assets.catalog.lists import StoredLists, lists_with_module
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    live_intervals,
    projects,
    releases,
    yanked_intervals,
)

_ROWS_AT_A_TIME = 1_000


def holds_at(start: ColumnElement[int], end: ColumnElement[int], serial: int) -> ColumnElement[bool]:
    """Whether an interval from `start` to `end` holds at `serial`."""
    return and_(start <= serial, or_(end.is_(None), end > serial))


def rows_at(serial: int) -> Select[tuple[object, ...]]:
    """Every distribution ever known as it was at `serial`, for `stream_rows`; `live_since` is null where not live."""
    live, yanked, data = live_intervals, yanked_intervals, distribution_data
    return (
        select(
            projects.c.name,
            projects.c.normalized,
            releases.c.version,
            distributions,
            live.c.start.label("live_since"),
            yanked.c.start.label("yanked_since"),
            data.c.outcome,
            data.c.error_kind,
            data.c.extractor_version,
            data.c.metadata_version,
            data.c.requires_python.label("metadata_requires_python"),
            data.c.requires_dist_id,
            data.c.modules_id,
            data.c.details,
        )
        .select_from(distributions)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(data, data.c.distribution_id == distributions.c.id)
        .outerjoin(live, and_(live.c.distribution_id == distributions.c.id, holds_at(live.c.start, live.c.end, serial)))
        .outerjoin(
            yanked, and_(yanked.c.distribution_id == distributions.c.id, holds_at(yanked.c.start, yanked.c.end, serial))
        )
        .order_by(projects.c.normalized, releases.c.version, distributions.c.filename)
    )


def project_rows_at(catalog: Catalog, serial: int, project: str) -> Iterator[dict[str, object]]:
    """The rows of a project's distributions that are live at `serial`."""
    query = rows_at(serial).where(
        projects.c.normalized == canonicalize_name(project), live_intervals.c.start.is_not(None)
    )
    yield from stream_rows(catalog, query)


def providing_releases(catalog: Catalog, serial: int, module: str) -> Iterator[tuple[str, str, str]]:
    """The releases with a file live at `serial` that provides `module`: (normalized name, project, version).

    A release comes once for each list of modules that its files have.
    """
    live, data = live_intervals, distribution_data
    query = (
        select(projects.c.normalized, projects.c.name, releases.c.version)
        .select_from(data)
        .join(live, live.c.distribution_id == data.c.distribution_id)
        .join(distributions, distributions.c.id == data.c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .where(holds_at(live.c.start, live.c.end, serial))
        .distinct()
    )
    with catalog.read() as connection:
        for lists in at_a_time(list(lists_with_module(connection, module))):
            of_lists = query.where(data.c.modules_id.in_(lists))
            for row in connection.execution_options(yield_per=_ROWS_AT_A_TIME).execute(of_lists):
                yield row.normalized, row.name, row.version


def stream_rows(catalog: Catalog, query: Select[tuple[object, ...]]) -> Iterator[dict[str, object]]:
    """The rows of dumps that `query` finds, by project, version and filename; of what is not live, tombstones."""
    with catalog.read() as connection:
        stored = StoredLists(connection)
        result = connection.execution_options(yield_per=_ROWS_AT_A_TIME).execute(query)
        for rows in result.mappings().partitions():
            lists = stored.load(row[column] for row in rows for column in ("requires_dist_id", "modules_id"))
            for row in rows:
                yield _row(dict(row), lists)


def _row(row: dict[str, object], lists: dict[int, list[str]]) -> dict[str, object]:
    head: dict[str, object] = {
        "project": row["name"],
        "normalized": row["normalized"],
        "version": row["version"],
        "filename": row["filename"],
        "tombstone": row["live_since"] is None,
    }
    if head["tombstone"]:
        return head
    details = json.loads(str(row["details"] or "{}"))
    requires_dist, modules = (row["requires_dist_id"], row["modules_id"])
    return head | {
        "kind": row["kind"],
        "url": row["url"],
        "sha256": row["sha256"],
        "size": row["size"],
        "uploaded_at": row["uploaded_at"],
        "requires_python": row["requires_python"] or row["metadata_requires_python"],
        "yanked": row["yanked_since"] is not None,
        "yanked_reason": row["yanked_reason"] if row["yanked_since"] is not None else None,
        "core_metadata_sha256": row["core_metadata_sha256"],
        "live_since": row["live_since"],
        "outcome": row["outcome"],
        "error_kind": row["error_kind"],
        "extractor_version": row["extractor_version"],
        "metadata_version": row["metadata_version"],
        "requires_dist": lists[requires_dist] if isinstance(requires_dist, int) else None,
        "provides_extra": details.get("provides_extra", []),
        "modules": lists[modules] if isinstance(modules, int) else None,
        "modules_by": details.get("modules_by"),
        "requires_by": details.get("requires_by"),
        "stubs": details.get("stubs", []),
        "left_out": details.get("left_out", 0),
    }
