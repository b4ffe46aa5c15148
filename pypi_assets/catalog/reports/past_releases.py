"""The facts about projects at a serial that the ranking of owners and the resolver need, and no others."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from isal import isal_zlib
from packaging.utils import canonicalize_name
from sqlalchemy import ColumnElement, Connection, Select, Table, Text, and_, case, cast, exists, func, or_, select

from pypi_assets.catalog.database import Catalog, at_a_time, bare_rows, read_by_index, sent_later, storable
from pypi_assets.catalog.observed.followed import answered_at
from pypi_assets.catalog.publications.dump_rows import holds_at, requiring_releases, rows_at, stream_rows
from pypi_assets.catalog.reads.past_generations import (
    PRESENT_REQUIRES_PYTHON,
    PastGeneration,
    contents_at,
    counts_later,
    has_past_generations,
    rejected_then,
)
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reads.stored_contents import StoredLists
from pypi_assets.catalog.reads.stored_json import from_json
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    live_intervals,
    module_roots,
    name_lists,
    past_generations,
    projects,
    releases,
    required_names,
    yanked_intervals,
)
from pypi_assets.index.models import LONGEST_NAME

_ROWS_AT_A_TIME = 1_000


class PastLiveFile(NamedTuple):
    """A file that is live at a serial, with the start of its live interval, and whether it was yanked then.

    Installers reject the file if it `is_rejected`.
    """

    distribution_id: int
    normalized: str
    filename: str
    version: str
    live_since: int
    yanked: bool
    is_rejected: bool


def lists_with_modules(connection: Connection, modules: Collection[str]) -> dict[str, list[int]]:
    """Return the ids of the lists that contain each of the modules. Each list is read once for all modules."""
    wanted: dict[str, set[str]] = {}
    for module in modules:
        wanted.setdefault(storable(module.partition(".")[0][:LONGEST_NAME]), set()).add(module)
    found: dict[str, list[int]] = {module: [] for module in modules}
    for root, of_root in wanted.items():
        ids = connection.scalars(select(module_roots.c.list_id).where(module_roots.c.name == root)).all()
        for chunk in at_a_time(ids):
            for list_id, names in StoredLists(connection).load(chunk).items():
                for module in of_root.intersection(names):
                    found[module].append(list_id)
    return found


def live_files_of(catalog: Catalog, serial: int, normalized: Iterable[str]) -> Iterator[PastLiveFile]:
    """Yield the files of these projects that are live at `serial`."""
    live, yanked = live_intervals, yanked_intervals
    query = (
        select(
            distributions.c.id,
            projects.c.normalized,
            distributions.c.filename,
            releases.c.version,
            live.c.start,
            yanked.c.start.label("yanked"),
            distribution_data.c.is_rejected,
        )
        .select_from(projects)
        .join(distributions, distributions.c.project_id == projects.c.id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .join(live, (live.c.distribution_id == distributions.c.id) & holds_at(live.c.start, live.c.end, serial))
        .outerjoin(
            yanked,
            (yanked.c.distribution_id == distributions.c.id) & holds_at(yanked.c.start, yanked.c.end, serial),
        )
    )
    with catalog.read() as connection:
        query = query.where(answered_at(connection, projects.c.id, serial))
        read_by_index(connection)
        wanted = sorted(normalized)
        was = rejected_then(connection, serial, wanted)
        for chunk in at_a_time(wanted):
            of_chunk = query.where(projects.c.normalized.in_(chunk))
            for row in connection.execution_options(yield_per=_ROWS_AT_A_TIME).execute(of_chunk):
                is_rejected = was.get(row.id, row.is_rejected)
                is_yanked = row.yanked is not None
                yield PastLiveFile(row.id, row.normalized, row.filename, row.version, row.start, is_yanked, is_rejected)


def rows_of_files(catalog: Catalog, serial: int, distribution_ids: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Yield the rows of dumps for these files, if they are live at `serial`."""
    query = rows_at(catalog, serial).where(live_intervals.c.start.is_not(None))
    for chunk in at_a_time(sorted(distribution_ids)):
        yield from stream_rows(catalog, query.where(distributions.c.id.in_(chunk)), serial)


def rows_of_projects(catalog: Catalog, serial: int, normalized: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of dumps for the files of these projects that are live at `serial`."""
    query = rows_at(catalog, serial).where(live_intervals.c.start.is_not(None))
    for chunk in at_a_time(sorted(normalized)):
        yield from stream_rows(catalog, query.where(projects.c.normalized.in_(chunk)), serial)


def count_dependents(catalog: Catalog, serial: int, normalized: Iterable[str]) -> dict[str, int]:
    """Return how many projects have a file live at `serial` that requires each of these projects.

    Projects that are not required are missing from the result.
    """
    names = sorted(normalized)
    live, data, required = live_intervals, distribution_data, required_names
    query = (
        select(required.c.name, func.count(distributions.c.project_id.distinct()))
        .select_from(required)
        .join(data, data.c.requires_dist_id == required.c.list_id)
        .join(live, live.c.distribution_id == data.c.distribution_id)
        .join(distributions, distributions.c.id == data.c.distribution_id)
        .where(
            holds_at(live.c.start, live.c.end, serial),
            ~counts_later(data.c.distribution_id, serial),
            ~data.c.is_rejected,
        )
        .group_by(required.c.name)
    )
    with catalog.read() as connection:
        if not has_past_generations(connection):
            query = query.where(answered_at(connection, distributions.c.project_id, serial))
            read_by_index(connection)
            return {
                name: count
                for chunk in at_a_time(names)
                for name, count in connection.execute(query.where(required.c.name.in_(chunk)))
            }
    counted = ((name, {row[0] for row in requiring_releases(catalog, serial, name)}) for name in names)
    return {name: len(found) for name, found in counted if found}


_RARE = ("refusals", "installed_metadata")
"""Details that only few records have."""


@dataclass(frozen=True, slots=True)
class PastProject:
    """A project: its displayed name, and the ids of the live files of each of its releases, by version.

    The ids are a text with commas between them, since the files of most releases are never read. `lists` caches the
    lists of names that were read.
    """

    name: str
    releases: Mapping[str, str]
    lists: dict[int, list[str]] = field(default_factory=dict, repr=False)


class _LiveFileRow(NamedTuple):
    """The selected columns of a live file."""

    id: int
    version: str
    filename: str
    kind: str
    sha256: str | None
    size: int | None
    uploaded_at: str | None
    first_seen_at: str | None
    requires_python: str | None
    is_yanked: bool
    outcome: str
    list_id: int | None
    list_content: bytes
    details: str | None
    any_was_replaced: bool


class _Statement(NamedTuple):
    """A statement that is built once, with the function that encodes the values it is executed for."""

    query: Select[Any]
    encode: Callable[[Sequence[Any]], Any]


@dataclass
class PastReleases:
    """A reader of releases as of `serial`, which must have an answer. It reads many projects with one statement.

    Its statements are built once.
    """

    catalog: Catalog
    serial: int
    _releases: _Statement | None = field(default=None, init=False)
    _files: _Statement | None = field(default=None, init=False)

    def projects(self, normalized: Iterable[str]) -> dict[str, PastProject]:
        """Return the releases of these projects, by normalized name. Projects without a live file are missing."""
        wanted = {storable(canonicalize_name(name)): name for name in normalized}
        found: dict[str, PastProject] = {}
        releases: defaultdict[str, dict[str, str]] = defaultdict(dict)
        with self.catalog.read() as connection:
            read_by_index(connection)
            if self._releases is None:
                self._releases = self._select_releases(connection)
            for chunk in at_a_time(sorted(wanted)):
                parameters = {"projects": self._releases.encode(chunk)}
                for project, name, version, ids in bare_rows(connection, self._releases.query, parameters):
                    if project not in found:
                        found[project] = PastProject(name, releases[project])
                    releases[project][version] = ids
        return {wanted[project]: one for project, one in found.items()}

    def files(self, wanted: Sequence[tuple[PastProject, Collection[str]]]) -> list[list[dict[str, Any]]]:
        """Return the files of the given versions of each project, by filename, with some of the columns of dumps."""
        places: dict[int, int] = {}
        for place, (project, versions) in enumerate(wanted):
            places |= {int(id_): place for version in versions for id_ in project.releases[version].split(",")}
        found: dict[int, dict[str, Any]] = {}
        with self.catalog.read() as connection:
            read_by_index(connection)
            if self._files is None:
                self._files = self._select_files(connection)
            was_replaced = False
            for ids in at_a_time(sorted(places)):
                for values in bare_rows(connection, self._files.query, {"files": self._files.encode(ids)}):
                    row = _LiveFileRow._make(values)
                    found[row.id] = _file(wanted[places[row.id]][0], row)
                    was_replaced = was_replaced or row.any_was_replaced
            if was_replaced:
                for id_, content in contents_at(connection, self.serial, list(found)).items():
                    found[id_] |= _as_it_was(content)
        of_projects: list[list[dict[str, Any]]] = [[] for _ in wanted]
        for id_, file in sorted(found.items(), key=lambda one: one[1]["filename"]):
            of_projects[places[id_]].append(file)
        return of_projects

    def _select_releases(self, connection: Connection) -> _Statement:
        sent, encode = sent_later(connection, projects.c.normalized, "projects")
        live = live_intervals
        is_live = and_(live.c.distribution_id == distributions.c.id, _holds_at(live, self.serial))
        ids = func.aggregate_strings(cast(distributions.c.id, Text), ",")
        query = (
            select(projects.c.normalized, projects.c.name, releases.c.version, ids)
            .select_from(sent)
            .join(projects, projects.c.normalized == sent.c.value)
            .join(distributions, distributions.c.project_id == projects.c.id)
            .join(releases, releases.c.id == distributions.c.release_id)
            .join(live, is_live)
            .where(answered_at(connection, projects.c.id, self.serial))
            .group_by(projects.c.normalized, projects.c.name, releases.c.id, releases.c.version)
        )
        return _Statement(query, encode)

    def _select_files(self, connection: Connection) -> _Statement:
        sent, encode = sent_later(connection, distributions.c.id, "files")
        yanked, data = yanked_intervals, distribution_data
        query = (
            select(
                distributions.c.id,
                releases.c.version,
                distributions.c.filename,
                distributions.c.kind,
                distributions.c.sha256,
                distributions.c.size,
                distributions.c.uploaded_at,
                distributions.c.first_seen_at,
                PRESENT_REQUIRES_PYTHON,
                yanked.c.start.is_not(None),
                data.c.outcome,
                data.c.requires_dist_id,
                name_lists.c.content,
                case((or_(*(data.c.details.contains(f'"{name}"') for name in _RARE)), data.c.details)),
                exists(select(past_generations.c.generation)),  # in each read, since files can be replaced in between
            )
            .select_from(sent)
            .join(distributions, distributions.c.id == sent.c.value)
            .join(releases, releases.c.id == distributions.c.release_id)
            .join(data, data.c.distribution_id == distributions.c.id)
            .outerjoin(yanked, and_(yanked.c.distribution_id == distributions.c.id, _holds_at(yanked, self.serial)))
            .outerjoin(name_lists, name_lists.c.id == data.c.requires_dist_id)
        )
        return _Statement(query, encode)


def _holds_at(intervals: Table, serial: int) -> ColumnElement[bool]:
    return holds_at(intervals.c.start, intervals.c.end, serial)


def _file(project: PastProject, found: _LiveFileRow) -> dict[str, Any]:
    return {
        "project": project.name,
        "version": found.version,
        "filename": found.filename,
        "kind": found.kind,
        "sha256": found.sha256,
        "size": found.size,
        "uploaded_at": found.uploaded_at,
        "first_seen_at": found.first_seen_at,
        "requires_python": found.requires_python,
        "yanked": bool(found.is_yanked),
        "outcome": found.outcome,
        "requires_dist": None if found.list_id is None else _list(project.lists, found.list_id, found.list_content),
        **_rare(from_json(found.details) if found.details else {}, found.outcome),
    }


def _rare(details: Mapping[str, Any], outcome: str) -> dict[str, Any]:
    return {
        "refusals": details.get("refusals", [] if outcome == ReadOutcome.DATA else None),
        "installed_metadata": details.get("installed_metadata"),
    }


def _list(known: dict[int, list[str]], list_id: int, content: bytes) -> list[str]:
    """Return a list of names, which is cached, since files and releases often have the same ones."""
    found = known.get(list_id)
    if found is None:
        found = known[list_id] = json.loads(isal_zlib.decompress(content))
    return found


def _as_it_was(content: PastGeneration) -> dict[str, Any]:
    """Return the values that differ for a file that was replaced under the same name since."""
    facts = content.facts
    is_unread = facts["outcome"] == ReadOutcome.PENDING  # it is never read
    return {
        "sha256": content.sha256,
        "size": facts["size"],
        "uploaded_at": facts["uploaded_at"],
        "first_seen_at": facts.get("first_seen_at"),
        "requires_python": content.requires_python,
        "outcome": ReadOutcome.VANISHED if is_unread else facts["outcome"],
        "requires_dist": facts["requires_dist"],
        **_rare(facts["details"], facts["outcome"]),
    }
