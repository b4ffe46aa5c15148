"""What a lock comes to, whatever kind it is of: pins, and remarks about what it does not pin."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum


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
