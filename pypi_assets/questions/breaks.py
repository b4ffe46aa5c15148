"""The question `breaks`: find the projects whose newest releases a version breaks."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from packaging.version import Version

from pypi_assets.lookup.newest_requirements import is_release
from pypi_assets.lookup.release_impact import Break, Solvable
from pypi_assets.lookup.release_impact import breaks as search
from pypi_assets.lookup.requirement_filters import parse_version
from pypi_assets.questions.impact import ABOUT_A_VERSION, COLUMNS, Transitive
from pypi_assets.questions.names import (
    DEFAULT_PLATFORM,
    DEFAULT_PYTHON,
    PLATFORM,
    PYTHON,
    Depth,
    ExactProjectName,
    version_of,
)
from pypi_assets.questions.question import Accepts, CombinationError, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot

if TYPE_CHECKING:
    from pypi_assets.resolve.questions import ResolutionQuestion as Resolution

MOST_SOLVING_S = 600
"""The longest time that an answer may spend on resolutions."""


@dataclass(frozen=True)
class BreaksParameters(Parameters):
    """Parameters of `breaks`."""

    project: ExactProjectName
    version: Annotated[str, version_of("the version that breaks projects; with solve, it must be live")]
    transitive: Transitive = False
    depth: Depth = None
    solve: Annotated[bool, Accepts(text="also list projects that have no solution with the version")] = False
    seconds: Annotated[int, Accepts(text="with solve: the time limit for all resolutions", ge=1, le=MOST_SOLVING_S)] = (
        30
    )
    python: Annotated[str, PYTHON] = DEFAULT_PYTHON
    platform: Annotated[str, PLATFORM] = DEFAULT_PLATFORM
    semantics: Annotated[
        Literal["pip", "uv"], Accepts(text="with solve: the installer whose resolution rules to follow")
    ] = "pip"
    unknown: Annotated[
        Literal["fail", "assume-none"],
        Accepts(text="with solve: if a file's requirements are unknown, report undecided or assume there are none"),
    ] = "fail"


SOLVING = ("solve", "seconds", "python", "platform", "semantics", "unknown")
"""The parameters that only matter with `solve`."""
Solver = Callable[[Snapshot, BreaksParameters, Version], Solvable]


def resolutions_of(given: BreaksParameters, version: Version) -> "tuple[Resolution, Resolution]":
    """Return the two questions to resolve for each project: constrained to this version, and unconstrained."""
    from pypi_assets.resolve.questions import ResolutionQuestion, Semantics, Unknown
    from pypi_assets.resolve.solutions import with_version
    from pypi_assets.resolve.targets import target

    environment = target(given.python, given.platform).environment
    without = ResolutionQuestion((), environment, semantics=Semantics(given.semantics), unknown=Unknown(given.unknown))
    return with_version(without, given.project, version), without


def solvable_here(snapshot: Snapshot, given: BreaksParameters, version: Version) -> Solvable:
    """Return a function that judges projects by resolving them in this process."""
    from pypi_assets.lookup.release_impact import Verdict
    from pypi_assets.resolve.solutions import Allowance, verdict_on

    with_it, without = resolutions_of(given, version)
    index, allowance = snapshot.release_index(), Allowance(given.seconds)

    def solvable(project: str, newest: str) -> Verdict | None:
        verdict = partial(verdict_on, index, with_it, without, project, newest)
        return allowance.spend(verdict, partial(Verdict, "undecided"))

    return solvable


def breaks_by(solver: Solver, snapshot: Snapshot, given: BreaksParameters, after: After = None) -> Found[Break]:
    """Return the answer of `breaks`, with the resolutions of this solver. Raises ParameterError."""
    version = parse_version(given.version)
    snapshot.require_answered(given.project)
    if given.solve and not is_release(version, (one for one, _ in snapshot.versions(given.project))):
        raise CombinationError("version", given.version, f"a live release of {given.project} with solve")

    found = search(
        snapshot,
        given.project,
        version,
        transitive=given.transitive,
        depth=given.depth,
        after=None if after is None else after[0],
        solvable=solver(snapshot, given, version) if given.solve else None,
    )
    return snapshot.streamed(Break, found)


def _nothing_found(given: BreaksParameters) -> str:
    excluded = f"no project's newest release excludes {given.project} {given.version}"
    return f"{excluded}, and every one has a solution with it" if given.solve else excluded


@question(
    "breaks",
    path="/v1/projects/{project}/breaks",
    example="urllib3==2.0 --transitive",
    argument="PROJECT==VERSION",
    result=Break,
    columns=lambda given: (
        *("reason", *COLUMNS),
        *(("chain",) if given.transitive else ()),
        *(("older", "proof") if given.solve else ()),
    ),
    nothing_found=_nothing_found,
    long_by=lambda given: "transitive" if given.transitive else "solve" if given.solve else None,
    is_timed=lambda given: given.solve,
    answer_with=breaks_by,
    **ABOUT_A_VERSION,
)
def breaks(snapshot: Snapshot, given: BreaksParameters, after: After = None) -> Found[Break]:
    """Show projects whose newest release excludes VERSION of PROJECT.

    A transitive answer also has the projects whose newest release requires the newest release of one of these, and so
    on. With solve, it also has the projects whose newest release has no solution with the version, with the proof. It
    checks all projects that can lead to PROJECT by any of their releases. A project that cannot be decided within the
    limits is listed as undecided.
    """
    return breaks_by(solvable_here, snapshot, given, after)
