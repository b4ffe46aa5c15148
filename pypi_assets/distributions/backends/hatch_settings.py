"""The settings of hatchling: `[tool.hatch]` of pyproject.toml with hatch.toml over it, and what version control
ignores."""

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
"""Patterns that come before all others."""
IGNORE_FILES = (".gitignore", ".hgignore")
_BUILD_FOLDERS = (
    "tmp/pip-req-build-k3x9q2wa",
    "tmp/pip-install-k3x9q2wa/demo_0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "private/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T/pip-req-build-k3x9q2wa",
)
"""Where pip unpacks an sdist that it builds. hatchling drops all ignored patterns if one of them matches this path."""

_FIELD = re.compile(r"\{\{|\}\}|\{[^{}]{0,200}+\}|[{}]")
_EXTRAS = re.compile(r"[^\[;@<>=!~]++\[([^\]]*+)\]")
_MAX_EXTRAS, _MAX_REQUIREMENTS = 500, 10_000
"""Of a project whose own extras are followed; real ones have up to some dozens, and some hundreds."""
_FIELDS = {"{{": "{", "}}": "}", "{/}": "/", "{;}": ":"}
_ENVIRONMENT = re.compile(r"\{env:[^{}:]++:([^{}]*+)\}")
"""A variable of the environment, and the default without which a build fails where the variable is not set."""


@dataclass(frozen=True, slots=True)
class IgnoredPatterns:
    """The patterns that .gitignore and .hgignore exclude. `count_everywhere`: they count wherever pip builds."""

    patterns: tuple[str, ...] = ()
    count_everywhere: bool = True


def hatch_settings(tree: SourceTree) -> tuple[Mapping[str, Any], bool]:
    """Return the settings, and whether all of them could be read. A table of hatch.toml replaces the whole table of
    the same name in pyproject.toml."""
    settings = dict(tree.table("tool", "hatch"))
    if "hatch.toml" in tree.files:
        try:
            settings |= parse_toml(decode_text(tree.files["hatch.toml"], "hatch.toml")[0])
        except ValueError:
            return settings, False
    return settings, not tree.has_unread("hatch.toml")


def wheel_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options of the build, with those of the target `wheel` over them."""
    return {**table(settings, "build"), **table(settings, "build", "targets", "wheel")}


def build_hooks(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of the build hooks that run for a wheel, by their names."""
    return {**table(settings, "build", "hooks"), **table(settings, "build", "targets", "wheel", "hooks")}


def ignored_patterns(tree: SourceTree) -> IgnoredPatterns:
    """Return the lines of .gitignore, and the globs of .hgignore, at the top.

    hatchling drops them if they match the folder that it builds in: `*` matches every folder, `tmp/` pip's on Linux.
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
    text = decode_text(tree.files.get(name, b""), name, keep_mark=True)[0]  # hatchling takes it for a part of a line
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def resolve_fields(requirement: str) -> str | None:
    """Return a requirement of [project] with its fields filled in, as hatchling does; None if the machine decides.

    No variable of the environment is taken to be set.

    >>> resolve_fields("{env:NAME:demo} ; python_version > '3{{'"), resolve_fields("demo @ {root:uri}/demo")
    ("demo ; python_version > '3{'", None)
    """
    pieces = _FIELD.split(requirement)
    values = [_value(written) for written in _FIELD.findall(requirement)]
    if None in values:
        return None
    return pieces[0] + "".join(f"{value}{piece}" for value, piece in zip(values, pieces[1:], strict=True))


def depends_on_environment(requirement: str) -> bool:
    """Check whether a variable of the environment can change a requirement that `resolve_fields` has filled in."""
    return any(map(_ENVIRONMENT.fullmatch, _FIELD.findall(requirement)))


def with_own_extras(project: str, optional: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the requirements of each extra. One of the project itself stands for those of the extras that it names, as
    hatchling writes them, whatever its marker. A build fails if these lead in a circle, or are none: then it stays.

    >>> with_own_extras("demo", {"a": ["attrs"], "all": ["demo[a]", "six"]})
    {'a': ['attrs'], 'all': ['six', 'attrs']}
    """
    as_written = {extra: [*listed] for extra, listed in optional.items()}
    own = {extra: [_extras_of(project, each) for each in listed] for extra, listed in optional.items()}
    if len(own) > _MAX_EXTRAS or not any(each is not None for listed in own.values() for each in listed):
        return as_written
    found: dict[str, list[str]] = {}
    waiting, size = list(own), 0
    while waiting:
        before = len(found)
        for extra in waiting:
            named = [each for extras in own[extra] for each in extras or ()]
            if found.keys() >= {*named}:
                others = [each for each, extras in zip(optional[extra], own[extra], strict=True) if extras is None]
                found[extra] = list(dict.fromkeys([*others, *(each for name in named for each in found[name])]))
                size += len(named) + len(found[extra])
                if size > _MAX_REQUIREMENTS:
                    return as_written
        waiting = [extra for extra in waiting if extra not in found]
        if len(found) == before:
            return as_written
    return {extra: found[extra] for extra in optional}


def _extras_of(project: str, requirement: str) -> list[str] | None:
    """Return the extras that a requirement names of the project itself, None if it is of another one."""
    found = parse_requirement(requirement)
    if found is None or found[0] != normalized_name(project):
        return None
    listed = _EXTRAS.match(requirement)
    return [normalized_name(each.strip()) for each in listed[1].split(",") if each.strip()] if listed else []


def _value(field: str) -> str | None:
    default = _ENVIRONMENT.fullmatch(field)
    return _FIELDS.get(field) if default is None else default[1]
