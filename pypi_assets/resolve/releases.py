"""The source of files for a resolution: the newest published versions, or the catalog at a serial."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

from pypi_assets.resolve.candidates import Candidates, Conditions, Releases, Row
from pypi_assets.resolve.positions import Positions

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.past_releases import PastProject, PastReleases

_REMEMBERED_RELEASES = 200_000
"""The number of releases whose candidates are cached. Each takes about a kilobyte."""
_GROWTH = 4
"""The growth of reads from the catalog: the first has one release, the next 4, then 16, and so on."""


class ReadsTogether(Protocol):
    """A source of releases for which one read of many releases is much faster than a read of each."""

    def releases(self, projects: Sequence[str]) -> Mapping[str, Releases]:
        """Return the releases of each of the projects, in one read."""
        ...

    def read_files(self, wanted: Iterable[tuple[Any, str]]) -> None:
        """Read the files of these releases, each given as a result of `releases` and a name, in one read."""
        ...


@dataclass(slots=True)
class _IndexedProject:
    """The releases of a project, and its candidates by the key of the conditions."""

    releases: Releases
    positions: Positions
    tables: dict[object, Candidates] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return (self.positions.count + 1) * max(len(self.tables), 1)


class ReleaseIndex:
    """The files of an index as of `serial`. It caches its reads, so that further resolutions are fast.

    `releases` returns the releases of a project (normalized), which are empty if it is unknown. `absence` returns the
    reason if a project is missing for another reason than that it has no files. With `together`, resolutions read ahead
    the projects that they lead to. A snapshot makes an index with `release_index`, and `past_index` makes one for a
    serial of a catalog.
    """

    def __init__(
        self,
        serial: int,
        releases: Callable[[str], Releases],
        absence: Callable[[str], str | None] = lambda _project: None,
        together: ReadsTogether | None = None,
    ) -> None:
        self.serial, self.releases, self.absence, self._together = serial, releases, absence, together
        self._projects: OrderedDict[str, _IndexedProject] = OrderedDict()
        self._count = 0

    @property
    def reads_together(self) -> bool:
        """Check whether `load` and `load_files` save time."""
        return self._together is not None

    def candidates(self, project: str, conditions: Conditions) -> Candidates:
        """Return the versions of a project under these conditions."""
        indexed = self._projects.get(project)
        if indexed is None:
            indexed = self._add(project, self.releases(project))
        else:
            self._projects.move_to_end(project)
        key = conditions.key
        table = indexed.tables.get(key)
        if table is None:
            self._count -= indexed.size
            table = indexed.tables[key] = Candidates(project, indexed.releases, indexed.positions, conditions)
            self._count += indexed.size
            self._forget()
        return table

    def load(self, projects: Iterable[str]) -> None:
        """Read the releases of those projects that are not cached, in one read."""
        missing = [project for project in dict.fromkeys(projects) if project not in self._projects]
        if self._together is not None and missing:
            for project, releases in self._together.releases(missing).items():
                self._add(project, releases)
            self._forget()

    def load_files(self, wanted: Iterable[tuple[Candidates, int]]) -> None:
        """Read the files of versions, in one read."""
        if self._together is not None:
            self._together.read_files(
                (table.releases, name) for table, number in wanted for name in table.spellings(number)
            )

    def _add(self, project: str, releases: Releases) -> _IndexedProject:
        indexed = self._projects[project] = _IndexedProject(releases, Positions(releases.names))
        self._count += indexed.size
        return indexed

    def _forget(self) -> None:
        while self._count > _REMEMBERED_RELEASES and len(self._projects) > 1:
            self._count -= self._projects.popitem(last=False)[1].size


def past_index(catalog: "Catalog", serial: int) -> ReleaseIndex:
    """Return the files of the catalog as of a serial for which it has an answer."""
    from pypi_assets.catalog.reports.past_releases import PastReleases  # the database is slow to import
    from pypi_assets.catalog.reports.project_following import unfollowed_at

    source = _PastSource(PastReleases(catalog, serial))
    return ReleaseIndex(serial, source.releases_of, partial(unfollowed_at, catalog, serial), source)


class _PastSource:
    """The projects in the catalog at a serial."""

    def __init__(self, past: "PastReleases") -> None:
        self._past = past

    def releases_of(self, project: str) -> "_PastProjectReleases":
        return self.releases([project])[project]

    def releases(self, projects: Sequence[str]) -> "dict[str, _PastProjectReleases]":
        found = self._past.projects(projects)
        return {project: _PastProjectReleases(self, found.get(project)) for project in projects}

    def read_files(self, wanted: "Iterable[tuple[_PastProjectReleases, str]]") -> None:
        names: dict[_PastProjectReleases, dict[str, None]] = {}
        for releases, name in wanted:
            names.setdefault(releases, {}).update(dict.fromkeys(releases.next_after(name)))
        read = [
            (releases, releases.project, list(some)) for releases, some in names.items() if some and releases.project
        ]
        if read:
            files = self._past.files([(project, some) for _, project, some in read])
            for (releases, _, some), found in zip(read, files, strict=True):
                releases.add(some, found)


class _PastProjectReleases:
    """The releases of a project in the catalog, which is None if it has no live file.

    The first read has only the files of the requested releases. Each further read also has the files of older releases,
    which are often requested next.
    """

    def __init__(self, source: _PastSource, project: "PastProject | None") -> None:
        self._source, self.project = source, project
        self.names: Sequence[str] = [] if project is None else list(project.releases)
        self._files: dict[str, list[Row]] = {}
        self._next = 1

    def files(self, name: str) -> Iterable[Row]:
        if name not in self._files:
            self._source.read_files([(self, name)])
        return self._files[name]

    def next_after(self, name: str) -> list[str]:
        """Return the releases to read if the files of this one are requested."""
        if name in self._files:
            return []
        if self._next == 1:
            return [name]
        place = self._places[name]
        return [one for one in list(self._places)[place : place + self._next] if one not in self._files]

    def add(self, names: Iterable[str], files: Iterable[Row]) -> None:
        """Add the files of releases that were read."""
        self._next *= _GROWTH
        self._files |= {name: [] for name in names}
        for file in files:
            self._files[file["version"]].append(file)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(Positions(self.names).newest_first())}
