"""Reads the scopes of an index in indexes.toml: a table each, with what `scope create` takes.

What the names, files and rules in it are is checked where the scope is made: `declared_scopes.py`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pypi_assets.errors import SettingsError

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")
_LEAST_NICE, _MOST_NICE = -10_000, 10_000
_LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class ScopeTable:
    """A scope as the file describes it; None: its table leaves that out. `projects` are roots by name, and `roots` and
    `rules` are files, relative to the folder of the file."""

    name: str
    projects: tuple[str, ...] = ()
    roots: tuple[Path, ...] = ()
    depth: int | Literal["all"] | None = None
    rules: Path | None = None
    nice: int | None = None
    concurrency: int | None = None
    tag: str | None = None
    match_only: bool | None = None


def read_scope_tables(
    index: str, value: Any, folder: Path, fail: Callable[[str, str], SettingsError]
) -> tuple[ScopeTable, ...]:
    """The scopes of the index, in the order of the file. `fail` makes the error of a key and a sentence, to be raised.

    Paths are relative to `folder`.
    """
    if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
        raise fail("scopes", f"each scope is a table, such as [{index}.scopes.tools]")
    for name in value:
        if not _NAME.fullmatch(name):
            accepts = "it takes 1 to 60 of a-z, 0-9, '.', '_' and '-', and begins with a letter or a digit"
            raise fail("scopes", f"{_shown(name)} is no name for a scope: {accepts}")
    return tuple(ScopeTable(name, **dict(_read(name, table, folder, fail))) for name, table in value.items())


def _read(
    name: str, table: Mapping[str, Any], folder: Path, fail: Callable[[str, str], SettingsError]
) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        place = f"scopes.{name}.{key if key in _KEYS else _shown(key)}"
        if key not in _KEYS:
            nearest = get_close_matches(key, sorted(_KEYS), n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(_KEYS)}"
            raise fail(place, f"is no key of a scope; {hint}")
        accepts, is_accepted = _KEYS[key]
        if not is_accepted(value):
            raise fail(place, f"{_shown(value)} is not accepted; it accepts {accepts}")
        yield key, _converted(key, value, folder)
    if not table.get("projects") and not table.get("roots"):
        raise fail(f"scopes.{name}", "names no root: projects are root projects, roots are files that require them")


def _converted(key: str, value: Any, folder: Path) -> Any:
    if key == "rules":
        return folder / value
    if key == "roots":
        return tuple(folder / path for path in ([value] if isinstance(value, str) else value))
    return tuple(value) if key == "projects" else value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(one) for one in value)


def _is_whole(value: Any, least: int, most: int = 2**31) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


_KEYS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "projects": ('a list of projects such as ["httpx", "requests[socks]"]', _are_texts),
    "roots": ("a file such as requirements.txt, or a list of files", lambda one: _is_text(one) or _are_texts(one)),
    "depth": ('a whole number from 0 on, or "all"', lambda one: one == "all" or _is_whole(one, 0)),
    "rules": ("a file of rules in TOML", _is_text),
    "nice": (
        f"a whole number from {_LEAST_NICE} to {_MOST_NICE}",
        lambda one: _is_whole(one, _LEAST_NICE, _MOST_NICE),
    ),
    "concurrency": ("a whole number from 0 on", lambda one: _is_whole(one, 0)),
    "tag": ("a text", _is_text),
    "match_only": ("true or false", lambda one: isinstance(one, bool)),
}
"""What each key accepts, as a message has it, and whether a value is that."""


def _shown(value: object) -> str:
    """What the file has in a place, short enough for a message."""
    text = str(value)
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")
