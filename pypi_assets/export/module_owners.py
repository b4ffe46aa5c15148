"""Find the pinned distribution that owns each module, for tools that need exactly one, and export top-level names."""

import gzip
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import orjson
from packaging.utils import canonicalize_name

from pypi_assets.distributions.requirement_names import required_projects
from pypi_assets.locks.lock_content import toml_text
from pypi_assets.lookup.import_owners import Evidence, OwnerSource, ranked_providers
from pypi_assets.lookup.owner_ranking import OwnerCandidate, is_junk_root
from pypi_assets.questions.collisions import collisions, leaf_projects, module_projects
from pypi_assets.questions.locks import LockedAnswer, PinnedRelease

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_PLAIN_YAML = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_RESERVED_YAML = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def header(name: str, lock: str) -> str:
    """Return the comment at the start of a file: the command that generates the file."""
    shown = lock if lock.isprintable() and " " not in lock else json.dumps(lock)
    return f"# Made by `pypi-assets export {name} --lock {shown}`.\n"


def wheel_name(release: PinnedRelease) -> str:
    """Return the filename of a wheel up to the first `-`. Without a wheel, derive this name from the project's name."""
    wheels = sorted(file.filename for file in release.chosen if file.kind == "wheel")
    return wheels[0].partition("-")[0] if wheels else release.pin.normalized.replace("-", "_")


def all_spellings(release: PinnedRelease) -> list[str]:
    """Return the spellings of the project's name, sorted: the display name, the lock's spelling, the normalized name.

    Some tools look up a requirement by its spelling.
    """
    return sorted({release.project, release.pin.name, release.pin.normalized})


def toml_array(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(toml_text, texts))}]"


def toml_key(name: str) -> str:
    """Return `name` as a TOML key, quoted if necessary: a dot would split it."""
    return name if _BARE_KEY.fullmatch(name) else toml_text(name)


def yaml_text(text: str) -> str:
    """Return `text` as a YAML scalar (1.1 and 1.2), quoted if it could be read as something other than a string."""
    is_plain = _PLAIN_YAML.fullmatch(text) and text.lower() not in _RESERVED_YAML
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def python_mapping(mapping: Mapping[str, Iterable[str]], indent: str) -> str:
    """Return a dictionary of lists in BUILD file syntax, one line for each key, sorted."""
    lines = []
    for key in sorted(mapping):
        items = ", ".join(json.dumps(item, ensure_ascii=False) for item in mapping[key])
        lines.append(f"{indent}    {json.dumps(key)}: [{items}],\n")
    return f"{{\n{''.join(lines)}{indent}}}" if lines else "{}"


@dataclass(frozen=True, slots=True)
class ModuleOwners:
    """The project (normalized) that owns each module.

    A package that several projects share is omitted if no project is known to own it, as for namespace packages.
    """

    owners: dict[str, str] = field(default_factory=dict)

    def simplified(self) -> dict[str, str]:
        """Return the owners without modules whose nearest listed ancestor has the same owner.

        Tools that look up a module by its nearest ancestor find the same owner either way.
        """
        left: dict[str, str] = {}
        for module in sorted(self.owners):
            if nearest(left, module.rpartition(".")[0]) != self.owners[module]:
                left[module] = self.owners[module]
        return left


def topmost(modules: Iterable[str]) -> list[str]:
    """Return the modules that are not below another one of these, sorted.

    >>> topmost(["a.b", "a.b.c", "d"])
    ['a.b', 'd']
    """
    found: dict[str, str] = {}
    for module in sorted(modules):
        if nearest(found, module) is None:
            found[module] = module
    return list(found)


def nearest(mapping: Mapping[str, str], module: str) -> str | None:
    """Return the value of the module, or of its nearest ancestor that has a value.

    >>> nearest({"a": "x", "a.b": "y"}, "a.b.c")
    'y'
    """
    while module:
        if module in mapping:
            return mapping[module]
        module = module.rpartition(".")[0]
    return None


def module_owners(answer: LockedAnswer) -> ModuleOwners:
    """Return the owner of each module in the pinned distributions.

    - If one project has the module, this project owns it.
    - If several projects have a file for it, the one that pip installs last owns it, because its file remains.
    - If one project has a file for it and others only have submodules, the former owns it.
    - If several projects only have submodules, `_package_owner` decides.
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
    """Return the owner of a package in which several projects have modules, or None if it may be a namespace package.

    The owner is the project that all others require. Without one, it is the project that has the package's name.
    Without one, if projects have colliding files in the package, it is the project that pip installs last.
    """
    counts = Counter(one for other in projects for one in requires[other] if one != other)
    required = [one for one in projects if counts[one] == len(projects) - 1]
    if len(required) == 1:
        return required[0]
    if (named := str(canonicalize_name(package))) in projects:
        return named
    return max(colliding, key=places.__getitem__, default=None)


def _required_by(answer: LockedAnswer) -> dict[str, set[str]]:
    """Return the requirements of each project, with or without a condition."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for release in answer.releases:
        for file in release.chosen:
            found[release.pin.normalized] |= required_projects(file.requires_dist or ()).keys()
    return found


def _colliding_below(answer: LockedAnswer) -> dict[str, set[str]]:
    """Return, for each package, the projects that have a file for the same module somewhere below it."""
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
    """Return the modules for which a stub-only distribution has stubs, sorted, without submodules of listed modules.

    >>> described_modules(types_pyyaml)
    ['yaml']
    """
    return [] if release.modules else topmost(stub for file in release.chosen for stub in file.stubs)


def stub_only(answer: LockedAnswer) -> dict[str, list[str]]:
    """Return the modules for which each stub-only distribution (normalized) has stubs."""
    found: dict[str, set[str]] = {}
    for release in answer.releases:
        if described := described_modules(release):
            found.setdefault(release.pin.normalized, set()).update(described)
    return {project: topmost(modules) for project, modules in found.items()}


def top_level_names(answer: LockedAnswer) -> dict[str, list[str]]:
    """Return the sorted top-level names of each project that has modules or stubs, for each spelling of its name.

    Stubs have the name of their folder, such as `yaml-stubs`.
    """
    names: dict[str, set[str]] = {}
    for release in answer.releases:
        roots = {module.partition(".")[0] for module in release.modules}
        roots |= {f"{module.partition('.')[0]}-stubs" for module in described_modules(release)}
        for spelling in all_spellings(release) if roots else ():
            names.setdefault(spelling, set()).update(roots)
    return {spelling: sorted(names[spelling]) for spelling in sorted(names)}


def toml_lines(answer: LockedAnswer) -> str:
    """Return `top_level_names` as lines of a TOML table."""
    return "".join(f"{toml_key(name)} = {toml_array(roots)}\n" for name, roots in top_level_names(answer).items())


FORMAT = 1
MOST_CANDIDATES = 3
_REMEMBERED_NAMES = 10_000
_LEVEL = 6


class TopLevelName(NamedTuple):
    """A top-level name, the number of projects that provide it, and the best of them."""

    name: str
    providers: int
    best: list[OwnerCandidate]


class Exported(NamedTuple):
    """The result of an export: the serial, the number of names, and the size of the file in bytes."""

    serial: int
    names: int
    size: int


class TopLevelSource(OwnerSource, Protocol):
    """A snapshot that lists top-level names."""

    def top_level_names(self) -> Iterator[str]:
        """Yield the top-level names of all modules, in the order of their UTF-8 bytes."""


def top_level_owners(source: TopLevelSource, most: int = MOST_CANDIDATES) -> Iterator[TopLevelName]:
    """Yield all top-level names with their owners, in the order of their UTF-8 bytes."""
    evidence = Evidence(source)
    for number, name in enumerate(source.top_level_names(), 1):
        if number % _REMEMBERED_NAMES == 0:  # so that memory does not grow with the number of projects
            evidence = Evidence(source)
        candidates = ranked_providers(evidence, name, evidence.providers(name))
        if candidates:  # none if installers reject all files
            yield TopLevelName(name, len(candidates), candidates[:most])


def export_top_level(
    source: TopLevelSource, path: Path, most: int = MOST_CANDIDATES, progress: Callable[[int], object] = int
) -> Exported:
    """Write the file, compressed if its name ends in `.gz`. It appears at `path` only once it is complete.

    Equal datasets give equal bytes. `progress` is called with the number of names written so far.
    """
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        names = _write(source, path.suffix == ".gz", unfinished, most, progress)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return Exported(source.serial, names, path.stat().st_size)


def _write(
    source: TopLevelSource, is_compressed: bool, path: Path, most: int, progress: Callable[[int], object]
) -> int:
    count = 0
    with path.open("wb") as plain:
        file = gzip.GzipFile("", "wb", _LEVEL, plain, mtime=0) if is_compressed else plain
        header = {"format": FORMAT, "serial": source.serial, "most": most}
        file.write(orjson.dumps(header) + b"\n")
        for count, one in enumerate(top_level_owners(source, most), 1):
            best = [[each["project"], each["score"], each["reasons"]["dependents"]] for each in one.best]
            file.write(orjson.dumps([one.name, one.providers, int(is_junk_root(one.name)), best]) + b"\n")
            if count % _REMEMBERED_NAMES == 0:
                progress(count)
        if file is not plain:
            file.close()
    progress(count)
    return count
