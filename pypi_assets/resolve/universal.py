"""Resolve for several environments, and join the results into one answer with markers.

An answer for a single environment has the same form without markers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple

from pypi_assets.resolve.candidates import Conditions, Row, allowed_files, installable_files
from pypi_assets.resolve.proofs import Proof
from pypi_assets.resolve.questions import ResolutionQuestion
from pypi_assets.resolve.releases import ReleaseIndex
from pypi_assets.resolve.resolving import MOST_SECONDS, ChosenVersion, Resolution, UnsolvableError, resolve
from pypi_assets.resolve.targets import Target

Variables = tuple[str, str, str]
"""The values of python_version, sys_platform and platform_machine: MARKER_VARIABLES of `targets.py`."""
_PYTHON, _PLATFORM, _MACHINE = "python_version", "sys_platform", "platform_machine"


class _Term(NamedTuple):
    """Comparisons that must all be true, the environments in which they are (as bits), and their complexity."""

    bits: int
    cost: tuple[int, int]
    text: str


def simplest_marker(chosen: frozenset[Variables], environments: tuple[Variables, ...]) -> str | None:
    """Return the marker that holds exactly in the `chosen` ones of the environments, or None if all are chosen.

    >>> windows, linux = ("3.12", "win32", "AMD64"), ("3.12", "linux", "x86_64")
    >>> simplest_marker(frozenset({windows}), (windows, linux))
    "sys_platform == 'win32'"

    No two environments may have the same variables. The result is the simplest single term if there is one. Otherwise
    it joins terms by `or`, as few as can be found.
    """
    wanted = sum(1 << number for number, one in enumerate(environments) if one in chosen)
    if wanted == (1 << len(environments)) - 1:
        return None
    within = [term for term in _terms(environments) if term.bits and not term.bits & ~wanted]
    found = sorted(term.text for term in _pair(within, wanted) or _covering(within, wanted))
    texts = [f"({text})" if len(found) > 1 and " and " in text else text for text in found]
    return " or ".join(texts)


def _pair(terms: Sequence[_Term], wanted: int) -> list[_Term]:
    """Return the simplest term that holds in all wanted environments, else the simplest pair, else []."""
    one = min((term for term in terms if term.bits == wanted), key=lambda term: term.cost, default=None)
    if one is not None:
        return [one]
    simplest: dict[int, _Term] = {}
    for term in terms:
        if term.bits not in simplest or term.cost < simplest[term.bits].cost:
            simplest[term.bits] = term
    pairs = (pair for pair in combinations(simplest.values(), 2) if pair[0].bits | pair[1].bits == wanted)
    return list(min(pairs, key=lambda pair: _sum(pair[0].cost, pair[1].cost), default=()))


def _covering(terms: Sequence[_Term], wanted: int) -> list[_Term]:
    """Return terms that together hold in all wanted environments, greedily choosing the one that covers most."""
    found, left = [], wanted
    while left:
        best = max(terms, key=lambda term: ((term.bits & left).bit_count(), [-part for part in term.cost]))
        found.append(best)
        left &= ~best.bits
    return found


@lru_cache(16)
def _terms(environments: tuple[Variables, ...]) -> list[_Term]:
    pythons, platforms, machines = (sorted({one[place] for one in environments}) for place in range(3))
    pythons.sort(key=_version)
    every = (1 << len(environments)) - 1
    terms = []
    for parts in product(
        _of_pythons(pythons, environments),
        _of_values(_PLATFORM, platforms, 1, environments),
        _of_values(_MACHINE, machines, 2, environments),
    ):
        bits = every
        for part in parts:
            bits &= part.bits
        text = " and ".join(part.text for part in parts if part.text)
        terms.append(_Term(bits, _sum(*(part.cost for part in parts)), text))
    return terms


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _sum(*costs: tuple[int, int]) -> tuple[int, int]:
    return sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)


def _of_pythons(pythons: Sequence[str], environments: Sequence[Variables]) -> Iterator[_Term]:
    """Yield a term for any Python, and terms for each range of versions."""

    def term(cost: tuple[int, int], text: str, first: int, after: int) -> _Term:
        some = set(pythons[first:after])
        return _Term(sum(1 << number for number, one in enumerate(environments) if one[0] in some), cost, text)

    count = len(pythons)
    yield term((0, 0), "", 0, count)
    for place in range(1, count):
        yield term((1, 0), f"{_PYTHON} < '{pythons[place]}'", 0, place)
        yield term((1, 0), f"{_PYTHON} >= '{pythons[place]}'", place, count)
    for first, after in combinations(range(1, count), 2):
        if after == first + 1:
            yield term((1, 0), f"{_PYTHON} == '{pythons[first]}'", first, after)
        else:
            text = f"{_PYTHON} >= '{pythons[first]}' and {_PYTHON} < '{pythons[after]}'"
            yield term((2, 0), text, first, after)


def _of_values(name: str, values: Sequence[str], place: int, environments: Sequence[Variables]) -> Iterator[_Term]:
    """Yield a term for any value, and terms for each value and each value's negation.

    Among equally complex terms, the platform is simpler than the machine, and `==` is simpler than `!=`.
    """
    every = (1 << len(environments)) - 1
    yield _Term(every, (0, 0), "")
    for value in values:
        bits = sum(1 << number for number, one in enumerate(environments) if one[place] == value)
        yield _Term(bits, (1, 2 * place), f"{name} == '{value}'")
        yield _Term(every & ~bits, (1, 2 * place + 1), f"{name} != '{value}'")


class UnsolvableTargetError(UnsolvableError):
    """The requirements have no solution for `target`. The message is the proof, and names one target of several."""

    def __init__(self, proof: Proof, target: Target, *, is_one_of_several: bool) -> None:
        super().__init__(proof)
        if is_one_of_several:
            self.args = (f"For {target}:\n{proof}",)
        self.target = target


@dataclass(frozen=True, slots=True)
class JoinedRelease:
    """A version that was chosen for some of the environments, and the marker for these. None: it was chosen for all.

    `pins` has the choice by environment. `requires` has the releases that it requires, as (normalized name, version).
    `required_by` has the projects that require it, with the requirement. The name "" stands for the question.
    """

    project: str
    normalized: str
    version: str
    extras: tuple[str, ...]
    marker: str | None
    pins: Mapping[Target, ChosenVersion]
    requires: tuple[tuple[str, str], ...]
    required_by: tuple[tuple[str, str], ...]

    @property
    def is_unknown(self) -> bool:
        """Check whether it is only assumed that the version has no requirements."""
        return any(pin.is_unknown for pin in self.pins.values())

    @property
    def is_yanked(self) -> bool:
        return any(pin.candidate.is_yanked for pin in self.pins.values())


@dataclass(frozen=True, slots=True)
class JoinedResolution:
    """The chosen releases as of `serial`, by normalized name and version. `roots` are the projects in the question."""

    serial: int
    question: ResolutionQuestion
    targets: tuple[Target, ...]
    releases: tuple[JoinedRelease, ...]
    roots: tuple[str, ...]
    steps: int

    def installable_files(self, release: JoinedRelease) -> list[Row]:
        """Return the files of a release that an installer can choose in one of the environments, the best first."""
        found: dict[str, Row] = {}
        for target, pin in release.pins.items():
            for file in installable_files(pin.candidate.files, self._conditions(target, pin.normalized)):
                if pin.candidate.is_yanked or not file["yanked"]:
                    found.setdefault(file["filename"], file)
        return list(found.values())

    def allowed_files(self, release: JoinedRelease) -> list[Row]:
        """Return the files of a release that the question allows in any environment."""
        target, pin = next(iter(release.pins.items()))
        return allowed_files(pin.candidate.files, self._conditions(target, pin.normalized))

    def _conditions(self, target: Target, project: str) -> Conditions:
        return replace(self.question, environment=target.environment).conditions_of(project)


def resolve_for(
    index: ReleaseIndex, question: ResolutionQuestion, targets: Sequence[Target], *, most_seconds: float = MOST_SECONDS
) -> JoinedResolution:
    """Resolve for each of the environments. The environment of the question is ignored.

    The versions chosen for one environment are preferred in the following ones, so that they agree as far as possible.
    Raises UnsolvableTargetError, and all other errors of `resolve`.
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
    of_releases: dict[tuple[str, str], dict[Target, ChosenVersion]] = {}
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
