"""Select distributions as they were at a serial, in the columns of dumps, which docs/formats.md describes.

Intervals determine whether a file was live and yanked at the serial. Its record is the present one.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name
from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, func, null, or_, select

from pypi_assets.catalog.database import Catalog, at_a_time, bare_rows, read_by_index, sent_values, storable
from pypi_assets.catalog.observed.followed import answered_at
from pypi_assets.catalog.observed.projects import QUARANTINED
from pypi_assets.catalog.publications.dump_columns import COLUMNS, FIRST_EXTRACTOR, READ_COLUMNS
from pypi_assets.catalog.reads.past_generations import contents_at, counts_later, has_past_generations, rejected_then
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reads.stored_contents import (
    StoredContents,
    StoredLists,
    lists_with_module,
    unstored_details,
)
from pypi_assets.catalog.reads.stored_json import from_json, to_dump, to_json
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    live_intervals,
    projects,
    releases,
    required_names,
    shared_details,
    yanked_intervals,
)
from pypi_assets.distributions.installability import accepted_or_all, is_installable
from pypi_assets.distributions.record import SHARED_FIELDS, DistributionKind, ModulesGrade
from pypi_assets.distributions.requirement_names import required_projects

_ROWS_AT_A_TIME = 1_000
_NEXT = {"metadata_version": ("requires_python",), "modules_by": ("modules_grade",)}
CONTENT = tuple(
    name for column in READ_COLUMNS if column != "modules_grade" for name in (column, *_NEXT.get(column, ()))
)
"""The columns that are known from reading the file. They depend only on its content and on the extractor's version.

Their order is that of the journal's records. Two columns have another position in rows."""
_LATER = {name: COLUMNS[name].since for name in CONTENT if COLUMNS[name].since > FIRST_EXTRACTOR}
"""The columns of CONTENT that were added after the first release, each with the first extractor version that has it."""
EARLIEST_CONTENT = tuple(name for name in CONTENT if name not in _LATER)
"""The columns of CONTENT that every record of the journal has. Records lack columns that were added later."""
_UNKNOWN_ROW = dict.fromkeys(COLUMNS)
_UNKNOWN_CONTENT = dict.fromkeys(("sha256", *CONTENT))
_CONTENT_NAMES = frozenset(CONTENT)
_DATA, _PENDING = ReadOutcome.DATA.value, ReadOutcome.PENDING.value  # each use of an enum's member takes longer
_SDIST, _EXACT = DistributionKind.SDIST.value, ModulesGrade.EXACT.value


class DumpedFile(NamedTuple):
    """The stored values of one distribution, from which its row is made.

    `dumped_files` does not select its place and its intervals, which are None.
    """

    project: str
    normalized: str
    version: str
    filename: str
    kind: str
    url: str | None
    sha256: str | None
    size: int | None
    uploaded_at: str | None
    shown_requires_python: str | None
    yanked_reason: str | None
    core_metadata_sha256: str | None
    first_seen_at: str | None
    live_since: int | None
    yanked_since: int | None
    outcome: str
    error_kind: str | None
    extractor_version: int | None
    metadata_version: str | None
    read_requires_python: str | None
    requires_dist_id: int | None
    modules_id: int | None
    details: str | None
    shared_details_id: int | None
    distribution_id: int
    project_status: str | None
    generation: int


_STORED_COLUMNS: dict[str, ColumnElement[Any]] = {
    "kind": distributions.c.kind,
    "url": distributions.c.url,
    "sha256": distributions.c.sha256,
    "size": distributions.c.size,
    "uploaded_at": distributions.c.uploaded_at,
    "shown_requires_python": distributions.c.requires_python,
    "yanked_reason": distributions.c.yanked_reason,
    "core_metadata_sha256": distributions.c.core_metadata_sha256,
    "first_seen_at": distributions.c.first_seen_at,
    "outcome": distribution_data.c.outcome,
    "error_kind": distribution_data.c.error_kind,
    "extractor_version": distribution_data.c.extractor_version,
    "metadata_version": distribution_data.c.metadata_version,
    "read_requires_python": distribution_data.c.requires_python,
    "requires_dist_id": distribution_data.c.requires_dist_id,
    "modules_id": distribution_data.c.modules_id,
    "details": distribution_data.c.details,
    "shared_details_id": distribution_data.c.shared_details_id,
    "distribution_id": distributions.c.id,
    "project_status": projects.c.status,
    "generation": distributions.c.generation,
}
"""The columns of `DumpedFile` that do not depend on a serial, apart from the file's place."""


def holds_at(
    start: ColumnElement[int], end: ColumnElement[int], serial: int | ColumnElement[int]
) -> ColumnElement[bool]:
    """Return the condition that an interval from `start` to `end` contains `serial`."""
    return and_(start <= serial, or_(end.is_(None), end > serial))


def rows_at(catalog: Catalog, serial: int) -> Select[tuple[object, ...]]:
    """Return a query for `stream_rows` of every known distribution at `serial`.

    Files of projects that are not followed then are not live.
    """
    live, yanked = live_intervals, yanked_intervals
    with catalog.read() as connection:
        is_answered = answered_at(connection, distributions.c.project_id, serial)
    is_live = and_(
        live.c.distribution_id == distributions.c.id, holds_at(live.c.start, live.c.end, serial), is_answered
    )
    is_yanked = and_(yanked.c.distribution_id == distributions.c.id, holds_at(yanked.c.start, yanked.c.end, serial))
    return _rows(
        live.c.start, yanked.c.start, lambda joined: joined.outerjoin(live, is_live).outerjoin(yanked, is_yanked)
    )


def _rows(
    live_since: ColumnElement[Any],
    yanked_since: ColumnElement[Any],
    joined: Callable[[FromClause], FromClause] = lambda tables: tables,
) -> Select[tuple[object, ...]]:
    """Return a query of the columns of `DumpedFile` for every distribution, in the order of dumps."""
    data = distribution_data
    tables = (
        distributions.join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(data, data.c.distribution_id == distributions.c.id)
    )
    columns: dict[str, ColumnElement[Any]] = {
        "project": projects.c.name,
        "normalized": projects.c.normalized,
        "version": releases.c.version,
        "filename": distributions.c.filename,
        "live_since": live_since,
        "yanked_since": yanked_since,
        **_STORED_COLUMNS,
    }
    return (
        select(*(columns[name].label(name) for name in DumpedFile._fields))
        .select_from(joined(tables))
        .order_by(projects.c.normalized, releases.c.version, distributions.c.filename)
    )


def shard_at(catalog: Catalog, serial: int, shards: int, shard: int) -> Select[tuple[object, ...]]:
    """Return a query for `stream_rows` of the files live at `serial` in one of the `shards` of a full dump."""
    width = 65_536 // shards
    return rows_at(catalog, serial).where(
        projects.c.bucket.between(shard * width, (shard + 1) * width - 1), live_intervals.c.start.is_not(None)
    )


def project_rows_at(catalog: Catalog, serial: int, project: str) -> Iterator[dict[str, object]]:
    """Yield the rows of a project's distributions that are live at `serial`."""
    query = rows_at(catalog, serial).where(
        projects.c.normalized == canonicalize_name(project), live_intervals.c.start.is_not(None)
    )
    yield from stream_rows(catalog, query, serial)


def releases_rows_at(catalog: Catalog, serial: int, wanted: Collection[tuple[str, str]]) -> Iterator[dict[str, object]]:
    """Yield the rows of files live at `serial` in the releases `wanted`, given as (normalized name, version)."""
    by_version: defaultdict[str, list[str]] = defaultdict(list)
    for project, version in wanted:
        by_version[project].append(version)
    live = rows_at(catalog, serial).where(live_intervals.c.start.is_not(None))
    for chunk in at_a_time(sorted(by_version)):
        versions = {version for project in chunk for version in by_version[project]}
        query = live.where(projects.c.normalized.in_(chunk), releases.c.version.in_(versions))
        for row in stream_rows(catalog, query, serial):
            if (row["normalized"], row["version"]) in wanted:
                yield row


def providing_releases(
    catalog: Catalog, serial: int, module: str, lists: Collection[int] | None = None
) -> Iterator[tuple[str, str, str]]:
    """Yield the releases with a file live at `serial` that provides `module`, as (normalized name, project, version).

    A release is repeated for each list of modules that its files have. `lists` are the ids of the lists that contain
    the module, if known.
    """
    live, data = live_intervals, distribution_data
    query = (
        select(projects.c.normalized, projects.c.name, releases.c.version)
        .select_from(data)
        .join(live, live.c.distribution_id == data.c.distribution_id)
        .join(distributions, distributions.c.id == data.c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .where(holds_at(live.c.start, live.c.end, serial), ~counts_later(data.c.distribution_id, serial))
        .distinct()
    )
    with catalog.read() as connection:
        query = query.where(answered_at(connection, projects.c.id, serial))
        read_by_index(connection)
        for was, _ in _replaced_since(connection, serial, lambda facts: module in (facts["modules"] or ())):
            yield was.normalized, was.name, was.version
        for chunk in at_a_time(list(lists_with_module(connection, module)) if lists is None else lists):
            of_lists = query.where(data.c.modules_id.in_(chunk))
            for row in connection.execution_options(yield_per=_ROWS_AT_A_TIME).execute(of_lists):
                yield row.normalized, row.name, row.version


def requiring_releases(catalog: Catalog, serial: int, project: str) -> Iterator[tuple[str, str, int]]:
    """Yield the releases with a file live at `serial` that requires `project`: (normalized name, version, condition).

    They are ordered by normalized name. Each is returned once, with the least condition of its files: 0 is always, 1 by
    a marker, 2 only with an extra. Files that installers reject are skipped.
    """
    live, data, required = live_intervals, distribution_data, required_names
    query = (
        select(projects.c.normalized, releases.c.version, func.min(required.c.condition).label("condition"))
        .select_from(required)
        .join(data, data.c.requires_dist_id == required.c.list_id)
        .join(live, live.c.distribution_id == data.c.distribution_id)
        .join(distributions, distributions.c.id == data.c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .where(
            required.c.name == storable(canonicalize_name(project)),
            holds_at(live.c.start, live.c.end, serial),
            ~counts_later(data.c.distribution_id, serial),
            ~data.c.is_rejected,
        )
        .group_by(projects.c.normalized, releases.c.version)
        .order_by(projects.c.normalized)
    )
    with catalog.read() as connection:
        query = query.where(answered_at(connection, projects.c.id, serial))
        read_by_index(connection)
        newest = connection.execution_options(yield_per=_ROWS_AT_A_TIME).execute(query)
        found = ((row.normalized, row.version, row.condition) for row in newest)
        yield from _joined(found, _required_before(connection, serial, canonicalize_name(project)))


def _required_before(connection: Connection, serial: int, required: str) -> dict[tuple[str, str], int]:
    """Return the conditions of requirements on the project in contents that were replaced after `serial`.

    They are by project and version.
    """
    found: dict[tuple[str, str], int] = {}

    def requires(facts: Mapping[str, Any]) -> bool:
        names = required_projects(facts["requires_dist"] or ())
        return required in names and is_installable(facts["details"].get("refusals"))

    named = _replaced_since(connection, serial, requires)
    for row, facts in named:
        condition = required_projects(facts["requires_dist"])[required]
        found[row.normalized, row.version] = min(condition, found.get((row.normalized, row.version), condition))
    return found


def _joined(
    rows: Iterable[tuple[str, str, int]], further: Mapping[tuple[str, str], int]
) -> Iterator[tuple[str, str, int]]:
    """Yield `rows` merged with `further` ones, by normalized name. For the same release, the least condition counts."""
    left = dict(further)
    waiting = sorted(((*key, condition) for key, condition in left.items()), reverse=True)
    for project, version, condition in rows:
        while waiting and waiting[-1][0] < project:
            name, of_version, of_condition = waiting.pop()
            if (name, of_version) in left:
                yield name, of_version, of_condition
        yield project, version, min(condition, left.pop((project, version), condition))
    yield from (row for row in reversed(waiting) if row[:2] in left)


def _replaced_since(
    connection: Connection, serial: int, is_wanted: Callable[[Mapping[str, Any]], bool]
) -> list[tuple[Any, Mapping[str, Any]]]:
    """Return the releases of files live at `serial` whose content was replaced since, with the old content's facts.

    Only contents whose facts are wanted are included.
    """
    if not has_past_generations(connection):
        return []
    wanted = {id_: one.facts for id_, one in contents_at(connection, serial).items() if is_wanted(one.facts)}
    live = live_intervals
    query = (
        select(distributions.c.id, projects.c.normalized, projects.c.name, releases.c.version)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(live, live.c.distribution_id == distributions.c.id)
        .where(holds_at(live.c.start, live.c.end, serial), answered_at(connection, projects.c.id, serial))
    )
    return [
        (row, wanted[row.id])
        for ids in at_a_time(sorted(wanted))
        for row in connection.execute(query.where(distributions.c.id.in_(ids)))
    ]


def version_yanks_at(catalog: Catalog, serial: int, normalized: Iterable[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield the versions with a file live at `serial` of these projects: (normalized name, version, is yanked).

    A version is repeated if some of its files are yanked and some are not. Files that installers reject are skipped if
    their project has others.
    """
    live, yanked, data = live_intervals, yanked_intervals, distribution_data
    query = (
        select(
            projects.c.normalized,
            releases.c.version,
            yanked.c.start.is_not(None).label("yanked"),
            data.c.is_rejected,
        )
        .select_from(distributions)
        .join(data, data.c.distribution_id == distributions.c.id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(live, and_(live.c.distribution_id == distributions.c.id, holds_at(live.c.start, live.c.end, serial)))
        .outerjoin(
            yanked, and_(yanked.c.distribution_id == distributions.c.id, holds_at(yanked.c.start, yanked.c.end, serial))
        )
        .order_by(projects.c.normalized)
    )
    with catalog.read() as connection:
        query = query.where(answered_at(connection, projects.c.id, serial))
        wanted = sorted(normalized)
        was = rejected_then(connection, serial, wanted)
        query = query.add_columns(distributions.c.id) if was else query.distinct()

        def is_rejected(row: Any) -> bool:
            return bool(was.get(row.id, row.is_rejected) if was else row.is_rejected)

        for chunk in at_a_time(wanted):
            of_chunk = query.where(projects.c.normalized.in_(chunk))
            found = connection.execution_options(yield_per=_ROWS_AT_A_TIME).execute(of_chunk)
            for project, rows in groupby(found, key=itemgetter(0)):
                for row in accepted_or_all(list(rows), is_rejected):
                    yield project, row.version, bool(row.yanked)


def stream_rows(
    catalog: Catalog, query: Select[tuple[object, ...]], serial: int | None = None
) -> Iterator[dict[str, object]]:
    """Yield the rows of dumps that `query` finds, by project, version and filename.

    Files that are not live get tombstones. If a file was replaced under the same name after `serial`, the row has its
    content at `serial`. Lists are encoded JSON (`orjson.Fragment`), which dumps write without decoding it.
    """
    with catalog.read_once() as connection:
        read_by_index(connection)
        contents = Contents(connection, serial, _UNKNOWN_ROW)
        result = connection.execution_options(yield_per=_ROWS_AT_A_TIME).execute(query)
        for partition in result.partitions():
            for found in contents.loaded([DumpedFile._make(row) for row in partition]):
                if found.live_since is None:
                    yield _place(found) | {"tombstone": True}
                else:
                    yield _live_row(found, contents.of(found))


def dumped_files(connection: Connection, ids: Sequence[int]) -> dict[int, DumpedFile]:
    """Return the stored values of these distributions, by id."""
    if not ids:
        return {}
    sent = sent_values(connection, distributions.c.id, ids)
    query = (
        select(*(_STORED_COLUMNS.get(name, null()).label(name) for name in DumpedFile._fields))
        .select_from(sent)
        .join(distributions, distributions.c.id == sent.c.value)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
    )
    files = map(DumpedFile._make, bare_rows(connection, query))
    return {file.distribution_id: file for file in files}


class Contents:
    """A reader of the contents of files. It caches the last lists and details, since files of a release share them.

    If a file was replaced after `serial` (None: now), its content at `serial` is returned. `blank` has all columns of
    the results, in their order, with the values of the other columns.
    """

    def __init__(
        self, connection: Connection, serial: int | None = None, blank: Mapping[str, object] = _UNKNOWN_CONTENT
    ) -> None:
        self._connection, self._serial, self._blank = connection, serial, blank
        self.lists = StoredLists(connection)
        self.shared = StoredContents(connection, shared_details)
        self._has_past = serial is not None and has_past_generations(connection)

        self._names: dict[int | None, object] = {}
        self._columns = _DetailColumns({}, blank)

    def loaded(self, files: Sequence[DumpedFile]) -> Sequence[DumpedFile]:
        """Return `files` with the facts that counted at the serial, after loading their lists and details for `of`."""
        past: dict[int | None, object] = {}
        if self._has_past and self._serial is not None:
            files = _as_they_were(self._connection, self._serial, files, past)
        ids = [id_ for file in files for id_ in (file.requires_dist_id, file.modules_id) if id_ not in past]
        self._names = {id_: to_dump(found) for id_, found in self.lists.load_json(ids).items()}
        self._names |= past | {None: None}
        found = self.shared.load(file.shared_details_id for file in files)
        self._columns = _DetailColumns({id_: from_json(content) for id_, content in found.items()}, self._blank)
        return files

    def of(self, file: DumpedFile) -> dict[str, object]:
        """Return the columns CONTENT of one of the files that were loaded last."""
        content = self._columns.of(file)
        content["outcome"] = file.outcome
        content["error_kind"] = file.error_kind
        content["extractor_version"] = file.extractor_version
        content["metadata_version"] = file.metadata_version
        content["requires_python"] = file.read_requires_python
        content["requires_dist"] = self._names[file.requires_dist_id]
        content["modules"] = self._names[file.modules_id]
        return content

    def read_from(self, files: Iterable[DumpedFile]) -> dict[int, dict[str, object]]:
        """Return the contents that were read from `files`, each with its `sha256`, by the id of the distribution."""
        contents: dict[int, dict[str, object]] = {}
        for file in self.loaded(list(files)):
            if file.outcome != _PENDING:
                contents[file.distribution_id] = content = self.of(file)
                content["sha256"] = file.sha256
        return contents


def _as_they_were(
    connection: Connection, serial: int, rows: Sequence[DumpedFile], names: dict[int | None, object]
) -> list[DumpedFile]:
    """Return `rows` with the contents that counted at `serial`, and add their lists to `names` under negative ids."""
    past = contents_at(connection, serial, [row.distribution_id for row in rows])
    found = []
    for row in rows:
        content = past.get(row.distribution_id)
        if content is None:
            found.append(row)
            continue
        facts = content.facts
        requires_id, modules_id = -2 * row.distribution_id, -2 * row.distribution_id - 1
        for list_id, listed in ((requires_id, facts["requires_dist"]), (modules_id, facts["modules"])):
            names[list_id] = None if listed is None else to_dump(to_json(listed))
        is_unread = facts["outcome"] == ReadOutcome.PENDING  # it is never read
        found.append(
            row._replace(
                url=facts["url"],
                sha256=content.sha256,
                generation=content.generation,
                size=facts["size"],
                uploaded_at=facts["uploaded_at"],
                shown_requires_python=facts["requires_python"],
                yanked_reason=facts["yanked_reason"],
                core_metadata_sha256=facts.get("core_metadata_sha256"),
                first_seen_at=facts.get("first_seen_at"),
                outcome=ReadOutcome.VANISHED if is_unread else facts["outcome"],
                error_kind=facts["error_kind"],
                extractor_version=facts["extractor_version"],
                metadata_version=facts["metadata_version"],
                read_requires_python=content.read_requires_python,
                requires_dist_id=requires_id,
                modules_id=modules_id,
                details=json.dumps(facts["details"]),
                shared_details_id=None,
            )
        )
    return found


class _DetailColumns:
    """The columns that are stored as details. They are computed once for files that share them."""

    def __init__(self, shared: Mapping[int, dict[str, Any]], blank: Mapping[str, object]) -> None:
        self._shared, self._blank = shared, blank
        self._computed: dict[tuple[int, bool, bool], dict[str, object]] = {}

    def of(self, found: DumpedFile) -> dict[str, object]:
        """Return the columns of a file. They can be changed."""
        own: dict[str, Any] = from_json(found.details) if found.details else {}
        shared_id, is_read, is_sdist = found.shared_details_id, found.outcome == _DATA, found.kind == _SDIST
        if shared_id is None:
            columns = self._columns(own, is_read=is_read, is_sdist=is_sdist)
        elif "entry_points" in own:  # unknown for this file, although other files know them
            columns = self._columns({**own, **self._shared[shared_id]}, is_read=is_read, is_sdist=is_sdist)
        else:
            key = shared_id, is_read, is_sdist
            if key not in self._computed:
                self._computed[key] = self._columns(self._shared[shared_id], is_read=is_read, is_sdist=is_sdist)
            columns = self._computed[key].copy()
        for name, value in own.items():
            if name in _CONTENT_NAMES:
                columns[name] = value
        if "modules_by" in own and "modules_grade" not in own:
            columns["modules_grade"] = _EXACT
        for name, since in _LATER.items():
            if (found.extractor_version or 0) < since:
                columns[name] = None
        return columns

    def _columns(self, details: Mapping[str, Any], *, is_read: bool, is_sdist: bool) -> dict[str, object]:
        unstored = unstored_details(is_read=is_read, is_sdist=is_sdist)
        columns = {**self._blank, **{name: value for name, value in unstored.items() if name in _CONTENT_NAMES}}
        columns.update(release_columns(details, is_read=is_read))
        return columns


def release_columns(details: Mapping[str, Any], *, is_read: bool) -> dict[str, object]:
    """Return the columns of `details`. A missing value means empty if the whole file `is_read`, otherwise unknown."""
    unstored = unstored_details(is_read=is_read, is_sdist=False)
    entry_points: Mapping[str, Mapping[str, str]] | None = details.get("entry_points", unstored["entry_points"])
    columns: dict[str, object] = {name: details.get(name, unstored[name]) for name in SHARED_FIELDS if name in COLUMNS}
    return columns | {
        "console_scripts": _entry_points(entry_points, "console_scripts"),
        "gui_scripts": _entry_points(entry_points, "gui_scripts"),
        "entry_point_groups": None if entry_points is None else sorted(entry_points),
    }


def _live_row(found: DumpedFile, row: dict[str, object]) -> dict[str, object]:
    """Return the row of a live file, which has its columns CONTENT already."""
    row["project"] = found.project
    row["normalized"] = found.normalized
    row["version"] = found.version
    row["filename"] = found.filename
    row["tombstone"] = False
    row["kind"] = found.kind
    row["url"] = found.url
    row["sha256"] = found.sha256
    row["size"] = found.size
    row["uploaded_at"] = found.uploaded_at
    row["requires_python"] = found.shown_requires_python or row["requires_python"]
    row["yanked"] = is_yanked = found.yanked_since is not None
    row["yanked_reason"] = found.yanked_reason if is_yanked else None
    row["core_metadata_sha256"] = found.core_metadata_sha256
    row["live_since"] = found.live_since
    row["project_status"] = status_when_live(found.project_status)
    row["first_seen_at"] = found.first_seen_at
    return row


def status_when_live(status: str | None) -> str | None:
    """Return the status of a live file's project: unknown if it is quarantined now, since it was not then."""
    return None if status == QUARANTINED else status


def _place(found: DumpedFile) -> dict[str, object]:
    return {
        "project": found.project,
        "normalized": found.normalized,
        "version": found.version,
        "filename": found.filename,
    }


def _entry_points(entry_points: Mapping[str, Mapping[str, str]] | None, group: str) -> list[str] | None:
    """Return the entry points of one group as lines of entry_points.txt."""
    if entry_points is None:
        return None
    return [f"{name} = {reference}" for name, reference in entry_points.get(group, {}).items()]
