"""The snapshot of the newest LevelDB versions. A reader is imported for the first question that needs it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pypi_assets.lookup.answers import Result
from pypi_assets.lookup.reader import AnyReader, DatasetReader, OpenReader
from pypi_assets.questions.snapshot import After, DependentsFilter, Found, Snapshot

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.simple_page import SimplePage
    from pypi_assets.leveldbs.datasets.depgraph.edges import Edges
    from pypi_assets.leveldbs.datasets.modules.overview import Overview
    from pypi_assets.lookup.commands_reader import CommandResult, CommandsReader
    from pypi_assets.lookup.dependent_results import Dependent, TransitiveDependent
    from pypi_assets.lookup.depgraph_reader import DepgraphReader, Distribution
    from pypi_assets.lookup.hashes_reader import HashesReader, HashResult
    from pypi_assets.lookup.modules_reader import ModuleResult, ModulesReader
    from pypi_assets.lookup.newest_requirements import NewestRelease
    from pypi_assets.lookup.pinned_files import PinnedFile
    from pypi_assets.lookup.project_answers import ProjectFacts, ProjectResult, VersionResult
    from pypi_assets.lookup.providers import Provider
    from pypi_assets.lookup.simple_reader import PageFileResult, SimpleReader
    from pypi_assets.resolve.releases import ReleaseIndex

OpenOther = Callable[[str], AbstractContextManager[DatasetReader | None]]
"""Opens another dataset for a hint, or returns None if opening it costs more than a hint is worth."""


@dataclass(frozen=True, slots=True)
class PublishedSnapshot(Snapshot):
    """The index as of the versions that the readers have open. Answers state their serial.

    `facts` returns the catalog's facts about a project, or None.
    """

    reader: OpenReader
    open_other: OpenOther
    facts: "Callable[[str], ProjectFacts | None] | None" = None

    def providers(self, module: str, /) -> "Found[ModuleResult]":
        return self._modules.module(module)

    def few_providers(self, module: str, most: int, /) -> "Found[ModuleResult] | None":
        return self._modules.module_of_few(module, most)

    def modules(self, beginning: str, after: After, /) -> "Found[ModuleResult]":
        return self._modules.modules(beginning, _pair(after))

    def module_hints(self, module: str, /) -> Iterator[str]:
        from pypi_assets.lookup.hints import module_hints

        return module_hints(self._modules, module, self.open_other)

    def installers(self, command: str, /) -> "Found[CommandResult]":
        return self._commands.command(command)

    def commands(self, beginning: str, after: After, /) -> "Found[CommandResult]":
        return self._commands.commands(beginning, _pair(after))

    def command_hints(self, command: str, /) -> Iterator[str]:
        from pypi_assets.lookup.hints import command_hints

        return command_hints(self._commands, command, self.open_other)

    def files(self, sha256: str, /) -> "Found[HashResult]":
        return self._hashes.file(sha256)

    def hashes(self, beginning: str, after: After, /) -> "Found[HashResult]":
        return self._hashes.files(beginning, after)

    def page(self, project: str, /) -> "SimplePage | None":
        return self._simple.page(project)

    def page_files(self, project: str, /) -> "Found[PageFileResult]":
        return self._simple.files(project)

    def dataset(self, reader: type[AnyReader], /) -> AnyReader:
        found: AnyReader = self.reader(reader)
        return found

    def collected(self, dataset: str, kind: type[Result], results: Iterable[Result], /) -> Found[Result]:
        from pypi_assets.lookup.latest import reader_of

        return self.reader(reader_of(dataset)).collected(kind, results)  # type: ignore[no-any-return]

    @property
    def serial(self) -> int:
        return self._depgraph.serial

    def providing(self, _modules: Collection[str], /) -> "Callable[[str], list[Provider]]":
        return self._modules.providers

    def stubs(self, module: str, projects: Collection[str], /) -> "list[Provider]":
        return self._modules.stubs(module, projects)

    def overviews(self, projects: Collection[str], /) -> "Mapping[str, Overview]":
        return self._modules.overviews(projects)

    def dependents_of_each(self, projects: Collection[str], /) -> Mapping[str, int]:
        return self._depgraph.dependents_of_each(projects)

    def top_level_names(self) -> Iterator[str]:
        return self._modules.top_level_names()

    def project(self, name: str, /) -> "ProjectResult | None":
        from pypi_assets.lookup.project_answers import MOST_NAMES, project_result

        rows = self._depgraph.project(name).results
        if not rows:
            return None
        commands = sorted(self._commands.names_of(name, MOST_NAMES))
        return project_result(rows, commands, None if self.facts is None else self.facts(name))

    def version(self, project: str, version: str, /) -> "VersionResult | None":
        from pypi_assets.lookup.project_answers import names_of_version, version_result

        rows = self._depgraph.project(project, version).results
        if not rows:
            return None
        modules, commands = (names_of_version(one, project, version) for one in (self._modules, self._commands))
        return version_result(rows, modules, commands)

    def is_known(self, project: str, /) -> bool:
        """Check whether the project has live files."""
        return bool(self.versions(project))

    def require_answered(self, _project: str, /) -> None:
        """Do nothing: published versions can answer about every project."""

    def distributions(self, project: str, version: str | None, /) -> "Found[Distribution]":
        return self._depgraph.project(project, version)

    def projects(self, beginning: str, /) -> "Found[Distribution]":
        return self._depgraph.projects(beginning)

    def dependents(self, project: str, wanted: DependentsFilter, after: After, /) -> "Found[Dependent]":
        return self._depgraph.streamed_dependents(
            project,
            None if after is None else after[1],
            version=wanted.version,
            which=wanted.which,
            latest=wanted.is_latest,
        )

    def all_dependents(self, beginning: str, wanted: DependentsFilter, after: After, /) -> "Found[Dependent]":
        return self._depgraph.all_dependents(beginning, _pair(after), latest=wanted.is_latest)

    def count_dependents(self, project: str, /) -> int:
        return self._depgraph.count_dependents(project)

    def transitive_dependents(
        self, project: str, depth: int | None, is_latest: bool, /
    ) -> "Found[TransitiveDependent]":
        return self._depgraph.transitive_dependents(project, depth, latest=is_latest)

    def streamed(self, kind: type[Result], results: Iterator[Result], /) -> Found[Result]:
        return self._depgraph.streamed(kind, results)

    def check(self) -> None:
        """Do nothing: a search may take any time, because its results are streamed."""

    def edges(self) -> "Edges | None":
        return self._depgraph.edges()

    def requiring(self, project: str, after: str | None = None, /) -> Iterator[str]:
        return self._depgraph.requiring(project, after)

    def newest(self, projects: Sequence[str], /) -> "Iterator[NewestRelease | None]":
        return self._depgraph.newest(projects)

    def versions(self, project: str, /) -> Sequence[tuple[str, bool]]:
        return self._depgraph.versions(project)

    def pinned_files(self, project: str, version: str, /) -> "tuple[str, tuple[PinnedFile, ...]] | None":
        from pypi_assets.lookup.pinned_files import pinned_files

        found = self._depgraph.project(project, version).results
        return pinned_files(found, self._modules.names_of_files(project, [one["filename"] for one in found]))

    def moment(self) -> datetime:
        return datetime.now(UTC)

    def unfollowed(self, project: str, /) -> str | None:
        followed = self._depgraph.followed_projects
        if followed is None or self._depgraph.releases(project).names:
            return None
        return f"{project} is not among the {followed:,} followed projects"

    def release_index(self) -> "ReleaseIndex":
        from pypi_assets.resolve.releases import ReleaseIndex

        return ReleaseIndex(self._depgraph.serial, self._depgraph.releases, self.unfollowed)

    def project_hints(self, project: str, /) -> Iterator[str]:
        from pypi_assets.lookup.hints import project_hints

        if self._depgraph.project(project).results:
            return iter(())
        return project_hints(self._depgraph, project, self.open_other)

    @property
    def _modules(self) -> "ModulesReader":
        from pypi_assets.lookup.modules_reader import ModulesReader

        return self.dataset(ModulesReader)

    @property
    def _commands(self) -> "CommandsReader":
        from pypi_assets.lookup.commands_reader import CommandsReader

        return self.dataset(CommandsReader)

    @property
    def _depgraph(self) -> "DepgraphReader":
        from pypi_assets.lookup.depgraph_reader import DepgraphReader

        return self.dataset(DepgraphReader)

    @property
    def _hashes(self) -> "HashesReader":
        from pypi_assets.lookup.hashes_reader import HashesReader

        return self.dataset(HashesReader)

    @property
    def _simple(self) -> "SimpleReader":
        from pypi_assets.lookup.simple_reader import SimpleReader

        return self.dataset(SimpleReader)


def _pair(after: After) -> tuple[str, str] | None:
    """Return the name and the normalized project that a page begins after."""
    return None if after is None else (after[0], after[1])
