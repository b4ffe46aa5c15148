"""Reads pyproject.toml: its dependencies, optional dependencies and dependency groups, and Poetry's own tables."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dependency_groups import DependencyGroupResolver
from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from pypi_assets.distributions.pyproject import items, strings, table
from pypi_assets.scopes.roots import Roots, RootsError, joined_roots, parsed_requirement, read_toml


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
