"""Reads the plan of a scope: its roots, and how its work is done. The file of indexes and `scope create` fill it.

Little is imported before a file of roots or rules is read: each command, also a look-up, reads the file of indexes.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pypi_assets.errors import ExpectedError
from pypi_assets.scopes import LEAST_NICE, MOST_NICE

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")
_TAG = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""A label of Kubernetes, which is a name for a queue of Celery too."""
_NO_ROOT = "names no root: name projects, or files that require them (`roots` in a file, --roots of the command)"
_LONGEST_SHOWN = 40


class PlanError(ExpectedError):
    """A plan is wrong. `place` has the scope and the field, or the scope alone, or nothing if its name is wrong."""

    def __init__(self, place: tuple[str, ...], problem: str) -> None:
        super().__init__(": ".join((f"scope {place[0]}", *place[1:], problem) if place else (problem,)))
        self.place, self.problem = place, problem


@dataclass(frozen=True, slots=True)
class ScopePlan:
    """What a person wants of a scope: its name, its roots by normalized name with the extras that are followed too, and
    how its work is done. `most_depth` None: any. `concurrency` None: as in the settings, 0: it is paused.

    `stated` names the fields that were stated, and `skipped` has a sentence for each requirement of the roots that
    leads to no project of an index. Raises PlanError.
    """

    name: str
    roots: Mapping[str, frozenset[str]]
    most_depth: int | None = None
    rules: str = ""
    nice: int = 0
    concurrency: int | None = None
    tag: str | None = None
    match_only: bool = False
    stated: frozenset[str] = frozenset()
    skipped: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            accepts = "it takes 1 to 60 of a-z, 0-9, '.', '_' and '-', and begins with a letter or a digit"
            raise PlanError((), f"{_shown(self.name)} is no name for a scope: {accepts}")
        if not self.roots:
            raise PlanError((self.name,), _NO_ROOT)
        if self.tag is not None:
            check_field(self.name, "tag", self.tag)


def check_fields(name: str, fields: Mapping[str, Any]) -> None:
    """Check the name and the fields of a scope as a file states them, without reading the files that they name.

    Raises PlanError.

        check_fields("tools", {"projects": ["httpx", "requests[socks]"], "depth": 2})
    """
    ScopePlan(name, {"any": frozenset()})
    for key, value in fields.items():
        check_field(name, key, value)
    if not fields.get("projects") and not fields.get("roots"):
        raise PlanError((name,), _NO_ROOT)


def check_field(name: str, key: str, value: object) -> None:
    """Raise PlanError if a scope has no such field, or the field does not accept the value."""
    if key not in _FIELDS:
        nearest = get_close_matches(key, sorted(_FIELDS), n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(_FIELDS)}"
        raise PlanError((name, _shown(key)), f"is no key of a scope; {hint}")
    accepts, is_accepted = _FIELDS[key]
    if not is_accepted(value):
        raise PlanError((name, key), f"{_shown(value)} is not accepted; it accepts {accepts}")


def read_plan(name: str, fields: Mapping[str, Any], folder: Path = Path()) -> ScopePlan:
    """Return the plan of these fields. The files that they name are read, relative to `folder`.

    Raises PlanError, and RootsError or RulesError for a file.
    """
    check_fields(name, fields)
    from pypi_assets.scopes.root_files import named_roots, read_roots
    from pypi_assets.scopes.ruleset import read_rules

    how = {key: value for key, value in fields.items() if key not in {"projects", "roots"}}
    roots = named_roots(fields.get("projects", ()))
    files = fields.get("roots", ())
    for path in [files] if isinstance(files, str) else files:
        roots |= read_roots(folder / path)
    if "rules" in how:
        how["rules"] = read_rules(folder / how["rules"], roots.extras)
    if "depth" in how:
        depth = how.pop("depth")
        how["most_depth"] = None if depth == "all" else depth
    return ScopePlan(name, roots.extras, **how, stated=frozenset({"roots", *how}), skipped=roots.skipped)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(_is_text(item) for item in value)


def _is_whole(value: Any, least: int, most: int = 2**31) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


_FIELDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "projects": ('a list of projects such as ["httpx", "requests[socks]"]', _are_texts),
    "roots": (
        "a file such as requirements.txt, or a list of files",
        lambda value: _is_text(value) or _are_texts(value),
    ),
    "depth": ('a whole number from 0 on, or "all"', lambda value: value == "all" or _is_whole(value, 0)),
    "rules": ("a file of rules in TOML", _is_text),
    "nice": (
        f"a whole number from {LEAST_NICE} to {MOST_NICE}",
        lambda value: _is_whole(value, LEAST_NICE, MOST_NICE),
    ),
    "concurrency": ("a whole number from 0 on", lambda value: _is_whole(value, 0)),
    "tag": (
        "1 to 63 of A-Z, a-z, 0-9, '.', '_' and '-', with a letter or a digit at both ends (a label of Kubernetes)",
        lambda value: isinstance(value, str) and _TAG.fullmatch(value) is not None,
    ),
    "match_only": ("true or false", lambda value: isinstance(value, bool)),
}
"""What each field accepts, as a message has it, and whether a value is accepted."""


def _shown(value: object) -> str:
    """Return a value, short enough for a message."""
    text = str(value)
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")
