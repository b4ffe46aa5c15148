"""What the newest releases of projects require: of the newest LevelDB version, or of the catalog at a serial.

The newest release is the one that an installer would choose (`leveldbs/format/newest_release.py`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from packaging.utils import canonicalize_name, canonicalize_version
from packaging.version import Version

from pypi_assets.distributions.installability import installable_or_all
from pypi_assets.leveldbs.datasets.depgraph import dependents
from pypi_assets.leveldbs.datasets.depgraph import records as depgraph
from pypi_assets.leveldbs.format.keys import as_part
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.newest_release import newest_release
from pypi_assets.leveldbs.format.records import scan, scan_after
from pypi_assets.leveldbs.format.version_order import canonical_version

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog

_FIRST_AT_ONCE, _AT_ONCE = 20, 500
"""How many projects are read at once: few at first, so that an answer begins at once."""


class NewestRelease(NamedTuple):
    """The newest version of a project, and what its files require: each list once, as it is written."""

    version: str
    requirements: Sequence[Sequence[str]]


class NewestRequirements(Protocol):
    """The graph of what newest releases require. Names are normalized."""

    def requiring(self, project: str, after: str | None = None) -> Iterator[str]:
        """The projects with any release that requires `project`, by name: with `after`, those that come after it."""
        ...

    def newest(self, projects: Sequence[str]) -> Iterator[NewestRelease | None]:
        """The newest release of each of these projects; None of one without files."""
        ...

    def versions(self, project: str) -> Sequence[tuple[str, bool]]:
        """The versions of a project, and whether each is yanked: all of its files are."""
        ...

    def check(self) -> None:
        """Raise an error if the search has to end."""


class PublishedRequirements:
    """Those of a version of `depgraph`. Nothing is remembered: a search reads most projects once."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def requiring(self, project: str, after: str | None = None) -> Iterator[str]:
        start = dependents.dependents_prefix(project)
        found = scan(self._db, start)
        if after is not None:
            found = scan_after(self._db, start, start + as_part(after).encode())
        return (record_key[len(start) :].decode() for record_key, _ in found)

    def newest(self, projects: Sequence[str]) -> Iterator[NewestRelease | None]:
        return map(self._read_newest, projects)

    def versions(self, project: str) -> Sequence[tuple[str, bool]]:
        return _by_version(depgraph.version_yanks(self._db, project))

    def check(self) -> None:
        """Return: the search may go on."""

    def _read_newest(self, project: str) -> NewestRelease | None:
        found = depgraph.newest_requirements(self._db, project)
        return None if found is None else NewestRelease(*found)


class PastRequirements:
    """The requirements of the catalog at a serial, where it is exact. Each read calls `check` first."""

    def __init__(self, catalog: "Catalog", serial: int, check: Callable[[], None] = lambda: None) -> None:
        self._catalog, self._serial, self.check = catalog, serial, check

    def requiring(self, project: str, after: str | None = None) -> Iterator[str]:
        self.check()
        from pypi_assets.catalog.publications.dump_rows import requiring_releases  # the database takes long to load

        found = requiring_releases(self._catalog, self._serial, project)
        return iter([name for name, _ in groupby(found, key=itemgetter(0)) if after is None or name > after])

    def newest(self, projects: Sequence[str]) -> Iterator[NewestRelease | None]:
        from pypi_assets.catalog.publications.dump_rows import releases_rows_at, version_yanks_at
        from pypi_assets.dumps.dump_format import as_dumped

        self.check()
        yanks: defaultdict[str, list[tuple[str, bool]]] = defaultdict(list)
        for project, version, is_yanked in version_yanks_at(self._catalog, self._serial, projects):
            yanks[project].append((version, is_yanked))
        newest = {project: newest_release(files) for project, files in yanks.items()}
        wanted = {
            (project, version)
            for project, files in yanks.items()
            for version, _ in files
            if canonical_version(version) == newest[project]
        }
        found: defaultdict[str, list[Any]] = defaultdict(list)
        for row in releases_rows_at(self._catalog, self._serial, wanted):
            file: Any = as_dumped(row)
            found[file["normalized"]].append(file)
        for project in projects:
            files = installable_or_all(found[project], itemgetter("refusals"))
            lists = {tuple(one["requires_dist"]): None for one in files if one["requires_dist"] is not None}
            yield NewestRelease(min(one["version"] for one in files), tuple(lists)) if files else None

    def versions(self, project: str) -> Sequence[tuple[str, bool]]:
        from pypi_assets.catalog.publications.dump_rows import version_yanks_at

        self.check()
        found = version_yanks_at(self._catalog, self._serial, [canonicalize_name(project)])
        return _by_version((version, is_yanked) for _, version, is_yanked in found)


def newest_of(graph: NewestRequirements, names: Iterable[str]) -> Iterator[tuple[str, NewestRelease | None]]:
    """Each of these projects with its newest release; many are read at once."""
    rest = iter(names)
    at_once = _FIRST_AT_ONCE
    while some := list(islice(rest, at_once)):
        yield from zip(some, graph.newest(some), strict=True)
        at_once = _AT_ONCE


def is_release(version: Version, versions: Iterable[str]) -> bool:
    """Whether a version is among those of releases, in any spelling."""
    return canonicalize_version(version) in map(canonicalize_version, versions)


def _by_version(files: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Each version once; it is yanked where all of its files are."""
    is_yanked: dict[str, bool] = {}
    for version, yanked in files:
        is_yanked[version] = is_yanked.get(version, True) and yanked
    return list(is_yanked.items())
