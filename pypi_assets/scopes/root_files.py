"""Reads the root projects of a scope from a file: requirements.txt, pyproject.toml, or a lock."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dependency_groups import DependencyGroupResolver
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pypi_assets.distributions.pyproject import items, parse_toml, strings, table
from pypi_assets.errors import ExpectedError
from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.lock_formats import entries_reader
from pypi_assets.locks.requirement_lines import LineKind, RequirementLine, requirement_lines

LARGEST_BYTES = 64 * 1024**2
"""The locks of the largest workspaces have a tenth of that."""


class RootsError(ExpectedError):
    """The roots cannot be read; the text names the file, the line or key, and what is accepted."""


@dataclass(frozen=True, slots=True)
class Roots:
    """Root projects: by normalized name, the extras that are required with each.

    `skipped` has a sentence for each requirement that leads to no project of an index.
    """

    extras: dict[str, frozenset[str]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()

    def __or__(self, other: "Roots") -> "Roots":
        return joined_roots([*self.extras.items(), *other.extras.items()], [*self.skipped, *other.skipped])


def joined_roots(required: Iterable[tuple[str, Iterable[str]]], skipped: Iterable[str] = ()) -> Roots:
    """The roots of (name, extras) pairs, in any spelling and each as often as it comes."""
    extras: dict[str, frozenset[str]] = {}
    for name, wanted in required:
        normalized = canonicalize_name(name)
        extras[normalized] = extras.get(normalized, frozenset()).union(map(canonicalize_name, wanted))
    return Roots(dict(sorted(extras.items())), tuple(dict.fromkeys(skipped)))


def named_roots(names: Iterable[str]) -> Roots:
    """The roots that a person names: `requests`, or with extras `requests[socks]`. Raises RootsError."""
    required = []
    for name in names:
        requirement = parsed_requirement(name, "a project's name")
        if requirement.url or requirement.specifier or requirement.marker:
            raise RootsError(f"{name!r}: pass the name alone, or with extras as in 'requests[socks]'")
        required.append((requirement.name, requirement.extras))
    return joined_roots(required)


def parsed_requirement(text: object, where: str) -> Requirement:
    """The PEP 508 requirement of `text`. Raises RootsError, whose text begins with `where`."""
    if not isinstance(text, str):
        raise RootsError(f"{where}: expected a requirement as a text, not {text!r}")
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise RootsError(f"{where}: {text!r} is no requirement: {str(error).splitlines()[0]}") from None


def read_bytes(path: Path) -> bytes:
    """The content of a file. Raises RootsError where it cannot be read, or is larger than any file of its kind."""
    try:
        if (size := path.stat().st_size) > LARGEST_BYTES:
            raise RootsError(f"{path}: has {size:,} bytes, and roots are read from files of at most {LARGEST_BYTES:,}")
        return path.read_bytes()
    except OSError as error:
        raise RootsError(f"{path}: {error.strerror}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file. Raises RootsError as `read_bytes` does, and where it is no TOML."""
    try:
        return parse_toml(read_bytes(path).decode("utf-8-sig"), longest=LARGEST_BYTES)
    except ValueError as error:
        raise RootsError(f"{path}: {error}") from None


def read_roots(path: Path) -> Roots:
    """The roots that a file names. Its name shows the kind: pyproject.toml, uv.lock, poetry.lock, pylock.toml or
    pylock.NAME.toml; any other file is in the format of requirements.txt.

    Raises RootsError, which names the file, the line or the key.

        read_roots(Path("requirements.txt")).extras  # {"requests": frozenset({"socks"}), "six": frozenset()}
    """
    read = read_project_file if path.name == "pyproject.toml" else lock_reader(path.name)
    if read is None and path.suffix in {".toml", ".lock"}:
        raise RootsError(
            f"{path}: roots are read from pyproject.toml, uv.lock, poetry.lock, pylock.toml, pylock.NAME.toml, and from"
            " files in the format of requirements.txt"
        )
    return (read or read_requirements)(path)


def read_requirements(path: Path) -> Roots:
    """The projects that the file and those behind its `-r` require. Raises RootsError.

    Versions and markers make no difference: a root is followed whatever environment it is for. The files behind `-c`
    are checked and require nothing.
    """
    try:
        read = list(requirement_lines(path))
    except LockError as error:
        raise RootsError(str(error)) from error
    skipped = [
        f"{line.where}: {option} is not an option of the format" for line in read for option in line.options.unknown
    ]
    lines = [line for line in read if isinstance(line, RequirementLine) and line.kind is LineKind.REQUIREMENT]
    skipped += [
        f"{line.where}: {line.text!r} is a URL or a path, and no project of an index"
        for line in lines
        if line.requirement is None
    ]
    required = ((one.name, one.extras) for line in lines if (one := line.requirement) is not None)
    return joined_roots(required, skipped)


def read_project_file(path: Path) -> Roots:
    """The projects that any part of a project requires, all extras and groups included. Raises RootsError.

    That is `dependencies` and `optional-dependencies` of [project], the groups of PEP 735, and what Poetry states in
    [tool.poetry]. What the project requires of itself is left out.
    """
    content = read_toml(path)
    project, poetry = table(content, "project"), table(content, "tool", "poetry")
    own = canonicalize_name(str(project.get("name") or poetry.get("name") or ""))
    skipped = [
        f"{path}: project.{key} is dynamic: no file states it, so pass a lock or a requirements.txt too"
        for key in ("dependencies", "optional-dependencies")
        if key in strings(project.get("dynamic"))
    ]
    required: list[tuple[str, Iterable[str]]] = []
    for key, requirements in _stated(path, project, table(content, "dependency-groups")):
        for text in requirements:
            requirement = parsed_requirement(text, f"{path}: {key}")
            if requirement.url:
                skipped.append(f"{path}: {key}: {text!r} is a URL, and no project of an index")
            else:
                required.append((requirement.name, requirement.extras))
    for key, name, stated in _poetry_stated(poetry):
        if {"git", "url", "path", "file"}.isdisjoint(dict(items(stated))):
            required.append((name, strings(dict(items(stated)).get("extras"))))
        else:
            skipped.append(f"{path}: {key}.{name} is a URL or a path, and no project of an index")
    return joined_roots(((name, extras) for name, extras in required if canonicalize_name(name) != own), skipped)


def _stated(
    path: Path, project: Mapping[str, Any], groups: Mapping[str, Any]
) -> Iterator[tuple[str, Iterable[object]]]:
    """The key of each list of requirements, and its items."""
    lists = {"project.dependencies": project.get("dependencies", [])}
    for extra, requirements in table(project, "optional-dependencies").items():
        lists[f"project.optional-dependencies.{extra}"] = requirements
    for key, requirements in lists.items():
        if not isinstance(requirements, list):
            raise RootsError(f"{path}: {key}: expected a list of requirements, not {requirements!r}")
        yield key, requirements
    try:
        resolved = DependencyGroupResolver(groups).resolve_all()
    except (ValueError, TypeError, LookupError, InvalidRequirement, RecursionError) as error:
        raise RootsError(f"{path}: dependency-groups: {str(error).splitlines()[0]}") from None
    for group, found in resolved.items():
        yield f"dependency-groups.{group}", [str(requirement) for requirement in found]


def _poetry_stated(poetry: Mapping[str, Any]) -> Iterator[tuple[str, str, object]]:
    """The key of each of Poetry's tables, the name of each project in it, and what is stated of it."""
    tables = {"tool.poetry.dependencies": table(poetry, "dependencies")}
    tables["tool.poetry.dev-dependencies"] = table(poetry, "dev-dependencies")
    for group, content in items(poetry.get("group")):
        tables[f"tool.poetry.group.{group}.dependencies"] = table(dict(items(content)), "dependencies")
    for key, stated in tables.items():
        for name, constraint in stated.items():
            if name.lower() != "python":
                for each in constraint if isinstance(constraint, list) else [constraint]:
                    yield key, name, each


def lock_reader(filename: str) -> Callable[[Path], Roots] | None:
    """What reads a lock of that name; None where it is the name of no known lock."""
    entries = entries_reader(filename)
    if entries is None:
        return None

    def read(path: Path) -> Roots:
        content = read_toml(path)
        try:
            found = list(entries(content))
        except LockError as error:
            raise RootsError(f"{path}: {error}") from None
        skipped = [
            f"{path}: {entry.name} comes from {entry.elsewhere}, and not from an index"
            for entry in found
            if entry.elsewhere is not None
        ]
        return joined_roots(((entry.name, ()) for entry in found if entry.elsewhere is None), skipped)

    return read
