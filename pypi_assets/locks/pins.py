"""The pins of a lock, what its formats have in common, and which pins are of an environment."""

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
    """What a remark is about. The first four follow from the lock alone.

    ELSEWHERE: an entry that comes from no index: a path, a URL, version control. UNKNOWN_OPTION: an option that the
    format does not have, which is ignored. REPEATED: an entry that is there twice. TWO_VERSIONS: two versions of
    a project for one environment.
    UNKNOWN: nothing is known of the project, or of this version. YANKED: all files of the version are.
    MISSING_FILE: the lock names a file that the index does not have. OTHER_HASH: the index has another sha256 for it.
    NO_FILE: no file of the version is for the environment. UNREAD: the modules of a file are not known.
    FROM_SDIST: no wheel fits, so modules are those that the sdist declares. NO_REQUIREMENTS: the requirements of an
    sdist are not known before it is built. COLLISION: another distribution has a module too.
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
    """What people should know about an answer: a sentence, and the project (normalized) that it is about, if any."""

    kind: RemarkKind
    text: str
    project: str | None = None


@dataclass(frozen=True, slots=True)
class LockedFile:
    """A file that a lock names; `filename` is None where only its hash is given. `hashes` are hex by algorithm."""

    filename: str | None
    hashes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pin:
    """A version that a lock pins. `name` is as written, `where` the place in the lock, for people.

    Without `marker` it is for all environments. Without `files` the lock names none, and any file of the version does.
    `index` is the URL of the index, where the lock names it. Installers end if `requires_python` excludes their Python.
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


Node = tuple[str, str | None]
"""A package of a graph: its normalized name and its version, which is empty where the lock has none; None: each version
of the name."""


@dataclass(frozen=True, slots=True)
class Requires:
    """That a package requires another, with which extras, and under which marker.

    `by_extra` is the extra of its own that it is required by; None: always.
    """

    node: Node
    extras: frozenset[str] = frozenset()
    marker: str | None = None
    by_extra: str | None = None


@dataclass(frozen=True, slots=True)
class Graph:
    """Which packages of a lock require which, and where that begins: for locks whose markers are stated there alone.

    `versions` are the packages of each name.
    """

    roots: tuple[Node, ...]
    requires: Mapping[Node, tuple[Requires, ...]]
    versions: Mapping[str, tuple[Node, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock: `filename`, its pins by normalized name and version, and `remarks` about entries that are none.

    It holds only for the Pythons of `requires_python`, and where one of `environments` holds, which are markers: if
    there are any.
    """

    filename: str
    pins: tuple[Pin, ...]
    remarks: tuple[Remark, ...] = ()
    graph: Graph | None = None
    requires_python: str | None = None
    environments: tuple[str, ...] = ()


def merged(pins: Iterable[Pin]) -> tuple[tuple[Pin, ...], tuple[Remark, ...]]:
    """The pins, each project and version once, in order, and a remark for each that was repeated."""
    by_version: dict[tuple[str, str], list[Pin]] = {}
    first: dict[tuple[str, str, str | None], Pin] = {}
    remarks = []
    for pin in pins:
        by_version.setdefault((pin.normalized, pin.version), []).append(pin)
        known = first.setdefault((pin.normalized, pin.version, pin.marker), pin)
        if known is not pin:
            text = f"{pin.where}: {pin.text} is in {known.where} already"
            remarks.append(Remark(RemarkKind.REPEATED, text, pin.normalized))
    return tuple(_joined(by_version[key]) for key in sorted(by_version)), tuple(remarks)


def _joined(pins: Sequence[Pin]) -> Pin:
    """All pins of a version as one."""
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
    """A package of a lock. `where` is its place, for people.

    `elsewhere` describes where it comes from, if from no index. `version` is None where the lock leaves it open.
    `requires_python` is the specifier without which an installer ends.
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
    """The name of a package. Raises LockError where it has none."""
    name = text_at(package, "name", f"{where}: ")
    if not name:
        raise LockError(f"{where}: it has no name")
    return name


def file_of_url(url: str) -> str | None:
    """The name of the file that a URL or a path leads to.

    >>> file_of_url("https://example.org/a/demo-1.0%2Bcpu-py3-none-any.whl#sha256=00")
    'demo-1.0+cpu-py3-none-any.whl'
    """
    try:
        path = urlsplit(url).path
    except ValueError:  # brackets that are no address
        return None
    return unquote(path.replace("\\", "/").rpartition("/")[2]) or None


def hashes_of(text: str | None, where: str) -> dict[str, str]:
    """The hash of `sha256:HEX`, by algorithm. Raises LockError for anything else."""
    if text is None:
        return {}
    algorithm, colon, digest = text.partition(":")
    if not colon or not algorithm or not digest:
        raise LockError(f"{where}: expected a hash as sha256:HEX, not {shown(text)}")
    return {algorithm.lower(): digest.lower()}


def selected_pins(lock: Lock, environment: Environment) -> tuple[tuple[Pin, ...], tuple[Remark, ...]]:
    """The pins whose marker may hold, and that something in the lock requires there; and remarks about them.

    All optional parts of the lock count: extras and groups. Raises LockError if the lock, or a package that is to be
    installed, is not for the environment.
    """
    if not environment.allows(lock.requires_python):
        raise LockError(f"{lock.filename}: it is for Python {lock.requires_python}, not for {environment.python_text}")
    if lock.environments and all(environment.holds(marker) is False for marker in lock.environments):
        environments = "; ".join(lock.environments)
        raise LockError(f"{lock.filename}: the environment is none of those that the lock is for: {environments}")
    reached = None if lock.graph is None or environment.is_any else _reached(lock.graph, environment)
    pins = tuple(
        pin
        for pin in lock.pins
        if environment.holds(pin.marker) is not False and (reached is None or (pin.normalized, pin.version) in reached)
    )
    for pin in pins:
        if not environment.allows(pin.requires_python):
            python = environment.python_text
            raise LockError(f"{lock.filename}: {pin.where}: it is for Python {pin.requires_python}, not for {python}")
    return pins, tuple(_two_versions(pins, environment, has_graph=lock.graph is not None))


def _reached(graph: Graph, environment: Environment) -> set[Node]:
    """The packages that the roots lead to. Of a root all extras count, of others those that are required."""
    every_extra = {node: {one.by_extra for one in graph.requires[node] if one.by_extra} for node in graph.roots}
    todo = deque((node, extra) for node in graph.roots for extra in (None, *sorted(every_extra[node])))
    found = set(todo)
    while todo:
        node, by_extra = todo.popleft()
        if node[1] is None:
            new = {(version, by_extra) for version in graph.versions[node[0]]} - found
            found |= new
            todo.extend(new)
            continue
        for one in graph.requires[node]:
            if one.by_extra == by_extra and environment.holds(one.marker) is not False:
                new = {(one.node, extra) for extra in (None, *one.extras)} - found
                found |= new
                todo.extend(new)
    return {node for node, _ in found}


def _two_versions(pins: tuple[Pin, ...], environment: Environment, *, has_graph: bool) -> Iterator[Remark]:
    """Where no installer could take the pins together. In a graph, extras can exclude each other."""
    for one, other in pairwise(pins):
        is_for_all = one.marker is None and other.marker is None and not has_graph
        if one.normalized == other.normalized and (environment.is_whole or is_for_all):
            text = f"{one.text} and {other.text} are both for the same environment"
            yield Remark(RemarkKind.TWO_VERSIONS, text, one.normalized)
