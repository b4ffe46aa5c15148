"""Which of the pinned distributions each module is from, where a tool takes one for each, and their top-level names."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name

from pypi_assets.distributions.requirements import required_projects
from pypi_assets.export.spellings import all_spellings, toml_array, toml_key
from pypi_assets.questions.collisions import collisions, leaf_projects, module_projects
from pypi_assets.questions.locks import LockedAnswer, PinnedRelease


@dataclass(frozen=True, slots=True)
class ModuleOwners:
    """`owners` has the project (normalized) of each module. Left out are packages that several projects share and none
    of them is known to own: namespace packages are such.
    """

    owners: dict[str, str] = field(default_factory=dict)

    def simplified(self) -> dict[str, str]:
        """The same without modules whose nearest ancestor that is left has the same project.

        Where tools look a module up by its nearest ancestor, both lead to the same.
        """
        left: dict[str, str] = {}
        for module in sorted(self.owners):
            if nearest(left, module.rpartition(".")[0]) != self.owners[module]:
                left[module] = self.owners[module]
        return left


def topmost(modules: Iterable[str]) -> list[str]:
    """The modules that lie below none of the others, sorted.

    >>> topmost(["a.b", "a.b.c", "d"])
    ['a.b', 'd']
    """
    found: dict[str, str] = {}
    for module in sorted(modules):
        if nearest(found, module) is None:
            found[module] = module
    return list(found)


def nearest(mapping: Mapping[str, str], module: str) -> str | None:
    """The value of the module, else of the nearest package around it that has one.

    >>> nearest({"a": "x", "a.b": "y"}, "a.b.c")
    'y'
    """
    while module:
        if module in mapping:
            return mapping[module]
        module = module.rpartition(".")[0]
    return None


def module_owners(answer: LockedAnswer) -> ModuleOwners:
    """Who has each module of the pinned distributions.

    One project: that one. Several with a file for it: the one that pip installs last, which remains. One with a file,
    and others with modules below: that one. Several with modules below alone: `_package_owner` decides.
    """
    places = {name: place for place, name in enumerate(answer.pip_order)}
    leaves = leaf_projects(answer.releases)
    providers = module_projects(answer.releases)
    requires = _required_by(answer)
    beneath = _colliding_below(answer)
    owners = {}
    for module, projects in providers.items():
        candidates = leaves.get(module) or projects
        owner = (
            max(candidates, key=places.__getitem__)
            if len(candidates) == 1 or module in leaves
            else _package_owner(module, candidates, requires, beneath.get(module, set()), places)
        )
        if owner is not None:
            owners[module] = owner
    return ModuleOwners(owners)


def _package_owner(
    package: str,
    projects: Set[str],
    requires: Mapping[str, Set[str]],
    colliding: Set[str],
    places: Mapping[str, int],
) -> str | None:
    """The project of a package in which several have modules; None where it looks like a namespace package.

    That is the one that all the others require, else the one of this name, else, where the projects have files of the
    same names in it, the one that pip installs last.
    """
    counts = Counter(one for other in projects for one in requires[other] if one != other)
    required = [one for one in projects if counts[one] == len(projects) - 1]
    if len(required) == 1:
        return required[0]
    if (named := str(canonicalize_name(package))) in projects:
        return named
    return max(colliding, key=places.__getitem__, default=None)


def _required_by(answer: LockedAnswer) -> dict[str, set[str]]:
    """What each project requires, always or under a condition."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for release in answer.releases:
        for file in release.chosen:
            found[release.pin.normalized] |= required_projects(file.requires_dist or ()).keys()
    return found


def _colliding_below(answer: LockedAnswer) -> dict[str, set[str]]:
    """The projects that have a file for the same module somewhere below each package."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for collision in collisions(answer):
        projects = {one["normalized"] for one in collision["distributions"]}
        for package in _packages_around(collision["modules"]):
            found[package] |= projects
    return found


def _packages_around(modules: Iterable[str]) -> set[str]:
    found = set()
    for module in modules:
        while (module := module.rpartition(".")[0]) and module not in found:
            found.add(module)
    return found


def described_modules(release: PinnedRelease) -> list[str]:
    """The modules that a distribution without modules has stubs of, sorted, without those below others.

    >>> described_modules(types_pyyaml)
    ['yaml']
    """
    return [] if release.modules else topmost(stub for file in release.chosen for stub in file.stubs)


def stub_only(answer: LockedAnswer) -> dict[str, list[str]]:
    """The modules that each stub-only distribution (normalized) describes."""
    found: dict[str, set[str]] = {}
    for release in answer.releases:
        if described := described_modules(release):
            found.setdefault(release.pin.normalized, set()).update(described)
    return {project: topmost(modules) for project, modules in found.items()}


def top_level_names(answer: LockedAnswer) -> dict[str, list[str]]:
    """The sorted top-level names of each project that has modules or stubs, by each spelling of its name.

    Stubs are named as their folder is: `yaml-stubs`.
    """
    names: dict[str, set[str]] = {}
    for release in answer.releases:
        roots = {module.partition(".")[0] for module in release.modules}
        roots |= {f"{module.partition('.')[0]}-stubs" for module in described_modules(release)}
        for spelling in all_spellings(release) if roots else ():
            names.setdefault(spelling, set()).update(roots)
    return {spelling: sorted(names[spelling]) for spelling in sorted(names)}


def toml_lines(answer: LockedAnswer) -> str:
    """The same as lines of a table of TOML."""
    return "".join(f"{toml_key(name)} = {toml_array(roots)}\n" for name, roots in top_level_names(answer).items())
