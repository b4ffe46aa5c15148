"""The question `dependents`: find the projects that require a project."""

from dataclasses import dataclass
from typing import Annotated

from pypi_assets.lookup.dependent_results import Dependent, TransitiveDependent
from pypi_assets.lookup.requirement_filters import parse_version
from pypi_assets.questions.names import Depth, Prefix, ProjectNameOrPrefix, version_of
from pypi_assets.questions.question import Accepts, CombinationError, Parameters, question
from pypi_assets.questions.snapshot import After, DependentsFilter, Found, Snapshot

_COLUMNS = ("normalized", "always", "marker", "extra")


@dataclass(frozen=True)
class DependentsParameters(Parameters):
    """Parameters of `dependents`."""

    project: ProjectNameOrPrefix
    prefix: Prefix = False
    latest: Annotated[bool, Accepts(text="list only projects whose newest version requires it, with this version")] = (
        False
    )
    version: Annotated[str | None, version_of("list only projects that accept this version")] = None
    excludes: Annotated[str | None, version_of("list only projects that exclude this version")] = None
    transitive: Annotated[bool, Accepts(text="also list the dependents of dependents, and so on")] = False
    depth: Depth = None


_TOGETHER = (
    ("version", "prefix"),
    ("version", "transitive"),
    ("excludes", "version"),
    ("excludes", "prefix"),
    ("excludes", "transitive"),
    ("transitive", "prefix"),
    ("version", "latest"),
    ("excludes", "latest"),
)
"""Pairs of parameters that cannot be combined."""


def _check(given: DependentsParameters) -> None:
    if given.depth is not None and not given.transitive:
        raise CombinationError("depth", given.depth, "empty without transitive")
    for one, other in _TOGETHER:
        value = getattr(given, one)
        if value and getattr(given, other):
            raise CombinationError(one, value, f"{'false' if value is True else 'empty'} with {other}")


def _columns(given: DependentsParameters) -> tuple[str, ...]:
    if given.transitive:
        return ("depth", "required", *_COLUMNS)
    return ("required", *_COLUMNS) if given.prefix else _COLUMNS


def _nothing_found(given: DependentsParameters) -> str:
    project = f"a project that begins with {given.project}" if given.prefix else given.project
    if given.excludes:
        return f"no project excludes {project} {given.excludes}"
    verb = "accepts" if given.version else "requires"
    ending = " in its newest version" if given.latest else f" {given.version}" if given.version else ""
    return f"no project {verb} {project}{ending}"


def _wanted(given: DependentsParameters) -> DependentsFilter:
    return DependentsFilter(
        accepts=None if given.version is None else parse_version(given.version),
        excludes=None if given.excludes is None else parse_version(given.excludes),
        is_latest=given.latest,
    )


@question(
    "dependents",
    path="/v1/projects/{project}/dependents",
    example="requests",
    result=Dependent,
    columns=_columns,
    sort_key=lambda result: (result["required"], result["normalized"]),
    key_size=2,
    check=_check,
    nothing_found=_nothing_found,
    hints=lambda snapshot, given: snapshot.project_hints(given.project),
    long_by=lambda given: "transitive" if given.transitive else None,
    is_paged=True,
    count=lambda snapshot, given: (
        None
        if given.version or given.excludes or given.latest or given.prefix
        else snapshot.count_dependents(given.project)
    ),
)
def dependents(
    snapshot: Snapshot, given: DependentsParameters, after: After = None
) -> Found[Dependent] | Found[TransitiveDependent]:
    """List the projects that require a project.

    Each project is listed with the versions that require it always, only under a marker, and only with an extra.
    """
    if given.transitive:
        return snapshot.transitive_dependents(given.project, given.depth, given.latest)
    find = snapshot.all_dependents if given.prefix else snapshot.dependents
    return find(given.project, _wanted(given), after)
