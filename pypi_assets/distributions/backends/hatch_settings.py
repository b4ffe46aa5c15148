"""Read the settings of hatchling from [tool.hatch] in pyproject.toml and from hatch.toml, and the ignore files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pypi_assets.characters import normalized_name
from pypi_assets.distributions.metadata import decode_text
from pypi_assets.distributions.path_patterns import Patterns, matching_paths
from pypi_assets.distributions.pyproject import parse_toml, table
from pypi_assets.distributions.requirement_names import parse_requirement
from pypi_assets.distributions.source_tree import SourceTree

ALWAYS_EXCLUDED = ("*.py[cdo]", "/dist")
"""Patterns that are applied before all others."""
IGNORE_FILES = (".gitignore", ".hgignore")
_BUILD_FOLDERS = (
    "tmp/pip-req-build-k3x9q2wa",
    "tmp/pip-install-k3x9q2wa/demo_0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "private/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T/pip-req-build-k3x9q2wa",
)
"""Folders in which pip unpacks an sdist to build it. hatchling drops all ignored patterns if one of them matches."""

_FIELD = re.compile(r"\{\{|\}\}|\{[^{}]{0,200}+\}|[{}]")
_EXTRAS = re.compile(r"[^\[;@<>=!~]++\[([^\]]*+)\]")
_MAX_EXTRAS, _MAX_REQUIREMENTS = 500, 10_000
"""Limits for following a project's own extras. Most projects have up to some dozens of extras, few have hundreds."""
_FIELDS = {"{{": "{", "}}": "}", "{/}": "/", "{;}": ":"}
_ENVIRONMENT = re.compile(r"\{env:[^{}:]++:([^{}]*+)\}")
"""An environment variable with its default. Without a default, the build fails if the variable is not set."""


@dataclass(frozen=True, slots=True)
class IgnoredPatterns:
    """The patterns that .gitignore and .hgignore exclude.

    `count_everywhere` is True if they apply in every folder in which pip may build.
    """

    patterns: tuple[str, ...] = ()
    count_everywhere: bool = True


def hatch_settings(tree: SourceTree) -> tuple[Mapping[str, Any], bool]:
    """Return the settings, and whether all of them could be read.

    A table in hatch.toml replaces the whole table of the same name in pyproject.toml.
    """
    settings = dict(tree.table("tool", "hatch"))
    if "hatch.toml" in tree.files:
        try:
            settings |= parse_toml(decode_text(tree.files["hatch.toml"], "hatch.toml")[0])
        except ValueError:
            return settings, False
    return settings, not tree.has_unread("hatch.toml")


def wheel_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of the build, overridden by the options of the target `wheel`."""
    return {**table(settings, "build"), **table(settings, "build", "targets", "wheel")}


def build_hooks(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of the build hooks that run for a wheel, by their names."""
    return {**table(settings, "build", "hooks"), **table(settings, "build", "targets", "wheel", "hooks")}


def ignored_patterns(tree: SourceTree) -> IgnoredPatterns:
    """Return the lines of .gitignore and the globs of .hgignore in the top folder.

    hatchling drops the patterns if they match the folder that it builds in. `*` matches every folder, and `tmp/`
    matches pip's build folder on Linux.
    """
    lines = _lines(tree, ".gitignore")
    is_glob = False
    for line in _lines(tree, ".hgignore"):
        if line.strip().startswith("syntax: "):
            is_glob = line.strip() == "syntax: glob"
        elif is_glob:
            lines.append(line)
    if not lines:
        return IgnoredPatterns()
    matched = matching_paths([*_BUILD_FOLDERS], lines, Patterns.GITIGNORE, tree.effort)
    if len(matched) == len(_BUILD_FOLDERS):
        return IgnoredPatterns()
    return IgnoredPatterns(tuple(lines), not matched)


def _lines(tree: SourceTree, name: str) -> list[str]:
    text = decode_text(tree.files.get(name, b""), name, keep_mark=True)[0]  # hatchling keeps a BOM as part of the line
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def resolve_fields(requirement: str) -> str | None:
    """Return a requirement of [project] with its fields replaced as hatchling does it, or None.

    It is None if a field depends on the machine. Environment variables are assumed to be unset.

    >>> resolve_fields("{env:NAME:demo} ; python_version > '3{{'"), resolve_fields("demo @ {root:uri}/demo")
    ("demo ; python_version > '3{'", None)
    """
    pieces = _FIELD.split(requirement)
    values = [_value(written) for written in _FIELD.findall(requirement)]
    if None in values:
        return None
    return pieces[0] + "".join(f"{value}{piece}" for value, piece in zip(values, pieces[1:], strict=True))


def depends_on_environment(requirement: str) -> bool:
    """Check whether an environment variable can change a requirement that `resolve_fields` resolves."""
    return any(map(_ENVIRONMENT.fullmatch, _FIELD.findall(requirement)))


def with_own_extras(project: str, optional: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the requirements of each extra, with requirements on the project's own extras replaced by their contents.

    hatchling writes them this way and ignores their markers. A build fails if such extras form a cycle or do not exist.
    Then the requirements are returned unchanged.

    >>> with_own_extras("demo", {"a": ["attrs"], "all": ["demo[a]", "six"]})
    {'a': ['attrs'], 'all': ['six', 'attrs']}
    """
    as_written = {extra: [*listed] for extra, listed in optional.items()}
    own = {extra: [_extras_of(project, each) for each in listed] for extra, listed in optional.items()}
    if len(own) > _MAX_EXTRAS or not any(each is not None for listed in own.values() for each in listed):
        return as_written
    resolved: dict[str, list[str]] = {}
    waiting, size = list(own), 0
    while waiting:
        before = len(resolved)
        for extra in waiting:
            named = [each for extras in own[extra] for each in extras or ()]
            if resolved.keys() >= {*named}:
                others = [each for each, extras in zip(optional[extra], own[extra], strict=True) if extras is None]
                resolved[extra] = list(dict.fromkeys([*others, *(each for name in named for each in resolved[name])]))
                size += len(named) + len(resolved[extra])
                if size > _MAX_REQUIREMENTS:
                    return as_written
        waiting = [extra for extra in waiting if extra not in resolved]
        if len(resolved) == before:
            return as_written
    return {extra: resolved[extra] for extra in optional}


def _extras_of(project: str, requirement: str) -> list[str] | None:
    """Return the extras in a requirement on the project itself, or None if it requires another project."""
    parsed = parse_requirement(requirement)
    if parsed is None or parsed[0] != normalized_name(project):
        return None
    listed = _EXTRAS.match(requirement)
    return [normalized_name(each.strip()) for each in listed[1].split(",") if each.strip()] if listed else []


def _value(field: str) -> str | None:
    default = _ENVIRONMENT.fullmatch(field)
    return _FIELDS.get(field) if default is None else default[1]
