"""Dependents lookup: from a project to the projects that require it."""

from dataclasses import dataclass
from typing import Annotated

from pypi_assets.lookup.depgraph_reader import Dependent, TransitiveDependent
from pypi_assets.questions.names import Prefix, ProjectName
from pypi_assets.questions.question import Accepts, ParameterError, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot

_COLUMNS = ("normalized", "always", "marker", "extra")


@dataclass(frozen=True)
class DependentsParameters(Parameters):
    """Whose dependents, and which of them."""

    project: ProjectName
    prefix: Prefix = False
    latest: Annotated[bool, Accepts(text="only projects whose own newest version requires it, with that version")] = (
        False
    )
    transitive: Annotated[bool, Accepts(text="also the dependents of dependents, and so on")] = False
    depth: Annotated[int | None, Accepts(text="with transitive: no more steps than this", ge=1)] = None


def _check(given: DependentsParameters) -> None:
    if given.depth is not None and not given.transitive:
        raise ParameterError("depth", given.depth, "empty without transitive")
    if given.transitive and given.prefix:
        raise ParameterError("transitive", True, "false with prefix")


def _columns(given: DependentsParameters) -> tuple[str, ...]:
    if given.transitive:
        return ("depth", "required", *_COLUMNS)
    return ("required", *_COLUMNS) if given.prefix else _COLUMNS


def _nothing_found(given: DependentsParameters) -> str:
    whom = f"one that begins with {given.project}" if given.prefix else given.project
    return f"no project requires {whom}{' in its newest version' if given.latest else ''}"


@question(
    "dependents",
    example="requests",
    result=Dependent,
    columns=_columns,
    check=_check,
    nothing_found=_nothing_found,
    hints=lambda snapshot, given: snapshot.project_hints(given.project),
)
def dependents(
    snapshot: Snapshot, given: DependentsParameters, _after: After = None
) -> Found[Dependent] | Found[TransitiveDependent]:
    """List the projects that require a project.

    Each comes with the versions that require it always, only by a marker, and only with an extra.
    """
    if given.transitive:
        return snapshot.transitive_dependents(given.project, given.depth, given.latest)
    if given.prefix:
        return snapshot.all_dependents(given.project, given.latest)
    return snapshot.dependents(given.project, given.latest)
