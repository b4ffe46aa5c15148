"""Resolves for several environments, and joins what is chosen for each into one answer with markers.

An answer for one environment is the same without markers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pypi_assets.resolve.candidates import Conditions, Row, allowed_files, installable_files
from pypi_assets.resolve.marker_choice import simplest_marker
from pypi_assets.resolve.proofs import Proof
from pypi_assets.resolve.questions import Question
from pypi_assets.resolve.releases import ReleaseIndex
from pypi_assets.resolve.resolving import MOST_SECONDS, Pin, Resolution, UnsolvableError, resolve
from pypi_assets.resolve.targets import Target


class UnsolvableTargetError(UnsolvableError):
    """The requirements have no solution for `target`. The text is the proof; of several targets, it names the one."""

    def __init__(self, proof: Proof, target: Target, *, is_one_of_several: bool) -> None:
        super().__init__(proof)
        if is_one_of_several:
            self.args = (f"For {target}:\n{proof}",)
        self.target = target


@dataclass(frozen=True, slots=True)
class JoinedRelease:
    """A version that was chosen for some of the environments, and the marker that holds in these; None: in all.

    `pins` has what was chosen, by the environment. `requires` are the releases (normalized name, version) that it
    requires. `required_by` are the projects that require it, with the requirement; the empty name is the question.
    """

    project: str
    normalized: str
    version: str
    extras: tuple[str, ...]
    marker: str | None
    pins: Mapping[Target, Pin]
    requires: tuple[tuple[str, str], ...]
    required_by: tuple[tuple[str, str], ...]

    @property
    def is_unknown(self) -> bool:
        """Whether it is only assumed that it requires nothing."""
        return any(pin.is_unknown for pin in self.pins.values())

    @property
    def is_yanked(self) -> bool:
        return any(pin.candidate.is_yanked for pin in self.pins.values())


@dataclass(frozen=True, slots=True)
class JoinedResolution:
    """What was chosen as of `serial`, by normalized name and version. `roots` are the projects that are named."""

    serial: int
    question: Question
    targets: tuple[Target, ...]
    releases: tuple[JoinedRelease, ...]
    roots: tuple[str, ...]
    steps: int

    def installable_files(self, release: JoinedRelease) -> list[Row]:
        """The files of a release that an installer can take in one of the environments, the best first."""
        found: dict[str, Row] = {}
        for target, pin in release.pins.items():
            for file in installable_files(pin.candidate.files, self._conditions(target, pin.normalized)):
                if pin.candidate.is_yanked or not file["yanked"]:
                    found.setdefault(file["filename"], file)
        return list(found.values())

    def allowed_files(self, release: JoinedRelease) -> list[Row]:
        """The files of a release that the question allows, for whichever environment."""
        target, pin = next(iter(release.pins.items()))
        return allowed_files(pin.candidate.files, self._conditions(target, pin.normalized))

    def _conditions(self, target: Target, project: str) -> Conditions:
        return replace(self.question, environment=target.environment).conditions_of(project)


def resolve_for(
    index: ReleaseIndex, question: Question, targets: Sequence[Target], *, most_seconds: float = MOST_SECONDS
) -> JoinedResolution:
    """Resolves for each of the environments, instead of for that of the question.

    What was chosen for one environment is preferred for those after it, so that they agree as far as they can. Raises
    UnsolvableTargetError, and what `resolve` raises else.
    """
    found: dict[Target, Resolution] = {}
    preferred = dict(question.preferred)
    for target in targets:
        of_target = replace(question, environment=target.environment, preferred=preferred)
        try:
            found[target] = resolve(index, of_target, most_seconds=most_seconds)
        except UnsolvableError as error:
            raise UnsolvableTargetError(error.proof, target, is_one_of_several=len(targets) > 1) from None
        preferred = {**found[target].pins, **preferred}
    return JoinedResolution(
        serial=index.serial,
        question=question,
        targets=tuple(targets),
        releases=tuple(_joined(found)),
        roots=tuple(dict.fromkeys(root for one in found.values() for root in one.roots)),
        steps=sum(one.steps for one in found.values()),
    )


def _joined(found: Mapping[Target, Resolution]) -> Iterator[JoinedRelease]:
    of_releases: dict[tuple[str, str], dict[Target, Pin]] = {}
    for target, resolution in found.items():
        for name, pin in resolution.releases.items():
            of_releases.setdefault((name, pin.version), {})[target] = pin
    environments = tuple(target.variables for target in found)
    for (name, version), pins in sorted(of_releases.items()):
        required = ((one, found[target].releases[one].version) for target, pin in pins.items() for one in pin.requires)
        yield JoinedRelease(
            project=next(iter(pins.values())).project,
            normalized=name,
            version=version,
            extras=tuple(sorted({extra for pin in pins.values() for extra in pin.extras})),
            marker=simplest_marker(frozenset(target.variables for target in pins), environments),
            pins=pins,
            requires=tuple(sorted(set(required))),
            required_by=tuple(dict.fromkeys(one for pin in pins.values() for one in pin.required_by)),
        )
