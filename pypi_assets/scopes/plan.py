"""Read the plan of a scope: its roots, and how its work is done. Plans come from the file of indexes or `scope create`.

The readers of roots and rules are imported only when needed: each command, even a look-up, reads the file of indexes.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pypi_assets.errors import ExpectedError
from pypi_assets.scopes import LEAST_NICE, MOST_NICE
from pypi_assets.scopes.byte_sizes import ACCEPTED, is_limit, parse_limit

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")
_TAG = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""A valid label value in Kubernetes, which is also a valid name for a Celery queue."""
_NO_ROOT = "has no root: name projects, or files that require them (`roots` in a file, --roots of the command)"
_LONGEST_SHOWN = 40


class PlanError(ExpectedError):
    """A plan is invalid. `place` has the scope and the field; it can have only the scope, or be empty."""

    def __init__(self, place: tuple[str, ...], problem: str) -> None:
        super().__init__(": ".join((f"scope {place[0]}", *place[1:], problem) if place else (problem,)))
        self.place, self.problem = place, problem


@dataclass(frozen=True, slots=True)
class ScopePlan:
    """A scope as a person describes it: its name, its roots, and how its work is done.

    `roots` maps each normalized name to the extras that are followed with it. If `most_depth` is None, there is no
    limit. If `concurrency` is None, the setting applies; 0 pauses the scope. With `keep_files`, the bytes of files are
    kept, up to `most` bytes (None: no limit). `stated` has the names of the fields that
    were stated, and `skipped` has a sentence for each requirement in the roots that refers to no project of an index.
    Raises PlanError if the plan is invalid.
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
    keep_files: bool = False
    most: int | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            accepts = "use 1 to 60 of a-z, 0-9, '.', '_' and '-', beginning with a letter or a digit"
            raise PlanError((), f"{_shown(self.name)} is not a valid name for a scope: {accepts}")
        if not self.roots:
            raise PlanError((self.name,), _NO_ROOT)
        if self.tag is not None:
            check_field(self.name, "tag", self.tag)


def check_fields(name: str, fields: Mapping[str, Any]) -> None:
    """Check the name and the fields of a scope as a file states them, without reading the files that they refer to.

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
        hint = f"did you mean {nearest[0]}?" if nearest else f"the keys are {', '.join(_FIELDS)}"
        raise PlanError((name, _shown(key)), f"is not a key of a scope; {hint}")
    accepts, is_accepted = _FIELDS[key]
    if not is_accepted(value):
        raise PlanError((name, key), f"{_shown(value)} is not valid; expected {accepts}")


def read_plan(name: str, fields: Mapping[str, Any], folder: Path = Path()) -> ScopePlan:
    """Return the plan with these fields. Paths of files in the fields are relative to `folder`.

    Raises PlanError, and RootsError or RulesError if a file is invalid.
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
    if "most" in how:
        how["most"] = parse_limit(how["most"])
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
    "depth": ('a whole number of at least 0, or "all"', lambda value: value == "all" or _is_whole(value, 0)),
    "rules": ("a file of rules in TOML", _is_text),
    "nice": (
        f"a whole number from {LEAST_NICE} to {MOST_NICE}",
        lambda value: _is_whole(value, LEAST_NICE, MOST_NICE),
    ),
    "concurrency": ("a whole number of at least 0", lambda value: _is_whole(value, 0)),
    "tag": (
        "1 to 63 of A-Z, a-z, 0-9, '.', '_' and '-', with a letter or a digit at both ends (a label of Kubernetes)",
        lambda value: isinstance(value, str) and _TAG.fullmatch(value) is not None,
    ),
    "match_only": ("true or false", lambda value: isinstance(value, bool)),
    "keep_files": ("true or false", lambda value: isinstance(value, bool)),
    "most": (ACCEPTED, is_limit),
}
"""For each field: the description of its valid values, for messages, and a function that checks a value."""


def _shown(value: object) -> str:
    """Return the value as a text that is short enough for a message."""
    text = str(value)
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")
