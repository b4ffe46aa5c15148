"""The files and projects that are live at a serial, by name or by hash, and names that look alike.

The *skeleton* of a normalized name has one character for all letters and digits that look alike, and no hyphens.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.utils import canonicalize_name
from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from pypi_assets.catalog.database import Catalog, read_by_index, sent_values
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.observed.followed import answered_at, follows_all
from pypi_assets.catalog.publications.dump_rows import holds_at
from pypi_assets.catalog.reads.past_generations import (
    PRESENT_REQUIRES_PYTHON,
    content_spans,
    contents_at,
    has_past_generations,
)
from pypi_assets.catalog.scopes.reading_rules import uploaded_time
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    events,
    live_intervals,
    module_roots,
    projects,
    releases,
    yanked_intervals,
)
from pypi_assets.distributions.record import DistributionKind


@dataclass(frozen=True, slots=True)
class LiveFile:
    """One distribution as it was at a serial at which it was live."""

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

    With `project`, in any spelling, only the distributions of this project.
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
                PRESENT_REQUIRES_PYTHON.label("present_requires_python"),
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
            python = row.present_requires_python if then is None else then.requires_python
            yield LiveFile(
                filename=row.filename,
                project=row.name,
                version=row.version,
                kind=row.kind,
                sha256=facts["sha256"],
                yanked=row.yanked_since is not None,
                size=facts["size"],
                uploaded_at=facts["uploaded_at"],
                requires_python=python,
                live_since=row.live_since,
                outcome=facts["outcome"],
                url=facts["url"],
            )


def count_live(connection: Connection, serial: int) -> int:
    """Return how many distributions of followed projects are live at `serial`."""
    live = live_intervals.c
    query = select(func.count()).select_from(live_intervals).where(holds_at(live.start, live.end, serial))
    if not follows_all(connection):
        query = query.join(distributions, distributions.c.id == live.distribution_id)
        query = query.where(answered_at(connection, distributions.c.project_id, serial))
    return int(connection.scalar(query) or 0)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that was live at some serial.

    `live` are its live intervals in ascending order: the first serial at which it is live, and the first at which it no
    longer is, or None.
    """

    project: str
    normalized: str
    version: str
    filename: str
    live: tuple[tuple[int, int | None], ...]


def files_with_sha256(catalog: Catalog, serial: int, sha256: str) -> list[FoundFile]:
    """Return the files with this hash (64 lower-case hex digits) that were live at `serial` or before.

    They are ordered by normalized name and filename. Intervals are as of `serial`: an interval that ends later has no
    end, and one that begins later is omitted. If a file was replaced under the same name, only the intervals count in
    which it had the content with this hash.
    """
    query = (
        select(
            projects.c.name,
            projects.c.normalized,
            releases.c.version,
            distributions.c.filename,
            live_intervals.c.start,
            live_intervals.c.end,
            distributions.c.id,
        )
        .select_from(distributions)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(live_intervals, live_intervals.c.distribution_id == distributions.c.id)
        .where(live_intervals.c.start <= serial)
        .order_by(projects.c.normalized, distributions.c.filename, live_intervals.c.start)
    )
    intervals: dict[tuple[str, str, str, str], list[tuple[int, int | None]]] = {}
    with catalog.read() as connection:
        query = query.where(answered_at(connection, projects.c.id, serial))
        spans = content_spans(connection, sha256)
        is_wanted = distributions.c.sha256 == sha256
        if spans:
            is_wanted = or_(is_wanted, distributions.c.id.in_(sorted(spans)))
        for project, normalized, version, filename, start, end, id_ in connection.execute(query.where(is_wanted)):
            for since, until in spans.get(id_, [(0, None)]):
                first, last = max(start, since), _earlier(end, until)
                if first <= serial and (last is None or first < last):
                    known = intervals.setdefault((project, normalized, version, filename), [])
                    known.append((first, None if last is None or last > serial else last))
    return [FoundFile(*file, tuple(live)) for file, live in intervals.items()]


def _earlier(one: int | None, other: int | None) -> int | None:
    """Return the lesser of two ends; None is an open end."""
    return min((end for end in (one, other) if end is not None), default=None)


def next_project(connection: Connection, least: str) -> str | None:
    """Return the least normalized name of a project that is not less than `least`, by code points."""
    query = select(func.min(projects.c.normalized)).where(projects.c.normalized >= least)
    name: str | None = connection.scalar(query)
    return name


def next_module_root(connection: Connection, least: str) -> str | None:
    """Return the least name of a top-level module that is not less than `least`, by code points."""
    query = select(func.min(module_roots.c.name)).where(module_roots.c.name >= least)
    name: str | None = connection.scalar(query)
    return name


def providers_of_root(connection: Connection, root: str, most: int) -> list[tuple[str, str, str]]:
    """Return releases with a file that has a module under the top-level name `root`.

    Each is a (normalized name, project, version). At most `most` lists of modules and `most` files are read.
    """
    lists = select(module_roots.c.list_id).where(module_roots.c.name == root).limit(most).subquery()
    files = (
        select(distribution_data.c.distribution_id)
        .join(lists, lists.c.list_id == distribution_data.c.modules_id)
        .limit(most)
        .subquery()
    )
    query = (
        select(projects.c.normalized, projects.c.name, releases.c.version)
        .select_from(files)
        .join(distributions, distributions.c.id == files.c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
    )
    return [(row.normalized, row.name, row.version) for row in connection.execute(query)]


ALIKE = {"-": "", "i": "1", "l": "1", "o": "0", "s": "5"}
"""The replacement of each character of a normalized name (PEP 503) in its skeleton."""
_ALIKE = {ord(character): replacement for character, replacement in ALIKE.items()}
_INSTALLABLE = (DistributionKind.WHEEL, DistributionKind.SDIST)
_AT_A_TIME = 1_000


@dataclass(frozen=True, slots=True)
class OfferedProject:
    """A followed project with live files. `name` is the displayed name.

    `releases` are its releases with wheels or sdists, each with whether it is yanked. `since_serial` is the serial
    since which it has always had live files. `since` is the time of that serial's event (unix seconds), or else of the
    first upload of its files; None if it is unknown.
    """

    normalized: str
    name: str
    since_serial: int
    since: float | None
    releases: dict[str, bool]


def skeleton(normalized: str) -> str:
    """Return the skeleton of a normalized name.

    >>> skeleton("pillow-heif") == skeleton("pi110w-heif") == skeleton("pillowheif")
    True
    """
    return normalized.translate(_ALIKE)


def names_by_skeleton(connection: Connection) -> Iterator[tuple[str, str]]:
    """Yield all known projects as (skeleton, normalized name), in this order. They are sorted by the database."""
    made: ColumnElement[Any] = projects.c.normalized
    for character, replacement in ALIKE.items():
        made = func.replace(made, character, replacement)
    query = select(made, projects.c.normalized).order_by(made, projects.c.normalized)
    for row in connection.execution_options(yield_per=_AT_A_TIME).execute(query):
        yield row[0], row[1]


def known_names(connection: Connection) -> Iterator[str]:
    """Yield the normalized names of all known projects, in order."""
    query = select(projects.c.normalized).order_by(projects.c.normalized)
    yield from connection.execution_options(yield_per=_AT_A_TIME).execute(query).scalars()


def offered_projects(connection: Connection, serial: int, names: Sequence[str]) -> dict[str, OfferedProject]:
    """Return the projects among `names` (normalized) that have live files at `serial`, by name."""
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


class _LiveProject:
    """The facts about one project, collected file by file."""

    def __init__(self, id_: int, normalized: str, name: str) -> None:
        self.id, self.normalized, self.name = id_, normalized, name
        self.intervals: list[tuple[int, int | None]] = []
        self.releases: dict[str, bool] = {}
        self.uploads: list[str] = []
        self.live = False

    @property
    def since(self) -> int:
        """Return the first serial of the last period in which it always had a live file."""
        start, until = self.intervals[0][0], self.intervals[0][1]
        for begin, end in self.intervals[1:]:
            if until is not None and begin > until:
                start, until = begin, end
            elif until is not None:
                until = None if end is None else max(until, end)
        return start

    @property
    def first_upload(self) -> float | None:
        """Return the time of the first upload of its live files; None if no time is known."""
        times = [time for text in self.uploads if (time := uploaded_time(text)) is not None]
        return min(times, default=None)


def _with_intervals(connection: Connection, serial: int, names: Sequence[str]) -> list[_LiveProject]:
    """Return the projects with all intervals of their files that begin up to `serial`, in order of their starts."""
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
    found: dict[int, _LiveProject] = {}
    for row in connection.execute(query):
        project = found.setdefault(row.id, _LiveProject(row.id, row.normalized, row.name))
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
    """Return the times of the events at these serials, by serial and project."""
    sent = sent_values(connection, events.c.serial, sorted(ids))
    query = select(events.c.serial, events.c.project_id, events.c.timestamp).join(sent, events.c.serial == sent.c.value)
    return {(row.serial, row.project_id): float(row.timestamp) for row in connection.execute(query)}
