"""The question `resolve`: find the versions that an installer would choose."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pypi_assets.questions.names import DEFAULT_PLATFORM, DEFAULT_PYTHON, PLATFORM, PYTHON
from pypi_assets.questions.question import Accepts, CombinationError, ParameterError, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot
from pypi_assets.resolve.formats.json_answer import ResolutionResult

if TYPE_CHECKING:
    from pypi_assets.resolve.questions import Wanted
    from pypi_assets.resolve.releases import ReleaseIndex

MOST_REQUIREMENTS = 5_000
_REQUIREMENT = "a requirement in pip's syntax"
_MOST_HOURS = 87_600
_MOST_HINTED = 5


def _requirements(text: str) -> Accepts:
    return Accepts(text=f"up to {MOST_REQUIREMENTS} {text}", min_length=1, max_length=4_000, most=MOST_REQUIREMENTS)


@dataclass(frozen=True)
class ResolveParameters(Parameters):
    """The requirements to resolve, the environment, and the rules to follow."""

    requirements: Annotated[tuple[str, ...], _requirements("requirements in pip's syntax, such as requests>=2.30")]
    constraints: Annotated[tuple[str, ...], _requirements("constraints, which limit versions but install nothing")] = ()
    python: Annotated[str, PYTHON] = DEFAULT_PYTHON
    platform: Annotated[str, PLATFORM] = DEFAULT_PLATFORM
    semantics: Annotated[Literal["pip", "uv"], Accepts(text="the installer whose resolution rules to follow")] = "pip"
    prereleases: Annotated[bool, Accepts(text="treat pre-releases like other releases")] = False
    only_binary: Annotated[bool, Accepts(text="use no sdists")] = False
    cooldown_hours: Annotated[
        int,
        Accepts(text="ignore files that were uploaded within this number of hours", ge=0, le=_MOST_HOURS),
    ] = 0
    unknown: Annotated[
        Literal["fail", "assume-none"],
        Accepts(text="if the requirements of a file are unknown: fail, or assume that there are none"),
    ] = "fail"


class ResolutionWork(Protocol):
    """A resolution to run with the releases of an index, within a number of seconds."""

    def __call__(self, index: "ReleaseIndex", *, seconds: float) -> ResolutionResult: ...


class Resolver(Protocol):
    """Runs resolutions elsewhere, such as in another process, with the releases of the snapshot that is queried."""

    def resolution(self, work: ResolutionWork, /) -> ResolutionResult:
        """Return the result of the work."""


def resolution(
    given: ResolveParameters, before: datetime | None, index: "ReleaseIndex", *, seconds: float
) -> ResolutionResult:
    """Return the versions that are chosen from an index, or the proof that there is no solution.

    Files that were uploaded at `before` or later are ignored. `seconds` includes the time for parsing. Raises
    ParameterError, ResolveError and ResolutionLimitError.
    """
    from pypi_assets.resolve.formats.json_answer import as_json, proof_as_json
    from pypi_assets.resolve.questions import Control, ResolutionQuestion, Semantics, Unknown
    from pypi_assets.resolve.targets import target
    from pypi_assets.resolve.universal import UnsolvableTargetError, resolve_for

    ends = monotonic() + seconds
    environment = target(given.python, given.platform)
    asked = ResolutionQuestion(
        requirements=_parsed(given.requirements, "requirements", ends),
        constraints=_parsed(given.constraints, "constraints", ends),
        environment=environment.environment,
        semantics=Semantics(given.semantics),
        prereleases=Control.for_all(given.prereleases),
        only_binary=given.only_binary,
        uploaded_before=before,
        unknown=Unknown(given.unknown),
    )
    try:
        return as_json(resolve_for(index, asked, [environment], most_seconds=ends - monotonic()))
    except UnsolvableTargetError as error:
        return proof_as_json(index.serial, asked, error, ())


def _parsed(texts: Sequence[str], name: str, ends: float) -> "tuple[Wanted, ...]":
    """Parse requirements. Thousands of them can take seconds."""
    from pypi_assets.resolve.questions import ResolveError, parse_wanted
    from pypi_assets.resolve.solver_data import ResolutionLimitError

    found = []
    for text in texts:
        if monotonic() > ends:
            raise ResolutionLimitError("parsing the requirements took longer than a resolution may take")
        try:
            found.append(parse_wanted(text))
        except ResolveError as error:
            raise ParameterError(name, text, _REQUIREMENT, str(error)) from None
    return tuple(found)


def resolved_by(
    resolver: Resolver | None, snapshot: Snapshot, given: ResolveParameters, _after: After = None
) -> Found[ResolutionResult]:
    """Return the answer of `resolve`, computed by the resolver, or in this process if it is None."""
    before = None
    if given.cooldown_hours:
        moment = snapshot.moment()
        if moment is None:
            text = "the time of this serial is unknown, so a cooldown cannot count back from it"
            raise CombinationError("cooldown_hours", given.cooldown_hours, "0 at this serial", text)
        before = moment - timedelta(hours=given.cooldown_hours)
    work = partial(resolution, given, before)
    if resolver is None:
        from pypi_assets.resolve.resolving import MOST_SECONDS

        found = work(snapshot.release_index(), seconds=MOST_SECONDS)
    else:
        found = resolver.resolution(work)
    if found["proof"] is not None:
        found["proof"]["hints"] = list(hints_about(snapshot, found["proof"]["projects"]))
    return snapshot.collected("depgraph", ResolutionResult, [found])


def hints_about(snapshot: Snapshot, projects: Sequence[str]) -> Iterator[str]:
    """Yield sentences with similar names for the projects that have no live files."""
    unknown = [name for name in projects if not snapshot.versions(name)]
    for name in unknown[:_MOST_HINTED]:
        for hint in snapshot.project_hints(name):
            yield str(hint) if len(unknown) == 1 else f"{name}: {hint}"


@question(
    "resolve",
    path="/v1/resolve",
    example="'requests>=2.30' --python 3.12 --platform linux-x86_64",
    argument="REQUIREMENT...",
    result=ResolutionResult,
    has_body=True,
    is_single=True,
    answer_with=resolved_by,
)
def resolve(snapshot: Snapshot, given: ResolveParameters, after: After = None) -> Found[ResolutionResult]:
    """Show which versions an installer would choose.

    The answer is for one environment, with the reason for each version. If there is no solution, `releases` is null,
    and `proof` has the steps of the proof. A service stops a resolution that takes too long.
    """
    return resolved_by(None, snapshot, given, after)
