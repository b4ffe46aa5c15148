"""The snapshot of an exact serial, which reads the catalog. The database is imported with the first answer."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, cast

from packaging.utils import canonicalize_name

from pypi_assets.distributions.installability import accepted_or_all, installable_or_all
from pypi_assets.leveldbs.datasets.modules.overview import Overview, marks_of, overview_of
from pypi_assets.lookup.answers import Answer, Result
from pypi_assets.lookup.catalog_hints import past_module_hints, past_project_hints
from pypi_assets.questions.snapshot import After, DependentsFilter, Found, Snapshot
from pypi_assets.version_order import canonical_version, newest_release

if TYPE_CHECKING:
    from datetime import datetime

    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.project_history import HistoryItem
    from pypi_assets.catalog.reports.simple_page import SimplePage
    from pypi_assets.leveldbs.format.records import Row
    from pypi_assets.lookup.dependent_results import Dependent, TransitiveDependent
    from pypi_assets.lookup.depgraph_reader import Distribution
    from pypi_assets.lookup.hashes_reader import HashResult, KnownHashResult
    from pypi_assets.lookup.modules_reader import ModuleResult
    from pypi_assets.lookup.newest_requirements import NewestRelease
    from pypi_assets.lookup.pinned_files import PinnedFile
    from pypi_assets.lookup.project_answers import HistoryEntry, LiveFileResult, ProjectResult, VersionResult
    from pypi_assets.lookup.providers import Provider
    from pypi_assets.lookup.simple_reader import PageFileResult
    from pypi_assets.resolve.releases import ReleaseIndex


def _unlimited() -> None:
    """Do nothing: a search may take any time."""


@dataclass(frozen=True, slots=True)
class CatalogSnapshot(Snapshot):
    """The index as of `serial`, read from the catalog.

    An answer about one project raises NotAnsweredError if answers about this project begin at a later serial. A
    snapshot that `is_newest` also shows changes that have no serial. Each step of a search calls `limit`, which raises
    an error to stop the search.
    """

    catalog: "Catalog"
    serial: int = field()  # a field, so that the property of the protocol is not its default
    is_newest: bool = False
    limit: Callable[[], None] = _unlimited

    def providers(self, module: str, /) -> "Found[ModuleResult]":
        from pypi_assets.catalog.publications.dump_rows import providing_releases
        from pypi_assets.lookup.modules_reader import ModuleResult, providing_projects

        releases = providing_releases(self.catalog, self.serial, module)
        return self._answer(ModuleResult, providing_projects(module, releases))

    def module_hints(self, module: str, /) -> Iterator[str]:
        return past_module_hints(self.catalog, module)

    def files(self, sha256: str, /) -> "Found[HashResult]":
        from pypi_assets.lookup.hashes_reader import HashResult, live_files

        return self._answer(HashResult, live_files(self._known_files(sha256)))

    def known_files(self, sha256: str, /) -> "Found[KnownHashResult]":
        from pypi_assets.lookup.hashes_reader import KnownHashResult

        return self._answer(KnownHashResult, self._known_files(sha256))

    def _known_files(self, sha256: str) -> "list[KnownHashResult]":
        from pypi_assets.catalog.reports.live_files import files_with_sha256
        from pypi_assets.lookup.hashes_reader import known_files

        return known_files(sha256, files_with_sha256(self.catalog, self.serial, sha256))

    def page(self, project: str, /) -> "SimplePage | None":
        from pypi_assets.catalog.reports.past_pages import page_at

        return page_at(self.catalog, self.serial, project)

    def page_files(self, project: str, /) -> "Found[PageFileResult]":
        from pypi_assets.lookup.simple_reader import PageFileResult, page_results

        self.require_answered(project)
        page = self.page(project)
        return self._answer(PageFileResult, () if page is None else page_results(page))

    def collected(self, _dataset: str, kind: type[Result], results: Iterable[Result], /) -> Found[Result]:
        return self._answer(kind, results)

    def providing(self, modules: Collection[str], /) -> "Callable[[str], list[Provider]]":
        from pypi_assets.catalog.publications.dump_rows import providing_releases
        from pypi_assets.catalog.reports.past_releases import lists_with_modules
        from pypi_assets.lookup.providers import providers_of_releases

        with self.catalog.read() as connection:
            lists = lists_with_modules(connection, modules)

        @cache
        def providers(module: str) -> "list[Provider]":
            found = providing_releases(self.catalog, self.serial, module, lists=lists[module])
            return list(providers_of_releases(module, found))

        return providers

    def stubs(self, module: str, projects: Collection[str], /) -> "list[Provider]":
        from pypi_assets.catalog.reports.past_releases import rows_of_projects
        from pypi_assets.lookup.providers import providers_of_releases

        rows = rows_of_projects(self.catalog, self.serial, projects)
        releases = (
            (str(row["normalized"]), str(row["project"]), str(row["version"]))
            for row in rows
            if row["modules"] is not None and module in row["stubs"]
        )
        return list(providers_of_releases(module, releases))

    def overviews(self, projects: Collection[str], /) -> "Mapping[str, Overview]":

        return overviews_at(self.catalog, self.serial, projects)

    def dependents_of_each(self, projects: Collection[str], /) -> Mapping[str, int]:
        from pypi_assets.catalog.reports.past_releases import count_dependents

        return dict.fromkeys(projects, 0) | count_dependents(self.catalog, self.serial, projects)

    def project(self, name: str, /) -> "ProjectResult | None":
        from pypi_assets.lookup.project_answers import commands_of, facts_at, project_result, rows_at

        self.require_answered(name)
        rows = rows_at(self.catalog, self.serial, name)
        if not rows:
            return None
        return project_result(rows, commands_of(rows), facts_at(self.catalog, self.serial, name, rows))

    def version(self, project: str, version: str, /) -> "VersionResult | None":
        from pypi_assets.lookup.project_answers import commands_of, rows_at, version_result

        self.require_answered(project)
        wanted = canonical_version(version)
        rows = [
            row for row in rows_at(self.catalog, self.serial, project) if canonical_version(row["version"]) == wanted
        ]
        if not rows:
            return None
        return version_result(rows, sorted({one for row in rows for one in row["modules"] or ()}), commands_of(rows))

    def is_known(self, project: str, /) -> bool:
        from pypi_assets.catalog.observed.projects import find_project

        with self.catalog.read() as connection:
            return find_project(connection, project) is not None

    def live_files(self, project: str, /) -> "Found[LiveFileResult]":
        from pypi_assets.catalog.reports.live_files import live_files
        from pypi_assets.lookup.project_answers import LiveFileResult

        self.require_answered(project)
        found = live_files(self.catalog, self.serial, project)
        return self._answer(LiveFileResult, (cast("LiveFileResult", asdict(file)) for file in found))

    def history(self, project: str, *, every_event: bool) -> "Found[HistoryEntry]":
        """Return the history of a project: see `Snapshot.history`.

        A visit changes nothing and has no place among the serials, so visits are shown only if the snapshot
        `is_newest`.
        """
        from pypi_assets.catalog.reports.project_history import IGNORED
        from pypi_assets.lookup.project_answers import HistoryEntry
        from pypi_assets.times import utc_text

        if not self.is_newest:
            self.require_answered(project)
        found = [
            cast("HistoryEntry", asdict(entry) | {"at": utc_text(entry.at), "not_before": utc_text(entry.not_before)})
            for entry in self._entries(project)
            if every_event or entry.kind != IGNORED
        ]
        return self._answer(HistoryEntry, found)

    def history_remarks(self, project: str, found: "Iterable[HistoryEntry]", /) -> Iterator[str]:
        from pypi_assets.catalog.reports.past_visits import deleted_visits, deleted_visits_sentence
        from pypi_assets.catalog.reports.project_following import following_at

        if not self.is_newest:
            return
        if sentence := deleted_visits_sentence(deleted_visits([one["visit"] for one in found if one["visit"]])):
            yield sentence
        with self.catalog.read() as connection:
            following = following_at(connection, project)
        if following is not None and (sentence := following.sentence()):
            yield sentence

    def _entries(self, project: str) -> "list[HistoryItem]":
        from pypi_assets.catalog.observed.projects import find_project
        from pypi_assets.catalog.reports.project_history import VISIT, read_history

        with self.catalog.read() as connection:
            known = find_project(connection, project)
            entries = [] if known is None else read_history(connection, known)
        if self.is_newest:
            return entries
        return [entry for entry in entries if entry.serial <= self.serial and entry.kind != VISIT]

    def distributions(self, project: str, version: str | None, /) -> "Found[Distribution]":
        from pypi_assets.lookup.depgraph_reader import Distribution, distributions_of

        self.require_answered(project)
        return self._answer(Distribution, distributions_of(self._rows(project, version)))

    def dependents(self, project: str, wanted: DependentsFilter, _after: After, /) -> "Found[Dependent]":
        from pypi_assets.lookup.dependent_results import Dependent

        return self._answer(Dependent, self._dependents(project, wanted))

    def transitive_dependents(
        self, project: str, depth: int | None, is_latest: bool, /
    ) -> "Found[TransitiveDependent]":
        """Return dependents at any depth: see `Snapshot.transitive_dependents`. Each found project costs a query."""
        from pypi_assets.lookup.dependent_results import TransitiveDependent
        from pypi_assets.lookup.depgraph_reader import transitive_dependents

        wanted = DependentsFilter(is_latest=is_latest)

        def direct(required: str) -> "Iterable[Dependent]":
            self.check()
            return self._dependents(required, wanted)

        return self._answer(TransitiveDependent, transitive_dependents(direct, canonicalize_name(project), depth))

    def streamed(self, kind: type[Result], results: Iterator[Result], /) -> Found[Result]:
        return self._answer(kind, results)

    def check(self) -> None:
        self.limit()

    def requiring(self, project: str, after: str | None = None, /) -> Iterator[str]:
        from pypi_assets.catalog.publications.dump_rows import requiring_releases

        self.check()
        found = requiring_releases(self.catalog, self.serial, project)
        return iter([name for name, _ in groupby(found, key=itemgetter(0)) if after is None or name > after])

    def newest(self, projects: Sequence[str], /) -> "Iterator[NewestRelease | None]":
        from pypi_assets.catalog.publications.dump_rows import releases_rows_at
        from pypi_assets.dumps.dump_format import as_dumped
        from pypi_assets.lookup.newest_requirements import NewestRelease

        self.check()
        wanted = {
            (project, version)
            for project, files in self._version_yanks(projects).items()
            for newest in [newest_release(files)]
            for version, _ in files
            if canonical_version(version) == newest
        }
        found: defaultdict[str, list[Any]] = defaultdict(list)
        for row in releases_rows_at(self.catalog, self.serial, wanted):
            file: Any = as_dumped(row)
            found[file["normalized"]].append(file)
        for project in projects:
            files = installable_or_all(found[project], itemgetter("refusals"))
            lists = {tuple(one["requires_dist"]): None for one in files if one["requires_dist"] is not None}
            yield NewestRelease(min(one["version"] for one in files), tuple(lists)) if files else None

    def versions(self, project: str, /) -> Sequence[tuple[str, bool]]:
        from pypi_assets.lookup.newest_requirements import by_version

        self.check()
        name = canonicalize_name(project)
        return by_version(self._version_yanks([name])[name])

    def _version_yanks(self, projects: Collection[str]) -> Mapping[str, list[tuple[str, bool]]]:
        """Return the version of each live file of these projects (normalized), and whether the file is yanked."""
        from pypi_assets.catalog.publications.dump_rows import version_yanks_at

        found: defaultdict[str, list[tuple[str, bool]]] = defaultdict(list)
        for name, version, is_yanked in version_yanks_at(self.catalog, self.serial, projects):
            found[name].append((version, is_yanked))
        return found

    def pinned_files(self, project: str, version: str, /) -> "tuple[str, tuple[PinnedFile, ...]] | None":
        from pypi_assets.leveldbs.datasets.provided_names import FileNames
        from pypi_assets.lookup.depgraph_reader import distributions_of
        from pypi_assets.lookup.pinned_files import pinned_files

        rows = list(self._rows(project, version))
        names = {
            str(row["filename"]): FileNames(tuple(sorted(row["modules"])), tuple(sorted(row["stubs"])))
            for row in rows
            if row["modules"] is not None
        }
        return pinned_files(distributions_of(rows), names)

    def unfollowed(self, project: str, /) -> str | None:
        from pypi_assets.catalog.reports.project_following import unfollowed_at

        return unfollowed_at(self.catalog, self.serial, project)

    def moment(self) -> "datetime | None":
        from pypi_assets.catalog.reports.moments import time_of

        with self.catalog.read() as connection:
            return time_of(connection, self.serial)

    def release_index(self) -> "ReleaseIndex":
        from pypi_assets.resolve.releases import past_index

        return past_index(self.catalog, self.serial)

    def project_hints(self, project: str, /) -> Iterator[str]:
        return past_project_hints(self.catalog, project)

    def _dependents(self, project: str, wanted: DependentsFilter) -> "Iterable[Dependent]":
        from pypi_assets.catalog.publications.dump_rows import requiring_releases
        from pypi_assets.lookup.depgraph_reader import requiring_projects
        from pypi_assets.lookup.newest_requirements import newest_dependents
        from pypi_assets.lookup.requirement_filters import kept_by_version

        found = list(requiring_projects(project, requiring_releases(self.catalog, self.serial, project)))
        if wanted.is_latest:
            files = self._version_yanks({one["normalized"] for one in found})
            return newest_dependents(found, lambda name: newest_release(files[name]))
        if wanted.version is None:
            return found
        return kept_by_version(found, canonicalize_name(project), wanted.version, wanted.which, self._rows)

    def _rows(self, project: str, version: str | None = None) -> "Iterator[Row]":
        """Return the rows of a project's live distributions, or of one version, in the format of dumps."""
        from pypi_assets.catalog.publications.dump_rows import project_rows_at
        from pypi_assets.dumps.dump_format import as_dumped

        wanted = None if version is None else canonical_version(version)
        for row in project_rows_at(self.catalog, self.serial, project):
            if wanted is None or canonical_version(str(row["version"])) == wanted:
                yield as_dumped(row)

    def require_answered(self, project: str, /) -> None:
        from pypi_assets.catalog.reports.project_following import require_answered

        with self.catalog.read() as connection:
            require_answered(connection, project, self.serial)

    def _answer(self, kind: type[Result], results: Iterable[Result]) -> Answer[Result]:
        """Return results as an answer, with the number of followed projects, unless the whole index is followed."""
        from pypi_assets.catalog.observed.followed import count_answered

        found = tuple(results)
        with self.catalog.read() as connection:
            return Answer(None, self.serial, found, kind, followed_projects=count_answered(connection, self.serial))


def overviews_at(catalog: "Catalog", serial: int, projects: Collection[str]) -> dict[str, Overview]:
    """Return the overviews of these projects (normalized). The cost of a project grows with its number of files."""
    from pypi_assets.catalog.reports.past_releases import (  # the database is slow to import
        live_files_of,
        rows_of_files,
    )

    files: defaultdict[str, dict[str, list[Any]]] = defaultdict(dict)
    of_newest: list[int] = []
    live = defaultdict(list)
    for one in live_files_of(catalog, serial, projects):
        live[one.normalized].append(one)
        marks = {"yanked": True} if one.yanked else {}
        if one.is_rejected:
            marks["rejected"] = True
        files[one.normalized][one.filename] = [one.version, None, "", one.live_since, marks]
    for found in live.values():
        counted = accepted_or_all(found, attrgetter("is_rejected"))
        newest = newest_release({(one.version, one.yanked) for one in counted})
        of_newest += [one.distribution_id for one in counted if canonical_version(one.version) == newest]
    for row in rows_of_files(catalog, serial, of_newest):
        files[row["normalized"]][row["filename"]][4] = marks_of(row)
    return {project: overview_of(entries) for project, entries in files.items()}
