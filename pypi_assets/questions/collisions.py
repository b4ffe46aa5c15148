"""Modules that more than one of the pinned distributions has: installed together, one of them remains.

A package that several distributions share is no collision by itself: namespace packages (PEP 420, pkgutil,
pkg_resources) are made of such shares. Which packages these are is not known, so all that are shared are named apart.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import TypedDict

from pypi_assets.questions.locks import LockedAnswer, PinnedRelease


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
