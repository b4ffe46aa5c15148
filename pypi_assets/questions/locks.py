"""The versions that a lock pins, as the index has them: their files, with modules and requirements."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pypi_assets.locks.environments import Environment
from pypi_assets.locks.pins import Lock, LockedFile, Pin, Remark, RemarkKind, selected_pins
from pypi_assets.lookup.pinned_files import PinnedFile
from pypi_assets.questions.snapshot import Found, Snapshot
from pypi_assets.version_order import newest_release

_PYTHON = "<python>"
"""pip's internal requirement on Python, which every distribution with Requires-Python has. It influences the order."""
_MOST_VISITS = 5
_ROOT = ""


@dataclass(frozen=True, slots=True)
class InstalledDistribution:
    """A distribution to install, with everything that pip's order depends on.

    `name` is normalized. `extras` are the extras with which it is required.
    """

    name: str
    requires_dist: tuple[str, ...] = ()
    extras: frozenset[str] = frozenset()
    has_requires_python: bool = False


def pip_order(distributions: Iterable[InstalledDistribution], environment: Environment) -> list[str]:
    """Return the names in the order in which `pip install` installs them together.

    Distributions without requirements come first, then distributions that require only these, and so on. Distributions
    in a dependency cycle come last. Ties are sorted by name in reverse order. A requirement counts if its marker may
    hold.

        pip_order([Installed("app", ("lib",)), Installed("lib"), Installed("x")], ANY_ENVIRONMENT)  # x, lib, app
    """
    known = {one.name: one for one in distributions}
    graph = _graph(known, environment)
    weights = _layers(graph)
    circles = {node: required - weights.keys() for node, required in graph.items() if node not in weights}
    weights |= _depths(circles)
    return sorted(known, key=lambda name: (weights[name], name), reverse=True)


def _graph(known: Mapping[str, InstalledDistribution], environment: Environment) -> dict[str, Set[str]]:
    """Return the requirements among the distributions, as a graph.

    A distribution with extras is a separate node, which requires the node without extras.
    """
    graph: dict[str, Set[str]] = {}
    todo = [(name, extra) for name, one in known.items() for extra in (frozenset(), one.extras)]
    while todo:
        name, extras = todo.pop()
        node = _node(name, extras)
        if node in graph:
            continue
        required = {name} if extras else set()
        if known[name].has_requires_python:
            required.add(_PYTHON)
        for other, wanted in _required(known[name], extras, environment):
            if other in known:
                required.add(_node(other, wanted))
                todo.append((other, wanted))
        graph[node] = required - {node}
    if any(_PYTHON in required for required in graph.values()):
        graph[_PYTHON] = set()
    return graph


def _node(name: str, extras: frozenset[str]) -> str:
    return f"{name}[{','.join(sorted(extras))}]" if extras else name


def _required(
    one: InstalledDistribution, extras: frozenset[str], environment: Environment
) -> Iterable[tuple[str, frozenset[str]]]:
    for text in one.requires_dist:
        try:
            requirement = Requirement(text)
            marker = None if requirement.marker is None else str(requirement.marker)
            holds = any(environment.with_extra(extra).holds(marker) is not False for extra in extras or {""})
        except (InvalidRequirement, ValueError, RecursionError):  # no installer can read it either
            continue
        if holds:
            yield canonicalize_name(requirement.name), frozenset(map(canonicalize_name, requirement.extras))


def _layers(graph: Mapping[str, Set[str]]) -> dict[str, int]:
    """Return the weight of each node that leads into no cycle.

    The first layer has the nodes without requirements. The nodes in each following layer require only nodes of the
    layers before. The weight of a node is the number of all nodes, less the nodes in the layers before.
    """
    requiring: dict[str, list[str]] = {node: [] for node in graph}
    missing = {node: len(required) for node, required in graph.items()}
    for node, required in graph.items():
        for other in required:
            requiring[other].append(node)
    weights: dict[str, int] = {}
    layer = [node for node, count in missing.items() if not count]
    while layer:
        weights |= dict.fromkeys(layer, len(graph) - len(weights))
        following = []
        for node in layer:
            for other in requiring[node]:
                missing[other] -= 1
                if not missing[other]:
                    following.append(other)
        layer = following
    return weights


def _depths(graph: Mapping[str, Set[str]]) -> dict[str, int]:
    """Return the longest path that was found to each node in a cycle, and to each node that requires one.

    Like pip, this visits no node more than a few times, because the number of paths can be astronomical.
    """
    depths: dict[str, int] = {}
    visits: dict[str, int] = dict.fromkeys(graph, 0)
    path: dict[str, None] = {_ROOT: None}
    todo = [iter(sorted(graph))]
    while todo:
        node = next(todo[-1], None)
        if node is None:
            todo.pop()
            left, _ = path.popitem()
            if left != _ROOT:
                visits[left] += 1
                depths[left] = max(depths.get(left, 0), len(path))
        elif node not in path and visits[node] < _MOST_VISITS:
            path[node] = None
            todo.append(iter(sorted(graph[node])))
    return depths


_KINDS = ("wheel", "sdist")
"""The kinds of files that installers accept."""
_SHA256 = "sha256"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class PinnedRelease:
    """A pin with the display name of its project and all files of the version.

    `chosen` are the files that an installer may choose in the environment.
    """

    pin: Pin
    project: str
    files: tuple[PinnedFile, ...]
    chosen: tuple[PinnedFile, ...]

    @property
    def modules(self) -> frozenset[str]:
        """Return the known modules of the chosen files."""
        return frozenset(module for file in self.chosen for module in file.modules or ())


@dataclass(frozen=True, slots=True)
class LockedAnswer:
    """The results for the pins of a lock that an environment installs, as of `serial`.

    `pip_order` lists the normalized names of the releases in the order in which pip installs them. `epoch` is the epoch
    of the serial if the catalog answers.
    """

    lock: str
    serial: int
    environment: Environment
    pins: tuple[Pin, ...]
    releases: tuple[PinnedRelease, ...]
    pip_order: tuple[str, ...]
    remarks: tuple[Remark, ...]
    epoch: int | None = None


class LockedPins:
    """The pins of a lock that an environment installs. Raises LockError before anything is opened."""

    def __init__(self, lock: Lock, environment: Environment) -> None:
        self._filename, self._environment = lock.filename, environment
        self._pins, remarks = selected_pins(lock, environment)
        self._remarks = (*lock.remarks, *remarks)

    def answer(self, snapshot: Snapshot) -> LockedAnswer:
        """Return the releases of the pins in a snapshot. Raises LeveldbError and CatalogError."""
        known = snapshot.collected("depgraph", dict, ())
        releases, found = pinned_releases(self._pins, snapshot, known, self._environment)
        return LockedAnswer(
            lock=self._filename,
            serial=known.serial,
            environment=self._environment,
            pins=self._pins,
            releases=tuple(releases),
            pip_order=tuple(pip_order(map(_installed, releases), self._environment)),
            remarks=(*self._remarks, *found),
        )


def pinned_releases(
    pins: Iterable[Pin], snapshot: Snapshot, known: Found[Any], environment: Environment
) -> tuple[list[PinnedRelease], list[Remark]]:
    """Return the known releases of pins, in the same order, and remarks about unknown pins and differing files.

    `known` is any answer of the snapshot about files. It provides the serial and the number of followed projects.
    """
    releases, remarks = [], []
    for pin in pins:
        found = snapshot.pinned_files(pin.normalized, pin.version)
        if found is None:
            remarks.append(Remark(RemarkKind.UNKNOWN, _absence(pin, snapshot, known), pin.normalized))
            continue
        project, files = found
        remark = partial(_remark, pin)
        locked = _locked(pin, files, remarks.append, remark)
        chosen = _chosen(locked, environment)
        releases.append(PinnedRelease(pin, project, files, chosen))
        remarks += _remarks_on(locked, chosen, remark)
    return releases, remarks


def _remark(pin: Pin, kind: RemarkKind, text: str) -> Remark:
    return Remark(kind, f"{pin.text}: {text}", pin.normalized)


def _locked(
    pin: Pin,
    files: tuple[PinnedFile, ...],
    report: Callable[[Remark], None],
    remark: Callable[[RemarkKind, str], Remark],
) -> tuple[PinnedFile, ...]:
    """Return the files that the lock lists. If it lists none, or none that the index has, return all files."""
    named = [one for one in pin.files if one.filename is not None or _SHA256 in one.hashes]
    if not named:
        return files
    by_name = {file.filename: file for file in files}
    by_hash = {file.sha256: file for file in files}
    locked: dict[str, PinnedFile] = {}
    missing = []
    for one in named:
        sha256 = one.hashes.get(_SHA256)
        file = by_hash.get(sha256) if one.filename is None else by_name.get(one.filename)
        if file is None:
            missing.append(one)
            continue
        locked[file.filename] = file
        if sha256 is not None and file.sha256 not in {None, sha256}:
            text = f"the index has {file.filename} with the SHA-256 {file.sha256}, but the lock with {sha256}"
            report(remark(RemarkKind.OTHER_HASH, text))
    if missing:
        left = "" if locked else ", so all files of the version are used"
        text = f"{len(missing)} of {len(named)} files in the lock are not on the index: {_some(missing)}{left}"
        report(remark(RemarkKind.MISSING_FILE, text))
    return tuple(file for file in files if file.filename in locked) or files


def _some(missing: Sequence[LockedFile]) -> str:
    names = [one.filename or f"sha256:{one.hashes[_SHA256]}" for one in missing[:_SHOWN]]
    return ", ".join([*names, *(["..."] if len(missing) > _SHOWN else [])])


def _chosen(files: Sequence[PinnedFile], environment: Environment) -> tuple[PinnedFile, ...]:
    """Return the files that an installer may choose: matching wheels, or sdists if there are none.

    If the environment is fully known, only the best wheel is returned.
    """
    usable = [file for file in files if file.kind in _KINDS and environment.allows(file.requires_python)]
    ranks = environment.ranks(file.filename for file in usable if file.kind == "wheel")
    if ranks and environment.is_whole:
        best = min(ranks, key=lambda filename: (ranks[filename], filename))
        ranks = {best: ranks[best]}
    wheels = tuple(file for file in usable if file.filename in ranks)
    return wheels or tuple(file for file in usable if file.kind == "sdist")


def _remarks_on(
    files: Sequence[PinnedFile], chosen: Sequence[PinnedFile], remark: Callable[[RemarkKind, str], Remark]
) -> Iterator[Remark]:
    if all(file.yanked for file in files):
        yield remark(RemarkKind.YANKED, "this version is yanked")
    if not chosen:
        yield remark(RemarkKind.NO_FILE, f"none of its {len(files)} files fits this environment")
    elif chosen[0].kind == "sdist" and chosen[0].modules is not None:
        text = "no wheel fits, so the modules are the ones that the sdist declares"
        yield remark(RemarkKind.FROM_SDIST, text)
    for file in chosen:
        if file.modules is None:
            text = f"the modules of {file.filename} are unknown (read: {file.outcome})"
            yield remark(RemarkKind.UNREAD, text)


def _absence(pin: Pin, snapshot: Snapshot, known: Found[Any]) -> str:
    """Return why a pinned version is unknown."""
    if sentence := snapshot.unfollowed(pin.normalized):
        return f"{pin.where}: {pin.text}: {sentence}"
    start = f"{pin.where}: {pin.text} is not on the index as of serial {known.serial}"
    if versions := snapshot.versions(pin.normalized):
        return f"{start}; its newest version is {newest_release(versions)}"
    return f"{start}: there is no such project"


def _installed(release: PinnedRelease) -> InstalledDistribution:
    """Return the data for pip's order, from the file that pip chooses, or from the first file that it may choose."""
    file = next(iter(release.chosen or release.files))
    return InstalledDistribution(
        name=release.pin.normalized,
        requires_dist=file.requires_dist or (),
        extras=release.pin.extras,
        has_requires_python=file.requires_python is not None,
    )
