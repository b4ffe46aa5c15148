"""The source of files for a resolution: the newest published versions, or the catalog at a serial."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pypi_assets.resolve.candidates import Candidates, Conditions, Releases, Row, newest_first

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.past_releases import PastProject, PastReleases

_REMEMBERED_RELEASES = 200_000
"""The number of releases whose candidates are cached. Each takes about a kilobyte."""
_GROWTH = 4
"""The growth of reads from the catalog: the first has one release, the next 4, then 16, and so on."""


class ReleaseIndex:
    """The files of an index as of `serial`. It caches its reads, so that further resolutions are fast.

    `releases` returns the releases of a project (normalized), which are empty if it is unknown. `absence` returns the
    reason if a project is missing for another reason than that it has no files. A snapshot makes an index with
    `release_index`, and `past_index` makes one for a serial of a catalog.
    """

    def __init__(
        self,
        serial: int,
        releases: Callable[[str], Releases],
        absence: Callable[[str], str | None] = lambda _project: None,
    ) -> None:
        self.serial, self.releases, self.absence = serial, releases, absence
        self._remembered: OrderedDict[tuple[str, object], Candidates] = OrderedDict()
        self._count = 0

    def candidates(self, project: str, conditions: Conditions) -> Candidates:
        """Return the versions of a project under these conditions."""
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
    """The releases of files that were read before."""

    def __init__(self, files: Iterable[Row]) -> None:
        self._files: defaultdict[str, list[Row]] = defaultdict(list)
        for file in files:
            self._files[file["version"]].append(file)
        self.names = list(self._files)

    def files(self, name: str) -> Iterable[Row]:
        return self._files[name]


def past_index(catalog: "Catalog", serial: int) -> ReleaseIndex:
    """Return the files of the catalog as of a serial for which it has an answer."""
    from pypi_assets.catalog.reports.past_releases import PastReleases  # the database is slow to import
    from pypi_assets.catalog.reports.project_following import unfollowed_at

    past = PastReleases(catalog, serial)

    def releases(project: str) -> Releases:
        known = past.project(project)
        return ReadReleases(()) if known is None else _PastReleases(past, known)

    return ReleaseIndex(serial, releases, partial(unfollowed_at, catalog, serial))


class _PastReleases:
    """The releases of a project in the catalog.

    The first read has only the files of the requested release. Each further read also has the files of older releases,
    which are often requested next.
    """

    def __init__(self, past: "PastReleases", project: "PastProject") -> None:
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
        """Return the release and older releases that were not read yet, newest first."""
        place = self._places[name]
        return [one for one in list(self._places)[place : place + self._next] if one not in self._files]

    def _read(self, names: Sequence[str]) -> None:
        self._files |= {one: [] for one in names}
        for file in self._past.files(self._project, names):
            self._files[file["version"]].append(file)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(newest_first(self.names))}
