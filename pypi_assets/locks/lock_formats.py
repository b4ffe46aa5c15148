"""Read locks: uv.lock, pylock.toml (PEP 751), poetry.lock, and files in the format of requirements.txt."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from packaging.pylock import (
    Package,
    PackageSdist,
    PackageWheel,
    Pylock,
    PylockUnsupportedVersionError,
    is_valid_pylock_path,
)
from packaging.pylock import PylockValidationError as InvalidPylockError
from packaging.utils import InvalidName, canonicalize_name

from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.poetry_requirements import python_marker
from pypi_assets.distributions.requirements import same_version
from pypi_assets.locks.lock_content import (
    LockError,
    checked_marker,
    checked_version,
    read_toml,
    shown,
    table_at,
    tables_at,
    text_at,
    texts_at,
)
from pypi_assets.locks.pins import (
    Graph,
    Lock,
    LockedFile,
    LockEntry,
    Node,
    Pin,
    Remark,
    RemarkKind,
    Requires,
    file_of_url,
    hashes_of,
    merged,
    required_name,
)
from pypi_assets.locks.requirement_lines import requirement_pins

_FROM_INDEX = "legacy"
"""The source type of packages from an index that is not the default."""


def poetry_entries(content: Mapping[str, Any]) -> Iterator[LockEntry]:
    """Yield the packages of a poetry.lock. Raise LockError with the key."""
    metadata = table_at(content, "metadata", "")
    lock_version = text_at(metadata, "lock-version", "metadata.") or ""
    if not lock_version.startswith(("1.", "2.")):
        raise LockError(f"metadata.lock-version: expected 1.x or 2.x as written by Poetry, not {shown(lock_version)}")
    files = table_at(metadata, "files", "metadata.")
    for number, package in enumerate(tables_at(content, "package", ""), start=1):
        name = required_name(package, f"package {number}")
        where = f"package {number} ({name})"
        version = text_at(package, "version", f"{where}: ")
        source = table_at(package, "source", f"{where}: ")
        kind = text_at(source, "type", f"{where}: source.") or _FROM_INDEX
        yield LockEntry(
            where=where,
            name=name,
            version=version,
            marker=_poetry_marker(package, where),
            files=(
                *_poetry_files(package, "files", f"{where}: "),
                *(
                    file
                    for file in _poetry_files(files, name, "metadata.files.")
                    if _is_of_version(file, name, version)
                ),
            ),
            elsewhere=None if kind == _FROM_INDEX else kind,
            index=text_at(source, "url", f"{where}: source.") if kind == _FROM_INDEX else None,
        )


def poetry_environments(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Return markers of which one must hold, for the versions of Python that the project supports. Raise LockError."""
    constraint = text_at(table_at(content, "metadata", ""), "python-versions", "metadata.")
    try:
        marker = python_marker(constraint or "*")
    except ValueError:  # an invalid constraint decides nothing
        return ()
    return (marker,) if marker else ()


def _poetry_marker(package: Mapping[str, Any], where: str) -> str | None:
    """Return the marker of a package. It has one, or one for each group that may require it."""
    stated = package.get("markers")
    if not isinstance(stated, dict):
        return checked_marker(text_at(package, "markers", f"{where}: "), f"{where}: markers: ")
    markers = [checked_marker(text_at(stated, group, f"{where}: markers."), f"{where}: markers: ") for group in stated]
    return " or ".join(f"({marker})" for marker in markers if marker) or None


def _poetry_files(parent: Mapping[str, Any], key: str, where: str) -> Iterator[LockedFile]:
    for file in tables_at(parent, key, where):
        hashes = hashes_of(text_at(file, "hash", f"{where}{key}."), f"{where}{key}: hash")
        yield LockedFile(text_at(file, "file", f"{where}{key}."), hashes)


def _is_of_version(file: LockedFile, project: str, version: str | None) -> bool:
    """Check whether a file may have this version. Poetry before 1.5 lists the files of all versions together."""
    stated = None if file.filename is None else parse_filename(file.filename, project).version
    return stated is None or version is None or same_version(stated, version)


def pylock_entries(content: Mapping[str, Any]) -> Iterator[LockEntry]:
    """Yield the packages of a pylock.toml. Raise LockError with the key."""
    tables_at(content, "packages", "")
    try:
        lock = Pylock.from_dict(content)
    except (InvalidPylockError, PylockUnsupportedVersionError) as error:
        raise LockError(str(error).partition("\n")[0]) from None
    except (RecursionError, AttributeError, TypeError, ValueError) as error:  # raised for values of unexpected types
        reason = str(error).partition("\n")[0]
        raise LockError(f"not a valid lock by PEP 751: {type(error).__name__}: {reason}") from None
    for number, package in enumerate(lock.packages, start=1):
        yield LockEntry(
            where=f"packages {number} ({package.name})",
            name=package.name,
            version=_pylock_version(package),
            marker=None if package.marker is None else str(package.marker),
            files=tuple(map(_pylock_file, [*([package.sdist] if package.sdist else ()), *(package.wheels or ())])),
            elsewhere=_pylock_elsewhere(package),
            index=package.index,
            requires_python=None if package.requires_python is None else str(package.requires_python),
        )


def _pylock_version(package: Package) -> str | None:
    """Return the version of a package, as stated or from the names of its files. Raise LockError."""
    if package.version is not None:
        return str(package.version)
    files = [*([package.sdist] if package.sdist else ()), *(package.wheels or ())]
    parsed = (parse_filename(file.filename, package.name).version for file in files)
    versions = {version for version in parsed if version is not None}
    if len(versions) > 1:
        raise LockError(f"package {package.name}: has no version, but files of several versions: {', '.join(versions)}")
    return versions.pop() if versions else None


def _pylock_elsewhere(package: Package) -> str | None:
    elsewhere = (("version control", package.vcs), ("a folder", package.directory), ("a URL", package.archive))
    return next((kind for kind, where in elsewhere if where is not None), None)


def _pylock_file(file: PackageSdist | PackageWheel) -> LockedFile:
    return LockedFile(file.filename, {algorithm.lower(): digest.lower() for algorithm, digest in file.hashes.items()})


_UV_LOCK_VERSION = 1
"""The version of the format. Its revisions only add values that older readers can ignore."""
_OF_ROOTS = ("editable", "virtual")
"""The source types of workspace members. The manifest names members that are installed otherwise."""
_MANIFEST: Node = ("", "", "")
"""The root for requirements in the manifest, which are a script's, or in groups of a workspace without a project."""


def uv_entries(content: Mapping[str, Any]) -> Iterator[LockEntry]:
    """Yield the packages of a uv.lock. Raise LockError with the key."""
    if content.get("version") != _UV_LOCK_VERSION:
        raise LockError(f"version: expected {_UV_LOCK_VERSION} as written by uv, not {shown(content.get('version'))}")
    for where, package in _uv_packages(content):
        source = table_at(package, "source", f"{where}: ")
        elsewhere = next((kind for kind in source if kind != "registry"), None)
        name = required_name(package, where)
        where = f"{where} ({name})"
        markers = texts_at(package, "resolution-markers", f"{where}: ")
        for marker in markers:
            checked_marker(marker, f"{where}: resolution-markers: ")
        yield LockEntry(
            where=where,
            name=name,
            version=text_at(package, "version", f"{where}: "),
            marker=" or ".join(f"({marker})" for marker in markers) or None,
            files=tuple(_uv_files(package, where)),
            elsewhere=elsewhere,
            index=None if elsewhere else text_at(source, "registry", f"{where}: source."),
        )


def uv_graph(content: Mapping[str, Any]) -> Graph | None:
    """Return which packages require which, or None if nothing in the lock is a root.

    Call it after `uv_entries`. Raise LockError.
    """
    manifest = table_at(content, "manifest", "")
    members = set(map(canonicalize_name, texts_at(manifest, "members", "manifest.")))
    nodes: dict[str, list[Node]] = {}
    roots = []
    required = {_MANIFEST: tuple(_required_by_manifest(manifest))}
    for where, package in _uv_packages(content):
        node = _node(package, where)
        nodes.setdefault(node[0], []).append(node)
        if node[0] in members or not table_at(package, "source", f"{where}: ").keys().isdisjoint(_OF_ROOTS):
            roots.append(node)
        required[node] = tuple(_required(package, where))
    if required[_MANIFEST]:
        roots.append(_MANIFEST)
    requires = {node: tuple(_known(some, nodes)) for node, some in required.items()}
    return Graph(tuple(roots), requires, {name: tuple(versions) for name, versions in nodes.items()}) if roots else None


def _known(required: Iterable[Requires], nodes: Mapping[str, list[Node]]) -> Iterator[Requires]:
    """Yield the requirements on packages of the lock. A requirement without a source counts for all sources."""
    for one in required:
        name, version, source = one.node
        if version is None:
            if name in nodes:
                yield one
            continue
        for node in nodes.get(name, ()):
            if node[1] == version and source in {"", node[2]}:
                yield replace(one, node=node)


def _uv_packages(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, package in enumerate(tables_at(content, "package", ""), start=1):
        yield f"package {number}", package


def _node(package: Mapping[str, Any], where: str) -> Node:
    version = text_at(package, "version", f"{where}: ") or ""
    return canonicalize_name(required_name(package, where)), version, _source(package, where)


def _source(package: Mapping[str, Any], where: str) -> str:
    """Return a text that is equal for equal sources, or "" if the table is missing."""
    source = table_at(package, "source", f"{where}: ")
    return repr(sorted(source.items(), key=itemgetter(0))) if source else ""


def _required_by_manifest(manifest: Mapping[str, Any]) -> Iterator[Requires]:
    """Yield the requirements of a script, and of groups in a workspace whose root is not a project."""
    groups = table_at(manifest, "dependency-groups", "manifest.")
    lists = {"requirements": tables_at(manifest, "requirements", "manifest.")}
    lists |= {f"dependency-groups.{name}": tables_at(groups, name, "manifest.dependency-groups.") for name in groups}
    for key, required in lists.items():
        for number, entry in enumerate(required, start=1):
            place = f"manifest.{key} {number}"
            marker = checked_marker(text_at(entry, "marker", f"{place}: "), f"{place}: ")
            extras = frozenset(map(canonicalize_name, texts_at(entry, "extras", f"{place}: ")))
            yield Requires((canonicalize_name(required_name(entry, place)), None, ""), extras, marker)


def _required(package: Mapping[str, Any], where: str) -> Iterator[Requires]:
    """Yield the requirements of a package. Groups of a workspace member count as always required."""
    lists: dict[str, tuple[str | None, list[Mapping[str, Any]]]] = {}
    lists["dependencies"] = None, tables_at(package, "dependencies", f"{where}: ")
    extras = table_at(package, "optional-dependencies", f"{where}: ")
    for extra in extras:
        lists[f"optional-dependencies.{extra}"] = extra, tables_at(extras, extra, f"{where}: optional-dependencies.")
    groups = table_at(package, "dev-dependencies", f"{where}: ")
    for group in groups:
        lists[f"dev-dependencies.{group}"] = None, tables_at(groups, group, f"{where}: dev-dependencies.")
    for key, (by_extra, required) in lists.items():
        for number, entry in enumerate(required, start=1):
            place = f"{where}: {key} {number}"
            name, version = canonicalize_name(required_name(entry, place)), text_at(entry, "version", f"{place}: ")
            marker = checked_marker(text_at(entry, "marker", f"{place}: "), f"{place}: ")
            wanted = frozenset(texts_at(entry, "extra", f"{place}: "))
            yield Requires((name, version, _source(entry, place)), wanted, marker, by_extra)


def _uv_files(package: Mapping[str, Any], where: str) -> Iterator[LockedFile]:
    sdist = table_at(package, "sdist", f"{where}: ")
    for file in (*([sdist] if sdist else ()), *tables_at(package, "wheels", f"{where}: ")):
        named = text_at(file, "filename", f"{where}: ")
        url = text_at(file, "url", f"{where}: ") or text_at(file, "path", f"{where}: ") or ""
        hashes = hashes_of(text_at(file, "hash", f"{where}: "), f"{where}: hash")
        if (filename := named or file_of_url(url)) or hashes:
            yield LockedFile(filename, hashes)


_Entries = Callable[[Mapping[str, Any]], Iterable[LockEntry]]
KINDS = "uv.lock, pylock.toml, pylock.NAME.toml, poetry.lock, and files in the format of requirements.txt"


def read_lock(path: Path) -> Lock:
    """Return the pins of a lock.

    Its filename decides the format: uv.lock, poetry.lock, pylock.toml or pylock.NAME.toml. Any other file has the
    format of requirements.txt. Raise LockError with the file and the place in it.

        read_lock(Path("requirements.txt")).pins[0].text  # "PyYAML==6.0.2"
    """
    entries = entries_reader(path.name)
    if entries is None and path.suffix in {".toml", ".lock"}:
        raise LockError(f"{path}: not a supported lock. Supported are {KINDS}")
    graph: Graph | None = None
    requires_python: str | None = None
    environments: tuple[str, ...] = ()
    if entries is None:
        pins, remarks = requirement_pins(path)
    else:
        content = read_toml(path)
        try:
            pins, remarks = _from_entries(entries(content))
            graph = uv_graph(content) if entries is uv_entries else None
            requires_python, environments = _scope(content, entries)
        except LockError as error:
            raise LockError(f"{path}: {error}") from None
    merged_pins, repeated = merged(pins)
    return Lock(path.name, merged_pins, (*remarks, *repeated), graph, requires_python, environments)


def entries_reader(filename: str) -> _Entries | None:
    """Return the reader for entries of a lock with that filename, or None if it is not a TOML lock."""
    if is_valid_pylock_path(Path(filename)):
        return pylock_entries
    readers: dict[str, _Entries] = {"uv.lock": uv_entries, "poetry.lock": poetry_entries}
    return readers.get(filename)


def _scope(content: Mapping[str, Any], entries: _Entries) -> tuple[str | None, tuple[str, ...]]:
    """Return the Requires-Python of a lock, and markers of which one must hold. Raise LockError."""
    if entries is poetry_entries:
        return None, poetry_environments(content)
    key = "environments" if entries is pylock_entries else "supported-markers"
    environments = tuple(texts_at(content, key, ""))
    for marker in environments:
        checked_marker(marker, f"{key}: ")
    return text_at(content, "requires-python", ""), environments


def _from_entries(entries: Iterable[LockEntry]) -> tuple[list[Pin], list[Remark]]:
    pins: list[Pin] = []
    remarks = []
    for entry in entries:
        if entry.elsewhere is not None:
            text = f"{entry.where} comes from {shown(entry.elsewhere)}, not from an index"
            remarks.append(Remark(RemarkKind.ELSEWHERE, text, _normalized(entry)))
        elif entry.version is None:
            raise LockError(f"{entry.where}: has no version")
        else:
            pins.append(_pin(entry, entry.version))
    return pins, remarks


def _pin(entry: LockEntry, version: str) -> Pin:
    return Pin(
        name=entry.name,
        normalized=_normalized(entry),
        version=checked_version(version, f"{entry.where}: version: "),
        where=entry.where,
        marker=entry.marker,
        files=entry.files,
        index=entry.index,
        requires_python=entry.requires_python,
    )


def _normalized(entry: LockEntry) -> str:
    try:
        return canonicalize_name(entry.name, validate=True)
    except InvalidName:
        raise LockError(f"{entry.where}: {shown(entry.name)} is not a valid project name") from None
