"""Define the pins of a lock, the parts that all formats share, and the selection of pins for an environment."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

from pypi_assets.locks.environments import Environment
from pypi_assets.locks.lock_content import LockError, shown, text_at


class RemarkKind(StrEnum):
    """The subject of a remark. The first four follow from the lock itself.

    - ELSEWHERE: an entry that comes from a path, a URL or version control and not from an index.
    - UNKNOWN_OPTION: an option that the format does not have. It is ignored.
    - REPEATED: a duplicate entry.
    - TWO_VERSIONS: two versions of a project for one environment.
    - UNKNOWN: the project or this version is unknown.
    - YANKED: all files of the version are yanked.
    - MISSING_FILE: the index does not have a file that the lock names.
    - OTHER_HASH: the index has another sha256 for a file.
    - NO_FILE: no file of the version fits the environment.
    - UNREAD: the modules of a file are unknown.
    - FROM_SDIST: no wheel fits, so the modules are those that the sdist declares.
    - NO_REQUIREMENTS: the requirements of an sdist are unknown before it is built.
    - COLLISION: another distribution has the same module.
    """

    ELSEWHERE = "elsewhere"
    UNKNOWN_OPTION = "unknown option"
    REPEATED = "repeated"
    TWO_VERSIONS = "two versions"
    UNKNOWN = "unknown"
    YANKED = "yanked"
    MISSING_FILE = "missing file"
    OTHER_HASH = "other hash"
    NO_FILE = "no file"
    UNREAD = "unread"
    FROM_SDIST = "from sdist"
    NO_REQUIREMENTS = "no requirements"
    COLLISION = "collision"


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to know about an answer: a sentence, and the normalized project that it is about, if any."""

    kind: RemarkKind
    text: str
    project: str | None = None


@dataclass(frozen=True, slots=True)
class LockedFile:
    """A file in a lock. `filename` is None if only its hash is given. `hashes` are in hex by algorithm."""

    filename: str | None
    hashes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pin:
    """A version that a lock pins. `name` is as written, and `where` is the place in the lock, for users.

    Without a `marker`, it applies to all environments. Without `files`, the lock accepts any file of the version.
    `index` is the URL of the index, if the lock names it. Installers stop with an error if `requires_python` excludes
    their Python.
    """

    name: str
    normalized: str
    version: str
    where: str
    marker: str | None = None
    extras: frozenset[str] = frozenset()
    files: tuple[LockedFile, ...] = ()
    index: str | None = None
    requires_python: str | None = None

    @property
    def text(self) -> str:
        return f"{self.name}=={self.version}"


Node = tuple[str, str | None, str]
"""A package of a graph: its normalized name, its version, and its source, since two indexes can have one version.

The version is "" if the lock has none, and None stands for all versions of the name from any source.
"""


@dataclass(frozen=True, slots=True)
class Requires:
    """A requirement of one package on another, with extras and a marker.

    `by_extra` is the extra of the requiring package that causes it, or None if it always applies.
    """

    node: Node
    extras: frozenset[str] = frozenset()
    marker: str | None = None
    by_extra: str | None = None


@dataclass(frozen=True, slots=True)
class Graph:
    """The requirements between packages of a lock and its root packages, for locks that have markers only there.

    `versions` are the packages of each name.
    """

    roots: tuple[Node, ...]
    requires: Mapping[Node, tuple[Requires, ...]]
    versions: Mapping[str, tuple[Node, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock: its `filename`, its pins sorted by normalized name and version, and `remarks` on other entries.

    It applies only to the versions of Python in `requires_python`. If there are `environments`, which are markers, one
    of them must hold.
    """

    filename: str
    pins: tuple[Pin, ...]
    remarks: tuple[Remark, ...] = ()
    graph: Graph | None = None
    requires_python: str | None = None
    environments: tuple[str, ...] = ()


def merged(pins: Iterable[Pin]) -> tuple[tuple[Pin, ...], tuple[Remark, ...]]:
    """Return the sorted pins with each project and version once, and a remark on each duplicate."""
    by_version: dict[tuple[str, str], list[Pin]] = {}
    first: dict[tuple[str, str, str | None], Pin] = {}
    remarks = []
    for pin in pins:
        by_version.setdefault((pin.normalized, pin.version), []).append(pin)
        known = first.setdefault((pin.normalized, pin.version, pin.marker), pin)
        if known is not pin:
            text = f"{pin.where}: {pin.text} is a duplicate of {known.where}"
            remarks.append(Remark(RemarkKind.REPEATED, text, pin.normalized))
    return tuple(_joined(by_version[key]) for key in sorted(by_version)), tuple(remarks)


def _joined(pins: Sequence[Pin]) -> Pin:
    """Return all pins of a version as one."""
    if len(pins) == 1:
        return pins[0]
    markers = list(dict.fromkeys(pin.marker for pin in pins))
    marker = markers[0] if len(markers) == 1 else " or ".join(f"({text})" for text in markers)
    pythons = {pin.requires_python for pin in pins}
    files = {(file.filename, *sorted(file.hashes.items())): file for pin in pins for file in pin.files}
    return replace(
        pins[0],
        marker=None if None in markers else marker,
        extras=frozenset().union(*(pin.extras for pin in pins)),
        files=tuple(files.values()),
        requires_python=pythons.pop() if len(pythons) == 1 else None,
    )


@dataclass(frozen=True, slots=True)
class LockEntry:
    """A package of a lock. `where` is its place, for users.

    `elsewhere` describes its source if that is not an index. `version` is None if the lock leaves it open. Installers
    stop with an error if `requires_python` excludes their Python.
    """

    where: str
    name: str
    version: str | None
    marker: str | None = None
    files: tuple[LockedFile, ...] = ()
    elsewhere: str | None = None
    index: str | None = None
    requires_python: str | None = None


def required_name(package: Mapping[str, Any], where: str) -> str:
    """Return the name of a package. Raise LockError if it has none."""
    name = text_at(package, "name", f"{where}: ")
    if not name:
        raise LockError(f"{where}: has no name")
    return name


def file_of_url(url: str) -> str | None:
    """Return the filename at the end of a URL or a path, or None.

    >>> file_of_url("https://example.org/a/demo-1.0%2Bcpu-py3-none-any.whl#sha256=00")
    'demo-1.0+cpu-py3-none-any.whl'
    """
    try:
        path = urlsplit(url).path
    except ValueError:  # brackets that are not an address
        return None
    return unquote(path.replace("\\", "/").rpartition("/")[2]) or None


def hashes_of(text: str | None, where: str) -> dict[str, str]:
    """Return the hash in `sha256:HEX` by algorithm. Raise LockError for any other form."""
    if text is None:
        return {}
    algorithm, colon, digest = text.partition(":")
    if not colon or not algorithm or not digest:
        raise LockError(f"{where}: expected a hash such as sha256:HEX, not {shown(text)}")
    return {algorithm.lower(): digest.lower()}


def selected_pins(lock: Lock, environment: Environment) -> tuple[tuple[Pin, ...], tuple[Remark, ...]]:
    """Return the pins that the environment requires and whose marker may hold, and remarks about them.

    All optional parts of the lock count, such as extras and groups. Raise LockError if the lock, or a package to be
    installed, does not support the environment.
    """
    if not environment.allows(lock.requires_python):
        raise LockError(f"{lock.filename}: requires Python {lock.requires_python}, not {environment.python_text}")
    if lock.environments and all(environment.holds(marker) is False for marker in lock.environments):
        environments = "; ".join(lock.environments)
        raise LockError(f"{lock.filename}: the lock does not support this environment, but only: {environments}")
    reached = None if lock.graph is None or environment.is_any else _reached(lock.graph, environment)
    pins = tuple(
        pin
        for pin in lock.pins
        if environment.holds(pin.marker) is not False and (reached is None or (pin.normalized, pin.version) in reached)
    )
    for pin in pins:
        if not environment.allows(pin.requires_python):
            python = environment.python_text
            raise LockError(f"{lock.filename}: {pin.where}: requires Python {pin.requires_python}, not {python}")
    return pins, tuple(_two_versions(pins, environment, has_graph=lock.graph is not None))


def _reached(graph: Graph, environment: Environment) -> set[tuple[str, str | None]]:
    """Return the names and versions that can be reached from the roots.

    For a root all extras count, and for other packages only the required extras.
    """
    every_extra = {
        node: {required.by_extra for required in graph.requires[node] if required.by_extra} for node in graph.roots
    }
    todo = deque((node, extra) for node in graph.roots for extra in (None, *sorted(every_extra[node])))
    reached = set(todo)
    while todo:
        node, by_extra = todo.popleft()
        if node[1] is None:
            new = {(known, by_extra) for known in graph.versions[node[0]]} - reached
            reached |= new
            todo.extend(new)
            continue
        for required in graph.requires[node]:
            if required.by_extra == by_extra and environment.holds(required.marker) is not False:
                new = {(required.node, extra) for extra in (None, *required.extras)} - reached
                reached |= new
                todo.extend(new)
    return {(name, version) for (name, version, _), _ in reached}


def _two_versions(pins: tuple[Pin, ...], environment: Environment, *, has_graph: bool) -> Iterator[Remark]:
    """Yield remarks on pins that no installer could install together. In a graph, extras can exclude each other."""
    for first, second in pairwise(pins):
        is_for_all = first.marker is None and second.marker is None and not has_graph
        if first.normalized == second.normalized and (environment.is_whole or is_for_all):
            text = f"{first.text} and {second.text} are pinned for the same environment"
            yield Remark(RemarkKind.TWO_VERSIONS, text, first.normalized)
