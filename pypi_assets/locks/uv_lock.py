"""Reads uv.lock. Its markers are on what requires a package, so the graph comes with the entries."""

from collections.abc import Iterator, Mapping
from typing import Any

from packaging.utils import canonicalize_name

from pypi_assets.locks.entries import Entry, file_of_url, hashes_of, required_name
from pypi_assets.locks.lock_content import LockError, checked_marker, shown, table_at, tables_at, text_at, texts_at
from pypi_assets.locks.pins import Graph, LockedFile, Node, Requires

VERSION = 1
"""Of the format. A revision adds what older readers can ignore."""
_OF_ROOTS = ("editable", "virtual")
"""The sources of the members of a workspace."""


def uv_entries(content: Mapping[str, Any]) -> Iterator[Entry]:
    """The packages of a lock. Raises LockError, which names the key."""
    if content.get("version") != VERSION:
        raise LockError(f"version: expected {VERSION} as uv writes it, not {shown(content.get('version'))}")
    for where, package in _packages(content):
        source = table_at(package, "source", f"{where}: ")
        elsewhere = next((kind for kind in source if kind != "registry"), None)
        name = required_name(package, where)
        where = f"{where} ({name})"
        markers = texts_at(package, "resolution-markers", f"{where}: ")
        for marker in markers:
            checked_marker(marker, f"{where}: resolution-markers: ")
        yield Entry(
            where=where,
            name=name,
            version=text_at(package, "version", f"{where}: "),
            marker=" or ".join(f"({marker})" for marker in markers) or None,
            files=tuple(_files(package, where)),
            elsewhere=elsewhere,
            index=None if elsewhere else text_at(source, "registry", f"{where}: source."),
        )


def uv_graph(content: Mapping[str, Any]) -> Graph | None:
    """Which packages require which. Call it after `uv_entries`. None where the lock is of no workspace: of a script.

    Raises LockError.
    """
    nodes: dict[str, list[Node]] = {}
    roots, requires = [], {}
    for where, package in _packages(content):
        node = _node(package, where)
        nodes.setdefault(node[0], []).append(node)
        if not table_at(package, "source", f"{where}: ").keys().isdisjoint(_OF_ROOTS):
            roots.append(node)
    known = {node for some in nodes.values() for node in some}
    for where, package in _packages(content):
        requires[_node(package, where)] = tuple(
            one
            for one in _required(package, where)
            if one.node in known or (one.node[1] is None and one.node[0] in nodes)
        )
    return Graph(tuple(roots), requires, {name: tuple(some) for name, some in nodes.items()}) if roots else None


def _packages(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, package in enumerate(tables_at(content, "package", ""), start=1):
        yield f"package {number}", package


def _node(package: Mapping[str, Any], where: str) -> Node:
    return canonicalize_name(required_name(package, where)), text_at(package, "version", f"{where}: ") or ""


def _required(package: Mapping[str, Any], where: str) -> Iterator[Requires]:
    """What a package requires; a group of a member of the workspace counts as required always."""
    lists: dict[str, tuple[str | None, list[Mapping[str, Any]]]] = {}
    lists["dependencies"] = None, tables_at(package, "dependencies", f"{where}: ")
    extras = table_at(package, "optional-dependencies", f"{where}: ")
    for extra in extras:
        lists[f"optional-dependencies.{extra}"] = extra, tables_at(extras, extra, f"{where}: optional-dependencies.")
    groups = table_at(package, "dev-dependencies", f"{where}: ")
    for group in groups:
        lists[f"dev-dependencies.{group}"] = None, tables_at(groups, group, f"{where}: dev-dependencies.")
    for key, (by_extra, required) in lists.items():
        for number, one in enumerate(required, start=1):
            place = f"{where}: {key} {number}"
            name, version = canonicalize_name(required_name(one, place)), text_at(one, "version", f"{place}: ")
            marker = checked_marker(text_at(one, "marker", f"{place}: "), f"{place}: ")
            wanted = frozenset(texts_at(one, "extra", f"{place}: "))
            yield Requires((name, version), wanted, marker, by_extra)


def _files(package: Mapping[str, Any], where: str) -> Iterator[LockedFile]:
    sdist = table_at(package, "sdist", f"{where}: ")
    for file in (*([sdist] if sdist else ()), *tables_at(package, "wheels", f"{where}: ")):
        named = text_at(file, "filename", f"{where}: ")
        url = text_at(file, "url", f"{where}: ") or text_at(file, "path", f"{where}: ") or ""
        hashes = hashes_of(text_at(file, "hash", f"{where}: "), f"{where}: hash")
        if (filename := named or file_of_url(url)) or hashes:
            yield LockedFile(filename, hashes)
