"""Matches paths against the patterns of build backends: lines of .gitignore files, and globs from a folder."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import lru_cache
from itertools import takewhile

from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.members import Files, by_folder, paths_of

_SET = re.compile(r"\[(!?+)(\]?+[^\]]*+)\]")


def matches_glob(name: str, pattern: str) -> bool:
    """Whether all of `name` matches `pattern`; case counts, and `*` stands for slashes too.

    >>> matches_glob("demo.tests", "*.test[a-z]")
    True
    """
    return _compiled_glob(pattern).fullmatch(name) is not None


@lru_cache(4096)
def _compiled_glob(pattern: str) -> re.Pattern[str]:
    """Each star but the last takes what is shortest, once and for all, so that no name takes long."""
    pieces: list[str] = []
    starts: list[int] = []
    at, last_end = 0, pattern.rfind("]")
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            if not starts or starts[-1] < len(pieces):
                starts.append(len(pieces))
        elif char == "?":
            pieces.append(".")
        elif char == "[" and at <= last_end and (found := _SET.match(pattern, at - 1)):
            pieces.append(_set(found[2], negated=bool(found[1])))
            at = found.end()
        else:
            pieces.append(re.escape(char))
    if not starts:
        return re.compile("".join(pieces), re.DOTALL)
    between = ["".join(pieces[start:end]) for start, end in zip(starts, [*starts[1:], len(pieces)], strict=True)]
    middle = "".join(f"(?>.*?{each})" for each in between[:-1])
    return re.compile(f"{''.join(pieces[: starts[0]])}{middle}.*{between[-1]}", re.DOTALL)


def _set(members: str, *, negated: bool) -> str:
    """The class of a regular expression for what is in brackets. A range that ends before it starts is empty."""
    parts = []
    at = 0
    while at < len(members):
        first, dash, last = members[at], members[at + 1 : at + 2], members[at + 2 : at + 3]
        if dash == "-" and last:
            if first <= last:
                parts.append(f"{re.escape(first)}-{re.escape(last)}")
            at += 3
        else:
            parts.append(re.escape(first))
            at += 1
    if not parts:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(parts)}]"


MAX_STEPS = 1_000_000
"""What finding the modules of one sdist may take: comparisons of a path with a pattern, and paths that settings name,
one path again and again included. A hundred times what the largest real distributions need."""
MAX_PATTERN_LENGTH = 2048
_STEPS_TO_COMPILE = 50
_CHARACTERS_IN_A_STEP = 2048
"""That are searched through for a fixed text."""
_START = re.compile(r"[^*?\[]+")
_END = re.compile(r"[^*?\[\]]+\Z")
_NEGATED_SET = re.compile(r"(?<!\\)\[\^")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Patterns(Enum):
    """How patterns are read. A line of a .gitignore (`!` negates, `#` begins a comment) and a GLOB take all that is
    below a folder that they match; a FILE_GLOB takes just the files that it matches.

    Of the lines of a .gitignore, the last one that matches a file decides; if none does, the last one that matches a
    folder above it. So does the library by which build backends read them.
    """

    GITIGNORE = auto()
    GLOB = auto()
    FILE_GLOB = auto()


@dataclass(frozen=True, slots=True)
class _Pattern:
    """`segments` are its parts, `start` is the start of all paths that it matches, `plain` is the path where it is no
    more than one. `folders` and `files` are whether it may match a folder above a file, or the file. `regex` is the
    same where the pattern is so simple that no path takes it long. Each path that it matches has all `needles` in it,
    with a slash at both ends."""

    segments: tuple[str, ...]
    start: str
    plain: str | None
    negates: bool
    folders: bool
    files: bool
    needles: tuple[str, ...]
    regex: re.Pattern[str] | None = None


@lru_cache(1024)
def _compiled_pattern(pattern: str, kind: Patterns) -> _Pattern:
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise LimitExceededError(f"a pattern for paths is longer than {MAX_PATTERN_LENGTH} characters")
    is_gitignore = kind is Patterns.GITIGNORE
    negates = is_gitignore and pattern.startswith("!")
    body = _unescaped(pattern[negates:]) if is_gitignore else pattern
    if is_gitignore:
        parts = body.removeprefix("/").removesuffix("/").split("/") if body.strip("/") else []
    else:
        parts = [part for part in body.split("/") if part not in {"", "."}]
    if is_gitignore and parts and "/" not in body.rstrip("/"):
        parts.insert(0, "**")
    collapsed = [part for part, before in zip(parts, ["", *parts], strict=False) if (part, before) != ("**", "**")]
    if is_gitignore and body.endswith("/**/") and len(collapsed) > 1:
        collapsed.pop()  # what is in any folder below, or in none
    fixed = list(takewhile(lambda part: not set(part) & set("*?["), collapsed[:-1]))
    found = _Pattern(
        tuple(collapsed),
        "".join(f"{part}/" for part in fixed),
        None if set(body) & set("*?[") or "**" in parts else "/".join(parts),
        negates,
        folders=kind is not Patterns.FILE_GLOB,
        files=not (is_gitignore and body.endswith("/")),
        needles=tuple([needle for part in collapsed if part != "**" for needle in _needles(part)]),
    )
    return replace(found, regex=_simple_regex(found))


def _needles(part: str) -> list[str]:
    """The fixed start and end of a part of a pattern, next to the slashes around it."""
    start, end = _START.match(part), _END.search(part)
    if start and start.end() == len(part):
        return [f"/{part}/"]
    return [f"/{start[0]}" if start else "", f"{end[0]}/" if end else ""]


def _unescaped(pattern: str) -> str:
    r"""The pattern without its backslashes, and `[^a]` as `[!a]`: `\*` is a star, which is in brackets then, and `\#`
    is a number sign."""
    pattern = _NEGATED_SET.sub("[!", pattern)
    return _ESCAPED.sub(lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], pattern)


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


def _possible(patterns: list[_Pattern], text: str, effort: Effort) -> list[_Pattern]:
    """The patterns that may match a path in `text`, in which each folder and each file has a slash at both ends."""
    effort.spend((4 + len(patterns)) * (1 + len(text) // _CHARACTERS_IN_A_STEP))
    return [pattern for pattern in patterns if all(needle in text for needle in pattern.needles)]


def _matched(pattern: _Pattern, paths: list[str], effort: Effort) -> set[str]:
    """Those of `paths` that `pattern` matches, or of which it matches a folder above."""
    if pattern.plain is not None:
        start = f"{pattern.plain}/"
        matched = {path for path in paths if path.startswith(start)} if pattern.folders else set()
        return matched | {pattern.plain} if pattern.files and pattern.plain in paths else matched
    near = [path for path in paths if path.startswith(pattern.start)] if pattern.start else paths
    if pattern.regex is None:
        return {path for path in near if _matches(pattern, path, effort)}
    effort.spend(len(near) + sum(map(len, near)) * len(pattern.segments) // 32)
    return set(filter(pattern.regex.match, near))


def _matches(pattern: _Pattern, path: str, effort: Effort) -> bool:
    """Whether `pattern` matches `path`, which begins with its start, or a folder above.

    All positions in the pattern that a part can be at are followed at once, so that the time is bounded by the product
    of both lengths.
    """
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
            if segments[position] == part or matches_glob(part, segments[position]):
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
    return _named(paths, _all_compiled(patterns, kind, effort), effort) if paths else []


def matching(files: Files, patterns: Iterable[str], kind: Patterns, effort: Effort) -> Files:
    """Those of `files` that the patterns name; raises as `matching_paths` does."""
    return by_folder(_named_in(files, _all_compiled(patterns, kind, effort), effort)) if files else []


def without(files: Files, patterns: list[str], kind: Patterns, effort: Effort) -> Files:
    """`files` without those that the patterns name; raises as `matching_paths` does."""
    if not files or not patterns:
        return files
    compiled = _all_compiled(patterns, kind, effort)
    if not any(pattern.negates for pattern in compiled):
        gone = tuple([f"{pattern.plain}/" for pattern in compiled if pattern.plain is not None and pattern.folders])
        files = [each for each in files if not f"{each[0]}/".startswith(gone)]
    named = set(_named_in(files, compiled, effort))
    changed = {path.rpartition("/")[0] for path in named}
    kept: Files = []
    for each in files:
        if each[0] in changed:
            kept += by_folder(path for path in paths_of([each]) if path not in named)
        else:
            kept.append(each)
    return kept


def _named_in(files: Files, patterns: list[_Pattern], effort: Effort) -> list[str]:
    """The paths of those of `files` that the patterns name; of folders that none of them is near, no path is made."""
    if not patterns:
        return []
    names = [f"{folder}/{inside.sources.replace('/', '.py/')}{inside.others}" for folder, inside in files]
    patterns = _possible(patterns, "/".join(("", *names)), effort)
    effort.spend(2 * len(patterns) * len(files))
    starts = tuple([pattern.start if pattern.plain is None else f"{pattern.plain}/" for pattern in patterns])
    parents = {pattern.plain.rpartition("/")[0] for pattern in patterns if pattern.plain is not None}
    near = [each for each in files if each[0] in parents or f"{each[0]}/".startswith(starts)]
    return _named(paths_of(near), patterns, effort)


def _all_compiled(patterns: Iterable[str], kind: Patterns, effort: Effort) -> list[_Pattern]:
    if kind is Patterns.GITIGNORE:
        stripped = [line for pattern in patterns if not (line := _line(pattern)).startswith("#")]
    else:
        stripped = [pattern.strip() for pattern in patterns]
    effort.spend(3 * sum(map(len, stripped)) + len(stripped) * _STEPS_TO_COMPILE)
    return [found for pattern in stripped if (found := _compiled_pattern(pattern, kind)).segments]


def _line(pattern: str) -> str:
    """A line of a .gitignore without the blanks behind it, of which a backslash keeps one."""
    stripped = pattern.rstrip()
    return f"{stripped} " if stripped.endswith("\\") and pattern != stripped else stripped


def _of_files(pattern: _Pattern) -> _Pattern:
    """`pattern` where it matches a file itself, and not a folder above."""
    found = replace(pattern, folders=False)
    return replace(found, regex=_simple_regex(found))


def _named(paths: list[str], patterns: list[_Pattern], effort: Effort) -> list[str]:
    patterns = _possible(patterns, "/".join(("", *paths, "")), effort)
    effort.spend(len(patterns) * len(paths))
    named: set[str] = set()
    undecided = paths
    if any(pattern.negates for pattern in patterns):
        effort.spend(len(patterns) * (len(paths) + _STEPS_TO_COMPILE))
        patterns = [*patterns, *(_of_files(pattern) for pattern in patterns if pattern.files)]
    for pattern in reversed(patterns):
        if matched := _matched(pattern, undecided, effort):
            undecided = [path for path in undecided if path not in matched]
            named |= set() if pattern.negates else matched
    return [path for path in paths if path in named]
