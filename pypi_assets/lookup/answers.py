"""What lookups answer, and the same answers made of what the catalog says of an earlier serial."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar, cast

from pypi_assets.leveldbs.datasets.depgraph import records as depgraph
from pypi_assets.leveldbs.format.records import Row
from pypi_assets.leveldbs.format.version_order import canonical_version, version_key

if TYPE_CHECKING:
    import pandas as pd


class ModuleResult(TypedDict):
    """A project that provides a module: its name as displayed, and the `versions` that do, in PEP 440's order."""

    module: str
    project: str
    versions: list[str]


class Distribution(TypedDict):
    """One file of a project, as in the dumps. `requires_dist` None means unknown; a tag that it has not is empty."""

    filename: str
    version: str
    normalized: str
    kind: str
    project: str
    sha256: str | None
    size: int | None
    uploaded_at: str | None
    requires_python: str | None
    requires_dist: list[str] | None
    provides_extra: list[str]
    yanked: bool
    yanked_reason: str | None
    outcome: str
    platform: str
    abi: str
    build: str


class Dependent(TypedDict):
    """A project (`normalized`) that requires another, and its versions that do: `always`, only by a `marker`, only with
    an `extra`; each in PEP 440's order.
    """

    required: str
    normalized: str
    always: list[str]
    marker: list[str]
    extra: list[str]


Result = TypeVar("Result", bound=Mapping[str, object])


@dataclass(frozen=True, slots=True)
class Answer(Generic[Result]):
    """What was found, as the index was at `serial`: in the LevelDB `version`, or elsewhere where that is None.

    Nothing is an answer too.
    """

    version: int | None
    serial: int
    results: tuple[Result, ...]
    kind: type[Result] = field(repr=False)

    def frame(self) -> "pd.DataFrame":
        """The results as a table, with all columns even without rows; `attrs` has `version` and `serial`."""
        return _frame(self.version, self.serial, self.results, self.kind)


@dataclass(frozen=True, slots=True)
class Stream(Generic[Result]):
    """What is found, as it is read, once; otherwise like an `Answer`. All comes from one version."""

    version: int
    serial: int
    results: Iterator[Result]
    kind: type[Result] = field(repr=False)

    def __iter__(self) -> Iterator[Result]:
        return self.results

    def frame(self) -> "pd.DataFrame":
        """What has not been read yet as a table, which is held in memory whole; otherwise like an answer's."""
        return _frame(self.version, self.serial, self.results, self.kind)


def _frame(version: int | None, serial: int, results: Iterable[Result], kind: type[Result]) -> "pd.DataFrame":
    import pandas as pd  # takes longer to load than all the rest

    frame = pd.DataFrame(list(results), columns=list(kind.__annotations__))
    frame.attrs.update(version=version, serial=serial)
    return frame


def module_answer(serial: int, name: str, releases: Iterable[tuple[str, str, str]]) -> Answer[ModuleResult]:
    """What `ModulesReader.module` answers where `releases` provide it: (normalized name, project, version) each."""
    names: dict[str, str] = {}
    versions: defaultdict[str, set[str]] = defaultdict(set)
    for normalized, project, version in releases:
        names[normalized] = project
        versions[normalized].add(version)
    found = ((names[one], sorted(versions[one], key=version_key)) for one in sorted(names))
    results = tuple(ModuleResult(module=name, project=project, versions=known) for project, known in found)
    return Answer(None, serial, results, ModuleResult)


def project_answer(serial: int, rows: Iterable[Row], version: str | None = None) -> Answer[Distribution]:
    """What `DepgraphReader.project` answers of the rows of a project's live distributions, as dumps give them."""
    found = [row for row in rows if version is None or canonical_version(row["version"]) == canonical_version(version)]
    if not found:
        return Answer(None, serial, (), Distribution)
    project = found[0]["normalized"]
    results = depgraph.decode_project(project, depgraph.encoded(project, found))
    return Answer(None, serial, tuple(cast("list[Distribution]", results)), Distribution)
