"""Answers of any exact serial: a snapshot that reads the catalog. The database is imported with the first answer."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, cast

from packaging.utils import canonicalize_name

from pypi_assets.lookup.answers import Answer, Result
from pypi_assets.lookup.catalog_hints import past_module_hints, past_project_hints
from pypi_assets.questions.snapshot import After, DependentsFilter, Found, OtherSnapshotError

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.project_history import Entry
    from pypi_assets.catalog.reports.simple_page import SimplePage
    from pypi_assets.lookup.commands_reader import CommandResult
    from pypi_assets.lookup.depgraph_reader import Dependent, Distribution, TransitiveDependent
    from pypi_assets.lookup.hashes_reader import HashResult, KnownHashResult
    from pypi_assets.lookup.history_entries import HistoryEntry
    from pypi_assets.lookup.modules_reader import ModuleResult
    from pypi_assets.lookup.newest_requirements import NewestRequirements
    from pypi_assets.lookup.owners import ImportOwners
    from pypi_assets.lookup.project_answers import ProjectResult, VersionResult
    from pypi_assets.lookup.simple_reader import PageFileResult
    from pypi_assets.questions.snapshot import Walk
    from pypi_assets.resolve.releases import ReleaseIndex

_NEWEST = "ask for the newest answer, which the LevelDB versions have: leave the moment out"
_NO_COMMANDS = (
    f"the catalog has no index of commands, so it is not known who installed one; {_NEWEST}, or look up a version of a"
    " project at that serial, which lists its commands"
)


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """The index as it was at `serial`, at which the catalog is exact.

    An answer about one project raises NotAnsweredError if answers about it begin at a later serial. A snapshot
    that `is_newest` also shows what changes without a serial. `limited` wraps the requirements that a search follows,
    such as to end a search that takes too long.
    """

    catalog: "Catalog"
    serial: int
    is_newest: bool = False
    limited: "Callable[[NewestRequirements], NewestRequirements] | None" = None

    def providers(self, module: str, /) -> "Found[ModuleResult]":
        """See `Snapshot.providers`."""
        from pypi_assets.catalog.publications.dump_rows import providing_releases
        from pypi_assets.lookup.modules_reader import module_answer

        return self._answer(module_answer(self.serial, module, providing_releases(self.catalog, self.serial, module)))

    def few_providers(self, _module: str, _most: int, /) -> None:
        """See `Snapshot.few_providers`: no read of the catalog is quick."""

    def modules(self, _beginning: str, _after: After, /) -> "Found[ModuleResult]":
        """Raise OtherSnapshotError: the catalog finds whole names."""
        raise _whole_names("modules")

    def module_hints(self, module: str, /) -> Iterator[str]:
        """See `Snapshot.module_hints`."""
        return past_module_hints(self.catalog, module)

    def installers(self, _command: str, /) -> "Found[CommandResult]":
        """Raise OtherSnapshotError: the catalog has no index of commands."""
        raise OtherSnapshotError(_NO_COMMANDS)

    def commands(self, _beginning: str, _after: After, /) -> "Found[CommandResult]":
        """Raise OtherSnapshotError: the catalog has no index of commands."""
        raise OtherSnapshotError(_NO_COMMANDS)

    def command_hints(self, _command: str, /) -> Iterator[str]:
        """See `Snapshot.command_hints`: there are none."""
        return iter(())

    def files(self, sha256: str, /) -> "Found[HashResult]":
        """See `Snapshot.files`."""
        from pypi_assets.catalog.reports.files_by_hash import files_with_sha256
        from pypi_assets.lookup.hashes_reader import hash_answer

        found = files_with_sha256(self.catalog, self.serial, sha256)
        return self._answer(hash_answer(self.serial, sha256, found))

    def hashes(self, _beginning: str, _after: After, /) -> "Found[HashResult]":
        """Raise OtherSnapshotError: the catalog finds whole hashes."""
        raise _whole_names("hashes")

    def known_files(self, sha256: str, /) -> "Found[KnownHashResult]":
        """See `Snapshot.known_files`."""
        from pypi_assets.catalog.reports.files_by_hash import files_with_sha256
        from pypi_assets.lookup.hashes_reader import known_hash_answer

        found = files_with_sha256(self.catalog, self.serial, sha256)
        return self._answer(known_hash_answer(self.serial, sha256, found))

    def page(self, project: str, /) -> "SimplePage | None":
        """See `Snapshot.page`."""
        from pypi_assets.catalog.reports.past_pages import page_at

        return page_at(self.catalog, self.serial, project)

    def page_files(self, project: str, /) -> "Found[PageFileResult]":
        """See `Snapshot.page_files`."""
        from pypi_assets.lookup.simple_reader import PageFileResult, page_results

        self.require_answered(project)
        page = self.page(project)
        results = () if page is None else tuple(page_results(page))
        return self._answer(Answer(None, self.serial, results, PageFileResult))

    def collected(self, _dataset: str, kind: type[Result], results: Iterable[Result], /) -> Found[Result]:
        """See `Snapshot.collected`."""
        return self._answer(Answer(None, self.serial, tuple(results), kind))

    def owners(self, names: Sequence[str], most: int | None, /) -> "list[ImportOwners]":
        """See `Snapshot.owners`."""
        from pypi_assets.lookup.past_owners import owners_at

        return owners_at(self.catalog, self.serial, names, most)

    def project(self, name: str, /) -> "ProjectResult | None":
        """See `Snapshot.project`."""
        from pypi_assets.lookup.project_answers import project_at

        self.require_answered(name)
        return project_at(self.catalog, self.serial, name)

    def version(self, project: str, version: str, /) -> "VersionResult | None":
        """See `Snapshot.version`."""
        from pypi_assets.lookup.project_answers import version_at

        self.require_answered(project)
        return version_at(self.catalog, self.serial, project, version)

    def is_known(self, project: str, /) -> bool:
        """See `Snapshot.is_known`."""
        from pypi_assets.catalog.observed.projects import find_project

        with self.catalog.read() as connection:
            return find_project(connection, project) is not None

    def history(self, project: str, *, every_event: bool) -> "Found[HistoryEntry]":
        """See `Snapshot.history`.

        A visit changes nothing and can come at any time, so visits are shown if the snapshot `is_newest`.
        """
        from pypi_assets.catalog.reports.project_history import IGNORED
        from pypi_assets.lookup.history_entries import HistoryEntry
        from pypi_assets.times import utc_text

        if not self.is_newest:
            self.require_answered(project)
        found = [
            cast("HistoryEntry", asdict(entry) | {"at": utc_text(entry.at), "not_before": utc_text(entry.not_before)})
            for entry in self._entries(project)
            if every_event or entry.kind != IGNORED
        ]
        return self._answer(Answer(None, self.serial, tuple(found), HistoryEntry))

    def history_remarks(self, project: str, found: "Iterable[HistoryEntry]", /) -> Iterator[str]:
        """See `Snapshot.history_remarks`."""
        from pypi_assets.catalog.reports.past_visits import deleted_visits_sentence
        from pypi_assets.catalog.reports.project_following import following_at

        if not self.is_newest:
            return
        if sentence := deleted_visits_sentence([one["visit"] for one in found if one["visit"]]):
            yield sentence
        with self.catalog.read() as connection:
            following = following_at(connection, project)
        if following is not None and (sentence := following.sentence()):
            yield sentence

    def _entries(self, project: str) -> "list[Entry]":
        from pypi_assets.catalog.observed.projects import find_project
        from pypi_assets.catalog.reports.project_history import VISIT, read_history

        with self.catalog.read() as connection:
            known = find_project(connection, project)
            entries = [] if known is None else read_history(connection, known)
        if self.is_newest:
            return entries
        return [entry for entry in entries if entry.serial <= self.serial and entry.kind != VISIT]

    def distributions(self, project: str, version: str | None, /) -> "Found[Distribution]":
        """See `Snapshot.distributions`."""
        from pypi_assets.lookup.depgraph_reader import distributions_at

        self.require_answered(project)
        return self._answer(distributions_at(self.catalog, self.serial, project, version))

    def projects(self, _beginning: str, /) -> "Found[Distribution]":
        """Raise OtherSnapshotError: the catalog finds whole names."""
        raise _whole_names("projects")

    def dependents(self, project: str, wanted: DependentsFilter, _after: After, /) -> "Found[Dependent]":
        """See `Snapshot.dependents`."""
        return self._answer(self._dependents(project, wanted))

    def all_dependents(self, _beginning: str, _wanted: DependentsFilter, _after: After, /) -> "Found[Dependent]":
        """Raise OtherSnapshotError: the catalog finds whole names."""
        raise _whole_names("projects")

    def count_dependents(self, _project: str, /) -> None:
        """See `Snapshot.count_dependents`."""

    def transitive_dependents(
        self, project: str, depth: int | None, is_latest: bool, /
    ) -> "Found[TransitiveDependent]":
        """See `Snapshot.transitive_dependents`. Each project that is found costs a query."""
        from pypi_assets.lookup.depgraph_reader import TransitiveDependent, transitive_dependents

        wanted, graph = DependentsFilter(is_latest=is_latest), self._newest_requirements

        def direct(required: str) -> "tuple[Dependent, ...]":
            graph.check()
            return self._dependents(required, wanted).results

        found = transitive_dependents(direct, canonicalize_name(project), depth)
        return self._answer(Answer(None, self.serial, tuple(found), TransitiveDependent))

    def over_newest(self, project: str | None, kind: type[Result], walk: "Walk[Result]", /) -> Found[Result]:
        """See `Snapshot.over_newest`."""
        if project is not None:
            self.require_answered(project)
        return self._answer(Answer(None, self.serial, tuple(walk(self._newest_requirements)), kind))

    def versions(self, project: str, /) -> Sequence[tuple[str, bool]]:
        """See `Snapshot.versions`."""
        return self._newest_requirements.versions(project)

    def release_index(self) -> "ReleaseIndex":
        """See `Snapshot.release_index`."""
        from pypi_assets.resolve.releases import PastIndex

        return PastIndex(self.catalog, self.serial)

    def project_hints(self, project: str, /) -> Iterator[str]:
        """See `Snapshot.project_hints`."""
        return past_project_hints(self.catalog, project)

    @property
    def _newest_requirements(self) -> "NewestRequirements":
        from pypi_assets.lookup.newest_requirements import PastRequirements

        graph = PastRequirements(self.catalog, self.serial)
        return graph if self.limited is None else self.limited(graph)

    def _dependents(self, project: str, wanted: DependentsFilter) -> "Answer[Dependent]":
        from pypi_assets.lookup.depgraph_reader import filtered_dependents_at, latest_dependents_at

        if wanted.is_latest:
            return latest_dependents_at(self.catalog, self.serial, project)
        return filtered_dependents_at(self.catalog, self.serial, project, wanted.version, wanted.which)

    def require_answered(self, project: str, /) -> None:
        """See `Snapshot.require_answered`."""
        from pypi_assets.catalog.reports.project_following import require_answered

        with self.catalog.read() as connection:
            require_answered(connection, project, self.serial)

    def _answer(self, found: Answer[Result]) -> Answer[Result]:
        """Return the answer with how many projects are followed, unless all of the index is."""
        from pypi_assets.catalog.observed.followed import count_answered

        with self.catalog.read() as connection:
            return replace(found, followed_projects=count_answered(connection, self.serial))


def _whole_names(what: str) -> OtherSnapshotError:
    return OtherSnapshotError(f"the catalog finds {what} by their whole name alone; {_NEWEST}")
