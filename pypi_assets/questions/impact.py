"""The question `impact`: find the projects whose newest releases depend on a project or on one of its versions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from pypi_assets.lookup.depgraph_reader import parse_requirement
from pypi_assets.lookup.newest_requirements import is_release
from pypi_assets.lookup.release_impact import Impact
from pypi_assets.lookup.release_impact import impact as search
from pypi_assets.lookup.requirement_filters import parse_version
from pypi_assets.questions.names import Depth, ExactProjectName, version_of
from pypi_assets.questions.question import Accepts, CombinationError, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot

COLUMNS = ("depth", "required", "normalized", "version", "condition", "requirements")
Transitive = Annotated[bool, Accepts(text="also list the projects that require these projects, and so on")]


@dataclass(frozen=True)
class ImpactParameters(Parameters):
    """Parameters of `impact`."""

    project: ExactProjectName
    version: Annotated[
        str | None, version_of("list only projects that accept this version, which need not be live")
    ] = None
    transitive: Transitive = False
    depth: Depth = None


class ProjectVersion(Protocol):
    """Parameters of a question about a project or one of its versions."""

    @property
    def project(self) -> str: ...
    @property
    def version(self) -> str | None: ...
    @property
    def transitive(self) -> bool: ...
    @property
    def depth(self) -> int | None: ...


def project_and_version(text: str) -> Mapping[str, Any]:
    """Return the parameters in `NAME` or `NAME==VERSION`. Raises LookupNameError."""
    name, version = parse_requirement(text)
    return {"project": name, "version": None if version is None else str(parse_version(version))}


def check_depth(given: ProjectVersion) -> None:
    """Raise CombinationError if a depth is given without `transitive`."""
    if given.depth is not None and not given.transitive:
        raise CombinationError("depth", given.depth, "empty without transitive")


def unknown_project(snapshot: Snapshot, given: ProjectVersion) -> Iterator[str]:
    """Yield a sentence about a project without live files, and similar names."""
    if not snapshot.versions(given.project):
        yield f"no distribution of {given.project} is known"
        yield from snapshot.project_hints(given.project)


def unknown_version(snapshot: Snapshot, given: ProjectVersion, _found: object) -> Iterator[str]:
    """Yield sentences about a project or a version without live files."""
    versions = [version for version, _ in snapshot.versions(given.project)]
    if not versions:
        yield from unknown_project(snapshot, given)
    elif given.version is not None and not is_release(parse_version(given.version), versions):
        yield f"{given.project} has no live release {given.version}: the answer depends on requirements only"


ABOUT_A_VERSION: dict[str, Any] = {
    "split": project_and_version,
    "in_argument": frozenset(("project", "version")),
    "sort_key": lambda result: (result["normalized"],),
    "check": check_depth,
    "hints": unknown_project,
    "remarks": unknown_version,
    "project_of": lambda given: given.project,
    "is_paged": True,
}
"""Fields that all questions about the dependents of a project or a version share."""


def _nothing_found(given: ImpactParameters) -> str:
    wanted = f"requires {given.project}" if given.version is None else f"accepts {given.project} {given.version}"
    return f"no project's newest release {wanted}"


@question(
    "impact",
    path="/v1/projects/{project}/impact",
    example="urllib3==2.0 --transitive",
    argument="PROJECT[==VERSION]",
    result=Impact,
    columns=lambda given: (*COLUMNS, *(("chain",) if given.transitive and given.depth != 1 else ())),
    nothing_found=_nothing_found,
    long_by=lambda given: "transitive" if given.transitive else None,
    **ABOUT_A_VERSION,
)
def impact(snapshot: Snapshot, given: ImpactParameters, after: After = None) -> Found[Impact]:
    """Show what depends on PROJECT, or on one of its versions.

    This lists the projects whose newest release requires it, or accepts the version if there is one. The version need
    not be live, so a deleted release works too. A transitive answer also has the projects whose newest release requires
    the newest release of one of these, and so on.
    """
    snapshot.require_answered(given.project)
    found = search(
        snapshot,
        project=given.project,
        version=None if given.version is None else parse_version(given.version),
        transitive=given.transitive,
        depth=given.depth,
        after=None if after is None else after[0],
    )
    return snapshot.streamed(Impact, found)
