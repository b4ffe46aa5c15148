"""Looks up distributions, what they require, and who requires a project."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from heapq import heappush, heappushpop
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, TypedDict, cast

from packaging.utils import canonicalize_name
from packaging.version import Version

from pypi_assets.leveldbs.datasets.depgraph import dependents
from pypi_assets.leveldbs.datasets.depgraph import depgraph_records as depgraph
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.records import Row, as_part, key, records_of, scan, scan_after
from pypi_assets.leveldbs.format.version_order import canonical_version, newest_release, version_key
from pypi_assets.lookup.answers import Answer, LookupNameError, Stream
from pypi_assets.lookup.newest_requirements import NewestRelease, breadth_first, by_version, newest_dependents
from pypi_assets.lookup.reader import DatasetReader, require_text
from pypi_assets.lookup.requirement_filters import Which, kept_by_version

_FEW = 50
"""As many dependents are read at once."""
_REMEMBERED_PROJECTS = 65_536
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:==\s*([^\s,;=<>]+)\s*)?")


class Distribution(TypedDict):
    """One file of a project, as in the dumps. `requires_dist` None: unknown. A wheel tag that it lacks is empty.

    `refusals` are what installers do that do not take the file; None: none are known. `installed_metadata` are lines of
    an sdist's own metadata, by which uv resolves it, if pip resolves it by others that the index serves.
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


class Dependent(TypedDict):
    """A project (`normalized`) that requires another, and its versions that do: `always`, only by a `marker`, only with
    an `extra`; each in PEP 440's order.
    """

    required: str
    normalized: str
    always: list[str]
    marker: list[str]
    extra: list[str]


class TransitiveDependent(TypedDict):
    """A `Dependent` with the least number of steps that lead to it, `depth`: 1 for those that require the project
    itself. `required` is the project through which it was found.
    """

    depth: int
    required: str
    normalized: str
    always: list[str]
    marker: list[str]
    extra: list[str]


class ProjectReleases:
    """The releases of a project. `names` are their versions, in no order, each with at least one file."""

    def __init__(self, values: "depgraph.ReleaseValues | list[dict[str, Any]]") -> None:
        self._values = values if isinstance(values, depgraph.ReleaseValues) else None
        self._files: defaultdict[str, list[Distribution]] = defaultdict(list)
        if not isinstance(values, depgraph.ReleaseValues):
            for file in cast("list[Distribution]", values):
                self._files[file["version"]].append(file)
        self.names: Sequence[str] = list(self._files) if self._values is None else list(self._values.releases)

    def files(self, name: str) -> Sequence[Distribution]:
        """The distributions of a release, by filename."""
        if self._values is None:
            return self._files[name]
        return cast("list[Distribution]", self._values.decode(name))


class DepgraphReader(DatasetReader):
    """Answers from `depgraph`. Names are compared normalized, and versions canonically."""

    dataset = "depgraph"
    names_start = key("d", "")

    def _spelled(self, name: str) -> str:
        return canonicalize_name(name)

    def project(self, name: str, version: str | None = None) -> Answer[Distribution]:
        """The distributions of a project, or of one version of it, by version (PEP 440) and filename."""
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
        """The releases of a project, of which each is decoded when it is looked at."""
        project = canonicalize_name(require_text("releases", name))
        return self._read(lambda db: ProjectReleases(depgraph.release_values(db, project)))[1]

    def projects(self, prefix: str = "") -> Stream[Distribution]:
        """The distributions of all projects whose name begins with `prefix`, by project, version and filename."""

        start = key("d", canonicalize_name(require_text("projects", prefix)))

        def results(db: Database) -> Iterator[Distribution]:
            records = scan(db, start)
            for project, of_project in groupby(records, key=lambda record: depgraph.project_of(record[0])):
                yield from cast("list[Distribution]", depgraph.decode_project(project.decode(), of_project))

        return self._stream(Distribution, results)

    def dependents(self, name: str) -> Answer[Dependent]:
        """The projects that require a project, by normalized name."""
        required = canonicalize_name(require_text("dependents", name))
        return self._answer(Dependent, lambda db: _dependents_of(db, required))

    def latest_dependents(self, name: str) -> Stream[Dependent]:
        """The projects whose newest version requires a project, with this version alone, by normalized name.

        The newest version is the one that `lookup project NAME --latest` prints. Each dependent costs one read.
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
        """What `dependents` answers, read as it is iterated over; with `after`, those that come after this project.

        With `version`, those whose requirements accept it, or exclude it, with the releases that do. With `latest`,
        only what newest versions require counts, as for `latest_dependents`.
        """
        required = canonicalize_name(require_text("streamed_dependents", name))
        start = dependents.dependents_prefix(required)

        def results(db: Database) -> Iterator[Dependent]:
            records = scan(db, start) if after is None else scan_after(db, start, start + as_part(after).encode())
            found: Iterator[Dependent] = (
                _dependent(required, one[len(start) :].decode(), value) for one, value in records
            )
            if version is not None:
                found = kept_by_version(found, required, version, which, partial(_files_of, db))
            return _newest_alone(db)(found) if latest else found

        return self._stream(Dependent, results)

    def count_dependents(self, name: str) -> int:
        """How many projects `dependents` answers."""
        record_key = dependents.dependents_count_key(canonicalize_name(require_text("count_dependents", name)))
        return int(self._read(lambda db: db.get(record_key, verify_checksums=True))[1] or 0)

    def dependents_of_each(self, projects: Collection[str]) -> dict[str, int]:
        """Return the number of projects that require each of these (normalized)."""
        keys = {project: dependents.dependents_count_key(project) for project in projects}
        return self._read(lambda db: {one: int(db.get(keys[one], verify_checksums=True) or 0) for one in keys})[1]

    def most_required(self, most: int, prefix: str = "", most_scanned: int | None = None) -> list[tuple[str, int]]:
        """Return the `most` projects with files that the most projects require, and how many do; of equal ones by name.
        With `prefix`, only projects whose name begins with it.

        It takes a scan over what is required at all, or over the first `most_scanned` names, and memory by `most`.
        """
        start, kind = key("t", canonicalize_name(prefix)), len(key("t", ""))

        def found(db: Database) -> list[tuple[str, int]]:
            best: list[tuple[int, int, str]] = []
            for place, (record_key, value) in enumerate(islice(scan(db, start), most_scanned)):
                name, count = record_key[kind:].decode(), int(value)
                one = count, -place, name
                if len(best) == most and one <= best[0]:
                    continue
                if db.get(key("d", name), verify_checksums=True) is None:  # required, and never uploaded
                    continue
                (heappushpop if len(best) == most else heappush)(best, one)
            return [(name, count) for count, _, name in sorted(best, reverse=True)]

        return self._read(found)[1] if most > 0 else []

    def transitive_dependents(
        self, name: str, depth: int | None = None, *, latest: bool = False
    ) -> Stream[TransitiveDependent]:
        """The projects that require a project, those that require one of these, and so on, each once.

        They come breadth-first, by depth; those that require the same project by normalized name. With `depth`, none
        comes from further away. The project itself never comes. Each project that came costs one scan, and its name in
        memory. With `latest`, only what newest versions require counts, as for `latest_dependents`.
        """
        required = canonicalize_name(require_text("transitive_dependents", name))

        def results(db: Database) -> Iterator[TransitiveDependent]:
            kept = _newest_alone(db) if latest else iter
            return transitive_dependents(lambda one: _dependents_of(db, one), required, depth, kept)

        return self._stream(TransitiveDependent, results)

    def requiring(self, name: str, after: str | None = None, /) -> Iterator[str]:
        """Return the projects with any release that requires a project (normalized), by name: those behind `after`."""
        start = dependents.dependents_prefix(require_text("requiring", name))

        def found(db: Database) -> Iterator[str]:
            records = scan(db, start) if after is None else scan_after(db, start, start + as_part(after).encode())
            return (record_key[len(start) :].decode() for record_key, _ in records)

        few = self._read(lambda db: list(islice(found(db), _FEW)))[1]  # as most have, which is quicker than a stream
        return iter(few) if len(few) < _FEW else self._iterate(self._current(), found)

    def newest(self, projects: Sequence[str], /) -> Iterator[NewestRelease | None]:
        """Yield the newest release of each of these projects (normalized); None of one without files."""
        found = self._read(lambda db: [depgraph.newest_requirements(db, project) for project in projects])[1]
        return (None if one is None else NewestRelease(*one) for one in found)

    def versions(self, name: str, /) -> Sequence[tuple[str, bool]]:
        """Return the versions of a project, and whether each is yanked: all of its files are."""
        project = canonicalize_name(require_text("versions", name))
        return by_version(self._read(lambda db: list(depgraph.version_yanks(db, project)))[1])

    def check(self) -> None:
        """Return: a search may go on."""

    def all_dependents(
        self, prefix: str = "", after: tuple[str, str] | None = None, *, latest: bool = False
    ) -> Stream[Dependent]:
        """All that require a project whose name begins with `prefix`, by its name and by theirs. With `after`, those
        that come after this pair of names (normalized). With `latest`, only what newest versions require counts, as for
        `latest_dependents`.
        """

        start = key("r", canonicalize_name(require_text("all_dependents", prefix)))

        def found(db: Database) -> Iterator[Dependent]:
            records = scan(db, start) if after is None else scan_after(db, start, key("r", *after))
            for record_key, value in records:
                _, required, project = record_key.decode().split("\0")
                yield _dependent(required, project, value)

        def results(db: Database) -> Iterator[Dependent]:
            return _newest_alone(db)(found(db)) if latest else found(db)

        return self._stream(Dependent, results)


def parse_requirement(requirement: str) -> tuple[str, str | None]:
    """The project's name and the version of `NAME` or `NAME==VERSION`. Raises LookupNameError for anything else."""
    match = _REQUIREMENT.fullmatch(requirement)
    if match is None:
        raise LookupNameError(f"{requirement!r} is neither a project's NAME nor NAME==VERSION")
    return match[1], match[2]


def distributions_of(rows: Iterable[Row], version: str | None = None) -> list[Distribution]:
    """Return what `DepgraphReader.project` answers of a project's rows, as dumps have them."""
    found = [row for row in rows if version is None or canonical_version(row["version"]) == canonical_version(version)]
    if not found:
        return []
    project = found[0]["normalized"]
    return cast("list[Distribution]", depgraph.decode_project(project, depgraph.encoded(project, found)))


def requiring_projects(name: str, releases: Iterable[tuple[str, str, int]]) -> Iterator[Dependent]:
    """Yield what `DepgraphReader.dependents` answers if `releases` require a project.

    A release is (normalized name, version, rank of the condition). They are sorted by normalized name.
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
    """What `direct` leads to from `name`, breadth first; each project once, at its least depth.

    `kept` returns those dependents that count. It gets no project that was found already.
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


def _newest_alone(db: Database) -> Callable[[Iterable[Dependent]], Iterator[Dependent]]:
    """What keeps the dependents whose newest version requires the project. It remembers newest versions."""
    newest_of = lru_cache(_REMEMBERED_PROJECTS)(partial(_newest_of, db))
    return lambda found: newest_dependents(found, newest_of)


def _newest_of(db: Database, project: str) -> str:
    files = list(depgraph.version_yanks(db, project))
    if not files:
        raise LeveldbDamagedError(f"{project} requires a project, and has no files")
    return newest_release(files)


def _dependent(required: str, project: str, value: bytes) -> Dependent:
    always, marker, extra = dependents.decode_dependent(value)
    return Dependent(required=required, normalized=project, always=always, marker=marker, extra=extra)


READER = DepgraphReader
