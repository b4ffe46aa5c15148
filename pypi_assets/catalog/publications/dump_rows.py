"""Distributions as they were at a serial, told in the columns of the dumps: docs/formats.md.

Where a file was live and yanked is told by its intervals; what was read of it is as of now.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from packaging.utils import canonicalize_name
from sqlalchemy import ColumnElement, Select, and_, or_, select

from pypi_assets.catalog.database import Catalog, at_a_time
from pypi_assets.catalog.reads.name_lists import StoredLists, lists_with_module
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
    """Every distribution ever known as it was at `serial`, for `stream_rows`."""
    live, yanked, data = live_intervals, yanked_intervals, distribution_data
    return (
        select(
            data.c.requires_dist_id,
            data.c.modules_id,
            projects.c.name,
            projects.c.normalized,
            releases.c.version,
            distributions.c.filename,
            distributions.c.kind,
            distributions.c.url,
            distributions.c.sha256,
            distributions.c.size,
            distributions.c.uploaded_at,
            distributions.c.requires_python,
            distributions.c.yanked_reason,
            distributions.c.core_metadata_sha256,
            live.c.start,
            yanked.c.start,
            data.c.outcome,
            data.c.error_kind,
            data.c.extractor_version,
            data.c.metadata_version,
            data.c.requires_python,
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


def shard_at(serial: int, shards: int, shard: int) -> Select[tuple[object, ...]]:
    """What is live at `serial` in one of the `shards` of a full dump, for `stream_rows`."""
    width = 65_536 // shards
    return rows_at(serial).where(
        projects.c.bucket.between(shard * width, (shard + 1) * width - 1), live_intervals.c.start.is_not(None)
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
    """The rows of dumps that `query` finds, by project, version and filename; of what is not live, tombstones.

    A list is JSON already, as an `orjson.Fragment`: dumps take it as it is stored.
    """
    with catalog.read_once() as connection:
        stored = StoredLists(connection)
        result = connection.execution_options(yield_per=_ROWS_AT_A_TIME).execute(query)
        partitions: Iterator[Sequence[Sequence[Any]]] = result.partitions()
        for rows in partitions:
            contents = stored.load_json(list_id for row in rows for list_id in row[:2])
            lists: dict[object, object] = {list_id: _spliced(content) for list_id, content in contents.items()}
            lists[None] = None
            for row in rows:
                yield _row(row, lists)


def _spliced(content: bytes) -> object:
    """A stored list as JSON; one that holds half a surrogate pair, which is no JSON, as its names."""
    return json.loads(content) if rb"\ud" in content else orjson.Fragment(content)


def _row(row: Sequence[Any], lists: dict[object, object]) -> dict[str, object]:
    (
        requires_dist_id,
        modules_id,
        project,
        normalized,
        version,
        filename,
        kind,
        url,
        sha256,
        size,
        uploaded_at,
        requires_python,
        yanked_reason,
        core_metadata_sha256,
        live_since,
        yanked_since,
        outcome,
        error_kind,
        extractor_version,
        metadata_version,
        metadata_requires_python,
        stored_details,
    ) = row
    if live_since is None:
        return {
            "project": project,
            "normalized": normalized,
            "version": version,
            "filename": filename,
            "tombstone": True,
        }
    details = _details(stored_details)
    return {
        "project": project,
        "normalized": normalized,
        "version": version,
        "filename": filename,
        "tombstone": False,
        "kind": kind,
        "url": url,
        "sha256": sha256,
        "size": size,
        "uploaded_at": uploaded_at,
        "requires_python": requires_python or metadata_requires_python,
        "yanked": yanked_since is not None,
        "yanked_reason": yanked_reason if yanked_since is not None else None,
        "core_metadata_sha256": core_metadata_sha256,
        "live_since": live_since,
        "outcome": outcome,
        "error_kind": error_kind,
        "extractor_version": extractor_version,
        "metadata_version": metadata_version,
        "requires_dist": lists[requires_dist_id],
        "provides_extra": details.get("provides_extra", []),
        "modules": lists[modules_id],
        "modules_by": details.get("modules_by"),
        "requires_by": details.get("requires_by"),
        "stubs": details.get("stubs", []),
        "left_out": details.get("left_out", 0),
    }


def _details(stored: object) -> dict[str, object]:
    if not stored:
        return {}
    text = str(stored)
    details: dict[str, object] = json.loads(text) if r"\ud" in text else orjson.loads(text)
    return details
