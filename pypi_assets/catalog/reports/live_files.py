"""Lists and counts the files that are live at a serial."""

from collections.abc import Generator
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from sqlalchemy import Connection, and_, func, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.observed.followed import answered_at, follows_all
from pypi_assets.catalog.publications.dump_rows import holds_at
from pypi_assets.catalog.reads.past_generations import contents_at, has_past_generations
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    live_intervals,
    projects,
    releases,
    yanked_intervals,
)


@dataclass(frozen=True, slots=True)
class LiveFile:
    """One distribution as it was live at a serial."""

    filename: str
    project: str
    version: str
    kind: str
    sha256: str | None
    yanked: bool
    size: int | None
    uploaded_at: str | None
    requires_python: str | None
    live_since: int
    outcome: str
    url: str | None


def live_files(
    catalog: Catalog, serial: int | None = None, project: str | None = None
) -> Generator[LiveFile, None, None]:
    """Yield the distributions live at `serial` (None: the complete serial), by project, version as text and filename.

    Of one project, in any spelling, if it is named.
    """
    with catalog.read() as connection:
        at = complete_serial(connection) if serial is None else serial
        live, yanked = live_intervals, yanked_intervals
        query = (
            select(
                distributions,
                projects.c.name,
                releases.c.version,
                live.c.start.label("live_since"),
                yanked.c.start.label("yanked_since"),
                distribution_data.c.outcome,
            )
            .select_from(live)
            .join(distributions, distributions.c.id == live.c.distribution_id)
            .join(projects, projects.c.id == distributions.c.project_id)
            .join(releases, releases.c.id == distributions.c.release_id)
            .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
            .outerjoin(
                yanked,
                and_(yanked.c.distribution_id == distributions.c.id, holds_at(yanked.c.start, yanked.c.end, at)),
            )
            .where(holds_at(live.c.start, live.c.end, at), answered_at(connection, projects.c.id, at))
            .order_by(projects.c.normalized, releases.c.version, distributions.c.filename)
        )
        of_project = select(distributions.c.id).join(projects)
        if project is not None:
            is_named = projects.c.normalized == canonicalize_name(project)
            query, of_project = query.where(is_named), of_project.where(is_named)
        past = {}
        if has_past_generations(connection):
            past = contents_at(connection, at, None if project is None else connection.scalars(of_project).all())
        for row in connection.execution_options(yield_per=1_000).execute(query):
            then = past.get(row.id)
            facts = row._mapping if then is None else {**row._mapping, **then.facts, "sha256": then.sha256}
            yield LiveFile(
                filename=row.filename,
                project=row.name,
                version=row.version,
                kind=row.kind,
                sha256=facts["sha256"],
                yanked=row.yanked_since is not None,
                size=facts["size"],
                uploaded_at=facts["uploaded_at"],
                requires_python=facts["requires_python"],
                live_since=row.live_since,
                outcome=facts["outcome"],
                url=facts["url"],
            )


def count_live(connection: Connection, serial: int) -> int:
    """How many distributions of followed projects are live at `serial`."""
    live = live_intervals.c
    query = select(func.count()).select_from(live_intervals).where(holds_at(live.start, live.end, serial))
    if not follows_all(connection):
        query = query.join(distributions, distributions.c.id == live.distribution_id)
        query = query.where(answered_at(connection, distributions.c.project_id, serial))
    return int(connection.scalar(query) or 0)
