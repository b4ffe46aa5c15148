"""The releases of a project, and what their files required at a serial, as little of them as a resolution looks at."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name
from sqlalchemy import ColumnElement, Connection, Select, Table, and_, bindparam, select

from pypi_assets.catalog.database import Catalog, read_by_index, storable
from pypi_assets.catalog.observed.followed import answered_at
from pypi_assets.catalog.publications.dump_rows import holds_at
from pypi_assets.catalog.reads.name_lists import StoredLists
from pypi_assets.catalog.reads.past_generations import contents_at, has_past_generations
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    live_intervals,
    projects,
    releases,
    yanked_intervals,
)


class KnownProject(NamedTuple):
    """A project as displayed, and the ids of all releases that it has ever had, by version."""

    id: int
    name: str
    releases: Mapping[str, int]


class _Found(NamedTuple):
    """What is selected of a live file."""

    id: int
    version: str
    filename: str
    kind: str
    sha256: str | None
    size: int | None
    uploaded_at: str | None
    shown_requires_python: str | None
    yanked_since: int | None
    outcome: str
    read_requires_python: str | None
    requires_dist_id: int | None


@dataclass
class PastReleases:
    """Reads releases as of `serial`, which is one with an answer. Statements are made once for all projects."""

    catalog: Catalog
    serial: int
    _files: Select[Any] | None = field(default=None, init=False)

    def project(self, normalized: str) -> KnownProject | None:
        """The releases of a project; None where it is not known."""
        with self.catalog.read() as connection:
            rows = connection.execute(_RELEASES, {"project": storable(canonicalize_name(normalized))}).all()
        return KnownProject(rows[0].project_id, rows[0].name, {row.version: row.id for row in rows}) if rows else None

    def files(self, project: KnownProject, versions: Collection[str]) -> list[dict[str, Any]]:
        """The files of these releases that were live at the serial, with some of the columns of dumps."""
        ids = [project.releases[version] for version in versions]
        with self.catalog.read() as connection:
            read_by_index(connection)
            if self._files is None:
                self._files = self._select(connection)
            rows = [
                _Found._make(row) for row in connection.execute(self._files, {"project": project.id, "releases": ids})
            ]
            lists = StoredLists(connection).load(row.requires_dist_id for row in rows)
            found = {row.id: _file(project.name, row, lists) for row in rows}
            if rows and has_past_generations(connection):
                for id_, content in contents_at(connection, self.serial, list(found)).items():
                    found[id_] |= _as_it_was(content.sha256, content.facts)
        return list(found.values())

    def _select(self, connection: Connection) -> Select[Any]:
        live, yanked, data = live_intervals, yanked_intervals, distribution_data
        return (
            select(
                distributions.c.id,
                releases.c.version,
                distributions.c.filename,
                distributions.c.kind,
                distributions.c.sha256,
                distributions.c.size,
                distributions.c.uploaded_at,
                distributions.c.requires_python.label("shown_requires_python"),
                yanked.c.start.label("yanked_since"),
                data.c.outcome,
                data.c.requires_python.label("read_requires_python"),
                data.c.requires_dist_id,
            )
            .select_from(distributions)
            .join(releases, releases.c.id == distributions.c.release_id)
            .join(data, data.c.distribution_id == distributions.c.id)
            .join(live, and_(live.c.distribution_id == distributions.c.id, _holds_at(live, self.serial)))
            .outerjoin(yanked, and_(yanked.c.distribution_id == distributions.c.id, _holds_at(yanked, self.serial)))
            .where(
                distributions.c.project_id == bindparam("project"),
                distributions.c.release_id.in_(bindparam("releases", expanding=True)),
                answered_at(connection, distributions.c.project_id, self.serial),
            )
            .order_by(distributions.c.filename)
        )


_RELEASES = (
    select(releases.c.project_id, projects.c.name, releases.c.id, releases.c.version)
    .join(projects, projects.c.id == releases.c.project_id)
    .where(projects.c.normalized == bindparam("project"))
)


def _holds_at(intervals: Table, serial: int) -> ColumnElement[bool]:
    return holds_at(intervals.c.start, intervals.c.end, serial)


def _file(project: str, found: _Found, lists: Mapping[int, list[str]]) -> dict[str, Any]:
    return {
        "project": project,
        "version": found.version,
        "filename": found.filename,
        "kind": found.kind,
        "sha256": found.sha256,
        "size": found.size,
        "uploaded_at": found.uploaded_at,
        "requires_python": found.shown_requires_python or found.read_requires_python,
        "yanked": found.yanked_since is not None,
        "outcome": found.outcome,
        "requires_dist": None if found.requires_dist_id is None else lists[found.requires_dist_id],
    }


def _as_it_was(sha256: str | None, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What differs where a file was replaced since by another one of its name."""
    is_unread = facts["outcome"] == Outcome.PENDING  # and never will be
    return {
        "sha256": sha256,
        "size": facts["size"],
        "uploaded_at": facts["uploaded_at"],
        "requires_python": facts["requires_python"],
        "outcome": Outcome.VANISHED if is_unread else facts["outcome"],
        "requires_dist": facts["requires_dist"],
    }
