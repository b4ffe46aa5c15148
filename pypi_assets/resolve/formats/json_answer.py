"""The JSON format of a resolution or of the proof that there is none. docs/resolving.md describes the fields."""

from collections.abc import Sequence
from typing import TypedDict

from pypi_assets.resolve.formats.text import remarks_on
from pypi_assets.resolve.questions import ALL, ResolutionQuestion
from pypi_assets.resolve.targets import Target
from pypi_assets.resolve.universal import JoinedRelease, JoinedResolution, UnsolvableTargetError


class TargetResult(TypedDict):
    """An environment: the names of its Python and platform, and the marker that holds there."""

    python: str
    platform: str
    marker: str


class RequiredResult(TypedDict):
    """A release that another release requires."""

    normalized: str
    version: str


class RequiringResult(TypedDict):
    """The origin of a requirement: a project, or null for the question."""

    normalized: str | None
    requirement: str


class ChosenFileResult(TypedDict):
    """A file that can be installed in one of the environments. `size` is in bytes."""

    filename: str
    kind: str
    sha256: str | None
    size: int | None
    uploaded_at: str | None
    requires_python: str | None


class ChosenReleaseResult(TypedDict):
    """A chosen release. `marker` is set if it is only for some of the environments."""

    project: str
    normalized: str
    version: str
    extras: list[str]
    marker: str | None
    yanked: bool
    requirements_known: bool
    requires: list[RequiredResult]
    required_by: list[RequiringResult]
    files: list[ChosenFileResult]


class ProofResult(TypedDict):
    """The proof if nothing can be chosen: its steps, the projects in them, and hints at similar names."""

    steps: list[str]
    projects: list[str]
    hints: list[str]


class QuestionResult(TypedDict):
    """The question: what to resolve, and by which rules."""

    requirements: list[str]
    constraints: list[str]
    semantics: str
    prereleases: bool
    only_binary: bool
    unknown: str
    uploaded_before: str | None


class ResolutionResult(QuestionResult):
    """A resolution as of `serial`. If there is no solution, `releases` is null and `proof` is set.

    `roots` are the projects in the requirements of the question. `steps` is the number of steps of the solver.
    """

    serial: int
    environments: list[TargetResult]
    roots: list[str]
    releases: list[ChosenReleaseResult] | None
    remarks: list[str]
    steps: int
    proof: ProofResult | None


def as_json(answer: JoinedResolution) -> ResolutionResult:
    """Return the result for a question that has a solution."""
    return ResolutionResult(
        serial=answer.serial,
        **_question(answer.question),
        environments=list(map(_target, answer.targets)),
        roots=list(answer.roots),
        releases=[_release(answer, release) for release in answer.releases],
        remarks=list(remarks_on(answer)),
        steps=answer.steps,
        proof=None,
    )


def proof_as_json(
    serial: int, question: ResolutionQuestion, error: UnsolvableTargetError, hints: Sequence[str]
) -> ResolutionResult:
    """Return the result for a question that has no solution in the environment of the error."""
    return ResolutionResult(
        serial=serial,
        **_question(question),
        environments=[_target(error.target)],
        roots=list(dict.fromkeys(one.project for one in question.requirements)),
        releases=None,
        remarks=[],
        steps=0,
        proof=ProofResult(
            steps=list(error.proof.steps), projects=list(error.proof.projects), hints=list(map(str, hints))
        ),
    )


def _question(question: ResolutionQuestion) -> QuestionResult:
    return QuestionResult(
        requirements=[one.text for one in question.requirements],
        constraints=[one.text for one in question.constraints],
        semantics=question.semantics.value,
        prereleases=ALL in question.prereleases.yes,
        only_binary=question.only_binary or ALL in question.formats.yes,
        unknown=question.unknown.value,
        uploaded_before=None if question.uploaded_before is None else question.uploaded_before.isoformat(),
    )


def _target(target: Target) -> TargetResult:
    return TargetResult(python=target.python, platform=target.platform, marker=target.marker)


def _release(answer: JoinedResolution, release: JoinedRelease) -> ChosenReleaseResult:
    return ChosenReleaseResult(
        project=release.project,
        normalized=release.normalized,
        version=release.version,
        extras=list(release.extras),
        marker=release.marker,
        yanked=release.is_yanked,
        requirements_known=not release.is_unknown,
        requires=[RequiredResult(normalized=name, version=version) for name, version in release.requires],
        required_by=[
            RequiringResult(normalized=name or None, requirement=requirement)
            for name, requirement in release.required_by
        ],
        files=[
            ChosenFileResult(
                filename=file["filename"],
                kind=file["kind"],
                sha256=file["sha256"],
                size=file["size"],
                uploaded_at=file["uploaded_at"],
                requires_python=file["requires_python"],
            )
            for file in answer.installable_files(release)
        ],
    )
