"""Look up distributions, their requirements, and the projects that require a project."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, TypedDict, cast

from packaging.utils import canonicalize_name
from packaging.version import Version

from pypi_assets.leveldbs.datasets.depgraph import dependents
from pypi_assets.leveldbs.datasets.depgraph import depgraph_records as depgraph
from pypi_assets.leveldbs.datasets.depgraph.edges import Edges
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.records import Row, as_part, key, records_of, scan, scan_after
from pypi_assets.lookup.answers import Answer, LookupNameError, Stream
from pypi_assets.lookup.dependent_results import Dependent, TransitiveDependent
from pypi_assets.lookup.edge_walks import (
    FromRecord,
    all_latest_dependents,
    greatest,
    latest_dependents,
    most_required,
    walk_dependents,
    walk_latest_dependents,
)
from pypi_assets.lookup.newest_requirements import NewestRelease, breadth_first, by_version, newest_dependents
from pypi_assets.lookup.reader import DatasetReader, OpenVersion, require_text
from pypi_assets.lookup.requirement_filters import Which, kept_by_version
from pypi_assets.version_order import canonical_version, newest_release, version_key

_FEW = 50
"""The number of dependents that one read returns."""
_REMEMBERED_PROJECTS = 65_536
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:==\s*([^\s,;=<>]+)\s*)?")


class Distribution(TypedDict):
    """One file of a project, as in the dumps.

    `requires_dist` is None if the requirements are unknown. `platform`, `abi` and `build` are empty if the filename
    lacks the tag. `refusals` lists why pip or uv skips the file or fails on it, such as `uv fails: ...`; None: no
    reason is known. `installed_metadata` has metadata lines from the sdist itself. It is set if the index serves
    different metadata for the file: uv resolves the sdist by its own lines, and pip by the served ones.
    """

    filename: str
    version: str
    normalized: str
    kind: str
    project: str
    sha256: str | None
    size: int | None
    uploaded_at: str | None
    requires_python: str | None
    requires_dist: list[str] | None
    provides_extra: list[str]
    yanked: bool
    yanked_reason: str | None
    outcome: str
    refusals: list[str] | None
    platform: str
    abi: str
    build: str
    first_seen_at: str | None
    installed_metadata: list[str] | None


class ProjectReleases:
    """The releases of a project. `names` are their versions, unsorted. Each release has at least one file."""

    def __init__(self, values: "depgraph.ReleaseValues | list[dict[str, Any]]") -> None:
        self._values = values if isinstance(values, depgraph.ReleaseValues) else None
        self._files: defaultdict[str, list[Distribution]] = defaultdict(list)
        if not isinstance(values, depgraph.ReleaseValues):
            for file in cast("list[Distribution]", values):
                self._files[file["version"]].append(file)
        self.names: Sequence[str] = list(self._files) if self._values is None else list(self._values.releases)

    def files(self, name: str) -> Sequence[Distribution]:
        """Return the distributions of a release, by filename."""
        if self._values is None:
            return self._files[name]
        return cast("list[Distribution]", self._values.decode(name))


class DepgraphReader(DatasetReader):
    """A reader of the dataset `depgraph`. Project names are compared normalized, and versions canonically."""

    dataset = "depgraph"
    names_start = key("d", "")

    def _spelled(self, name: str) -> str:
        return canonicalize_name(name)

    def project(self, name: str, version: str | None = None) -> Answer[Distribution]:
        """Return the distributions of a project, or of one version, by version (PEP 440) and filename."""
        project = canonicalize_name(require_text("project", name))
        if version is not None:
            require_text("project", version)

        def found(db: Database) -> list[Distribution]:
            if version is None:
                found = depgraph.decode_project(project, depgraph.project_records(db, project))
            else:
                found = depgraph.find_version(db, project, version)
            return cast("list[Distribution]", found)

        return self._answer(Distribution, found)

    def releases(self, name: str) -> "ProjectReleases":
        """Return the releases of a project. The files of a release are decoded when they are first accessed."""
        project = canonicalize_name(require_text("releases", name))
        return self._read(lambda db: ProjectReleases(depgraph.release_values(db, project)))[1]

    def projects(self, prefix: str = "") -> Stream[Distribution]:
        """Return the distributions of all projects whose name begins with `prefix`, by project, version, filename."""

        start = key("d", canonicalize_name(require_text("projects", prefix)))

        def results(db: Database) -> Iterator[Distribution]:
            records = scan(db, start)
            for project, of_project in groupby(records, key=lambda record: depgraph.project_of(record[0])):
                yield from cast("list[Distribution]", depgraph.decode_project(project.decode(), of_project))

        return self._stream(Distribution, results)

    def dependents(self, name: str) -> Answer[Dependent]:
        """Return the projects that require a project, by normalized name."""
        required = canonicalize_name(require_text("dependents", name))
        return self._answer(Dependent, lambda db: _dependents_of(db, required))

    def latest_dependents(self, name: str) -> Stream[Dependent]:
        """Return the projects whose newest version requires a project, by normalized name. Only this version is listed.

        The newest version is the one that `lookup project NAME --latest` prints.
        """
        return self.streamed_dependents(require_text("latest_dependents", name), latest=True)

    def streamed_dependents(
        self,
        name: str,
        after: str | None = None,
        *,
        version: Version | None = None,
        which: Which = "accepts",
        latest: bool = False,
    ) -> Stream[Dependent]:
        """Return the results of `dependents` as a stream. With `after`, the stream begins after this project.

        With `version`, only releases whose requirements accept this version are listed, or exclude it, depending on
        `which`. With `latest`, only the newest version of each dependent counts, as in `latest_dependents`.
        """
        required = canonicalize_name(require_text("streamed_dependents", name))
        start = dependents.dependents_prefix(required)

        opened, edges = self._edges() if latest and version is None else (None, None)

        def results(db: Database) -> Iterator[Dependent]:
            if edges is not None:
                return latest_dependents(edges, required, _newest_record(db), after)
            records = scan(db, start) if after is None else scan_after(db, start, start + as_part(after).encode())
            found: Iterator[Dependent] = (
                _dependent(required, one[len(start) :].decode(), value) for one, value in records
            )
            if version is not None:
                found = kept_by_version(found, required, version, which, partial(_files_of, db))
            return _newest_alone(db)(found) if latest else found

        return self._stream(Dependent, results, opened)

    def count_dependents(self, name: str) -> int:
        """Return the number of results of `dependents`."""
        record_key = dependents.dependents_count_key(canonicalize_name(require_text("count_dependents", name)))
        return int(self._read(lambda db: db.get(record_key, verify_checksums=True))[1] or 0)

    def dependents_of_each(self, projects: Collection[str]) -> dict[str, int]:
        """Return the number of dependents of each of these projects (normalized)."""
        keys = {project: dependents.dependents_count_key(project) for project in projects}
        return self._read(lambda db: {one: int(db.get(keys[one], verify_checksums=True) or 0) for one in keys})[1]

    def most_required(self, most: int, prefix: str = "", most_scanned: int | None = None) -> list[tuple[str, int]]:
        """Return the `most` projects with the most dependents, as (normalized name, number of dependents).

        Projects without files are skipped. Equal counts are sorted by name. With `prefix`, only projects whose name
        begins with it are listed. The whole list of required projects is scanned, or its first `most_scanned` names.
        Memory grows with `most` only.
        """
        edges = self.edges()
        if edges is not None:
            return most_required(edges, most, canonicalize_name(prefix), most_scanned)
        start, kind = key("t", canonicalize_name(prefix)), len(key("t", ""))

        def found(db: Database) -> list[tuple[str, int]]:
            counts = ((record_key[kind:].decode(), int(value)) for record_key, value in scan(db, start))
            return greatest(counts, most, most_scanned, partial(_has_files, db))

        return self._read(found)[1] if most > 0 else []

    def transitive_dependents(
        self, name: str, depth: int | None = None, *, latest: bool = False
    ) -> Stream[TransitiveDependent]:
        """Return the projects that require a project, the projects that require these, and so on. Each is listed once.

        The order is breadth-first: by depth, and within the dependents of one project by normalized name. The search
        stops at `depth`. The project itself is never listed. With `latest`, only the newest version of each dependent
        counts, as in `latest_dependents`.
        """
        required = canonicalize_name(require_text("transitive_dependents", name))
        opened, edges = self._edges()

        def results(db: Database) -> Iterator[TransitiveDependent]:
            if edges is not None and latest:
                return walk_latest_dependents(edges, required, depth, _newest_record(db))
            if edges is not None:
                every = partial(_dependents_of, db)
                return walk_dependents(edges, required, depth, partial(_recorded, db), every)
            kept = _newest_alone(db) if latest else iter
            return transitive_dependents(lambda one: _dependents_of(db, one), required, depth, kept)

        return self._stream(TransitiveDependent, results, opened)

    def requiring(self, name: str, after: str | None = None, /) -> Iterator[str]:
        """Return the projects that have any release that requires a project (normalized), by name.

        With `after`, the result begins after this project.
        """
        start = dependents.dependents_prefix(require_text("requiring", name))

        def found(db: Database) -> Iterator[str]:
            records = scan(db, start) if after is None else scan_after(db, start, start + as_part(after).encode())
            return (record_key[len(start) :].decode() for record_key, _ in records)

        few = self._read(lambda db: list(islice(found(db), _FEW)))[1]  # mostly all of them, and no stream is needed
        return iter(few) if len(few) < _FEW else self._iterate(self._current(), found)

    def newest(self, projects: Sequence[str], /) -> Iterator[NewestRelease | None]:
        """Yield the newest release of each of these projects (normalized), or None for a project without files."""
        found = self._read(lambda db: [depgraph.newest_requirements(db, project) for project in projects])[1]
        return (None if one is None else NewestRelease(*one) for one in found)

    def versions(self, name: str, /) -> Sequence[tuple[str, bool]]:
        """Return (version, whether it is yanked) for each version. A version is yanked if all of its files are."""
        project = canonicalize_name(require_text("versions", name))
        return by_version(self._read(lambda db: list(depgraph.version_yanks(db, project)))[1])

    def edges(self) -> Edges | None:
        """Return the edges of the open version, or None for a version that was built without."""
        return self._edges()[1]

    def _edges(self) -> tuple[OpenVersion, Edges | None]:
        return self._with_side(lambda side: None if side is None else side.get())

    def check(self) -> None:
        """Never stop a search. Other graphs raise an error here."""

    def all_dependents(
        self, prefix: str = "", after: tuple[str, str] | None = None, *, latest: bool = False
    ) -> Stream[Dependent]:
        """Return all dependents of the projects whose name begins with `prefix`, by required project and dependent.

        `after` is a pair of normalized names, required project and dependent: the stream begins after this pair. With
        `latest`, only the newest version of each dependent counts, as in `latest_dependents`.
        """

        start = key("r", canonicalize_name(require_text("all_dependents", prefix)))

        def found(db: Database) -> Iterator[Dependent]:
            records = scan(db, start) if after is None else scan_after(db, start, key("r", *after))
            for record_key, value in records:
                _, required, project = record_key.decode().split("\0")
                yield _dependent(required, project, value)

        opened, edges = self._edges() if latest else (None, None)

        def results(db: Database) -> Iterator[Dependent]:
            if edges is not None:
                return all_latest_dependents(edges, canonicalize_name(prefix), _newest_record(db), after)
            return _newest_alone(db)(found(db)) if latest else found(db)

        return self._stream(Dependent, results, opened)


def parse_requirement(requirement: str) -> tuple[str, str | None]:
    """Split `NAME` or `NAME==VERSION` into the name and the version, which can be None.

    Raises LookupNameError for any other text.
    """
    match = _REQUIREMENT.fullmatch(requirement)
    if match is None:
        raise LookupNameError(f"{requirement!r} is neither a project NAME nor NAME==VERSION")
    return match[1], match[2]


def distributions_of(rows: Iterable[Row], version: str | None = None) -> list[Distribution]:
    """Return the result of `DepgraphReader.project` for the rows of a project, in the format of dumps."""
    found = [row for row in rows if version is None or canonical_version(row["version"]) == canonical_version(version)]
    if not found:
        return []
    project = found[0]["normalized"]
    return cast("list[Distribution]", depgraph.decode_project(project, depgraph.encoded(project, found)))


def requiring_projects(name: str, releases: Iterable[tuple[str, str, int]]) -> Iterator[Dependent]:
    """Yield the results of `DepgraphReader.dependents` for releases that require the project `name`.

    A release is (normalized name, version, index in `CONDITIONS`). `releases` must be sorted by normalized name.
    """
    required = canonicalize_name(name)
    for project, of_project in groupby(releases, key=itemgetter(0)):
        ordered = sorted(of_project, key=lambda release: version_key(release[1]))
        always, marker, extra = ([version for _, version, rank in ordered if rank == one] for one in range(3))
        yield Dependent(required=required, normalized=project, always=always, marker=marker, extra=extra)


def transitive_dependents(
    direct: Callable[[str], Iterable[Dependent]],
    name: str,
    depth: int | None = None,
    kept: Callable[[Iterable[Dependent]], Iterator[Dependent]] = iter,
) -> Iterator[TransitiveDependent]:
    """Yield everything that `direct` leads to from `name`, breadth first, each project once at its least depth.

    `kept` filters the dependents of a project. It never receives a project that was yielded already.
    """

    def not_found(required: str, found: Container[str]) -> Iterator[tuple[str, Dependent]]:
        return (
            (one["normalized"], one) for one in kept(one for one in direct(required) if one["normalized"] not in found)
        )

    for steps, one in breadth_first(not_found, name, depth):
        yield TransitiveDependent(depth=steps, **one)


def _dependents_of(db: Database, required: str) -> Iterator[Dependent]:
    start = dependents.dependents_prefix(required)
    for record_key, value in records_of(db, start):
        yield _dependent(required, record_key[len(start) :].decode(), value)


def _files_of(db: Database, project: str) -> list[dict[str, Any]]:
    return depgraph.decode_project(project, depgraph.project_records(db, project))


def _has_files(db: Database, project: str) -> bool:
    return db.get(key("d", project), verify_checksums=True) is not None


def _recorded(db: Database, required: str, project: str) -> Dependent | None:
    """Return a dependent from its record, or None without a record."""
    value = db.get(key("r", required, project), verify_checksums=True)
    return None if value is None else _dependent(required, project, value)


def _newest_record(db: Database) -> FromRecord:
    """Return a function that reads a dependent and reduces it to its newest version."""
    newest_alone = _newest_alone(db)

    def read(required: str, project: str) -> Dependent | None:
        found = _recorded(db, required, project)
        return None if found is None else next(newest_alone([found]), None)

    return read


def _newest_alone(db: Database) -> Callable[[Iterable[Dependent]], Iterator[Dependent]]:
    """Return a filter of dependents: it keeps a project if its newest version requires the project.

    The filter caches the newest version of each project.
    """
    newest_of = lru_cache(_REMEMBERED_PROJECTS)(partial(_newest_of, db))
    return lambda found: newest_dependents(found, newest_of)


def _newest_of(db: Database, project: str) -> str:
    files = list(depgraph.version_yanks(db, project))
    if not files:
        raise LeveldbDamagedError(f"{project} requires a project but has no files")
    return newest_release(files)


def _dependent(required: str, project: str, value: bytes) -> Dependent:
    always, marker, extra = dependents.decode_dependent(value)
    return Dependent(required=required, normalized=project, always=always, marker=marker, extra=extra)


READER = DepgraphReader
