"""The protocol of a snapshot: the state of an index at one serial.

`PublishedSnapshot` reads the LevelDB versions, `CatalogSnapshot` the catalog as of a serial. Both give the same answer
at the same serial. A snapshot that cannot answer a question raises OtherSnapshotError.
"""
# ruff: noqa: ARG002 - bodies are for the snapshots that cannot answer

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
    from pypi_assets.lookup.depgraph_reader import Dependent, Distribution, TransitiveDependent
    from pypi_assets.lookup.hashes_reader import HashResult, KnownHashResult
    from pypi_assets.lookup.modules_reader import ModuleResult
    from pypi_assets.lookup.pinned_files import PinnedFile
    from pypi_assets.lookup.project_answers import HistoryEntry, LiveFileResult, ProjectResult, VersionResult
    from pypi_assets.lookup.providers import Provider
    from pypi_assets.lookup.requirement_filters import Which
    from pypi_assets.lookup.simple_reader import PageFileResult
    from pypi_assets.resolve.releases import ReleaseIndex

Found = Answer[Result] | Stream[Result]
"""Results with their serial: whole in memory, or read during iteration."""
After = tuple[str, ...] | None
"""A page begins after the result with this sort key. None: at the first result."""


def reduced(found: Found[Result], keep: Callable[[Iterable[Result]], Iterator[Result]]) -> Found[Result]:
    """Return the answer with its results replaced by those that `keep` selects."""
    if isinstance(found, Stream):
        return replace(found, results=keep(found.results))
    return replace(found, results=tuple(keep(found.results)))


class DependentsFilter(NamedTuple):
    """Which dependents count: those whose requirements accept a version, those whose requirements exclude one, or those
    whose own newest version requires the project. All of them without any.
    """

    accepts: Version | None = None
    excludes: Version | None = None
    is_latest: bool = False

    @property
    def version(self) -> Version | None:
        """The version that is accepted or excluded."""
        return self.accepts or self.excludes

    @property
    def which(self) -> "Which":
        """Whether the version is accepted or excluded."""
        return "accepts" if self.excludes is None else "excludes"


_NEWEST = "ask for the newest answer, which the LevelDB versions have: leave the moment out"
_NO_COMMANDS = (
    f"the catalog has no index of commands, so it is not known who installed one; {_NEWEST}, or look up a version of a"
    " project at that serial, which lists its commands"
)


class OtherSnapshotError(ExpectedError):
    """This snapshot cannot answer; the message names the missing index and the snapshot that can."""


class Snapshot(NewestRequirements, Protocol):
    """An index as it was at one serial. Methods that one of the two implementations lacks have a body here."""

    def providers(self, module: str, /) -> "Found[ModuleResult]":
        """Return the projects that provide a module, by normalized name."""

    def few_providers(self, module: str, most: int, /) -> "Found[ModuleResult] | None":
        """Return the same by as few reads as possible; None if more than `most` projects provide it."""
        return None

    def modules(self, beginning: str, after: After, /) -> "Found[ModuleResult]":
        """Return the providers of all modules that begin with a text, by module and normalized name of the project."""
        raise _whole_names("modules")

    def module_hints(self, module: str, /) -> Iterator[str]:
        """Yield sentences about a module that no project provides, with similar names."""

    def installers(self, command: str, /) -> "Found[CommandResult]":
        """Return the projects that install a command, by normalized name."""
        raise OtherSnapshotError(_NO_COMMANDS)

    def commands(self, beginning: str, after: After, /) -> "Found[CommandResult]":
        """Return the installers of all commands that begin with a text, by command and normalized project."""
        raise OtherSnapshotError(_NO_COMMANDS)

    def command_hints(self, command: str, /) -> Iterator[str]:
        """Yield sentences about a command that no project installs."""
        return iter(())

    def files(self, sha256: str, /) -> "Found[HashResult]":
        """Return the live files with this sha256 (lower case), by project and filename."""

    def hashes(self, beginning: str, after: After, /) -> "Found[HashResult]":
        """Return the live files whose sha256 begins with these hex digits, by sha256, project and filename."""
        raise _whole_names("hashes")

    def known_files(self, sha256: str, /) -> "Found[KnownHashResult]":
        """Return the files with this sha256 that are live or were, each with its times."""
        raise OtherSnapshotError(
            "the LevelDB versions have live files alone; the catalog has those that were removed: name a moment"
        )

    def page(self, project: str, /) -> "SimplePage | None":
        """Return the page of a project in the Simple API; None if there is none."""

    def page_files(self, project: str, /) -> "Found[PageFileResult]":
        """Return the files on the page of a project, in its order."""

    def collected(self, dataset: str, kind: type[Result], results: Iterable[Result], /) -> Found[Result]:
        """Return results that were made of answers from a dataset, as one answer."""

    @property
    def serial(self) -> int:
        """The serial of all answers."""

    def providing(self, modules: Collection[str], /) -> "Callable[[str], list[Provider]]":
        """Return a function that lists the providers of any of these modules."""

    def stubs(self, module: str, projects: Collection[str], /) -> "list[Provider]":
        """Return those of the projects (normalized) whose stubs describe a module."""

    def overviews(self, projects: Collection[str], /) -> "Mapping[str, Overview]":
        """Return what owners are ranked by, for each of these projects (normalized), which provide a module."""

    def dependents_of_each(self, projects: Collection[str], /) -> Mapping[str, int]:
        """Return the number of projects that require each of these (normalized)."""

    def top_level_names(self) -> Iterator[str]:
        """Yield the first parts of all modules, in the order of their bytes in UTF-8."""
        raise _whole_names("modules")

    def project(self, name: str, /) -> "ProjectResult | None":
        """Return what is known of a project; None if it has no live files."""

    def version(self, project: str, version: str, /) -> "VersionResult | None":
        """Return what is known of a version of a project; None if it has no live files."""

    def is_known(self, project: str, /) -> bool:
        """Return whether a project has or had files or events."""

    def require_answered(self, project: str, /) -> None:
        """Raise NotAnsweredError if answers about a project begin at a later serial."""

    def live_files(self, project: str, /) -> "Found[LiveFileResult]":
        """Return the live distributions of a project, by version as text and filename."""
        raise OtherSnapshotError(
            "the LevelDB versions do not list a project's files with their serials; the catalog of a home does"
        )

    def history(self, project: str, *, every_event: bool) -> "Found[HistoryEntry]":
        """Return what happened to a project, by serial; if not `every_event`, without events that change no files."""
        raise OtherSnapshotError("the LevelDB versions have no history; the catalog of a home has it")

    def history_remarks(self, project: str, found: "Iterable[HistoryEntry]", /) -> Iterator[str]:
        """Yield sentences about what the entries that were found of a project's history lack."""
        return iter(())

    def distributions(self, project: str, version: str | None, /) -> "Found[Distribution]":
        """Return the distributions of a project, or of one version of it, by version (PEP 440) and filename."""

    def projects(self, beginning: str, /) -> "Found[Distribution]":
        """Return the distributions of all projects whose names begin with a text, by project."""
        raise _whole_names("projects")

    def dependents(self, project: str, wanted: "DependentsFilter", after: After, /) -> "Found[Dependent]":
        """Return the projects that require a project, by normalized name."""

    def all_dependents(self, beginning: str, wanted: "DependentsFilter", after: After, /) -> "Found[Dependent]":
        """Return the dependents of all projects whose names begin with a text, by these projects and by theirs."""
        raise _whole_names("projects")

    def count_dependents(self, project: str, /) -> int | None:
        """Return the number of projects that require a project; None if it is as cheap to count the results."""
        return None

    def transitive_dependents(
        self, project: str, depth: int | None, is_latest: bool, /
    ) -> "Found[TransitiveDependent]":
        """Return the dependents of a project, of these and so on, breadth first, to `depth` steps (None: all)."""

    def streamed(self, kind: type[Result], results: Iterator[Result], /) -> Found[Result]:
        """Return what a search of the snapshot finds, read during iteration if the snapshot can."""

    def pinned_files(self, project: str, version: str, /) -> "tuple[str, tuple[PinnedFile, ...]] | None":
        """Return a project's name as displayed and the files of a version, with their modules; None without files."""

    def unfollowed(self, project: str, /) -> str | None:
        """Return a sentence about a project that is not followed; None for one that is."""

    def moment(self) -> "datetime | None":
        """Return the time of the snapshot; None: no time is known of its serial."""

    def release_index(self) -> "ReleaseIndex":
        """Return the releases that a resolution chooses from."""

    def project_hints(self, project: str, /) -> Iterator[str]:
        """Yield sentences about a project, with similar names; none for a known one."""


def _whole_names(what: str) -> OtherSnapshotError:
    return OtherSnapshotError(f"the catalog finds {what} by their whole name alone; {_NEWEST}")
