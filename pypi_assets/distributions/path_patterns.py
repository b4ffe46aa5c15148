"""Matches paths against the patterns of build backends: lines of .gitignore files, and globs from a folder."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import takewhile

from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.members import Files, by_folder, paths_of

MAX_STEPS = 1_000_000
"""What finding the modules of one sdist may take: comparisons of a path with a pattern, and paths that settings name,
one path again and again included. A hundred times what the largest real distributions need."""
MAX_PATTERN_LENGTH = 2048
_STEPS_TO_COMPILE = 50


class Patterns(Enum):
    """How patterns are read. A line of a .gitignore (the last one that matches decides, `!` negates) and a GLOB take
    all that is below a folder that they match; a FILE_GLOB takes just the files that it matches."""

    GITIGNORE = auto()
    GLOB = auto()
    FILE_GLOB = auto()


@dataclass(frozen=True, slots=True)
class _Pattern:
    """`segments` are its parts, `start` is the start of all paths that it matches, `plain` is the path where it is no
    more than one. `folders` and `files` say whether it may match a folder above a file, or the file. `regex` says the
    same where the pattern is so simple that no path takes it long."""

    segments: tuple[str, ...]
    start: str
    plain: str | None
    negates: bool
    folders: bool
    files: bool
    regex: re.Pattern[str] | None = None


@lru_cache(1024)
def _compiled(pattern: str, kind: Patterns) -> _Pattern:
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise LimitExceededError(f"a pattern for paths is longer than {MAX_PATTERN_LENGTH} characters")
    is_gitignore = kind is Patterns.GITIGNORE
    negates = is_gitignore and pattern.startswith("!")
    body = pattern[negates:]
    parts = [part for part in body.split("/") if part not in {"", "."}]
    if is_gitignore and parts and "/" not in body.rstrip("/"):
        parts.insert(0, "**")
    collapsed = [part for part, before in zip(parts, ["", *parts], strict=False) if (part, before) != ("**", "**")]
    fixed = list(takewhile(lambda part: not set(part) & set("*?["), collapsed[:-1]))
    found = _Pattern(
        tuple(collapsed),
        "".join(f"{part}/" for part in fixed),
        None if set(body) & set("*?[") or "**" in parts else "/".join(parts),
        negates,
        folders=kind is not Patterns.FILE_GLOB,
        files=not (is_gitignore and body.endswith("/")),
    )
    return replace(found, regex=_simple_regex(found))


def _simple_regex(pattern: _Pattern) -> re.Pattern[str] | None:
    """The pattern as a regular expression, if it has no more than one `**`, and one `*` in each other part."""
    if pattern.segments.count("**") > 1 or not all(part == "**" or _is_simple(part) for part in pattern.segments):
        return None
    *parents, last = pattern.segments or ("",)
    pieces = ["(?:.*/)?" if part == "**" else f"{_one_part(part)}/" for part in parents]
    pieces.append(".+" if last == "**" else _one_part(last))
    end = "(?:/|\\Z)" if pattern.files and pattern.folders else "/" if pattern.folders else "\\Z"
    return re.compile("".join(pieces) + end, re.DOTALL)


def _is_simple(part: str) -> bool:
    return part.count("*") <= 1 and not set(part) & set("?[")


def _one_part(part: str) -> str:
    return re.escape(part).replace(r"\*", "[^/]*")


class Effort:
    """Counts the steps that one record takes; `spend` raises LimitExceededError where there are more than MAX_STEPS."""

    def __init__(self) -> None:
        self._left = MAX_STEPS

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise LimitExceededError(f"finding what is installed takes more than {MAX_STEPS} steps")


def _matches(pattern: _Pattern, path: str, effort: Effort) -> bool:
    """Whether `pattern` matches `path`, which begins with its start, or a folder above.

    All positions in the pattern that a part can be at are followed at once, so that the time is bounded by the product
    of both lengths.
    """
    if pattern.plain is not None:
        return (pattern.files and path == pattern.plain) or (pattern.folders and path.startswith(f"{pattern.plain}/"))
    if pattern.regex is not None:
        effort.spend(1 + len(path) * len(pattern.segments) // 32)
        return pattern.regex.match(path) is not None
    parts = path.split("/")
    segments = pattern.segments
    last = len(segments)
    positions = {0}
    for depth, part in enumerate(parts, 1):
        effort.spend(len(positions) * (1 + len(part) // 64))
        reached = set()
        is_file = depth == len(parts)
        for position in positions:
            if segments[position] == "**":
                reached.add(position)
                if position + 1 == last:
                    reached.add(last)
                    continue
                position += 1  # ** may also stand for no folder
            if segments[position] == part or fnmatchcase(part, segments[position]):
                reached.add(position + 1)
        if last in reached and (pattern.files if is_file else pattern.folders):
            return True
        positions = reached - {last}
        if not positions:
            return False
    return False


def matching_paths(paths: list[str], patterns: Iterable[str], kind: Patterns, effort: Effort) -> list[str]:
    """Those of `paths` that the patterns name, in their order. Raises LimitExceededError where that takes more than is
    left of `effort`, the record's."""
    stripped = [pattern.strip() for pattern in patterns] if paths else []
    effort.spend(3 * sum(map(len, stripped)) + len(stripped) * (_STEPS_TO_COMPILE + len(paths)))
    compiled = [_compiled(pattern, kind) for pattern in stripped]
    compiled = [pattern for pattern in compiled if pattern.segments]
    named: set[str] = set()
    undecided = paths
    for pattern in reversed(compiled):
        matched = {path for path in undecided if path.startswith(pattern.start) and _matches(pattern, path, effort)}
        if matched:
            undecided = [path for path in undecided if path not in matched]
            named |= set() if pattern.negates else matched
    return [path for path in paths if path in named]


def matching(files: Files, patterns: Iterable[str], kind: Patterns, effort: Effort) -> Files:
    """Those of `files` that the patterns name; raises as `matching_paths` does."""
    return by_folder(matching_paths(paths_of(files), patterns, kind, effort))


def without(files: Files, patterns: list[str], kind: Patterns, effort: Effort) -> Files:
    """`files` without those that the patterns name; raises as `matching_paths` does."""
    if not patterns:
        return files
    paths = paths_of(files)
    named = set(matching_paths(paths, patterns, kind, effort))
    return by_folder(path for path in paths if path not in named)
