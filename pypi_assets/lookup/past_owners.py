"""The owners of imports at an earlier serial, from the catalog: what `owners.py` answered when that was the newest."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pypi_assets.distributions.installability import accepted_or_all
from pypi_assets.leveldbs.datasets.modules.overview import Overview, marks_of, overview_of
from pypi_assets.leveldbs.format.newest_release import newest_release
from pypi_assets.leveldbs.format.version_order import canonical_version
from pypi_assets.lookup.owners import ImportOwners, owners_by
from pypi_assets.lookup.providers import Provider, providers_of_releases

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog


def owners_at(catalog: "Catalog", serial: int, names: Iterable[str], most: int | None = None) -> list[ImportOwners]:
    """The owners of each of the imports `names` at `serial`, which the catalog answers for (`answerable_serial`).

    A candidate costs by the count of its files. `pinned_answer` gives the epoch that belongs to the answer.
    """
    return owners_by(_Stored(catalog, serial), names, most)


class _Stored:
    """Evidence of the catalog at a serial. What was read once is kept for the other names of the batch."""

    def __init__(self, catalog: "Catalog", serial: int) -> None:
        self.serial, self._catalog = serial, catalog
        self._lists: Mapping[str, Collection[int]] = {}
        self._providers: dict[str, list[Provider]] = {}
        self._overviews: dict[str, Overview] = {}
        self._dependents: dict[str, int] = {}
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def prepare(self, modules: Collection[str]) -> None:
        from pypi_assets.catalog.reports.owner_evidence import lists_with_modules  # the database takes long to load

        with self._catalog.read() as connection:
            self._lists = lists_with_modules(connection, modules)

    def is_known(self, module: str) -> bool:
        return bool(self.providers(module))

    def providers(self, module: str) -> list[Provider]:
        from pypi_assets.catalog.publications.dump_rows import providing_releases

        if module not in self._providers:
            found = providing_releases(self._catalog, self.serial, module, lists=self._lists[module])
            self._providers[module] = list(providers_of_releases(module, found))
        return self._providers[module]

    def stubs(self, module: str, projects: Iterable[str]) -> list[Provider]:
        releases = (
            (project, str(row["project"]), str(row["version"]))
            for project, rows in self._rows_of(set(projects)).items()
            for row in rows
            if row["modules"] is not None and module in row["stubs"]
        )
        return list(providers_of_releases(module, releases))

    def overviews(self, projects: Collection[str]) -> Mapping[str, Overview]:
        from pypi_assets.catalog.reports.owner_evidence import live_files_of, rows_of_files

        files: defaultdict[str, dict[str, list[Any]]] = defaultdict(dict)
        of_newest: list[int] = []
        live = defaultdict(list)
        for one in live_files_of(self._catalog, self.serial, set(projects) - self._overviews.keys()):
            live[one.normalized].append(one)
            marks = {"yanked": True} if one.yanked else {}
            if one.is_rejected:
                marks["rejected"] = True
            files[one.normalized][one.filename] = [one.version, None, "", one.live_since, marks]
        for found in live.values():
            counted = accepted_or_all(found, attrgetter("is_rejected"))
            newest = newest_release({(one.version, one.yanked) for one in counted})
            of_newest += [one.distribution_id for one in counted if canonical_version(one.version) == newest]
        for row in rows_of_files(self._catalog, self.serial, of_newest):
            files[row["normalized"]][row["filename"]][4] = marks_of(row)
        self._overviews.update((project, overview_of(entries)) for project, entries in files.items())
        return self._overviews

    def dependents(self, projects: Collection[str]) -> Mapping[str, int]:
        from pypi_assets.catalog.reports.owner_evidence import count_dependents

        wanted = set(projects) - self._dependents.keys()
        self._dependents |= dict.fromkeys(wanted, 0) | count_dependents(self._catalog, self.serial, wanted)
        return self._dependents

    def _rows_of(self, projects: set[str]) -> dict[str, list[dict[str, Any]]]:
        """The rows of these projects, as dumps have them, each project read once."""
        from pypi_assets.catalog.reports.owner_evidence import rows_of_projects

        wanted = projects - self._rows.keys()
        self._rows |= {project: [] for project in wanted}
        for row in rows_of_projects(self._catalog, self.serial, wanted):
            self._rows[row["normalized"]].append(row)
        return {project: self._rows[project] for project in sorted(projects)}
