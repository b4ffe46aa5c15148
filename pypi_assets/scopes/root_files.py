"""Read the root projects of a scope from a file: requirements.txt, pyproject.toml, or a lock file."""

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
"""Ten times the size of the lock files of the largest workspaces."""


class RootsError(ExpectedError):
    """The roots cannot be read. The message has the file, the line or key, and the valid values."""


@dataclass(frozen=True, slots=True)
class Roots:
    """Root projects. `extras` maps each normalized name to the extras that are required with it.

    `skipped` has a sentence for each requirement that refers to no project of an index.
    """

    extras: dict[str, frozenset[str]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()

    def __or__(self, other: "Roots") -> "Roots":
        return joined_roots([*self.extras.items(), *other.extras.items()], [*self.skipped, *other.skipped])


def joined_roots(required: Iterable[tuple[str, Iterable[str]]], skipped: Iterable[str] = ()) -> Roots:
    """Return the roots from (name, extras) pairs, whose names may have any spelling and may repeat."""
    extras: dict[str, frozenset[str]] = {}
    for name, wanted in required:
        normalized = canonicalize_name(name)
        extras[normalized] = extras.get(normalized, frozenset()).union(map(canonicalize_name, wanted))
    return Roots(dict(sorted(extras.items())), tuple(dict.fromkeys(skipped)))


def named_roots(names: Iterable[str]) -> Roots:
    """Return the roots that a person names: `requests`, or with extras `requests[socks]`. Raises RootsError."""
    required = []
    for name in names:
        requirement = parsed_requirement(name, "a project's name")
        if requirement.url or requirement.specifier or requirement.marker:
            raise RootsError(f"{name!r}: pass the name alone, or with extras as in 'requests[socks]'")
        required.append((requirement.name, requirement.extras))
    return joined_roots(required)


def parsed_requirement(text: object, where: str) -> Requirement:
    """Return the PEP 508 requirement `text`. Raises RootsError, with a message that begins with `where`."""
    if not isinstance(text, str):
        raise RootsError(f"{where}: expected a requirement as a string, not {text!r}")
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise RootsError(f"{where}: {text!r} is not a valid requirement: {str(error).splitlines()[0]}") from None


def read_bytes(path: Path) -> bytes:
    """Return the content of a file. Raises RootsError if it cannot be read or is larger than LARGEST_BYTES."""
    try:
        if (size := path.stat().st_size) > LARGEST_BYTES:
            raise RootsError(f"{path}: has {size:,} bytes; a file of roots can have at most {LARGEST_BYTES:,}")
        return path.read_bytes()
    except OSError as error:
        raise RootsError(f"{path}: {error.strerror}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file. Raises RootsError if it cannot be read, is too large, or is not valid TOML."""
    try:
        return parse_toml(read_bytes(path).decode("utf-8-sig"), longest=LARGEST_BYTES)
    except ValueError as error:
        raise RootsError(f"{path}: {error}") from None


def read_roots(path: Path) -> Roots:
    """Return the roots in a file.

    The filename determines the format: pyproject.toml, uv.lock, poetry.lock, pylock.toml or pylock.NAME.toml. Any other
    file is read as a requirements.txt. Raises RootsError, which names the file and the line or key.

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
    """Return the projects that the file requires, including files that it refers to with `-r`. Raises RootsError.

    Versions and markers make no difference: a root is followed for all environments. Files that it refers to with `-c`
    are checked, but add no projects.
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
    """Return the projects that any part of a project requires, including all extras and groups. Raises RootsError.

    It reads `dependencies` and `optional-dependencies` of [project], the dependency groups of PEP 735, and the
    dependencies in [tool.poetry]. Requirements of the project on itself are skipped.
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
    """Yield the key and the items of each list of requirements."""
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
    """Yield for each dependency of Poetry: the key of its table, the project's name, and its constraint."""
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
    """Return a function that reads lock files with this name; None if it is not the name of a known lock file."""
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
