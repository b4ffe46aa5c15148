"""Modules that more than one of the pinned distributions has: installed together, one of them remains.

A package that several distributions share is no collision by itself: namespace packages (PEP 420, pkgutil,
pkg_resources) are made of such shares. Which packages these are is not known, so all that are shared are named apart.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Annotated, TypedDict

from packaging.requirements import Requirement

from pypi_assets.locks.environments import EnvironmentNameError, named_environment
from pypi_assets.locks.lock_content import LockError, checked_version
from pypi_assets.locks.pins import Lock, Pin, merged
from pypi_assets.questions.locks import LockedAnswer, LockedPins, PinnedRelease
from pypi_assets.questions.names import PLATFORM, PYTHON
from pypi_assets.questions.question import Accepts, ParameterError, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot

MOST_PINS = 1_000


class CollidingDistribution(TypedDict):
    """A pinned distribution, and those of its files that have the modules."""

    project: str
    normalized: str
    version: str
    filenames: list[str]


class Collision(TypedDict):
    """Modules that exactly these distributions have, in the order in which pip installs them: the last one remains.

    `pip` is its project. `uv` is always None: it installs in parallel, so any of them may remain.
    """

    modules: list[str]
    distributions: list[CollidingDistribution]
    pip: str
    uv: None


class SharedPackage(TypedDict):
    """A package that these projects (normalized) put modules into."""

    package: str
    projects: list[str]


class RemarkResult(TypedDict):
    """A sentence that people should know, its kind, and the project (normalized) that it is about, if any."""

    kind: str
    project: str | None
    text: str


class CollisionsResult(TypedDict):
    """What distributions have in common. Of the `pins` that the environment installs, `known` are on the index."""

    python: str | None
    platform: str | None
    pins: int
    known: int
    collisions: list[Collision]
    shared_packages: list[SharedPackage]
    remarks: list[RemarkResult]


@dataclass(frozen=True)
class CollisionsParameters(Parameters):
    """Which versions are installed together, and where."""

    pins: Annotated[
        tuple[str, ...],
        Accepts(
            text=f"up to {MOST_PINS} versions as NAME==VERSION, with extras and markers if needed",
            min_length=1,
            max_length=300,
            most=MOST_PINS,
        ),
    ]
    python: Annotated[str | None, Accepts(text=f"{PYTHON.text}; default: any", pattern=PYTHON.pattern)] = None
    platform: Annotated[str | None, Accepts(text=f"{PLATFORM.text}; default: any", pattern=PLATFORM.pattern)] = None


@question(
    "collisions",
    path="/v1/collisions",
    example="requirements.txt --python 3.12 --platform linux",
    argument="LOCK",
    result=CollisionsResult,
    has_body=True,
    is_single=True,
)
def of_pins(snapshot: Snapshot, given: CollisionsParameters, _after: After = None) -> Found[CollisionsResult]:
    """Show modules that several pinned distributions have.

    Installed together, one of them overwrites the others: `pip` is the distribution that pip installs last.
    """
    try:
        environment = named_environment(given.python, given.platform)
    except EnvironmentNameError as error:
        raise ParameterError("platform", given.platform, PLATFORM.text, str(error)) from None
    pins, remarks = merged(_pin(text, number) for number, text in enumerate(given.pins, 1))
    answer = LockedPins(Lock("pins", pins, remarks), environment).answer(snapshot)
    return snapshot.collected("depgraph", CollisionsResult, [as_result(answer, given.python, given.platform)])


def _pin(text: str, number: int) -> Pin:
    """Return what a text pins. Raises ParameterError."""
    from pypi_assets.locks.requirement_lines import pinned_version
    from pypi_assets.resolve.questions import ResolveError, parse_wanted

    where = f"pin {number}"
    try:
        wanted = parse_wanted(text)
        version = pinned_version(wanted.specifier)
        if version is None or wanted.url is not None:
            raise ParameterError("pins", text, "versions as NAME==VERSION")
        checked_version(version, f"{where}: ")
    except (ResolveError, LockError) as error:
        raise ParameterError("pins", text, "versions as NAME==VERSION", str(error)) from None
    marker = None if wanted.marker is None else str(wanted.marker)
    return Pin(Requirement(text).name, wanted.project, version, where, marker=marker, extras=frozenset(wanted.extras))


def as_result(answer: LockedAnswer, python: str | None, platform: str | None) -> CollisionsResult:
    """Return the collisions of an answer for the environment of these names, with what people should know."""
    return CollisionsResult(
        python=python,
        platform=platform,
        pins=len(answer.pins),
        known=len(answer.releases),
        collisions=collisions(answer),
        shared_packages=shared_packages(answer),
        remarks=[RemarkResult(kind=one.kind.value, project=one.project, text=one.text) for one in answer.remarks],
    )


def collisions(answer: LockedAnswer) -> list[Collision]:
    """The modules that several projects have a file for, grouped by the projects; by the first module of each group."""
    providers = {name: projects for name, projects in leaf_projects(answer.releases).items() if len(projects) > 1}
    groups: defaultdict[frozenset[str], list[str]] = defaultdict(list)
    for module, projects in providers.items():
        groups[frozenset(projects)].append(module)
    places = {name: place for place, name in enumerate(answer.pip_order)}
    of_project: defaultdict[str, list[PinnedRelease]] = defaultdict(list)
    for release in answer.releases:
        of_project[release.pin.normalized].append(release)
    found = []
    for together, modules in groups.items():
        releases = sorted(
            (one for project in together for one in of_project[project]),
            key=lambda one: (places[one.pin.normalized], one.pin.version),
        )
        distributions = [_distribution(one, modules) for one in releases]
        last = next(one["project"] for one in reversed(distributions) if one["filenames"])
        found.append(Collision(modules=sorted(modules), distributions=distributions, pip=last, uv=None))
    return sorted(found, key=lambda one: one["modules"])


def shared_packages(answer: LockedAnswer) -> list[SharedPackage]:
    """The packages, by name, that several projects have modules in, or one of them the file of."""
    leaves = leaf_projects(answer.releases)
    return [
        SharedPackage(package=module, projects=sorted(projects))
        for module, projects in sorted(module_projects(answer.releases).items())
        if len(projects) > 1 and len(leaves.get(module, ())) < 2
    ]


def module_projects(releases: Iterable[PinnedRelease]) -> dict[str, set[str]]:
    """The projects (normalized) that have each module."""
    return _projects((one, one.modules) for one in releases)


def leaf_projects(releases: Iterable[PinnedRelease]) -> dict[str, set[str]]:
    """The projects that have each module as a leaf: with nothing below, so that there is a file of this name."""
    return _projects((one, leaves_of(one.modules)) for one in releases)


def leaves_of(modules: Collection[str]) -> set[str]:
    """The modules that have none of the others below them.

    >>> leaves_of(["a", "a.b", "c"])
    {'a.b', 'c'}
    """
    return set(modules) - {module.rpartition(".")[0] for module in modules}


def _projects(provided: Iterable[tuple[PinnedRelease, Collection[str]]]) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for release, modules in provided:
        for module in modules:
            found[module].add(release.pin.normalized)
    return found


def _distribution(release: PinnedRelease, modules: Collection[str]) -> CollidingDistribution:
    wanted = set(modules)
    return CollidingDistribution(
        project=release.project,
        normalized=release.pin.normalized,
        version=release.pin.version,
        filenames=[file.filename for file in release.chosen if not wanted.isdisjoint(file.modules or ())],
    )
