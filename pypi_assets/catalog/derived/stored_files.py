"""The files of projects as the catalog stores them: their rows and their intervals."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, select

from pypi_assets.catalog.database import storable
from pypi_assets.catalog.derived.project_state import Interval
from pypi_assets.catalog.tables import distribution_data, distributions, releases
from pypi_assets.index.models import IndexFile


class PageFacts(NamedTuple):
    """What a page shows of a file, under the names of the columns of `distributions` and of IndexFile."""

    url: str | None = None
    sha256: str | None = None
    size: int | None = None
    uploaded_at: str | None = None
    requires_python: str | None = None
    yanked_reason: str | None = None
    core_metadata: bool = False
    core_metadata_sha256: str | None = None

    @classmethod
    def of(cls, file: IndexFile) -> "PageFacts":
        """The facts of a file of a page, as they can be stored."""
        values: Iterator[Any] = (getattr(file, name) for name in cls._fields)
        return cls._make(storable(value) if isinstance(value, str) else value for value in values)


class StoredFile(NamedTuple):
    """The row of a file. `facts` come from the page of `page_serial`; without a page they are unknown."""

    id: int
    project_id: int
    filename: str
    release_id: int
    page_serial: int | None
    version: str
    outcome: str
    facts: PageFacts


def load_files(connection: Connection, project_ids: Sequence[int]) -> dict[int, dict[str, StoredFile]]:
    """The stored files of each project, by project id and filename."""
    rows = connection.execute(
        select(
            distributions.c.id,
            distributions.c.project_id,
            distributions.c.filename,
            distributions.c.release_id,
            distributions.c.page_serial,
            releases.c.version,
            distribution_data.c.outcome,
            *(distributions.c[name] for name in PageFacts._fields),
        )
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .where(distributions.c.project_id.in_(project_ids))
        .order_by(distributions.c.id)
    )
    found: dict[int, dict[str, StoredFile]] = {project_id: {} for project_id in project_ids}
    for id_, project_id, filename, release_id, page_serial, version, outcome, *facts in rows:
        file = StoredFile(id_, project_id, filename, release_id, page_serial, version, outcome, PageFacts(*facts))
        found[project_id][filename] = file
    return found


def intervals_of_projects(
    connection: Connection, table: Table, project_ids: Sequence[int]
) -> dict[int, tuple[Interval, ...]]:
    """The stored intervals of the projects' files, in order, by the id of the distribution."""
    rows = connection.execute(
        select(table.c.distribution_id, table.c.start, table.c.end)
        .join(distributions, distributions.c.id == table.c.distribution_id)
        .where(distributions.c.project_id.in_(project_ids))
        .order_by(table.c.distribution_id, table.c.start)
    )
    found: dict[int, tuple[Interval, ...]] = {}
    for distribution_id, start, end in rows:
        found[distribution_id] = (*found.get(distribution_id, ()), Interval(start, end))
    return found
