"""The past of an index, as the catalog has it: what a search for changes of an outcome reads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pypi_assets.resolve.blame import Change
from pypi_assets.resolve.releases import PastIndex

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.project_history import Entry


class CatalogHistory:
    """The index at each serial that the catalog can answer for."""

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = catalog

    def index_at(self, serial: int) -> PastIndex:
        """Raises NotExactError where the catalog is not exact at `serial`."""
        from pypi_assets.catalog.reports.answerable_serials import answerable_serial

        return PastIndex(self._catalog, answerable_serial(self._catalog, serial))

    def changed_serials(self, project: str, after: int, through: int) -> Sequence[int]:
        """Each as the first serial from there on that can be answered for."""
        from pypi_assets.catalog.reports.visible_changes import answerable_changes

        with self._catalog.read() as connection:
            return answerable_changes(connection, project, after, through)

    def entries(self, change: Change) -> list[tuple[str, "Entry"]]:
        """What happened to the projects of a change at its serial, each with the project's name: mostly one event.

        Where single events are not known, it is what happened since the serial before it that can be answered for.
        """
        from pypi_assets.catalog.observed.projects import find_project
        from pypi_assets.catalog.reports.project_history import read_history
        from pypi_assets.catalog.reports.visible_changes import answerable_before

        found = []
        with self._catalog.read() as connection:
            before = answerable_before(connection, change.serial)
            for normalized in change.projects:
                project = find_project(connection, normalized)
                for entry in [] if project is None else read_history(connection, project):
                    is_visible = entry.live or entry.away or entry.yanked or entry.unyanked
                    if project is not None and before < entry.serial <= change.serial and is_visible:
                        found.append((project.name, entry))
        return found
