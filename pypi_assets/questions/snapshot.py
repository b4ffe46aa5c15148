"""The protocol of a snapshot: the state of an index at one serial.

`PublishedSnapshot` reads the LevelDB versions, and `CatalogSnapshot` reads the catalog as of a serial. At the same
serial, both give the same answer. A snapshot that cannot answer a question raises OtherSnapshotError.
"""
# ruff: noqa: ARG002 - the bodies are for snapshots that cannot answer

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from packaging.version import Version

from pypi_assets.errors import ExpectedError
from pypi_assets.lookup.answers import Answer, Result, Stream
from pypi_assets.lookup.newest_requirements import NewestRequirements

if TYPE_CHECKING:
    from datetime import datetime

    from pypi_assets.catalog.reports.simple_page import SimplePage
    from pypi_assets.leveldbs.datasets.modules.overview import Overview
    from pypi_assets.lookup.commands_reader import CommandResult
    from pypi_assets.lookup.dependent_results import Dependent, TransitiveDependent
    from pypi_assets.lookup.depgraph_reader import Distribution
    from pypi_assets.lookup.hashes_reader import HashResult, KnownHashResult
    from pypi_assets.lookup.modules_reader import ModuleResult
    from pypi_assets.lookup.pinned_files import PinnedFile
    from pypi_assets.lookup.project_answers import HistoryEntry, LiveFileResult, ProjectResult, VersionResult
    from pypi_assets.lookup.providers import Provider
    from pypi_assets.lookup.reader import AnyReader
    from pypi_assets.lookup.requirement_filters import Which
    from pypi_assets.lookup.simple_reader import PageFileResult
    from pypi_assets.resolve.releases import ReleaseIndex

Found = Answer[Result] | Stream[Result]
"""Results with their serial, either whole in memory or streamed."""
After = tuple[str, ...] | None
"""The sort key of the result before a page. None: the page begins with the first result."""


def reduced(found: Found[Result], keep: Callable[[Iterable[Result]], Iterator[Result]]) -> Found[Result]:
    """Return the answer with its results replaced by the results of `keep`."""
    if isinstance(found, Stream):
        return replace(found, results=keep(found.results))
    return replace(found, results=tuple(keep(found.results)))


class DependentsFilter(NamedTuple):
    """A filter of dependents; by default, all count.

    `accepts` and `excludes` select dependents whose requirements accept or exclude a version. `is_latest` selects
    dependents whose newest version requires the project.
    """

    accepts: Version | None = None
    excludes: Version | None = None
    is_latest: bool = False

    @property
    def version(self) -> Version | None:
        """Return the version to accept or exclude."""
        return self.accepts or self.excludes

    @property
    def which(self) -> "Which":
        """Return whether requirements must accept or exclude the version."""
        return "accepts" if self.excludes is None else "excludes"


_NEWEST = "ask the LevelDB versions for the newest answer: omit the moment"
_NO_COMMANDS = (
    f"the catalog has no index of commands, so past installers of a command are unknown; {_NEWEST}, or look up a"
    " version of a project at that serial, which lists its commands"
)


class OtherSnapshotError(ExpectedError):
    """This snapshot cannot answer the question. The message names the missing data and the snapshot that can answer."""


class Snapshot(NewestRequirements, Protocol):
    """An index as of one serial. A method that one of the two implementations lacks has a body here."""

    def providers(self, module: str, /) -> "Found[ModuleResult]":
        """Return the projects that provide a module, by normalized name."""

    def few_providers(self, module: str, most: int, /) -> "Found[ModuleResult] | None":
        """Return the result of `providers` if it takes few reads, or None if there are more than `most` providers."""
        return None

    def modules(self, beginning: str, after: After, /) -> "Found[ModuleResult]":
        """Return the providers of all modules that begin with a text, by module and normalized project."""
        raise _whole_names("modules")

    def module_hints(self, module: str, /) -> Iterator[str]:
        """Yield sentences with similar names for a module that no project provides."""

    def installers(self, command: str, /) -> "Found[CommandResult]":
        """Return the projects that install a command, by normalized name."""
        raise OtherSnapshotError(_NO_COMMANDS)

    def commands(self, beginning: str, after: After, /) -> "Found[CommandResult]":
        """Return the installers of all commands that begin with a text, by command and normalized project."""
        raise OtherSnapshotError(_NO_COMMANDS)

    def command_hints(self, command: str, /) -> Iterator[str]:
        """Yield sentences with similar names for a command that no project installs."""
        return iter(())

    def files(self, sha256: str, /) -> "Found[HashResult]":
        """Return the live files with this SHA-256 (lower case), by project and filename."""

    def hashes(self, beginning: str, after: After, /) -> "Found[HashResult]":
        """Return the live files whose SHA-256 begins with these hex digits, by SHA-256, project and filename."""
        raise _whole_names("hashes")

    def known_files(self, sha256: str, /) -> "Found[KnownHashResult]":
        """Return the files with this SHA-256 that are or were live, each with its live intervals."""
        raise OtherSnapshotError(
            "the LevelDB versions have only live files; the catalog also has deleted files: specify a moment"
        )

    def page(self, project: str, /) -> "SimplePage | None":
        """Return a project's page of the Simple API, or None if there is none."""

    def page_files(self, project: str, /) -> "Found[PageFileResult]":
        """Return the files on the page of a project, in the order of the page."""

    def dataset(self, reader: "type[AnyReader]", /) -> "AnyReader":
        """Return the reader of a dataset that only the LevelDB versions have."""
        raise OtherSnapshotError(f"the catalog has no index of {reader.dataset}; {_NEWEST}")

    def collected(self, dataset: str, kind: type[Result], results: Iterable[Result], /) -> Found[Result]:
        """Return results that were made from answers of a dataset as one answer."""

    @property
    def serial(self) -> int:
        """The serial of all answers."""

    def providing(self, modules: Collection[str], /) -> "Callable[[str], list[Provider]]":
        """Return a function that lists the providers of one of these modules."""

    def stubs(self, module: str, projects: Collection[str], /) -> "list[Provider]":
        """Return the providers among the projects (normalized) whose stubs describe a module."""

    def overviews(self, projects: Collection[str], /) -> "Mapping[str, Overview]":
        """Return the overview of each of these projects (normalized), for ranking. Each must provide a module."""

    def dependents_of_each(self, projects: Collection[str], /) -> Mapping[str, int]:
        """Return the number of projects that require each of these (normalized)."""

    def top_level_names(self) -> Iterator[str]:
        """Yield the top-level names of all modules, in the order of their UTF-8 bytes."""
        raise _whole_names("modules")

    def project(self, name: str, /) -> "ProjectResult | None":
        """Return a project, or None if it has no live files."""

    def version(self, project: str, version: str, /) -> "VersionResult | None":
        """Return a version of a project, or None if it has no live files."""

    def is_known(self, project: str, /) -> bool:
        """Check whether a project has or had files or events."""

    def require_answered(self, project: str, /) -> None:
        """Raise NotAnsweredError if answers about a project begin at a later serial."""

    def live_files(self, project: str, /) -> "Found[LiveFileResult]":
        """Return the live distributions of a project, by version (compared as text) and filename."""
        raise OtherSnapshotError(
            "the LevelDB versions do not list a project's files with their serials; the catalog of a home does"
        )

    def history(self, project: str, *, every_event: bool) -> "Found[HistoryEntry]":
        """Return the events of a project, by serial. Without `every_event`, skip events that change no files."""
        raise OtherSnapshotError("the LevelDB versions have no history; the catalog of a home has it")

    def history_remarks(self, project: str, found: "Iterable[HistoryEntry]", /) -> Iterator[str]:
        """Yield sentences about gaps in the history of a project."""
        return iter(())

    def distributions(self, project: str, version: str | None, /) -> "Found[Distribution]":
        """Return the distributions of a project, or of one version, by version (PEP 440) and filename."""

    def projects(self, beginning: str, /) -> "Found[Distribution]":
        """Return the distributions of all projects whose names begin with a text, by project."""
        raise _whole_names("projects")

    def dependents(self, project: str, wanted: "DependentsFilter", after: After, /) -> "Found[Dependent]":
        """Return the projects that require a project, by normalized name."""

    def all_dependents(self, beginning: str, wanted: "DependentsFilter", after: After, /) -> "Found[Dependent]":
        """Return the dependents of all projects whose names begin with a text, by required project and dependent."""
        raise _whole_names("projects")

    def count_dependents(self, project: str, /) -> int | None:
        """Return the number of projects that require a project, or None if counting the results costs as little."""
        return None

    def transitive_dependents(
        self, project: str, depth: int | None, is_latest: bool, /
    ) -> "Found[TransitiveDependent]":
        """Return the dependents of a project, their dependents and so on, breadth first, up to `depth` (None: all)."""

    def streamed(self, kind: type[Result], results: Iterator[Result], /) -> Found[Result]:
        """Return the results of a search in the snapshot, as a stream if the snapshot supports it."""

    def pinned_files(self, project: str, version: str, /) -> "tuple[str, tuple[PinnedFile, ...]] | None":
        """Return the display name of a project and the files of a version with their modules, or None without files."""

    def unfollowed(self, project: str, /) -> str | None:
        """Return a sentence if a project is not followed, else None."""

    def moment(self) -> "datetime | None":
        """Return the time of the snapshot, or None if the time of its serial is unknown."""

    def release_index(self) -> "ReleaseIndex":
        """Return the releases that a resolution can choose."""

    def project_hints(self, project: str, /) -> Iterator[str]:
        """Yield sentences with similar names for an unknown project."""


def _whole_names(what: str) -> OtherSnapshotError:
    return OtherSnapshotError(f"the catalog finds {what} only by their full name; {_NEWEST}")
