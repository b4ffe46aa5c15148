"""Where a resolution has the files of projects from: the newest published versions, or the catalog at a serial."""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.resolve.candidates import Candidates, Conditions, Releases, Row, newest_first

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.past_releases import KnownProject, PastReleases

_REMEMBERED_RELEASES = 200_000
"""Of how many releases candidates are remembered; each takes about a kilobyte."""
_GROWTH = 4
"""One release is read from the catalog at first, and this many times as many each next time."""


class ReleaseIndex:
    """The files of an index as of `serial`. What was read is remembered, so that further resolutions are quick."""

    def __init__(self, serial: int) -> None:
        self.serial = serial
        self._remembered: OrderedDict[tuple[str, object], Candidates] = OrderedDict()
        self._count = 0

    def releases(self, project: str) -> Releases:
        """The releases of a project (normalized); none where it is not known."""
        raise NotImplementedError

    def absence(self, project: str) -> str | None:
        """Why there is nothing of a project, where that is known to be for another reason than that it has no files."""
        raise NotImplementedError

    def candidates(self, project: str, conditions: Conditions) -> Candidates:
        """The versions of a project under these conditions."""
        key = project, conditions.key
        found = self._remembered.get(key)
        if found is not None:
            self._remembered.move_to_end(key)
            return found
        found = self._remembered[key] = Candidates(project, self.releases(project), conditions)
        self._count += found.count + 1
        while self._count > _REMEMBERED_RELEASES and len(self._remembered) > 1:
            self._count -= self._remembered.popitem(last=False)[1].count + 1
        return found


class ReadReleases:
    """The releases of files that were read already."""

    def __init__(self, files: Iterable[Row]) -> None:
        self._files: defaultdict[str, list[Row]] = defaultdict(list)
        for file in files:
            self._files[file["version"]].append(file)
        self.names = list(self._files)

    def files(self, name: str) -> Iterable[Row]:
        return self._files[name]


class PublishedIndex(ReleaseIndex):
    """The files of a published version of `depgraph`."""

    def __init__(self, depgraph: DepgraphReader) -> None:
        super().__init__(depgraph.serial)
        self._depgraph = depgraph

    def releases(self, project: str) -> Releases:
        return self._depgraph.releases(project)

    def absence(self, project: str) -> str | None:
        followed = self._depgraph.followed_projects
        if followed is None or self._depgraph.releases(project).names:
            return None
        return f"{project} is not among the {followed:,} projects that are followed"


class PastIndex(ReleaseIndex):
    """The files that the catalog has as of a serial that it can answer for."""

    def __init__(self, catalog: "Catalog", serial: int) -> None:
        from pypi_assets.catalog.reports.past_releases import PastReleases  # the database takes long to load

        super().__init__(serial)
        self._catalog = catalog
        self._past = PastReleases(catalog, serial)

    def releases(self, project: str) -> Releases:
        known = self._past.project(project)
        return ReadReleases(()) if known is None else _PastReleases(self._past, known)

    def absence(self, project: str) -> str | None:
        from pypi_assets.catalog.reports.project_following import following_at

        with self._catalog.read() as connection:
            following = following_at(connection, project, self.serial)
        return None if following is None else following.sentence()


class _PastReleases:
    """Those of a project. The first files are those of the release that is looked at. After that files are read of some
    at once: of one that is looked at, and of older ones, which are often looked at next.
    """

    def __init__(self, past: "PastReleases", project: "KnownProject") -> None:
        self._past, self._project = past, project
        self.names: Sequence[str] = list(project.releases)
        self._files: dict[str, list[Row]] = {}
        self._next = 1

    def files(self, name: str) -> Iterable[Row]:
        if name not in self._files:
            self._read([name] if self._next == 1 else self._from(name))
            self._next *= _GROWTH
        return self._files[name]

    def _from(self, name: str) -> list[str]:
        """Releases that were not read yet, the newest first."""
        place = self._places[name]
        return [one for one in list(self._places)[place : place + self._next] if one not in self._files]

    def _read(self, names: Sequence[str]) -> None:
        self._files |= {one: [] for one in names}
        for file in self._past.files(self._project, names):
            self._files[file["version"]].append(file)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(newest_first(self.names))}
