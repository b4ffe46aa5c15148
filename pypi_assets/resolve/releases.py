"""Where a resolution has the files of projects from: the newest published versions, or the catalog at a serial."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pypi_assets.lookup.depgraph_reader import DepgraphReader, Distribution, project_answer
from pypi_assets.resolve.candidates import Candidates, Conditions

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog

_REMEMBERED_FILES = 200_000
"""Of how many files candidates are remembered; each takes about a kilobyte."""


class ReleaseIndex:
    """The files of an index as of `serial`. What was read is remembered, so that further resolutions are quick."""

    def __init__(self, serial: int) -> None:
        self.serial = serial
        self._remembered: OrderedDict[tuple[str, object], Candidates] = OrderedDict()
        self._files = 0

    def files(self, project: str) -> Sequence[Distribution]:
        """The live files of a project (normalized), by version; none where it is not known."""
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
        found = self._remembered[key] = Candidates(project, self.files(project), conditions)
        self._files += found.size
        while self._files > _REMEMBERED_FILES and len(self._remembered) > 1:
            self._files -= self._remembered.popitem(last=False)[1].size
        return found


class PublishedIndex(ReleaseIndex):
    """The files of a published version of `depgraph`."""

    def __init__(self, depgraph: DepgraphReader) -> None:
        super().__init__(depgraph.serial)
        self._depgraph = depgraph

    def files(self, project: str) -> Sequence[Distribution]:
        return self._depgraph.project(project).results

    def absence(self, project: str) -> str | None:
        followed = self._depgraph.followed_projects
        if followed is None or self.files(project):
            return None
        return f"{project} is not among the {followed:,} projects that are followed"


class PastIndex(ReleaseIndex):
    """The files that the catalog has as of a serial that it can answer for."""

    def __init__(self, catalog: "Catalog", serial: int) -> None:
        super().__init__(serial)
        self._catalog = catalog

    def files(self, project: str) -> Sequence[Distribution]:
        from pypi_assets.catalog.publications.dump_rows import project_rows_at  # the database takes long to load
        from pypi_assets.dumps.dump_format import as_dumped

        return project_answer(self.serial, map(as_dumped, project_rows_at(self._catalog, self.serial, project))).results

    def absence(self, project: str) -> str | None:
        from pypi_assets.catalog.reports.project_following import following_at

        with self._catalog.read() as connection:
            following = following_at(connection, project, self.serial)
        return None if following is None else following.sentence()
