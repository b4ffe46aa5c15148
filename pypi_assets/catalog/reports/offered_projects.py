"""What an index offers to installers, name by name, and which of its names look alike.

A *skeleton* is what is left of a normalized name when letters and digits that look alike are one, and hyphens are gone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, select

from pypi_assets.catalog.database import read_by_index, sent_values
from pypi_assets.catalog.observed.followed import answered_at
from pypi_assets.catalog.publications.dump_rows import holds_at
from pypi_assets.catalog.tables import distributions, events, live_intervals, projects, releases, yanked_intervals
from pypi_assets.catalog.work.scope_reading import uploaded_time
from pypi_assets.distributions.record import DistributionKind

ALIKE = {"-": "", "i": "1", "l": "1", "o": "0", "s": "5"}
"""By what each character of a normalized name (PEP 503) is replaced in its skeleton."""
_ALIKE = {ord(character): replacement for character, replacement in ALIKE.items()}
_INSTALLABLE = (DistributionKind.WHEEL, DistributionKind.SDIST)
_AT_A_TIME = 1_000


@dataclass(frozen=True, slots=True)
class OfferedProject:
    """A project that is followed, with live files. `name` is as displayed. `releases` are those with wheels or sdists,
    each with whether it is yanked.

    `since_serial` is the serial since which it has had live files without a break, and `since` the time of that (unix
    seconds): of the event, else of the first upload of its files. None: not known.
    """

    normalized: str
    name: str
    since_serial: int
    since: float | None
    releases: dict[str, bool]


def skeleton(normalized: str) -> str:
    """The skeleton of a normalized name.

    >>> skeleton("pillow-heif") == skeleton("pi110w-heif") == skeleton("pillowheif")
    True
    """
    return normalized.translate(_ALIKE)


def names_by_skeleton(connection: Connection) -> Iterator[tuple[str, str]]:
    """All known projects as (skeleton, normalized name), in this order. The database sorts: memory here is bounded."""
    made: ColumnElement[Any] = projects.c.normalized
    for character, replacement in ALIKE.items():
        made = func.replace(made, character, replacement)
    query = select(made, projects.c.normalized).order_by(made, projects.c.normalized)
    for row in connection.execution_options(yield_per=_AT_A_TIME).execute(query):
        yield row[0], row[1]


def known_names(connection: Connection) -> Iterator[str]:
    """The normalized names of all known projects, in order."""
    query = select(projects.c.normalized).order_by(projects.c.normalized)
    yield from connection.execution_options(yield_per=_AT_A_TIME).execute(query).scalars()


def offered_projects(connection: Connection, serial: int, names: Sequence[str]) -> dict[str, OfferedProject]:
    """Those of the projects `names` (normalized) that have live files at `serial`, by name."""
    read_by_index(connection)
    made = {project.id: project for project in _with_intervals(connection, serial, names)}
    offered = [project for project in made.values() if project.live]
    times = _event_times(connection, {project.since: project.id for project in offered})
    return {
        project.normalized: OfferedProject(
            project.normalized,
            project.name,
            project.since,
            times.get((project.since, project.id), project.first_upload),
            project.releases,
        )
        for project in offered
    }


class _Project:
    """What is gathered of one project, file by file."""

    def __init__(self, id_: int, normalized: str, name: str) -> None:
        self.id, self.normalized, self.name = id_, normalized, name
        self.intervals: list[tuple[int, int | None]] = []
        self.releases: dict[str, bool] = {}
        self.uploads: list[str] = []
        self.live = False

    @property
    def since(self) -> int:
        """The start of the last stretch of serials in which it always had a live file."""
        start, until = self.intervals[0][0], self.intervals[0][1]
        for begin, end in self.intervals[1:]:
            if until is not None and begin > until:
                start, until = begin, end
            elif until is not None:
                until = None if end is None else max(until, end)
        return start

    @property
    def first_upload(self) -> float | None:
        """The time of the first upload of its live files, None where none is known."""
        times = [time for text in self.uploads if (time := uploaded_time(text)) is not None]
        return min(times, default=None)


def _with_intervals(connection: Connection, serial: int, names: Sequence[str]) -> list[_Project]:
    """The projects with all intervals of their files that begin up to `serial`, in order of their starts."""
    live, yanked, files = live_intervals, yanked_intervals, distributions
    named = sent_values(connection, projects.c.normalized, names)
    is_yanked = and_(yanked.c.distribution_id == files.c.id, holds_at(yanked.c.start, yanked.c.end, serial))
    query = (
        select(
            projects.c.id,
            projects.c.normalized,
            projects.c.name,
            releases.c.version,
            files.c.kind,
            files.c.uploaded_at,
            live.c.start,
            live.c.end,
            yanked.c.start.label("yanked_since"),
        )
        .select_from(named)
        .join(projects, projects.c.normalized == named.c.value)
        .join(files, files.c.project_id == projects.c.id)
        .join(releases, releases.c.id == files.c.release_id)
        .join(live, live.c.distribution_id == files.c.id)
        .outerjoin(yanked, is_yanked)
        .where(live.c.start <= serial, answered_at(connection, projects.c.id, serial))
        .order_by(projects.c.id, live.c.start)
    )
    found: dict[int, _Project] = {}
    for row in connection.execute(query):
        project = found.setdefault(row.id, _Project(row.id, row.normalized, row.name))
        project.intervals.append((row.start, row.end))
        if row.end is not None and row.end <= serial:
            continue
        project.live = True
        if row.uploaded_at:
            project.uploads.append(row.uploaded_at)
        if row.kind in _INSTALLABLE:
            stays = row.yanked_since is not None
            project.releases[row.version] = project.releases.get(row.version, True) and stays
    return list(found.values())


def _event_times(connection: Connection, ids: dict[int, int]) -> dict[tuple[int, int], float]:
    """The times of the events at these serials, by serial and project."""
    sent = sent_values(connection, events.c.serial, sorted(ids))
    query = select(events.c.serial, events.c.project_id, events.c.timestamp).join(sent, events.c.serial == sent.c.value)
    return {(row.serial, row.project_id): float(row.timestamp) for row in connection.execute(query)}
