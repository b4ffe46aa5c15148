"""The question `collisions`: find modules that several pinned distributions have.

If these distributions are installed together, only one copy of such a module remains. A package that several
distributions share is not always a collision: namespace packages (PEP 420, pkgutil, pkg_resources) consist of such
shares. It is unknown which packages are namespace packages, so all shared packages are listed separately.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Annotated, TypedDict

from packaging.requirements import Requirement

from pypi_assets.locks.environments import named_environment
from pypi_assets.locks.lock_content import LockError, checked_version
from pypi_assets.locks.pins import Lock, Pin, merged
from pypi_assets.questions.locks import LockedAnswer, LockedPins, PinnedRelease
from pypi_assets.questions.names import PLATFORM, PYTHON
from pypi_assets.questions.question import Accepts, ParameterError, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot

MOST_PINS = 1_000


class CollidingDistribution(TypedDict):
    """A pinned distribution, and its files that have the modules."""

    project: str
    normalized: str
    version: str
    filenames: list[str]


class Collision(TypedDict):
    """Modules that exactly these distributions have. The distributions are in the order in which pip installs them.

    `pip` is the project that pip installs last, so its modules remain. `uv` is always None: uv installs in parallel, so
    any of the distributions may remain.
    """

    modules: list[str]
    distributions: list[CollidingDistribution]
    pip: str
    uv: None


class SharedPackage(TypedDict):
    """A package into which several projects (normalized) put modules."""

    package: str
    projects: list[str]


class RemarkResult(TypedDict):
    """A sentence for people, with its kind, and with the project (normalized) that it is about, if there is one."""

    kind: str
    project: str | None
    text: str


class CollisionsResult(TypedDict):
    """The modules and packages that distributions have in common.

    `pins` counts the pins that the environment installs, and `known` counts the pins that are on the index.
    """

    python: str | None
    platform: str | None
    pins: int
    known: int
    collisions: list[Collision]
    shared_packages: list[SharedPackage]
    remarks: list[RemarkResult]


@dataclass(frozen=True)
class CollisionsParameters(Parameters):
    """The versions to install together, and the environment."""

    pins: Annotated[
        tuple[str, ...],
        Accepts(
            text=f"up to {MOST_PINS} versions as NAME==VERSION, optionally with extras and markers",
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

    If these distributions are installed together, the last one overwrites the modules of the others. `pip` is the
    distribution that pip installs last.
    """
    environment = named_environment(given.python, given.platform)
    pins, remarks = merged(_pin(text, number) for number, text in enumerate(given.pins, 1))
    answer = LockedPins(Lock("pins", pins, remarks), environment).answer(snapshot)
    return snapshot.collected("depgraph", CollisionsResult, [as_result(answer, given.python, given.platform)])


def _pin(text: str, number: int) -> Pin:
    """Return the pin in a text. Raises ParameterError."""
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
    """Return the collisions and remarks of an answer. `python` and `platform` are the names of its environment."""
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
    """Return the modules for which several projects have a file, grouped by these projects, sorted by module."""
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
    """Return the packages, by name, in which several projects have modules without a collision.

    If several projects have a file for the package itself, it is a collision and is not listed here.
    """
    leaves = leaf_projects(answer.releases)
    return [
        SharedPackage(package=module, projects=sorted(projects))
        for module, projects in sorted(module_projects(answer.releases).items())
        if len(projects) > 1 and len(leaves.get(module, ())) < 2
    ]


def module_projects(releases: Iterable[PinnedRelease]) -> dict[str, set[str]]:
    """Return the projects (normalized) that have each module."""
    return _projects((one, one.modules) for one in releases)


def leaf_projects(releases: Iterable[PinnedRelease]) -> dict[str, set[str]]:
    """Return the projects (normalized) that have each module as a leaf, so that they have a file of this name."""
    return _projects((one, leaves_of(one.modules)) for one in releases)


def leaves_of(modules: Collection[str]) -> set[str]:
    """Return the modules without submodules among these.

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
