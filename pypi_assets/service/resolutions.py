"""The route of resolutions: which versions an installer would choose."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from pypi_assets.locks.environments import EnvironmentNameError
from pypi_assets.questions.breaks import DEFAULT_PLATFORM, DEFAULT_PYTHON, PLATFORM_PATTERN, PYTHON_PATTERN
from pypi_assets.resolve.formats.json_answer import ResolutionResult
from pypi_assets.resolve.questions import Control, Question, Semantics, Unknown
from pypi_assets.resolve.releases import ReleaseIndex
from pypi_assets.resolve.targets import Target, target
from pypi_assets.service.answers import Answer, to_json
from pypi_assets.service.lookups import One, past_answer
from pypi_assets.service.operations import Call, Operation, Parameters
from pypi_assets.service.pins import NOT_EXACT, Pinned
from pypi_assets.service.problems import ProblemError, bad_parameter
from pypi_assets.service.resolver import AskedTexts, Job, resolution
from pypi_assets.service.service import Service

MOST_REQUIREMENTS = 5_000
RequirementText = Annotated[
    str, Meta(min_length=1, max_length=4_000, description="a requirement as pip has it, such as requests>=2.30")
]
Requirements = Annotated[
    tuple[RequirementText, ...],
    Meta(max_length=MOST_REQUIREMENTS, description=f"up to {MOST_REQUIREMENTS} requirements as pip has them"),
]
PythonText = Annotated[str, Meta(pattern=PYTHON_PATTERN, description="a version of CPython, 3.12 or 3.12.4")]
PlatformText = Annotated[
    str,
    Meta(
        pattern=PLATFORM_PATTERN,
        description="linux-x86_64, macos-arm64, windows-x86_64 and others, or a platform as wheels name it",
    ),
]
CooldownHours = Annotated[
    int, Meta(ge=0, le=87_600, description="hours: files that were uploaded within this time are left out")
]


class ResolveParameters(Parameters, frozen=True):
    """The question is in the body."""


class ResolveBody(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What to resolve, for which environment, and by whose rules."""

    requirements: Requirements
    constraints: Requirements = ()
    python: PythonText = DEFAULT_PYTHON
    platform: PlatformText = DEFAULT_PLATFORM
    semantics: Literal["pip", "uv"] = "pip"
    prereleases: bool = False
    only_binary: bool = False
    cooldown_hours: CooldownHours = 0
    unknown: Literal["fail", "assume-none"] = "fail"


def resolved(service: Service, pinned: Pinned | None, body: ResolveBody, client: str) -> ResolutionResult:
    """The answer to a client, as values of JSON. Raises ProblemError, which names what is wrong with the question."""
    moment = datetime.now(UTC) if pinned is None else pinned.at
    environment = environment_of(body.python, body.platform, "body")
    question = Question(
        requirements=(),
        environment=environment.environment,
        semantics=Semantics(body.semantics),
        prereleases=Control.for_all(body.prereleases),
        only_binary=body.only_binary,
        uploaded_before=_before(moment, body.cooldown_hours),
        unknown=Unknown(body.unknown),
    )
    seconds = service.settings.service_resolve_timeout_s
    asked = AskedTexts(body.requirements, body.constraints)
    work = partial(resolution, question=question, asked=asked, targets=[environment], most_seconds=seconds)
    found: ResolutionResult = service.resolver.answer(job_of(service, pinned, work, seconds), client)
    return found


def job_of(service: Service, pinned: Pinned | None, work: Callable[[ReleaseIndex], Any], seconds: float) -> Job:
    """A job about the index that an answer is of."""
    if pinned is None:
        return Job(work, seconds, set_id=service.datasets().id)
    return Job(work, seconds, serial=pinned.serial, epoch=pinned.epoch)


def environment_of(python: str, platform: str, parameter: str) -> Target:
    """The environment of these names. Raises ProblemError, with the parameter that names it."""
    try:
        return target(python, platform)
    except EnvironmentNameError as error:
        raise bad_parameter(parameter, str(error)) from None


def _resolve(service: Service, call: Call[ResolveParameters]) -> Answer:
    pinned = call.pinned
    if pinned is not None:
        found = resolved(service, pinned, call.body, call.client)
        return past_answer(pinned, One[ResolutionResult](serial=pinned.serial, epoch=pinned.epoch, result=found))
    service = service.of_one_set()
    datasets = service.datasets()
    found = resolved(service, None, call.body, call.client)
    return Answer(
        to_json(One[ResolutionResult](serial=datasets.serial, set=datasets.id, result=found)), serial=datasets.serial
    )


def _before(moment: datetime | None, hours: int) -> datetime | None:
    if not hours:
        return None
    if moment is None:
        raise ProblemError(
            NOT_EXACT, "not-exact", "no time is known of this serial, from which a cooldown could count back"
        )
    return moment - timedelta(hours=hours)


RESOLVE = Operation(
    path="/v1/resolve",
    method="POST",
    handler=_resolve,
    summary="Which versions an installer would choose",
    description=(
        "For one environment, with what requires what. Where there is no solution, `releases` is null, and `proof` has"
        " the steps that show it. It is ended with a problem where it takes too long."
    ),
    parameters=ResolveParameters,
    body=ResolveBody,
    answer=One[ResolutionResult],
)
OPERATIONS = (RESOLVE,)
